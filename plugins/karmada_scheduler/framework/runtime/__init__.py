"""Runs plugins: calls them in order, with timeouts, circuit breakers, metrics and cached filter results."""
