"""The values that generated scenarios consist of."""

from __future__ import annotations

from typing import Any

Manifest = dict[str, Any]
CPU = (
    "100m", "250m", "500m", "1", "1", "2", "2", "4", "0.5", "1500m", "1.5", "300m", "8", "7", "64", "3939m",
)  # fmt: skip
MEMORY = (
    "128Mi", "256Mi", "1Gi", "1Gi", "2Gi", "4Gi", "512Mi", "100M", "1G", "2G", "1073741824", "16Gi", "1e9", "64Gi",
)  # fmt: skip
COUNT = ("1", "2", "3", "5", "8", "10", "20", "40", "110", "100", "7")
NOTATIONS = (
    "0", "0m", "00", "+5", "5.", ".5", "1e3", "1E3", "1e0", "12e-1", "1.5Gi", "5.0Gi", "0.5Gi", "0.1Ki", "2k", "1M",
    "3n", "1u", "900u", "1000001", "999Ki", "1023", "1025", "1536Mi", "0.0000000001", "1.0000000001", "1.10", "010",
    "123456789.987654321", "100m", "0.1m", "1Ki", "3e2", "2E2", "1e-3", "1e-9",
)  # fmt: skip
EXTREME = (
    "-1", "-500m", "-1Gi", "-1.5Gi", "-20Gi", "-0.5", "100Ti", "120Ti", "125380Gi", "1Pi", "1Ei", "8Ei", "9Ei",
    "100000Gi", "99999999999Ki", "1P", "9P", "9.2e15", "1e15", "9223372036854775807", "999999999999999999",
    "9300000000000000", "12345678901234567890", "1e19", "1.5Pi", "2e9", "3e9",
)  # fmt: skip
RESOURCES = (
    "cpu", "cpu", "cpu", "memory", "memory", "memory", "nvidia.com/gpu", "ephemeral-storage", "pods", "foo",
    "hugepages-2Mi", "requests.example.com/a", "kubernetes.io/b", "attachable-volumes-x",
)  # fmt: skip
LABELS = {
    "env": ("prod", "dev", "test"),
    "tier": ("gold", "silver"),
    "gpu": ("true",),
    "disk": ("ssd", "hdd", ""),
}
PROVIDERS = ("p1", "p2", "p3")
REGIONS = ("r1", "r2", "r3", "r4", "r5")
ZONES = ("z1", "z2", "z3", "z4")
TAINT_KEYS = ("key1", "gpu", "cluster.karmada.io/not-ready", "k")
TAINT_VALUES = ("", "a", "b")
WORKLOADS = (
    ("apps/v1", "Deployment"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
)
CONFIGS = (("v1", "ConfigMap"), ("v1", "Service"), ("rbac.authorization.k8s.io/v1", "ClusterRole"))
ODD_KINDS = (
    ("/v1", "Service"),
    ("", "Deployment"),
    ("/", "X"),
    ("a/b/c", "Y"),
    ("apps/v1", "deployment"),
    ("v1", ""),
)
OWNERS = ("other-job", "w1-deployment", "w2-deployment", "w3-deployment", "w4-statefulset")
GROUPS = ("app=a", "app=b", "team=x")
T0, T1, T2 = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z", "2026-02-01T12:30:00Z"
