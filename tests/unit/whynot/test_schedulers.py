"""A binding of a scheduler that is missing or down: nobody decides, and another name, or its start, is the remedy."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from karmada_advisor.explain.model import Provenance, Tense
from karmada_advisor.fleet.rules import Rules
from karmada_advisor.state.model import BindingState, SchedulerShown, SchedulerStatus, StateName
from karmada_advisor.state.schedulers import Schedulers
from karmada_advisor.whynot.answer import WhyNotQuestion, answer
from karmada_advisor.whynot.found_edits import SearchBounds
from karmada_advisor.whynot.goals import Goal, IsDecided, IsPlaced
from karmada_advisor.whynot.model import WhyNot
from karmada_advisor.whynot.objects import ObjectSet
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.dryrun.objects import ShownObjects, Workloads
from karmada_scheduler.framework.edits import Harm, ObjectRef
from karmada_scheduler.testing import binding, cluster

RUNNING = SchedulerShown("my-scheduler", SchedulerStatus.RUNNING, "Lease a/b")
STATE = BindingState(StateName.NOBODY_DECIDES)


TARGETS = binding("web").on(m1=2).build().spec.clusters


def asked(known: Mapping[str, SchedulerShown], goal: Goal, *, problem: str = "") -> WhyNot:
    manifest = binding("web").replicas(2).scheduler("my-schedler").manifest()
    made = Binding.from_manifest(manifest)
    m1 = cluster("m1").manifest()
    provenance = Provenance(Tense.RECOMPUTED, "files")
    with Rules().dry_run(ShownObjects(Workloads(None))) as dry_run:
        objects = ObjectSet(
            made.key,
            dry_run,
            {ObjectRef("Cluster", "", "m1"): (m1, Cluster.from_manifest(m1))},
            {ObjectRef(*made.key): (manifest, made)},
            schedulers=Schedulers(known, problem=problem),
        )
        return answer(
            objects,
            WhyNotQuestion("", goal),
            SearchBounds(60),
            state=STATE,
            provenance=provenance,
            causes=lambda _: (),
        )


@pytest.mark.parametrize("goal", [IsPlaced(), IsDecided()])
def test_a_missing_scheduler_is_replaced_by_the_nearest_that_exists(goal: Goal) -> None:
    found = asked({"my-scheduler": RUNNING, "default-scheduler": RUNNING}, goal)

    assert not found.next_holds
    assert found.next.reason == "NobodyDecides"
    [edit] = found.remedies[0].edits
    assert edit.text == "schedulerName my-scheduler instead of my-schedler"
    assert "delete the policy" in edit.instead
    assert found.remedies[0].harm is Harm.NONE


def test_a_scheduler_that_is_down_has_to_run_again_before_another_one_is_named() -> None:
    down = SchedulerShown("my-schedler", SchedulerStatus.DOWN, "its Lease", "2026-11-24T10:00:00Z")

    found = asked({"my-schedler": down, "my-scheduler": RUNNING}, IsPlaced())

    assert [each.edits[0].op for each in found.remedies] == ["startScheduler", "setSchedulerName"]
    assert found.remedies[0].apply == ()
    assert [each.replicas for each in found.remedies[0].result] == [2]
    assert found.remedies[1].harm is Harm.WIDENS


def test_without_knowing_which_schedulers_exist_each_of_them_may_decide() -> None:
    assert asked({}, IsPlaced(), problem="forbidden").next_holds
