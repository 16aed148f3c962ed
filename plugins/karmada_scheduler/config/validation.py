"""Checks of flags that argparse cannot make: ranges, files, and values that depend on each other.

Source: karmada v1.18.2 cmd/scheduler/app/options/validation.go.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.config.options import LeaderElection, Options


def unreadable(given: argparse.Namespace, plugin_dirs: Sequence[str]) -> Iterator[str]:
    """Yield an error for each file and folder that cannot be read."""
    folders = (("plugin-dir", folder) for folder in plugin_dirs)
    files = (
        ("kubeconfig", given.kubeconfig),
        ("config", given.config),
        ("metrics-kubeconfig", given.metrics_kubeconfig),
    )
    for name, path in (*files, *folders):
        if path and (why := _why_unreadable(Path(path), is_folder=name == "plugin-dir")):
            yield f"--{name}: cannot read {path}: {why}"


def _why_unreadable(path: Path, *, is_folder: bool) -> str:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        return error.strerror or str(error)
    if stat.S_ISDIR(mode) != is_folder:
        return "Not a directory" if is_folder else "Is a directory"
    needed = os.R_OK | os.X_OK if is_folder else os.R_OK
    return "" if os.access(path, needed) else "Permission denied"


def warnings(given: argparse.Namespace) -> Iterator[str]:
    """Yield a warning for each combination of flags that has no effect."""
    if bool(given.scheduler_estimator_cert_file) != bool(given.scheduler_estimator_key_file):
        yield (
            "--scheduler-estimator-cert-file and --scheduler-estimator-key-file work together only: "
            "estimators see no certificate"
        )


def estimator_problems(given: argparse.Namespace) -> Iterator[str]:
    """Yield an error for each flag about estimators that is out of range."""
    if not 0 <= given.scheduler_estimator_port <= 65535:
        yield (
            f"Options.SchedulerEstimatorPort: Invalid value: {given.scheduler_estimator_port}: "
            "must be a valid port between 0 and 65535 inclusive"
        )
    if given.scheduler_estimator_timeout < 0:
        yield "Options.SchedulerEstimatorTimeout: Invalid value: must be greater than or equal to 0"
    if (given.estimator_answer_ttl or 0) < 0:
        yield "--estimator-answer-ttl must not be negative"
    if given.assumption_ttl <= 0:
        yield "--assumption-ttl must be greater than 0"


def election_problems(election: LeaderElection) -> Iterator[str]:
    """Yield violations of client-go's rules for the three durations (leaderelection.NewLeaderElector)."""
    if election.lease_duration <= election.renew_deadline:
        yield "--leader-elect-lease-duration must be greater than --leader-elect-renew-deadline"
    if election.renew_deadline <= 1.2 * election.retry_period:
        yield "--leader-elect-renew-deadline must be greater than 1.2 x --leader-elect-retry-period"
    if min(election.lease_duration, election.renew_deadline, election.retry_period) <= 0:
        yield "--leader-elect durations must be greater than 0"
    if election.lease_seconds > MAX_INT32:
        yield f"--leader-elect-lease-duration must be at most {MAX_INT32}s, the most that a Lease can have"


def health_address(given: argparse.Namespace) -> str:
    """Return the address of the probes; ``--bind-address`` and ``--secure-port`` are upstream's older flags for it."""
    if given.bind_address is None and given.secure_port is None:
        return str(given.health_probe_bind_address)
    port = Options().health_address.rpartition(":")[2] if given.secure_port is None else given.secure_port
    return f"{given.bind_address or ''}:{port}" if port else "0"


def address(text: str) -> str:
    """Return ``host:port`` of an address to listen on, "" for none; ValueError if it is not an address."""
    if text in ("", "0"):
        return ""
    host, separator, port = text.rpartition(":")
    if not separator or not (port.isascii() and port.isdigit()) or len(port) > 9 or int(port) > 65535:
        raise ValueError(f"{text!r} is not host:port, :port or 0")
    return f"{host}:{int(port)}"


def metrics_problems(given: argparse.Namespace, *, metrics: str, health: str) -> Iterator[str]:
    """Yield an error for each flag about a certificate of the metrics that cannot be used.

    Args:
        given: The flags.
        metrics: The address of the metrics, "" for none.
        health: The address of the probes, likewise.
    """
    yield from _half_certificate(given, "metrics")
    if not given.metrics_tls_cert_file:
        if given.metrics_kubeconfig:
            yield "--metrics-kubeconfig: without --metrics-tls-cert-file nobody is asked about readers: name both"
        return
    if not metrics:
        yield "--metrics-tls-cert-file: --metrics-bind-address is 0, so nothing is served: name an address"
    elif metrics == health:
        yield (
            f"--metrics-tls-cert-file: {metrics} is the address of the probes, too, and the kubelet has no token: "
            "give --metrics-bind-address and --health-probe-bind-address different ports"
        )
    if given.metrics_kubeconfig and given.metrics_kubeconfig == given.kubeconfig:
        yield (
            f"--metrics-kubeconfig: {given.kubeconfig} is that of the Karmada API server, which does not know tokens of the host: "
            "name one of the cluster that hosts Karmada"
        )


def _half_certificate(given: argparse.Namespace, listener: str) -> Iterator[str]:
    """Yield an error if a listener has a certificate without a key, or the other way round."""
    certificate, key = (getattr(given, f"{listener}_tls_{part}_file") for part in ("cert", "key"))
    if bool(certificate) != bool(key):
        yield f"--{listener}-tls-cert-file and --{listener}-tls-key-file belong together: name both"


_LEAST_EXPLAIN_MEMORY: Final = 2**20


def explain_problems(given: argparse.Namespace) -> Iterator[str]:
    """Yield an error for each flag about records of decisions that cannot be used."""
    if given.explain_memory < _LEAST_EXPLAIN_MEMORY:
        yield "--explain-memory must be at least 1Mi"
    for name in given.explain_allowed_host or ():
        if not name or any(character in name for character in " /:@*"):
            yield f"--explain-allowed-host: {name!r} is not a name of a host, without port and scheme"
    yield from _half_certificate(given, "explain")
    if given.decision_log and Path(given.decision_log).is_dir():
        yield f"--decision-log: {given.decision_log}: Is a directory"


def records_address(given: argparse.Namespace) -> str:
    """Return the address of the records; ValueError if it is none, or none that has to be a loopback address."""
    text = given.explain_bind_address
    if given.explain_tls_cert_file:
        return address(text)
    try:
        return loopback_address(text)
    except ValueError as error:
        raise ValueError(f"{error}, or name --explain-tls-cert-file") from error


def loopback_address(text: str) -> str:
    """Return ``host:port`` of a loopback address to listen on, "" for none; ValueError if it is another one.

    Records of decisions name clusters and their capacity, and the server does not authenticate its readers.
    """
    found = address(text)
    host = found.rpartition(":")[0].strip("[]")
    if found and host != "localhost" and not _is_loopback(host):
        raise ValueError(
            f"{text!r} is not a loopback address such as 127.0.0.1:10353; readers are not authenticated, "
            "so reach it by kubectl port-forward"
        )
    return found


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
