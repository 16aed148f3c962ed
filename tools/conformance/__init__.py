"""Recorded decisions of karmada-scheduler v1.18.2, replayed through the decision core."""
