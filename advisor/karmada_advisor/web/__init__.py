"""The page of ``karmada-pyscheduler web``: what the commands print, in a browser and as JSON. Nothing is written."""
