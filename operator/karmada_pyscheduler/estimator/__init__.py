"""The estimator of available replicas by karmada-scheduler-estimator in the member clusters.

``accurate``, with ``session``, ``silence``, ``connections``, ``grpc_channel``, ``tls_proxy``, ``discovery`` and ``wire``.
``estimation`` builds the estimators of both kinds.
"""
