"""Benchmarks: throughput on a control plane, decisions on their own, a start. Never run in CI, which checks counts."""
