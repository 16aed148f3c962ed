"""What karmada-scheduler v1.18.2 really decided, replayed through the decision core."""
