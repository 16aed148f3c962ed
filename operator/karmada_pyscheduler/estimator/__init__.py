"""The estimator of available replicas by karmada-scheduler-estimator in the member clusters.

``accurate``, with ``session``, ``silence``, ``connections``, ``transport``, ``grpc_channel`` and ``wire``.
"""
