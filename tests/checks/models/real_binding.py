"""The sequence on a real control plane: Karmada's own controllers, simulated members, and no scheduler."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import requests

from karmada_scheduler.api.well_known import APPLIED_PLACEMENT_ANNOTATION
from tests.checks.models.history import State, state_of
from tests.checks.models.sequences import CLUSTERS, Grace, confirmed, task
from tests.e2e.workload import Workload, named
from tools import manifests
from tools.controlplane import ApiError, ControlPlane, SimulatedMember
from tools.controlplane.karmada import CLUSTERS as PATH
from tools.controlplane.karmada import WORKS
from tools.controlplane.simulated import EXECUTION_SPACE, applied
from tools.simulation.taint_manager import tolerations

Object = dict[str, Any]

SCHEDULER: Final = "nobody"
_STEP_SECONDS: Final = 2.0
"""How long a step takes at least: what it begins is seen by then."""
_QUIET_SECONDS: Final = 0.5
"""How long a state has to stay; less than the time between two steps, as two eviction tasks may end by time so far apart."""
_START_SECONDS: Final = 1.0
"""Between a Work and its first report."""


class Members:
    """The agents of all members: they report what the sequences say."""

    def __init__(self, plane: ControlPlane, names: Sequence[str]) -> None:
        """Join the members, and answer their Works."""
        self._plane = plane
        self._health: dict[str, str] = dict.fromkeys(names, "Healthy")
        self._works: dict[tuple[str, str], tuple[float, Object]] = {}
        """When each Work was seen first, and its newest version."""
        self._due: dict[tuple[str, str], float] = {}
        self._change = threading.Condition()
        self._stop = threading.Event()
        plane.add(*(SimulatedMember(name) for name in names), agents=False)
        for run in (self._watch, self._answer_all):
            threading.Thread(target=run, daemon=True).start()

    def report(self, member: str, health: str) -> None:
        """Report all copies on a member so from now on."""
        with self._change:
            self._health[member] = health
            for key, (seen, _) in self._works.items():
                if key[0] == EXECUTION_SPACE + member:
                    self._due[key] = seen + _START_SECONDS
            self._change.notify_all()

    def stop(self) -> None:
        """End the threads."""
        self._stop.set()

    def _watch(self) -> None:
        for event, work in self._plane.client.watch(WORKS, stop=self._stop):
            key = work["metadata"]["namespace"], work["metadata"]["name"]
            if key[0].removeprefix(EXECUTION_SPACE) not in self._health:
                continue
            with self._change:
                if event == "DELETED":
                    self._works.pop(key, None)
                    self._due.pop(key, None)
                    continue
                seen, _ = self._works.get(key, (time.monotonic(), work))
                self._works[key] = seen, work
                self._due[key] = seen + _START_SECONDS
                self._change.notify_all()

    def _answer_all(self) -> None:
        while not self._stop.is_set():
            with self._change:
                now = time.monotonic()
                if all(due > now for due in self._due.values()):
                    self._change.wait(min([1.0, *(due - now for due in self._due.values())]))
                due = [key for key, due in self._due.items() if due <= time.monotonic()]
                works = [self._works[key][1] for key in due if self._due.pop(key)]
            for work in works:
                with contextlib.suppress(
                    ApiError, requests.RequestException
                ):  # it changed or went: the watch says so
                    self._answer(work)

    def _answer(self, work: Object) -> None:
        metadata = work["metadata"]
        path = f"/apis/work.karmada.io/v1alpha1/namespaces/{metadata['namespace']}/works/{metadata['name']}"
        health = self._health[metadata["namespace"].removeprefix(EXECUTION_SPACE)]
        if "deletionTimestamp" in metadata:
            if metadata.get("finalizers"):
                self._plane.client.patch(path, {"metadata": {"finalizers": None}})
        elif health:
            status = applied({**work, "status": {}})
            assert status is not None
            if health != "Healthy":
                for report in (each for each in status["manifestStatuses"] if "status" in each):
                    report["health"] = health
                    report["status"] |= {"readyReplicas": 0, "availableReplicas": 0}
            if (work.get("status") or {}).get("manifestStatuses") != status["manifestStatuses"]:
                self._plane.client.patch(f"{path}/status", {"status": status})


class RealBinding:
    """One Deployment, its policy and its binding, on members of its own.

    Attributes:
        states: Of the binding, one for each write that was seen.
    """

    def __init__(self, plane: ControlPlane, members: Members, space: str) -> None:
        """Create the Deployment and its policy; the members are named after the namespace."""
        self.states: list[State] = []
        self._plane = plane
        self._members = members
        self._space = space
        self._stop = threading.Event()
        self._changed = time.monotonic()
        self._change = threading.Condition()
        self._clusters: Sequence[str] = CLUSTERS
        self._tolerated = 0.0
        plane.client.create(manifests.namespace(space))
        self._web = Workload(plane, space)
        self._web.create(named(*self._all(*CLUSTERS)), replicas=2, scheduler=SCHEDULER)
        self._plane.wait_for(self._web.binding, "the binding")
        threading.Thread(target=self._watch, daemon=True).start()

    def place(self, targets: Mapping[str, int], leaving: Mapping[str, Grace]) -> None:
        spec = {
            "clusters": [{"name": self._name(each), "replicas": count} for each, count in targets.items()],
            "gracefulEvictionTasks": [task(self._name(each), grace) for each, grace in leaving.items()],
        }
        annotations = {APPLIED_PLACEMENT_ANNOTATION: json.dumps(self._web.binding()["spec"]["placement"])}
        patch = {
            "metadata": {"annotations": annotations},
            "spec": spec,
        }  # the taint manager needs the annotation
        self._plane.client.patch(self._web.binding_path, patch)

    def observe(self) -> None:
        generation = self._web.binding()["metadata"]["generation"]
        status = {"status": {"schedulerObservedGeneration": generation}}
        self._plane.client.patch(f"{self._web.binding_path}/status", status)

    def report(self, cluster: str, health: str) -> None:
        self._members.report(self._name(cluster), health)

    def taint(self, cluster: str, effect: str) -> None:
        taints = [{"key": "down", "effect": effect}] if effect else None
        self._plane.client.patch(f"{PATH}/{self._name(cluster)}", {"spec": {"taints": taints}})

    def edit(self, *clusters: str) -> None:
        self._clusters = clusters
        self._apply()

    def tolerate(self, seconds: float) -> None:
        self._tolerated = seconds
        self._apply()

    def _apply(self) -> None:
        expected, wanted = self._all(*self._clusters), tolerations(self._tolerated)
        self._web.apply_policy(named(*expected, clusterTolerations=wanted), scheduler=SCHEDULER)

        def is_there(found: Object) -> bool:
            placement = found["spec"]["placement"]  # a webhook adds tolerations of its own
            own = [each for each in placement.get("clusterTolerations") or () if each["key"] == "down"]
            return placement["clusterAffinity"]["clusterNames"] == expected and own == wanted

        self._web.wait(is_there, "edited")

    def fail_over(self, mode: str) -> None:
        failover = {"cluster": {"purgeMode": mode}} if mode else None
        self._plane.client.patch(self._web.policy_path, {"spec": {"failover": failover}})
        self._web.wait(lambda found: found["spec"].get("failover") == failover, "purged otherwise")

    def confirm(self) -> None:
        self._plane.client.patch(self._web.binding_path, confirmed(self._web.binding()["spec"]))

    def scale(self, replicas: int) -> None:
        self._web.scale(replicas)
        self._web.wait(lambda found: found["spec"]["replicas"] == replicas, "scaled")

    def rest(self, seconds: int) -> None:
        time.sleep(seconds)

    def settle(self, expected: Sequence[State], seconds: float) -> None:
        """Wait until the binding is as expected, at most so long, and has not changed for a while."""
        begin = time.monotonic()
        with self._change:
            while True:
                now = time.monotonic()
                quiet = max(begin + _STEP_SECONDS, self._changed + _QUIET_SECONDS) - now
                missing = 0.0 if self.states and self.states[-1] in expected else begin + seconds - now
                if max(quiet, missing) <= 0:
                    break
                self._change.wait(quiet if quiet > 0 else missing)
        self._plane.check()

    def stop(self) -> None:
        """Stop to note what happens."""
        self._stop.set()

    def _watch(self) -> None:
        path = self._web.binding_path.rpartition("/")[0]
        names = {self._name(each): each for each in CLUSTERS}
        for event, binding in self._plane.client.watch(path, stop=self._stop):
            if event != "DELETED":
                with self._change:
                    self.states.append(state_of(binding, names))
                    self._changed = time.monotonic()
                    self._change.notify_all()

    def _name(self, cluster: str) -> str:
        return f"{self._space}-{cluster}"

    def _all(self, *clusters: str) -> list[str]:
        return [self._name(each) for each in clusters]
