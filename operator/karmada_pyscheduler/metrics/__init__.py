"""Prometheus metrics: upstream's with upstream's names, labels and buckets, and additional ones."""
