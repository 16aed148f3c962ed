"""The compact record: what it contains, and how it is cut."""

import json

import pytest

from karmada_advisor.explain.situation import attempt_of
from karmada_scheduler.framework.diagnosis import SchedulingError
from karmada_scheduler.records import record
from karmada_scheduler.records.record import Process
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding, cluster, decide
from tests.unit.explain.record_schema import problems
from tests.unit.explain.recorded import AT, decided, read


def test_it_has_the_stages_the_refusals_and_the_best_candidates() -> None:
    entry = decided(
        binding("web").replicas(12, cpu=1).dynamic_weight().spread("cluster", 1, 2),
        cluster("m1").capacity(cpu=20),
        cluster("m2").capacity(cpu=30),
        cluster("m3").capacity(cpu=10),
        cluster("m4").taint("dedicated=gpu:NoSchedule"),
        cluster("m5").taint("dedicated=gpu:NoSchedule"),
    )
    found = read(entry)
    [attempt] = found["attempts"]
    assert attempt["stages"] == {"all": 5, "filtered": 3, "selected": 2, "placed": 2}
    assert attempt["refused"] == [
        {
            "by": "TaintToleration",
            "why": "cluster(s) had untolerated taint {dedicated=gpu:NoSchedule}",
            "count": 2,
            "names": ["m4", "m5"],
        }
    ]
    assert attempt["top"] == [["m2", 0, 30], ["m1", 0, 20], ["m3", 0, 10]]
    assert found["targets"] == {"m1": 5, "m2": 7}
    assert (found["error"], found["replicas"], found["passes"]) == (None, 12, 1)


def test_selected_clusters_are_named_if_they_are_neither_all_candidates_nor_all_targets() -> None:
    clusters = [cluster(f"m{number}") for number in range(4)]
    some = read(decided(binding("web").replicas(1).dynamic_weight().spread("cluster", 2, 2), *clusters))
    assert some["attempts"][0]["selected"] == ["m0", "m1"]
    assert len(some["targets"]) == 1
    every = read(decided(binding("web").replicas(1).dynamic_weight(), *clusters))
    assert "selected" not in every["attempts"][0]
    targets = read(decided(binding("web").duplicated().spread("cluster", 2, 2), *clusters))
    assert "selected" not in targets["attempts"][0]


def test_it_has_the_error_and_the_missing_targets_of_a_failure() -> None:
    found = read(decided(binding("web").names("m-1"), cluster("m1")))
    assert found["error"]["reason"] == "NoClusterFit"
    assert found["error"]["message"].startswith("0/1 clusters are available")
    assert found["targets"] == {}
    kept = read(decided(binding("web").replicas(9, cpu=1).dynamic_weight(), cluster("m1").capacity(cpu=2)))
    assert kept["error"]["reason"] == "Unschedulable"
    assert kept["targets"] is None


def test_it_has_the_clusters_before_only_if_they_change() -> None:
    clusters = cluster("m1").capacity(cpu=9), cluster("m2").capacity(cpu=9)
    scaled = binding("web").replicas(4, cpu=1).dynamic_weight().on(m1=2)
    assert read(decided(scaled, *clusters))["before"] == {"m1": 2}
    same = binding("web").replicas(2, cpu=1).dynamic_weight().on(m1=2)
    assert "before" not in read(decided(same, *clusters))


def test_each_affinity_term_is_an_attempt_with_its_error() -> None:
    terms = binding("web").replicas(5, cpu=1).dynamic_weight().term("near", "m1").term("far", "m2")
    found = read(decided(terms, cluster("m1").capacity(cpu=3), cluster("m2").capacity(cpu=9)))
    near, far = found["attempts"]
    assert (near["term"], far["term"]) == ("near", "far")
    assert "3" in near["error"]
    assert "error" not in far


def test_the_attempts_are_those_of_the_first_pass_that_has_the_result_in_any_order() -> None:
    # The second pass has both clusters, so they score the same, and the one with more room comes first.
    both = decided(
        binding("web").replicas(1, cpu=1).duplicated().on(m2=2),
        cluster("m1").capacity(cpu=20),
        cluster("m2").capacity(cpu=10),
    )
    found = read(both)
    assert found["attempts"][0]["top"] == [["m2", 100, 10], ["m1", 0, 20]]
    attempt = attempt_of(both.decision)
    assert attempt is not None
    assert [(each.name, each.score) for each in attempt.candidates] == [("m2", 100), ("m1", 0)]


def test_the_attempts_are_those_of_the_pass_that_led_to_the_result() -> None:
    # A Duplicated binding is decided again on its own result, where its cluster scores 100.
    entry = decided(binding("web").duplicated().spread("cluster", 1, 1), cluster("m1"), cluster("m2"))
    assert len(entry.decision.attempts) > 1
    found = read(entry)
    assert found["passes"] == len(entry.decision.attempts)
    assert found["attempts"][0]["top"][0][:2] == ["m1", 0]


def test_the_age_of_summaries_counts_to_the_time_of_the_decision() -> None:
    entry = decided(binding("web").replicas(1, cpu=1).dynamic_weight(), cluster("m1").capacity(cpu=3))
    found = read(entry, Process(oldest_summary=lambda names: AT - 6.25 if list(names) == ["m1"] else None))
    assert found["capacity"] == {"general": {"clusters": 1, "oldestSeconds": 6.2}}
    late = read(entry, Process(oldest_summary=lambda _: AT + 1))
    assert late["capacity"]["general"]["oldestSeconds"] == 0


def test_clusters_without_an_estimate_are_named_by_reason() -> None:
    entry = decided(binding("web").replicas(1, cpu=1).dynamic_weight(), *(cluster(f"m{n}") for n in range(8)))
    entry.decision = replace(
        entry.decision, fallbacks={f"m{n}": "timeout" for n in range(7)} | {"m7": "refused"}
    )
    found = read(entry, Process(uses_estimators=True))
    assert found["capacity"]["accurate"] == {"clusters": 0}
    assert found["fallbacks"] == [
        {"why": "timeout", "count": 7, "names": ["m0", "m1", "m2", "m3", "m4"]},
        {"why": "refused", "count": 1, "names": ["m7"]},
    ]


def test_the_end_of_the_attempt_is_the_end_of_the_text() -> None:
    entry = decided(binding("web"), cluster("m1"))
    assert read(entry)["ending"] is None
    written = read(replace(entry, ending="written", ended=AT + 0.0154))
    assert written["written"] == "2026-11-18T11:06:40.015Z"
    conflict = read(replace(entry, ending="conflict", ended=AT, problem="x" * 1000))
    assert (conflict["written"], len(conflict["problem"])) == (None, 100)


def test_a_decision_without_attempts_has_its_error() -> None:
    entry = decided(binding("web"), cluster("m1"))
    entry.decision = replace(entry.decision, attempts=(), targets=None, error=SchedulingError("no placement"))
    found = read(entry)
    assert (found["attempts"], found["passes"], found["fleet"]) == ([], 0, None)
    assert found["error"] == {"reason": "SchedulerError", "message": "no placement"}


@pytest.mark.parametrize("length", [5, 60, 253])
def test_it_is_cut_to_two_kilobytes(length: int) -> None:
    names = [f"{number:0{length}}" for number in range(300)]
    clusters = [cluster(name).capacity(cpu=100) for name in names[:150]]
    clusters += [
        cluster(name).taint(f"{'k' * 60}-{number}={'v' * 60}:NoSchedule")
        for number, name in enumerate(names[150:])
    ]
    entry = decided(binding("web").duplicated(), *clusters)
    body = record.head(entry, Process()) + record.ending(entry) + b"}"
    assert len(body) <= 2048 if length < 200 else 4096
    found = read(entry)
    assert found["targetCount"] == 150
    [attempt] = found["attempts"]
    assert attempt["reasonCount"] == 150
    assert attempt["stages"]["placed"] == 150
    assert len(found["targets"]) >= 8


def test_equal_refusals_are_grouped_once() -> None:
    process = Process()
    decision = decide(binding("web").names("m9"), cluster("m1"), cluster("m2"))
    refused = decision.attempts[0].diagnosis.result_by_cluster
    assert process.refusals.of(refused) is process.refusals.of(refused)
    [group] = process.refusals.of(refused)
    assert group.clusters == ["m1", "m2"]


def test_texts_that_are_not_unicode_are_recorded() -> None:
    assert json.loads(record.encode({"why": "\ud800", "score": 2**70}))["score"] == 2**70


def test_the_schema_refuses_what_is_not_a_record() -> None:
    found = read(decided(binding("web"), cluster("m1")))
    assert list(problems(found | {"seq": 0})) == [".seq: 0 is too small"]
    assert list(problems(found | {"at": None})) == [".at: None is not of type ['string']"]
    assert list(problems(found | {"more": 1})) == [": more is not in the schema"]
    assert next(problems(found | {"ending": "lost"})).startswith(".ending: 'lost' is none of")
    attempt = found["attempts"][0] | {"top": [["m1", 1]]}
    assert list(problems(found | {"attempts": [attempt]})) != []
    del found["targets"]
    assert list(problems(found)) == [": targets is missing"]
