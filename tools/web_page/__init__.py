"""The page of ``karmada-pyscheduler web``: its screenshots."""
