"""The models of Karmada's controllers in the sequences in which they once differed from the real ones."""

from __future__ import annotations

from math import inf

from tests.checks.models.history import State
from tests.checks.models.legal import Run, differences, legal_runs
from tests.checks.models.model_binding import ModelBinding
from tests.checks.models.sequences import LONG_SECONDS, TELLING, TIMEOUT_SECONDS, Step
from tools.simulation.bindings import new_binding
from tools.simulation.environment import START
from tools.simulation.taint_manager import new_taint, seconds_tolerated


def _after(name: str) -> ModelBinding:
    binding = ModelBinding()
    for step in TELLING[name]:
        getattr(binding, step.name)(*step.arguments)
    return binding


def test_a_task_ends_by_health_long_before_its_time() -> None:
    binding = _after("a move waits for the observed generation")
    assert binding.states[-1] == State((("b", 2),), (), {"b": ("Healthy", 2)})
    assert len(binding.states[-3].tasks) == 1


def test_without_targets_an_observed_generation_ends_a_task() -> None:
    binding = ModelBinding()
    binding.place({}, {"a": LONG_SECONDS})
    assert binding.states[-1].tasks
    binding.observe()
    assert not binding.states[-1].tasks


def test_what_is_placed_on_a_tainted_cluster_later_is_evicted_once() -> None:
    binding = ModelBinding()
    binding.taint("a", "NoExecute")
    binding.place({"a": 2}, {"a": LONG_SECONDS})
    binding.rest(TIMEOUT_SECONDS)
    assert binding.states[-1].targets == ()
    [task] = binding.states[-1].tasks
    assert dict(task)["producer"] == "my-scheduler"


def test_a_taint_without_execution_evicts_nothing() -> None:
    assert _after("a taint that only keeps new workloads away").states[-1].targets == (("a", 2),)


def test_what_is_placed_on_a_cluster_with_a_taint_is_evicted_before_its_copy_is_made_or_afterwards() -> None:
    placed = (Step("taint", ("a", "NoExecute")), Step("place", ({"a": 2}, {})))
    early, late = legal_runs(placed)
    assert [state.copies for state in early.at_rest] == [{}, {}]
    assert [state.copies for state in late.at_rest] == [{}, {"a": ("Healthy", 2)}]
    assert {run.at_rest[-1].targets for run in (early, late)} == {()}


def test_two_clusters_with_a_taint_are_left_in_any_order() -> None:
    runs = legal_runs(TELLING["a placement on a cluster with a taint"])
    orders = {tuple(dict(task)["fromCluster"] for task in run.at_rest[5].tasks) for run in runs}
    assert orders == {("b", "c"), ("c", "b")}


def test_a_sequence_without_such_a_race_has_one_legal_run() -> None:
    race = ("a placement on a cluster with a taint", "a taint is tolerated for ever")
    assert all(len(legal_runs(steps)) == 1 for name, steps in TELLING.items() if name not in race)


def test_a_taint_is_tolerated_as_long_as_the_applied_placement_says() -> None:
    [run] = legal_runs(TELLING["a taint is tolerated for a while"])
    assert [state.targets for state in run.at_rest[4:6]] == [(("a", 2),), ()]
    assert [len(state.tasks) for state in run.at_rest[4:6]] == [0, 1]
    kept = legal_runs(TELLING["a taint is tolerated for ever"])[0]
    assert [state.targets for state in kept.at_rest[4:]] == [(("a", 2),), (("a", 2),), ()]


def test_without_an_applied_placement_the_taint_manager_evicts_nothing() -> None:
    binding = new_binding("web", 2, {})
    assert seconds_tolerated(binding, new_taint("NoExecute", START), START) == inf


def test_the_copy_on_a_cluster_that_is_purged_directly_ends_at_once() -> None:
    binding = _after("a failed cluster is purged directly")
    evicted = next(state for state in binding.states if state.tasks)
    assert dict(evicted.tasks[0])["purgeMode"] == "Directly"
    assert all("a" not in state.copies for state in binding.states if "b" in state.copies)


def test_no_copy_is_changed_while_another_one_is_purged() -> None:
    steps = (
        Step("tolerate", (inf,)),
        Step("place", ({"a": 1, "b": 3}, {})),
        Step("taint", ("a", "NoExecute")),
        Step("tolerate", (0,)),
        Step("place", ({"a": 2}, {"b": "Directly"})),
    )
    ends = [run.at_rest[-1].copies for run in legal_runs(steps)]
    assert ends == [{"a": ("Healthy", 1)}, {"a": ("Healthy", 1)}, {"a": ("Healthy", 2)}]


def test_no_copy_is_made_while_another_one_is_purged() -> None:
    steps = (
        Step("place", ({"b": 3}, {})),
        Step("taint", ("a", "NoExecute")),
        Step("place", ({"a": 2}, {"b": "Directly"})),
    )
    assert [run.at_rest[-1].copies for run in legal_runs(steps)] == [{}, {}, {"a": ("Healthy", 2)}]


def test_a_suppressed_deletion_ends_when_a_person_allows_it() -> None:
    [run] = legal_runs(TELLING["a suppressed deletion waits for a person"])
    assert [len(state.tasks) for state in run.at_rest[-3:]] == [1, 1, 0]


def test_a_difference_is_shown_from_where_it_begins() -> None:
    one, other = State((("a", 1),), (), {}), State((("b", 1),), (), {"b": ("Healthy", 1)})
    real, further = Run([one], [one]), Run([one, other], [one])
    assert differences(real, [real]) == ""
    assert differences(real, [further, real]) == ""
    assert differences(real, [further]) == (
        "  targets and tasks: 1 equal, then\n"
        "    Karmada: nothing\n"
        "    model: ((('b', 1),), ())\n"
        "  copy on b: 1 equal, then\n"
        "    Karmada: nothing\n"
        "    model: ('Healthy', 1)\n"
    )
    assert differences(real, [Run([one], [other])]).startswith("  at rest: 0 equal, then\n")
