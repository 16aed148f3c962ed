"""Estimators of available replicas.

- ``general``: from resource summaries and models; with ``capacity``, ``nodes`` and ``resources``.
- ``accurate``: from karmada-scheduler-estimator in the member clusters; with ``session``, ``silence``,
  ``connections``, ``grpc_channel``, ``tls_proxy``, ``discovery`` and ``wire``. ``estimation`` builds them.
"""
