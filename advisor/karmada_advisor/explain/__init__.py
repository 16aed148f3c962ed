"""Explains decisions: traces that recompute each step, causes, and the explanation as data."""
