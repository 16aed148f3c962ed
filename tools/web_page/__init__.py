"""The page of ``karmada-pyscheduler web``: its latency and size, and its screenshots."""
