"""Benchmarks; never run in CI, which checks the counts behind them instead."""
