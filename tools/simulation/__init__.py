"""Deterministic simulation: the real scheduler in virtual time, under faults, against an API server in memory.

``make simulate-faults`` runs many seeds; docs/reliability.md describes what is simulated and what is not.
"""
