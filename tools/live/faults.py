"""Injects the faults of a plan."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

import requests

from tools.controlplane import ApiError, Object
from tools.live.etcd import Etcd, EtcdError
from tools.live.fault_plan import Fault
from tools.live.keeper import Keeper
from tools.live.plane import OTHER_PROCESS, QUOTA_MEGABYTES, LivePlane, Replica
from tools.live.recorder import Journal

T = TypeVar("T")

_PROCESSES: Final = {
    "apiserver": "karmada",
    "etcd": "etcd",
    "webhook": "karmada-webhook",
    "aggregated apiserver": "karmada-aggregated-apiserver",
    "controllers": "karmada-controller-manager",
    "karmada-scheduler": OTHER_PROCESS,
}
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_UNDO_SECONDS: Final = 60.0
_ALL_REPLICAS: Final = 0.5
"""The share of faults of the network that every replica has."""


class Injector:
    """Injects faults, each in a thread; two about the same thing one after the other.

    Attributes:
        counted: How many faults of each kind took effect.
        problems: What went wrong with faults themselves; these are not counted.
    """

    def __init__(
        self, plane: LivePlane, keeper: Keeper, journal: Journal, *, compactable: Callable[[], int | None]
    ) -> None:
        """Inject faults into a plane; ``compactable`` returns the revision up to which etcd may be compacted."""
        self._compactable = compactable
        self._plane = plane
        self._keeper = keeper
        self._journal = journal
        self._etcd = Etcd(plane.karmada.etcd)
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self.counted: Counter[str] = Counter()
        self.problems: list[str] = []

    def run(self, faults: Sequence[Fault], say: Callable[[str], None]) -> None:
        """Inject all faults; returns when the last one has ended."""
        started, threads = time.monotonic(), list[threading.Thread]()
        for fault in faults:
            time.sleep(max(0.0, started + fault.at - time.monotonic()))
            say(f"{fault.kind} for {fault.seconds:g} s")
            thread = threading.Thread(target=self._inject, args=(fault,), name=fault.kind, daemon=True)
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join(timeout=180)
            if thread.is_alive():
                self.problems.append(f"{thread.name} does not end")

    def _inject(self, fault: Fault) -> None:
        what, _, target = fault.kind.partition(" ")
        try:
            if target in _PROCESSES and what in ("kill", "stop"):
                took_effect = self._on_process(fault, what, _PROCESSES[target])
            elif target in ("leader", "standby"):
                took_effect = self._on_process(fault, what, self._replica(fault, target).name)
            else:
                took_effect = self._others[fault.kind](self, fault)
            if took_effect:
                self.counted[fault.kind] += 1
        except Exception as error:  # noqa: BLE001 (shown at the end)
            self.problems.append(f"{fault}: {type(error).__name__}: {error}")
            self._journal.add(fault=fault.kind, problem=str(error))

    def _on_process(self, fault: Fault, what: str, name: str) -> bool:
        with self._locks[name]:
            self._note(fault, name, "begin")
            if what == "kill":
                self._keeper.kill(name, fault.seconds, time.sleep)
                took_effect = True
            else:
                took_effect = self._keeper.freeze(name, fault.seconds, time.sleep)
            self._note(fault, name, "end")
            return took_effect

    def _replica(self, fault: Fault, target: str) -> Replica:
        leader = self._plane.leader() or self._plane.replicas[0]
        if target == "leader":
            return leader
        standbys = [each for each in self._plane.replicas if each is not leader]
        return standbys[int(fault.choice * len(standbys))]

    def _some(self, fault: Fault) -> list[Replica]:
        """Return all replicas, or the leader."""
        if fault.choice < _ALL_REPLICAS:
            return list(self._plane.replicas)
        return [self._replica(fault, "leader")]

    def _full_etcd(self, fault: Fault) -> bool:
        with self._locks["etcd"]:
            self._note(fault, "etcd", "begin")
            try:
                megabytes = self._etcd.fill(2 * QUOTA_MEGABYTES)
                self._journal.add(fault=fault.kind, filled=megabytes)
                time.sleep(fault.seconds)
            finally:
                _until(self._make_space)
            self._note(fault, "etcd", "end")
            return True

    def _make_space(self) -> bool:
        try:
            return self._etcd.make_space(self._compactable)
        except (EtcdError, requests.RequestException):
            return False

    def _expired_certificate(self, fault: Fault) -> bool:
        """Give a replica a certificate that expires at half the time, and a new one at the end."""
        replica = self._some(fault)[-1]
        with self._locks[replica.user]:
            self._note(fault, replica.name, "begin")
            self._write_certificate(replica, fault.seconds / 2)
            time.sleep(fault.seconds)
            self._write_certificate(replica, 86_400)
            self._note(fault, replica.name, "end")
            return True

    def _rotated_certificate(self, fault: Fault) -> bool:
        for replica in self._plane.replicas:
            with self._locks[replica.user]:
                self._note(fault, replica.name, "begin")
                self._write_certificate(replica, 86_400)
                self._note(fault, replica.name, "end")
        return True

    def _write_certificate(self, replica: Replica, seconds: float) -> None:
        self._plane.karmada.write_kubeconfig(
            replica.kubeconfig,
            replica.user,
            server=f"https://127.0.0.1:{replica.proxy.port}",
            valid_for=dt.timedelta(seconds=seconds),
        )

    def _no_rbac(self, fault: Fault) -> bool:
        """Take a role away: that of the cluster from all, or that of the Lease from the leader."""
        kind, prefix = "clusterrolebindings", _RBAC
        if fault.choice >= _ALL_REPLICAS:
            kind, prefix = "rolebindings", f"{_RBAC}/namespaces/karmada-system"
        with self._locks["RBAC"]:
            self._note(fault, kind, "begin")
            client = self._plane.karmada.client
            paths = [f"{prefix}/{kind}/{replica.user}" for replica in self._some(fault)]
            kept = [_until_served(partial(client.get, path)) for path in paths]
            try:
                for path in paths:
                    _until_served(partial(client.delete, path))
                time.sleep(fault.seconds)
            finally:
                for each in kept:
                    _until_served(partial(client.apply, _without_server_fields(each)))
            self._note(fault, kind, "end")
            return True

    def _slow_network(self, fault: Fault) -> bool:
        return self._on_network(
            fault,
            lambda replica: replica.proxy.slow(0.05 + 0.5 * fault.choice),
            lambda replica: replica.proxy.slow(0.0),
        )

    def _held_network(self, fault: Fault) -> bool:
        return self._on_network(
            fault, lambda replica: replica.proxy.hold(), lambda replica: replica.proxy.release()
        )

    def _on_network(
        self, fault: Fault, begin: Callable[[Replica], object], end: Callable[[Replica], object]
    ) -> bool:
        with self._locks["network"]:
            replicas = self._some(fault)
            for each in replicas:
                self._note(fault, each.name, "begin")
                begin(each)
            time.sleep(fault.seconds)
            for each in replicas:
                end(each)
                self._note(fault, each.name, "end")
            return True

    def _cut_connections(self, fault: Fault) -> bool:
        """Reset all connections each second."""
        number, ends = 0, time.monotonic() + fault.seconds
        replicas = self._some(fault)
        for each in replicas:
            self._note(fault, each.name, "begin")
        while time.monotonic() < ends:
            number += sum(each.proxy.cut() for each in replicas)
            time.sleep(1.0)
        for each in replicas:
            self._note(fault, each.name, "end")
        return number > 0

    def _note(self, fault: Fault, target: str, phase: str) -> None:
        self._journal.add(fault=fault.kind, target=target, phase=phase)

    _others: Final = {
        "full etcd": _full_etcd,
        "expired certificate": _expired_certificate,
        "rotated certificate": _rotated_certificate,
        "RBAC removed": _no_rbac,
        "slow network": _slow_network,
        "held network": _held_network,
        "cut connections": _cut_connections,
    }


def _without_server_fields(found: Object) -> Object:
    metadata = {key: value for key, value in found["metadata"].items() if key in ("name", "namespace")}
    return {**found, "metadata": metadata}


def _until(done: Callable[[], bool]) -> None:
    """Try each second for up to a minute."""
    ends = time.monotonic() + _UNDO_SECONDS
    while not done():
        if time.monotonic() > ends:
            raise TimeoutError("what a fault changed cannot be undone")
        time.sleep(1.0)


def _until_served(request: Callable[[], T]) -> T:
    """Repeat a request until the API server answers it."""
    ends = time.monotonic() + _UNDO_SECONDS
    while True:
        try:
            return request()
        except (ApiError, requests.RequestException):
            if time.monotonic() > ends:
                raise
            time.sleep(1.0)
