"""What was taken a moment ago is not given back at once, and what did not reach a cluster is applied once more."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from karmada_pyscheduler.scheduler.resync import RESYNC_SECONDS, SETTLE_SECONDS, ReducedShares
from karmada_scheduler.api.binding import Binding, BindingKey, TargetCluster
from karmada_scheduler.core.lost_updates import clusters_with_other_replicas
from karmada_scheduler.testing import BindingBuilder, binding
from tests import manifests
from tests.unit.scheduler.test_scheduler import LoopHarness

APPLIED = {"type": "FullyApplied", "status": "True"}
WHOLE = {"m1": 2, "m2": 2}


class Loop(LoopHarness):
    """A scheduler and the newest versions of its bindings."""

    def __init__(self) -> None:
        super().__init__()
        self._versions = count(1)

    def store(self, name: str = "web", /, **clusters: int) -> BindingKey:
        """Let a write change ``spec.clusters``."""
        manifest = manifests.binding(
            name, clusters=[{"name": each, "replicas": replicas} for each, replicas in clusters.items()]
        )
        return self.store_manifest(manifest)

    def store_manifest(self, manifest: dict[str, Any], *, enqueue: bool = True) -> BindingKey:
        manifest["metadata"]["resourceVersion"] = str(next(self._versions))
        found = Binding.from_manifest(manifest)
        self.bindings.put(found)
        if enqueue:
            self.queue.add(found.key)
        return found.key

    @property
    def decided(self) -> list[dict[str, int]]:
        return [dict(each.targets or ()) for each in self.cycle.bound]

    async def run_at(self, now: float) -> None:
        self.now = now
        await self.run()


@pytest.mark.parametrize("left", [{"m1": 2, "m2": 0}, {"m1": 2}, {}, {"m1": 1, "m2": 1}])
async def test_what_another_write_took_is_given_back_when_karmada_has_seen_it(left: dict[str, int]) -> None:
    loop = Loop()
    loop.store(**WHOLE)
    loop.store(**left)
    await loop.run_at(0.3)
    assert loop.decided == []
    await loop.run_at(SETTLE_SECONDS - 0.01)
    assert loop.decided == []
    await loop.run_at(SETTLE_SECONDS)
    assert loop.decided == [WHOLE]


async def test_a_second_write_that_takes_begins_the_pause_again() -> None:
    loop = Loop()
    loop.store(**WHOLE)
    loop.store(m1=2, m2=1)
    await loop.run_at(0.8)
    loop.store(m1=2, m2=0)
    await loop.run_at(SETTLE_SECONDS)
    assert loop.decided == []
    await loop.run_at(0.8 + SETTLE_SECONDS)
    assert loop.decided == [WHOLE]


async def test_a_decision_that_gives_nothing_back_does_not_wait() -> None:
    loop = Loop()
    loop.store(m1=1, m2=1)
    await loop.run()
    loop.store("other", m1=9, m2=2)
    loop.store("other", m1=3, m2=2)  # the decision takes one more of m1
    await loop.run()
    assert loop.decided == [WHOLE, WHOLE]


async def test_a_binding_that_was_created_again_does_not_wait() -> None:
    loop = Loop()
    loop.store(**WHOLE)
    manifest = manifests.binding()
    manifest["metadata"]["uid"] = "another"
    loop.store_manifest(manifest)
    await loop.run()
    assert loop.decided == [WHOLE]


def test_only_the_last_second_is_kept() -> None:
    now = 0.0
    reduced = ReducedShares(lambda: now)
    for number in range(1000):
        now += 0.01
        builder = binding(f"web-{number}")
        reduced.on_binding_change(builder.on(m1=2).build(), builder.on(m1=1).build())
        assert len(reduced) <= 102
    assert reduced.seconds_until_settled(builder.build(), [TargetCluster("m1", 2)]) == SETTLE_SECONDS


def running(*, replicas: Any = 0, **spec: Any) -> dict[str, Any]:
    """A binding on m1 and m2 with 2 replicas each; m1 reports ``replicas``, nothing if that is None."""
    manifest = manifests.binding(
        clusters=[{"name": "m1", "replicas": 2}, {"name": "m2", "replicas": 2}], **spec
    )
    reports = {"m1": replicas, "m2": 2}
    manifest["status"] = {
        "conditions": [APPLIED],
        "aggregatedStatus": [
            {"clusterName": name, "applied": True, "status": {"replicas": number}}
            for name, number in reports.items()
            if number is not None
        ],
    }
    return manifest


async def settled(**fields: Any) -> Loop:
    """A scheduler with one binding that has just reported other replicas, and that needs no scheduling."""
    loop = Loop()
    loop.store_manifest(_observed(running(**fields)))
    await loop.run()
    assert (loop.decided, loop.cycle.resynced) == ([], [])
    return loop


def _observed(manifest: dict[str, Any]) -> dict[str, Any]:
    placement = '{"replicaScheduling":{"replicaSchedulingType":"Duplicated"}}'
    manifest["spec"] |= {"placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}}
    manifest["metadata"]["annotations"] = {"policy.karmada.io/applied-placement": placement}
    manifest["spec"]["replicas"] = 2
    manifest["status"]["schedulerObservedGeneration"] = manifest["metadata"]["generation"]
    return manifest


@pytest.mark.parametrize(("replicas", "problem"), [(0, "m1"), (5, "m1"), (None, "m1")])
async def test_replicas_that_did_not_reach_a_cluster_are_applied_again_after_growing_pauses_five_times(
    replicas: int | None, problem: str
) -> None:
    loop = await settled(replicas=replicas)
    due = 0.0
    resynced: list[tuple[str, tuple[str, ...]]] = []
    for seconds in RESYNC_SECONDS:
        await loop.run_at(due + seconds - 0.1)
        assert loop.cycle.resynced == resynced
        due += seconds
        resynced.append(("web-deployment", (problem,)))
        await loop.run_at(due)
        assert loop.cycle.resynced == resynced
    await loop.run_at(due + 10 * RESYNC_SECONDS[-1])
    assert loop.cycle.resynced == resynced


async def test_a_cluster_that_reports_its_replicas_in_time_is_left_alone() -> None:
    loop = await settled()
    loop.store_manifest(_observed(running(replicas=2)), enqueue=False)
    await loop.run_at(RESYNC_SECONDS[0])
    assert loop.cycle.resynced == []
    assert len(loop.state.resyncs) == 0


async def test_replicas_that_an_autoscaler_changes_to_and_fro_do_not_begin_the_pauses_again() -> None:
    loop = await settled()
    await loop.run_at(15)
    for now in range(16, 75):
        loop.store_manifest(_observed(running(replicas=2 - now % 2)))
        await loop.run_at(now)
    loop.store_manifest(_observed(running()))
    await loop.run_at(74 + 59)
    assert len(loop.cycle.resynced) == 1
    await loop.run_at(74 + 60)
    assert len(loop.cycle.resynced) == 2


async def test_other_clusters_begin_the_pauses_again() -> None:
    loop = await settled()
    await loop.run_at(15)
    manifest = _observed(running())
    manifest["spec"] |= {
        "replicas": 3,
        "clusters": [{"name": "m1", "replicas": 3}, {"name": "m2", "replicas": 3}],
    }
    await loop.run_at(20)
    loop.store_manifest(manifest)
    await loop.run_at(34)
    assert len(loop.cycle.resynced) == 1
    await loop.run_at(35)
    assert len(loop.cycle.resynced) == 2


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(
            {"gracefulEvictionTasks": [{"fromCluster": "m3", "producer": "x"}]}, id="it leaves a cluster"
        ),
        pytest.param({"schedulerName": "theirs"}, id="another scheduler"),
    ],
)
async def test_nothing_is_resynced_that_is_not_ours_or_not_known(spec: dict[str, Any]) -> None:
    loop = await settled(**spec)
    await loop.run_at(10_000)
    assert loop.cycle.resynced == []


async def test_nothing_is_resynced_before_karmada_has_reported_about_it() -> None:
    loop = Loop()
    manifest = _observed(running())
    manifest["status"]["conditions"] = []
    loop.store_manifest(manifest)
    await loop.run_at(10_000)
    assert loop.cycle.resynced == []


async def test_a_deleted_binding_is_forgotten() -> None:
    loop = await settled()
    assert len(loop.state.resyncs) == 1
    loop.bindings.remove(BindingKey("ResourceBinding", "demo", "web-deployment"), 1000)
    assert len(loop.state.resyncs) == 0


@pytest.mark.parametrize(
    ("builder", "clusters"),
    [
        pytest.param(binding("web").replicas(4).on(m1=2, m2=2).reports(m1=2, m2=1), ("m2",), id="fewer"),
        pytest.param(binding("web").replicas(4).on(m1=2, m2=2).reports(m1=3, m2=2), ("m1",), id="more"),
        pytest.param(binding("web").replicas(4).on(m1=2, m2=2).reports(m1=2), ("m2",), id="no Work"),
        pytest.param(
            binding("web").replicas(4).on(m1=2, m2=2).health(m1="Healthy", m2="Healthy"), (), id="no number"
        ),
        pytest.param(binding("web").replicas(0).on(m1=0).health(m1="Healthy"), (), id="no replicas"),
        pytest.param(
            binding("web").replicas(4).on(m1=2).reports(m1=1, m9=7), ("m1",), id="a cluster that is left"
        ),
        pytest.param(
            binding("web").component("a", 1).component("b", 1).on(m1=2).reports(m1=1), (), id="components"
        ),
        pytest.param(binding("web").replicas(4).on(m1=4).reports(m1=1).deleting(), (), id="deleted"),
        pytest.param(
            binding("web").replicas(4).on(m1=4).reports(m1=1).evicted_from("m2"), (), id="it leaves a cluster"
        ),
    ],
)
def test_which_clusters_have_other_replicas(builder: BindingBuilder, clusters: tuple[str, ...]) -> None:
    assert clusters_with_other_replicas(builder.condition(**APPLIED).build()) == clusters
