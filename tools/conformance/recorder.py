"""Creates a random scenario on a real control plane and watches how karmada-scheduler schedules it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tools.conformance import recording
from tools.conformance.random_scenario import NAMESPACE, Scenario
from tools.conformance.recording import Event, Run
from tools.controlplane import ApiError, ControlPlane, Object
from tools.controlplane.parallel import in_parallel
from tools.controlplane.waiting import wait_for

RUNS: Final = 3
QUIET_SECONDS: Final = 4.0

_WORK: Final = "/apis/work.karmada.io/v1alpha2"
_COLLECTIONS: Final = (
    f"{_WORK}/clusterresourcebindings",
    f"{_WORK}/namespaces/{NAMESPACE}/resourcebindings",
)
_CLUSTERS: Final = "/apis/cluster.karmada.io/v1alpha1/clusters"
_HOLD: Final = "recorder.example.com/hold"
_PACE: Final = ("--kube-api-qps=500", "--kube-api-burst=1000")  # no decision depends on them
_SCHEDULER: Final = "default-scheduler"


class Recorder:
    """Creates a scenario on a control plane and watches how karmada-scheduler schedules it.

    Attributes:
        refused: The API server's reason for every object that it refused.
    """

    def __init__(
        self,
        plane: ControlPlane,
        scenario: Scenario,
        *,
        flags: Sequence[str] = (),
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.refused: dict[str, str] = {}
        self._plane = plane
        self._scenario = scenario
        self._flags = tuple(flags)
        self._say = say

    def record(self, *, runs: int = RUNS) -> dict[str, Any]:
        """Have the scenario scheduled so many times; return the recording."""
        self._stop_the_controllers()
        self._plane.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        in_parallel(self._create_cluster, self._scenario.clusters)
        clusters = [
            {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", **cluster}
            for cluster in self._plane.client.list(_CLUSTERS)
        ]
        seen = []
        for number in range(1, runs + 1):
            seen.append(self._run())
            self._say(f"run {number}: {len(seen[-1])} bindings came to rest")
        return recording.document(clusters, seen, self._flags)

    def _stop_the_controllers(self) -> None:
        for process in self._plane.processes:
            if process.name == "karmada-controller-manager":
                process.stop()
                self._plane.forget(process)

    def _create_cluster(self, manifest: Object) -> None:
        client, metadata = self._plane.client, dict(manifest["metadata"])
        leaves = metadata.pop("deletionTimestamp", None) is not None
        if leaves:
            metadata["finalizers"] = [_HOLD]
        path = f"{_CLUSTERS}/{metadata['name']}"
        with self._refusals(f"Cluster/{metadata['name']}"):
            client.create(
                {key: value for key, value in manifest.items() if key != "status"} | {"metadata": metadata}
            )
            client.patch(f"{path}/status", {"status": manifest["status"]})
            if leaves:
                client.delete(path)

    def _create_binding(self, manifest: Object) -> None:
        client, metadata = self._plane.client, dict(manifest["metadata"])
        generation = metadata.pop("generation")
        with self._refusals(_name(manifest)):
            created = client.create(
                {key: value for key, value in manifest.items() if key != "status"} | {"metadata": metadata}
            )
            path = client.path_of(created)
            if manifest["status"]:
                client.patch(f"{path}/status", {"status": manifest["status"]})
            if generation > 1:  # a change that no scheduler reacts to
                client.patch(path, {"spec": {"preserveResourcesOnDeletion": True}})

    @contextmanager
    def _refusals(self, name: str) -> Iterator[None]:
        try:
            yield
        except ApiError as error:
            if error.status not in {400, 403, 422}:
                raise
            self.refused[name] = str(error)

    def _run(self) -> dict[str, Run]:
        """Create the bindings, have them scheduled, and delete them again."""
        in_parallel(self._create_binding, self._scenario.bindings)
        before = {name: binding for name, binding in self._bindings().items() if name not in self.refused}
        scheduler = self._plane.start_karmada_scheduler(_SCHEDULER, *_PACE, *self._flags)
        try:
            self._wait_for_rest()
        finally:
            scheduler.stop()
            self._plane.forget(scheduler)
        after, events = self._bindings(), self._events()
        for path in _COLLECTIONS:
            self._plane.client.request("DELETE", path)
        self._plane.wait_for(lambda: not self._bindings(), "the bindings to be deleted")
        return {
            name: Run(
                before[name],
                after[name],
                frozenset(text for uid, text in events if uid == _uid(after[name])),
            )
            for name in before
        }

    def _wait_for_rest(self) -> None:
        """Wait until every binding of the scheduler was reconciled and nothing has changed for a while."""
        seen: tuple[object, object] | None = None
        since = time.monotonic()

        def unfinished() -> list[str]:
            nonlocal seen, since
            bindings = self._bindings()
            now = (
                {_uid(each): each["metadata"]["resourceVersion"] for each in bindings.values()},
                self._events(),
            )
            if now != seen:
                seen, since = now, time.monotonic()
            waiting = [name for name, binding in bindings.items() if not _is_done(binding)]
            if not waiting and time.monotonic() - since < QUIET_SECONDS:
                return ["(all were reconciled; waiting for further changes)"]
            return waiting

        wait_for(
            unfinished,
            "the scheduler to come to rest (still waiting for those below)",
            until=lambda names: not names,
            timeout=120 + len(self._scenario.bindings) / 2,
            check=self._plane.check,
            interval=0.5,
        )

    def _bindings(self) -> dict[str, Object]:
        kinds = ("ClusterResourceBinding", "ResourceBinding")
        return {
            f"{kind}/{binding['metadata']['name']}": {
                "apiVersion": "work.karmada.io/v1alpha2",
                "kind": kind,
                **binding,
            }
            for kind, path in zip(kinds, _COLLECTIONS, strict=True)
            for binding in self._plane.client.list(path)
        }

    def _events(self) -> set[tuple[str, Event]]:
        return {
            (event["involvedObject"].get("uid", ""), (event["type"], event["reason"], event["message"]))
            for event in self._plane.client.list("/api/v1/events")
            if event["reason"].startswith("ScheduleBinding")
        }


def _is_done(binding: Mapping[str, Any]) -> bool:
    """Return whether the scheduler is done with a binding; one that it ignores counts as done."""
    spec, metadata, status = binding["spec"], binding["metadata"], binding.get("status", {})
    labels = metadata.get("labels", {})
    claims = ("propagationpolicy", "clusterpropagationpolicy")
    claimed = labels.get("binding.karmada.io/managed-by") or any(
        labels.get(f"{policy}.karmada.io/permanent-id") for policy in claims
    )
    if (
        not claimed
        or spec.get("suspension", {}).get("scheduling")
        or spec.get("schedulerName") not in {None, _SCHEDULER}
    ):
        return True
    failed = any(
        condition["type"] == "Scheduled" and condition["status"] == "False"
        for condition in status.get("conditions", ())
    )
    return failed or status.get("schedulerObservedGeneration") == metadata["generation"]


def _name(manifest: Mapping[str, Any]) -> str:
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


def _uid(manifest: Mapping[str, Any]) -> str:
    uid: str = manifest["metadata"]["uid"]
    return uid
