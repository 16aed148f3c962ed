"""Command-line options: karmada-scheduler's flags, by the same names and with the same meaning.

Every flag of upstream is accepted, so that a Deployment written for karmada-scheduler starts this
program unchanged. What a flag does here is in its help text; where it has no effect, that says so.

Source: karmada v1.18.2 cmd/scheduler/app/options/{options,validation}.go; the flag syntax is pflag's
(``--flag=value``, ``--flag value``, a bare ``--bool``, ``_`` and ``-`` interchangeable).
"""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Never

import durationpy

from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.config import features
from karmada_scheduler.config.problems import nearest


class OptionsError(ValueError):
    """Flags that cannot be used; the text has one line per mistake and names the flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElection:
    """Where and how the Lease is kept; durations in seconds, defaults are client-go's."""

    enabled: bool = True
    name: str = "karmada-scheduler"
    namespace: str = "karmada-system"
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorOptions:
    """Whether and how karmada-scheduler-estimator of each member cluster is asked.

    Attributes:
        not_in_pull_mode: Whether clusters in Pull mode are left out.
        timeout: Seconds that one decision waits for all answers together.
        namespace: Of the Services.
        prefix: Services are named ``<prefix>-<cluster>``.
        port: The port by which estimators are known.
        cert_file, key_file: Our own certificate; "" for none. One without the other is none.
        ca_file: Who must have signed the estimators' certificates; "" for the system's authorities.
        skip_verify: TLS without looking at certificates.
        failure_policy: ``partial``: the answers that arrived count. ``upstream``: one that is missing voids all.
        answer_ttl: Seconds from a question within which decisions share its answer; 0 for none.
    """

    enabled: bool = False
    not_in_pull_mode: bool = False
    timeout: float = 3.0
    namespace: str = "karmada-system"
    prefix: str = "karmada-scheduler-estimator"
    port: int = 10352
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    skip_verify: bool = False
    failure_policy: Literal["upstream", "partial"] = "partial"
    answer_ttl: float = 1.0

    @property
    def uses_tls(self) -> bool:
        """Whether connections are encrypted: only if there is something to say about it."""
        return bool(self.ca_file) or self.skip_verify

    @property
    def certificate(self) -> tuple[str, str] | None:
        """The files of our own certificate and its key."""
        return (self.cert_file, self.key_file) if self.cert_file and self.key_file else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the process was told, validated.

    Attributes:
        kube_api_qps: Write requests per second; None when the flag was not given, which means as many as
            the API server answers well (``write_pace``).
        kube_api_burst: Size of the bucket behind ``kube_api_qps``.
        max_in_flight: Bindings whose results are being written at the same time, at most.
        resync_seconds: How often the caches are compared with a list of the API server, for what a
            watch missed.
        assumption_ttl: Seconds for which a placement counts as taken before its cluster reports it
            (gate SchedulingOvercommitProtection).
        health_address, metrics_address: ``host:port``, or "" for none.
        config: The file with profiles, plugin args and extenders.
        plugin_dirs: The directories whose files are plugins.
        notices: What is odd about the flags without being a mistake; for the log.
    """

    kubeconfig: str = ""
    master: str = ""
    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    plugins: tuple[str, ...] = ("*",)
    config: Path | None = None
    plugin_dirs: tuple[Path, ...] = ()
    feature_gates: features.FeatureGates = field(default_factory=features.FeatureGates)
    enable_empty_workload_propagation: bool = False
    estimators: EstimatorOptions = field(default_factory=EstimatorOptions)
    assumption_ttl: float = 300.0
    leader_election: LeaderElection = field(default_factory=LeaderElection)
    metrics_address: str = ":8080"
    health_address: str = ":10351"
    kube_api_qps: float | None = None
    kube_api_burst: int = 60
    max_in_flight: int = 32
    resync_seconds: float = 300.0
    rate_limiter_base_delay: float = 0.005
    rate_limiter_max_delay: float = 1000.0
    rate_limiter_qps: float = 10.0
    rate_limiter_bucket_size: int = 100
    notices: tuple[str, ...] = ()
    verbosity: int = 0
    logging_format: str = "text"


_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def _bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is not true or false")


def _seconds(text: str) -> float:
    try:
        return float(durationpy.from_str(text).total_seconds())
    except (durationpy.DurationError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration such as 15s or 2m30s") from error


class _Parser(argparse.ArgumentParser):
    """argparse whose errors are ours to report: one exception instead of an exit."""

    def error(self, message: str) -> Never:
        raise OptionsError(message)


_UNUSED: Final = "accepted for compatibility, no effect"
_BOOLS: Final = (
    ("enable-pprof", _UNUSED),
    ("enable-scheduler-estimator", "ask karmada-scheduler-estimator of each member for room"),
    ("disable-scheduler-estimator-in-pull-mode", "with the above: not for Pull clusters"),
    ("insecure-skip-estimator-verify", "TLS to estimators without verifying them"),
    *((name, _UNUSED) for name in ("add-dir-header", "alsologtostderr", "logtostderr", "one-output")),
    *(
        (name, _UNUSED)
        for name in ("skip-headers", "skip-log-headers", "log-text-split-stream", "log-json-split-stream")
    ),
)
_STRINGS: Final = (
    ("scheduler-estimator-cert-file", "client certificate for estimators, only used with its key"),
    ("scheduler-estimator-key-file", "its key"),
    (
        "scheduler-estimator-ca-file",
        "CA of the estimators; without it and unless verification is skipped: no TLS",
    ),
    *(
        (name, _UNUSED)
        for name in ("profiling-bind-address", "vmodule", "log-flush-frequency", "log-dir", "log-file")
    ),
    *((name, _UNUSED) for name in ("log-backtrace-at", "log-file-max-size", "stderrthreshold")),
    *((name, _UNUSED) for name in ("log-text-info-buffer-size", "log-json-info-buffer-size")),
)


def _add_flags(parser: argparse.ArgumentParser) -> None:
    def flag(name: str, default: Any, text: str, **kwargs: Any) -> None:
        parser.add_argument(
            f"--{name}", default=default, help=text, metavar=kwargs.pop("metavar", "VALUE"), **kwargs
        )

    flag(
        "kubeconfig",
        "",
        "kubeconfig of the Karmada control plane; without it and --master: in-cluster, then ~/.kube",
    )
    flag("master", "", "address of the API server, overrides the kubeconfig's")
    flag(
        "scheduler-name",
        DEFAULT_SCHEDULER_NAME,
        "handle bindings with this spec.schedulerName; also the event source",
    )
    flag(
        "plugins",
        None,
        "plugins to enable: *, *,-Name, Name,Other (default *)",
        action="append",
        metavar="LIST",
    )
    flag("config", "", "YAML file with profiles, plugin args and extenders", metavar="FILE")
    flag(
        "plugin-dir",
        [],
        "directory whose *.py files are plugins; changes count at once; may be repeated",
        action="append",
        metavar="DIR",
    )
    flag("feature-gates", [], "gates, as A=true,B=false", action="append", metavar="LIST")
    flag(
        "enable-empty-workload-propagation",
        False,
        "keep selected clusters with 0 replicas in the result",
        type=_bool,
    )
    flag("leader-elect", True, "elect a leader by a Lease", type=_bool)
    flag("leader-elect-resource-name", "karmada-scheduler", "name of the Lease")
    flag("leader-elect-resource-namespace", "karmada-system", "namespace of the Lease")
    flag(
        "leader-elect-lease-duration", 15.0, "how long others wait before they take over (15s)", type=_seconds
    )
    flag(
        "leader-elect-renew-deadline",
        10.0,
        "how long a leader tries to renew before it stops (10s)",
        type=_seconds,
    )
    flag("leader-elect-retry-period", 2.0, "time between two tries (2s)", type=_seconds)
    flag("metrics-bind-address", ":8080", "host:port of /metrics, 0 for none")
    flag("health-probe-bind-address", ":10351", "host:port of /healthz and /readyz, 0 for none")
    flag("bind-address", None, "older form of --health-probe-bind-address, with --secure-port")
    flag("secure-port", None, "older form of --health-probe-bind-address, with --bind-address", type=int)
    flag(
        "kube-api-qps", None, "writes per second; default: as many as the API server answers well", type=float
    )
    flag("kube-api-burst", 60, "burst above --kube-api-qps", type=int)
    flag("max-in-flight", 32, "bindings whose results are written at the same time, at most", type=int)
    flag("resync-period", 300.0, "how often the caches are compared with a list (5m)", type=_seconds)
    flag("rate-limiter-base-delay", 0.005, "first retry delay (5ms)", type=_seconds)
    flag("rate-limiter-max-delay", 1000.0, "largest retry delay (1000s)", type=_seconds)
    flag("rate-limiter-qps", 10, "retries per second of all bindings", type=int)
    flag("rate-limiter-bucket-size", 100, "burst above --rate-limiter-qps", type=int)
    flag("scheduler-estimator-timeout", 3.0, "how long a decision waits for estimators (3s)", type=_seconds)
    flag("scheduler-estimator-service-namespace", "karmada-system", "namespace of the estimators' Services")
    flag(
        "scheduler-estimator-service-prefix",
        "karmada-scheduler-estimator",
        "estimator Services are named <prefix>-<cluster>",
    )
    flag(
        "estimator-failure-policy",
        "partial",
        "partial: use the answers that arrived, summaries for the rest; upstream: one missing answer voids all",
        choices=("partial", "upstream"),
    )
    flag(
        "estimator-answer-ttl",
        None,
        "how long decisions share the answer to the same question (1s; 0 with --estimator-failure-policy=upstream)",
        type=_seconds,
    )
    flag(
        "assumption-ttl",
        300.0,
        "with SchedulingOvercommitProtection: how long a placement counts before it is reported (5m)",
        type=_seconds,
    )
    flag("scheduler-estimator-port", 10352, "port of the estimators' Services", type=int)
    flag("logging-format", "text", "text or json", choices=("text", "json"))
    parser.add_argument("-v", "--v", default=0, type=int, metavar="N", help="verbosity, 0 to 4 and above")
    for name, text in _BOOLS:
        flag(name, False, text, type=_bool)
    for name, text in _STRINGS:
        flag(name, "", text)


def _bool_flags(parser: argparse.ArgumentParser) -> frozenset[str]:
    return frozenset(
        option
        for action in parser._actions  # noqa: SLF001 (argparse has no public list of its flags)
        if action.type is _bool
        for option in action.option_strings
    )


def _normalise(arguments: Sequence[str], bools: frozenset[str]) -> list[str]:
    """Turn pflag's spellings into the one that argparse reads without guessing."""
    result: list[str] = []
    for position, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *arguments[position:]]
        if not argument.startswith("--"):
            result.append(argument)
            continue
        name, separator, value = argument.partition("=")
        name = name.replace("_", "-")
        if not separator and name in bools:
            separator, value = "=", "true"
        result.append(f"{name}{separator}{value}")
    return result


COMMANDS: Final = ("plugins", "simulate", "version", "help")
"""What may stand in place of the flags."""

_ABOUT_COMMANDS: Final = (
    "Commands instead of flags: 'version' (or --version); 'plugins', which lists them; 'simulate', which decides "
    "over files; 'help' with the name of one of these."
)


def make_parser(program: str = "karmada-pyscheduler") -> argparse.ArgumentParser:
    """Return the parser of the scheduler's own flags."""
    parser = _Parser(
        prog=program, allow_abbrev=False, description="Schedule Karmada's bindings.", epilog=_ABOUT_COMMANDS
    )
    _add_flags(parser)
    return parser


def parse(arguments: Sequence[str]) -> Options:
    """Read and validate flags.

    Raises:
        OptionsError: Unknown flags, values of the wrong type, positional arguments, or values that
            make no sense; all mistakes that can be told apart are in one text.
        SystemExit: ``--help`` was asked for and has been printed.
    """
    parser = make_parser()
    known, rest = parser.parse_known_args(_normalise(arguments, _bool_flags(parser)))
    if rest:
        unknown = [item.partition("=")[0] for item in rest if item.startswith("-")]
        if unknown:
            raise OptionsError("\n".join(f"unknown flag: {name}" for name in unknown))
        guess = nearest(rest[0], COMMANDS)
        raise OptionsError(
            f'no command "{rest[0]}"; {guess}commands: {", ".join(COMMANDS)}; or none, with flags'
        )
    return _validated(known)


def plugin_tokens(lists: Sequence[str] | None) -> tuple[str, ...]:
    """Return what the occurrences of ``--plugins`` say together; all plugins if there is none."""
    if lists is None:
        return ("*",)
    return tuple(token for each in lists for token in each.split(",") if token)


def _validated(flags: argparse.Namespace) -> Options:
    mistakes: list[str] = []
    try:
        gates = features.parse(flags.feature_gates)
    except ValueError as error:
        mistakes.append(f"--feature-gates: {error}")
        gates = features.FeatureGates()
    if not flags.scheduler_name:
        mistakes.append('Options.SchedulerName: Invalid value: "": should not be empty')
    mistakes.extend(_estimator_mistakes(flags))
    election = LeaderElection(
        enabled=flags.leader_elect,
        name=flags.leader_elect_resource_name,
        namespace=flags.leader_elect_resource_namespace,
        lease_duration=flags.leader_elect_lease_duration,
        renew_deadline=flags.leader_elect_renew_deadline,
        retry_period=flags.leader_elect_retry_period,
    )
    mistakes.extend(_election_mistakes(election))
    addresses = {}
    for name, text in (
        ("--metrics-bind-address", flags.metrics_bind_address),
        ("--health-probe-bind-address", _health_address(flags)),
    ):
        try:
            addresses[name] = _address(text)
        except ValueError as error:
            mistakes.append(f"{name}: {error}")
    mistakes.extend(
        f"{name} must be greater than 0"
        for name, value in (
            ("--max-in-flight", flags.max_in_flight),
            ("--resync-period", flags.resync_period),
        )
        if value <= 0
    )
    mistakes.extend(_unreadable(flags))
    if mistakes:
        raise OptionsError("\n".join(mistakes))
    defaults = Options()
    return Options(
        kubeconfig=flags.kubeconfig,
        master=flags.master,
        scheduler_name=flags.scheduler_name,
        plugins=plugin_tokens(flags.plugins),
        config=Path(flags.config) if flags.config else None,
        plugin_dirs=tuple(Path(folder) for folder in flags.plugin_dir if folder),
        feature_gates=gates,
        enable_empty_workload_propagation=flags.enable_empty_workload_propagation,
        estimators=_estimators(flags),
        assumption_ttl=flags.assumption_ttl,
        leader_election=election,
        metrics_address=addresses["--metrics-bind-address"],
        health_address=addresses["--health-probe-bind-address"],
        kube_api_qps=flags.kube_api_qps if flags.kube_api_qps and flags.kube_api_qps > 0 else None,
        kube_api_burst=max(1, flags.kube_api_burst),
        max_in_flight=flags.max_in_flight,
        resync_seconds=flags.resync_period,
        rate_limiter_base_delay=_positive(flags.rate_limiter_base_delay, defaults.rate_limiter_base_delay),
        rate_limiter_max_delay=_positive(flags.rate_limiter_max_delay, defaults.rate_limiter_max_delay),
        rate_limiter_qps=_positive(flags.rate_limiter_qps, defaults.rate_limiter_qps),
        rate_limiter_bucket_size=int(
            _positive(flags.rate_limiter_bucket_size, defaults.rate_limiter_bucket_size)
        ),
        notices=_notices(flags),
        verbosity=flags.v,
        logging_format=flags.logging_format,
    )


def _unreadable(flags: argparse.Namespace) -> Iterator[str]:
    folders = (("plugin-dir", folder) for folder in flags.plugin_dir)
    for name, path in (("kubeconfig", flags.kubeconfig), ("config", flags.config), *folders):
        if path and (why := _why_unreadable(Path(path), is_folder=name == "plugin-dir")):
            yield f"--{name}: cannot read {path}: {why}"


def _why_unreadable(path: Path, *, is_folder: bool) -> str:
    try:
        mode = path.stat().st_mode
    except OSError as problem:
        return problem.strerror or str(problem)
    if stat.S_ISDIR(mode) != is_folder:
        return "Not a directory" if is_folder else "Is a directory"
    needed = os.R_OK | os.X_OK if is_folder else os.R_OK
    return "" if os.access(path, needed) else "Permission denied"


def _notices(flags: argparse.Namespace) -> tuple[str, ...]:
    notices = []
    if bool(flags.scheduler_estimator_cert_file) != bool(flags.scheduler_estimator_key_file):
        notices.append(
            "--scheduler-estimator-cert-file and --scheduler-estimator-key-file work together only: "
            "estimators see no certificate"
        )
    return tuple(notices)


def _estimators(flags: argparse.Namespace) -> EstimatorOptions:
    policy, ttl = flags.estimator_failure_policy, flags.estimator_answer_ttl
    if ttl is None:
        ttl = 0.0 if policy == "upstream" else EstimatorOptions().answer_ttl
    return EstimatorOptions(
        enabled=flags.enable_scheduler_estimator,
        not_in_pull_mode=flags.disable_scheduler_estimator_in_pull_mode,
        timeout=flags.scheduler_estimator_timeout,
        namespace=flags.scheduler_estimator_service_namespace,
        prefix=flags.scheduler_estimator_service_prefix,
        port=flags.scheduler_estimator_port,
        cert_file=flags.scheduler_estimator_cert_file,
        key_file=flags.scheduler_estimator_key_file,
        ca_file=flags.scheduler_estimator_ca_file,
        skip_verify=flags.insecure_skip_estimator_verify,
        failure_policy=policy,
        answer_ttl=ttl,
    )


def _estimator_mistakes(flags: argparse.Namespace) -> list[str]:
    mistakes = []
    if not 0 <= flags.scheduler_estimator_port <= 65535:
        mistakes.append(
            f"Options.SchedulerEstimatorPort: Invalid value: {flags.scheduler_estimator_port}: "
            "must be a valid port between 0 and 65535 inclusive"
        )
    if flags.scheduler_estimator_timeout < 0:
        mistakes.append(
            "Options.SchedulerEstimatorTimeout: Invalid value: must be greater than or equal to 0"
        )
    if (flags.estimator_answer_ttl or 0) < 0:
        mistakes.append("--estimator-answer-ttl must not be negative")
    if flags.assumption_ttl <= 0:
        mistakes.append("--assumption-ttl must be greater than 0")
    return mistakes


def _positive(value: float, default: float) -> float:
    """Upstream replaces a limit that is not positive by its default."""
    return value if value > 0 else default


def _election_mistakes(election: LeaderElection) -> list[str]:
    """client-go's rule on the three timings (leaderelection.NewLeaderElector), which panics there."""
    mistakes = []
    if election.lease_duration <= election.renew_deadline:
        mistakes.append("--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline")
    if election.renew_deadline <= 1.2 * election.retry_period:
        mistakes.append(
            "--leader-elect-renew-deadline must be greater than 1.2 x --leader-elect-retry-period"
        )
    if min(election.lease_duration, election.renew_deadline, election.retry_period) <= 0:
        mistakes.append("--leader-elect durations must be greater than 0")
    return mistakes


def _health_address(flags: argparse.Namespace) -> str:
    """``--bind-address`` and ``--secure-port`` are the pair that came before the probe address."""
    if flags.bind_address is None and flags.secure_port is None:
        return str(flags.health_probe_bind_address)
    port = 10351 if flags.secure_port is None else flags.secure_port
    return f"{flags.bind_address or ''}:{port}" if port else "0"


def _address(text: str) -> str:
    if text in ("", "0"):
        return ""
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{text!r} is not host:port, :port or 0")
    return f"{host}:{int(port)}"
