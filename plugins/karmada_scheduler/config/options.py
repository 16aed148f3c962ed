"""The options of the process. Each field with a flag has its default, its name and its help text here.

``config.flags`` reads them from the command line. Durations are in seconds.

Source: karmada v1.18.2 cmd/scheduler/app/options/options.go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.config import features
from karmada_scheduler.config.features import DEFAULT_RULES, RULES

Kind = Literal["text", "bool", "integer", "number", "duration", "size", "file", "list"]

FLAG: Final = "flag"
"""Key of the Flag in the metadata of a field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """The flag of a field.

    Attributes:
        name: Without dashes.
        text: For ``--help`` and docs/operations.md, without the default.
        kind: The type of its value; ``list`` may be repeated and has no default in ``--help``.
        choices: The allowed values, all if empty.
        metavar: The value in ``--help``.
    """

    name: str
    text: str
    kind: Kind
    choices: tuple[str, ...] = ()
    metavar: str = "VALUE"


def _flag(name: str, default: Any, text: str, **more: Any) -> Any:
    """Return a field whose flag has the type of its default."""
    kinds: dict[type, Kind] = {bool: "bool", int: "integer", str: "text"}
    kind: Kind = more.pop("kind", None) or kinds[type(default)]
    return field(default=default, metadata={FLAG: Flag(name=name, text=text, kind=kind, **more)})


def _duration(name: str, default: float, text: str) -> Any:
    return _flag(name, default, text, kind="duration")


def _file(name: str, text: str) -> Any:
    return _flag(name, None, text, kind="file", metavar="FILE")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    """The Lease; the defaults are client-go's."""

    enabled: bool = _flag("leader-elect", True, "elect a leader by a Lease")
    name: str = _flag("leader-elect-resource-name", "karmada-scheduler", "name of the Lease")
    namespace: str = _flag("leader-elect-resource-namespace", "karmada-system", "namespace of the Lease")
    lease_duration: float = _duration(
        "leader-elect-lease-duration",
        15.0,
        "how long others wait before they take over; the Lease has whole seconds, so it is rounded up",
    )
    renew_deadline: float = _duration(
        "leader-elect-renew-deadline", 10.0, "how long a leader tries to renew before it stops"
    )
    retry_period: float = _duration("leader-elect-retry-period", 2.0, "time between two tries")

    @property
    def lease_seconds(self) -> int:
        """The duration as the Lease has it: never less than ``lease_duration``, with which the renew deadline is compared."""
        return math.ceil(self.lease_duration)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLimits:
    """The backoff of failed bindings; the defaults are upstream's.

    Attributes:
        base_delay: The delay of the first retry of a binding; doubles with every failure in a row.
        max_delay: The longest delay.
        qps: Retries of all bindings per second.
        burst: Retries that may exceed ``qps``.
    """

    base_delay: float = _duration("rate-limiter-base-delay", 0.005, "first retry delay")
    max_delay: float = _duration("rate-limiter-max-delay", 1000.0, "largest retry delay")
    qps: float = _flag("rate-limiter-qps", 10, "retries per second of all bindings")
    burst: int = _flag("rate-limiter-bucket-size", 100, "burst above --rate-limiter-qps")


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorOptions:
    """Requests to the karmada-scheduler-estimator of each member cluster.

    Attributes:
        not_in_pull_mode: Whether clusters in Pull mode are left out.
        timeout: The time that one decision waits for all responses together.
        cert_file, key_file: The client certificate; one without the other is ignored.
        ca_file: The CA of the estimators' certificates; "" for the system's CAs.
        skip_verify: TLS without verification of certificates.
        failure_policy: ``partial``: the responses that arrived count. ``upstream``: a missing one voids all.
        answer_ttl: The time in which decisions share the response to a request; 0 for no sharing.
    """

    enabled: bool = _flag(
        "enable-scheduler-estimator",
        False,
        "request available replicas from karmada-scheduler-estimator of each member",
    )
    not_in_pull_mode: bool = _flag(
        "disable-scheduler-estimator-in-pull-mode", False, "with the above: not for Pull clusters"
    )
    timeout: float = _duration("scheduler-estimator-timeout", 3.0, "how long a decision waits for estimators")
    namespace: str = _flag(
        "scheduler-estimator-service-namespace", "karmada-system", "namespace of the estimators' Services"
    )
    prefix: str = _flag(
        "scheduler-estimator-service-prefix",
        "karmada-scheduler-estimator",
        "estimator Services are named <prefix>-<cluster>",
    )
    port: int = _flag("scheduler-estimator-port", 10352, "port of the estimators' Services")
    cert_file: str = _flag(
        "scheduler-estimator-cert-file", "", "client certificate for estimators, only used with its key"
    )
    key_file: str = _flag("scheduler-estimator-key-file", "", "its key")
    ca_file: str = _flag(
        "scheduler-estimator-ca-file",
        "",
        "CA of the estimators; without it and unless verification is skipped: no TLS",
    )
    skip_verify: bool = _flag(
        "insecure-skip-estimator-verify", False, "TLS to estimators without verifying them"
    )
    failure_policy: Literal["upstream", "partial"] = _flag(
        "estimator-failure-policy",
        "partial",
        "partial: use the responses that arrived, resource summaries for the rest; "
        "upstream: one missing response voids all",
        choices=("partial", "upstream"),
    )
    answer_ttl: float = _duration(
        "estimator-answer-ttl",
        1.0,
        "how long decisions share the response to the same request; "
        "0 with --estimator-failure-policy=upstream, unless it is set",
    )

    @property
    def certificate(self) -> tuple[str, str] | None:
        """The files of the client certificate and its key."""
        return (self.cert_file, self.key_file) if self.cert_file and self.key_file else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """Records of decisions.

    Attributes:
        address: ``host:port`` of the records, or "" for none; the host is a loopback address unless there is a certificate.
        tls_cert_file, tls_key_file: The certificate of the server in PEM, whose readers then need a token; None for HTTP.
        allowed_hosts: Names in the ``Host`` header besides those of this machine, in lower case.
        memory: The memory of all records in bytes.
        decision_log: The file to which records are appended; None for none.
    """

    address: str = _flag(
        "explain-bind-address",
        "",
        "address and port of the records of decisions, such as 127.0.0.1:10353; without --explain-tls-cert-file a loopback address; 0 or nothing for none",
    )
    tls_cert_file: Path | None = _file(  # noqa: RUF009 (it is a field)
        "explain-tls-cert-file",
        "certificate chain of the records: readers need a token of the Karmada API server for the audience karmada-pyscheduler-records, whose holder may get /karmada-pyscheduler/records there",
    )
    tls_key_file: Path | None = _file(  # noqa: RUF009 (it is a field)
        "explain-tls-key-file", "key of that certificate"
    )
    allowed_hosts: tuple[str, ...] = _flag(
        "explain-allowed-host",
        (),
        "name that requests for records may have in their Host header, besides localhost; may be repeated",
        kind="list",
        metavar="NAME",
    )
    memory: int = _flag(
        "explain-memory",
        32 * 2**20,
        "memory for the records of decisions, of 20,000 bindings at most",
        kind="size",
    )
    decision_log: Path | None = _file(  # noqa: RUF009 (it is a field)
        "decision-log", "file to which the record of each decision is appended as a line of JSON"
    )

    @property
    def enabled(self) -> bool:
        """Whether decisions are recorded: only if the records can be read."""
        return bool(self.address) or self.decision_log is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All options, validated.

    Attributes:
        kube_api_qps: Write requests per second; None for no limit but that of ``binding_cycle.write_limiter``.
        kube_api_burst: Size of the bucket behind ``kube_api_qps``.
        health_address, metrics_address: ``host:port``, or "" for none.
        metrics_tls_cert_file, metrics_tls_key_file: The certificate of the metrics in PEM, whose readers then need a token of the host;
            None for HTTP.
        metrics_kubeconfig: Of the API server of the host; "" for the service account of the Pod.
        plugin_dirs: The directories whose files are plugins.
        warnings: Flags that have no effect in this combination, for the log.
    """

    kubeconfig: str = _flag(
        "kubeconfig",
        "",
        "kubeconfig of the Karmada control plane; without it and --master: in-cluster, then ~/.kube",
    )
    master: str = _flag("master", "", "address of the API server, overrides the kubeconfig's")
    scheduler_name: str = _flag(
        "scheduler-name",
        DEFAULT_SCHEDULER_NAME,
        "handle bindings with this spec.schedulerName; also the event source",
    )
    plugins: tuple[str, ...] = _flag(
        "plugins",
        ("*",),
        "plugins to enable: *, *,-Name, Name,Other (default *)",
        kind="list",
        metavar="LIST",
    )
    config: Path | None = _file(  # noqa: RUF009 (it is a field)
        "config", "YAML file with profiles, plugin args and extenders"
    )
    plugin_dirs: tuple[Path, ...] = _flag(
        "plugin-dir",
        (),
        "directory whose *.py files are plugins; changes count at once; may be repeated",
        kind="list",
        metavar="DIR",
    )
    feature_gates: features.FeatureGates = field(
        default_factory=features.FeatureGates,
        metadata={
            FLAG: Flag(name="feature-gates", text="gates, as A=true,B=false", kind="list", metavar="LIST")
        },
    )
    decisions_of: str = _flag(
        "decisions-of",
        DEFAULT_RULES.decisions_of,
        "version of karmada-scheduler whose decisions are made: 1.17 estimates by resource models and matches zones as that "
        "version did; with 1.19 a reschedule begins with the first affinity term, targets have components, and "
        "PriorityBasedScheduling is on by default",
        choices=tuple(RULES),
    )
    enable_empty_workload_propagation: bool = _flag(
        "enable-empty-workload-propagation", False, "keep selected clusters with 0 replicas in the result"
    )
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    metrics_address: str = _flag("metrics-bind-address", ":8080", "host:port of /metrics, 0 for none")
    metrics_tls_cert_file: Path | None = _file(  # noqa: RUF009 (it is a field)
        "metrics-tls-cert-file",
        "certificate chain of /metrics: readers need a token of the cluster that hosts Karmada, whose holder may get /metrics there",
    )
    metrics_tls_key_file: Path | None = _file(  # noqa: RUF009 (it is a field)
        "metrics-tls-key-file", "key of that certificate"
    )
    metrics_kubeconfig: str = _flag(
        "metrics-kubeconfig",
        "",
        "kubeconfig of that cluster, of a user who may create tokenreviews and subjectaccessreviews; without it the Pod's service account",
        metavar="FILE",
    )
    health_address: str = _flag(
        "health-probe-bind-address", ":10351", "host:port of /healthz and /readyz, 0 for none"
    )
    kube_api_qps: float | None = _flag(
        "kube-api-qps",
        None,
        "writes per second; default: as many as the API server answers well",
        kind="number",
    )
    kube_api_burst: int = _flag("kube-api-burst", 60, "burst above --kube-api-qps")
    max_in_flight: int = _flag(
        "max-in-flight", 32, "bindings whose results are written at the same time, at most"
    )
    resync_seconds: float = _duration(
        "resync-period", 300.0, "how often the caches are compared with a list of the API server"
    )
    retry_limits: RetryLimits = field(default_factory=RetryLimits)
    estimators: EstimatorOptions = field(default_factory=EstimatorOptions)
    assumption_ttl: float = _duration(
        "assumption-ttl",
        300.0,
        "with SchedulingOvercommitProtection: how long a placement counts before it is reported",
    )
    explain: ExplainOptions = field(default_factory=ExplainOptions)
    logging_format: str = _flag("logging-format", "text", "text or json", choices=("text", "json"))
    verbosity: int = _flag("v", 0, "verbosity, 0 to 4 and above", metavar="N")
    warnings: tuple[str, ...] = ()
