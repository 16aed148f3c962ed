"""The commands of ``karmada-pyscheduler``."""
