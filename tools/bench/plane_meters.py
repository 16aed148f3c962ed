"""Measurements of running schedulers: CPU and memory from /proc, requests from the API server, etcd's revision."""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tools.controlplane import ControlPlane
from tools.controlplane.api import local_session

PROC = Path("/proc")
SERVERS = {
    "karmada": "kube-apiserver",
    "etcd": "etcd",
    "karmada-webhook": "webhook",
    "karmada-aggregated-apiserver": "aggregated",
}
"""The control plane's processes by name of tools/controlplane, and what they are called in the results."""

QUIET_CORES = 0.10
_SAMPLE = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_COUNTED = frozenset({"resourcebindings", "events", "leases", "clusters", "clusterresourcebindings"})


def _family(pid: int) -> Iterator[int]:
    """Yield a process and its living descendants."""
    yield pid
    for task in (PROC / str(pid) / "task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            for child in (task / "children").read_text().split():
                yield from _family(int(child))


def cpu_seconds(pid: int) -> float:
    """Return the CPU time a process and its children have used, those included that have ended."""
    ticks = 0
    for member in _family(pid):
        # The name, in parentheses, may hold anything; the fields after it are numbered from 3 in proc(5).
        fields = (PROC / str(member) / "stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))  # utime, stime, cutime, cstime
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_mib(pid: int) -> float:
    """Return the peak resident memory of a process and its children, in MiB."""
    return sum(_status_kib(member, "VmHWM") for member in _family(pid)) / 1024


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process and its children, in MiB."""
    return sum(_status_kib(member, "VmRSS") for member in _family(pid)) / 1024


def proportional_mib(pid: int) -> float:
    """Return the memory of a process and its children in MiB; pages that they share count once."""
    found = 0
    for member in _family(pid):
        with contextlib.suppress(OSError):  # it has ended
            lines = (PROC / str(member) / "smaps_rollup").read_text().splitlines()
            found += next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return found / 1024


def _status_kib(pid: int, field: str) -> int:
    lines = (PROC / str(pid) / "status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def servers_cpu(plane: ControlPlane) -> dict[str, float]:
    """Return the CPU seconds of the control plane's processes so far, by name."""
    return {
        SERVERS[process.name]: cpu_seconds(process.pid)
        for process in plane.processes
        if process.name in SERVERS
    }


def counted_requests(metrics: str) -> Counter[str]:
    """Return the number of requests by kind (``PATCH resourcebindings/status 200``) from the API server's metrics."""
    found: Counter[str] = Counter()
    for line in metrics.splitlines():
        if (sample := _SAMPLE.match(line)) is None:
            continue
        labels = dict(_LABEL.findall(sample[1]))
        if labels["resource"] in _COUNTED:
            subresource = f"/{labels['subresource']}" if labels["subresource"] else ""
            key = f"{labels['verb']} {labels['resource']}{subresource} {labels['code']}"
            found[key] += int(float(sample[2]))
    return found


def sample(metrics: str, name: str) -> float:
    """Return the value of a metric without labels in the text format, 0 if it is not there."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", metrics, re.MULTILINE)
    return float(found[1]) if found else 0.0


def writes(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the number of writes by kind of object; the creation of bindings does not count."""
    found = {"resourcebindings": 0, "resourcebindings/status": 0, "events": 0, "leases": 0}
    for key, count in counts.items():
        verb, resource, _ = key.split()
        if resource in found and (
            verb in ("PATCH", "PUT") or (verb == "POST" and resource != "resourcebindings")
        ):
            found[resource] += count
    return found


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least so much of all is not above; NaN of none."""
    if not values:
        return math.nan
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


class Quiet:
    """Waits until a control plane is idle."""

    def __init__(
        self, plane: ControlPlane, etcd: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._plane = plane
        self._range = f"{etcd}/v3/kv/range"
        self._clock = clock
        self._session = local_session()

    def close(self) -> None:
        """Close the connection to etcd."""
        self._session.close()

    def wait_idle(self, timeout: float = 60.0) -> float:
        """Wait until the servers use hardly any CPU, and return how many cores they still use."""
        deadline = self._clock() + timeout
        while True:
            before, began = sum(servers_cpu(self._plane).values()), self._clock()
            time.sleep(1)
            used = (sum(servers_cpu(self._plane).values()) - before) / (self._clock() - began)
            if used < QUIET_CORES or self._clock() > deadline:
                return used
            self._plane.check()

    def wait_written(self, timeout: float = 30.0) -> None:
        """Wait until nothing is written for half a second, Leases aside: events may come after placements."""
        deadline = self._clock() + timeout
        before = self._revision()
        while self._clock() < deadline:
            time.sleep(0.5)
            now = self._revision()
            if now - before <= 2:
                return
            before = now

    def _revision(self) -> int:
        answer = self._session.post(self._range, json={"key": "AA=="}, timeout=10)
        return int(answer.json()["header"]["revision"])
