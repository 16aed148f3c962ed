"""What changes and losses would do: plans, survival, rebalances and placement tests, by one engine."""
