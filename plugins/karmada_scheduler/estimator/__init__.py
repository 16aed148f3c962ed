"""The estimator of available replicas by resource summaries and models; ``general``, with ``capacity`` and ``nodes``."""
