"""Proposes which bindings to rebalance, within bounds: ``propose.propose``."""
