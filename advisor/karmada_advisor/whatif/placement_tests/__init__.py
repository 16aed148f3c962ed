"""Placement tests: what policies do with workloads on a fleet, as cases with expectations."""
