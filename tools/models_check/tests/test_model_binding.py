"""The models of Karmada's controllers in the sequences in which they once differed from the real ones."""

from __future__ import annotations

from tools.models_check.__main__ import differences
from tools.models_check.history import State
from tools.models_check.model_binding import ModelBinding
from tools.models_check.sequences import LONG_SECONDS, TELLING, TIMEOUT_SECONDS


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


def test_a_difference_is_shown_from_where_it_begins() -> None:
    one, other = State((("a", 1),), (), {}), State((("b", 1),), (), {"b": ("Healthy", 1)})
    assert differences([one], [one], [one], [one]) == ""
    assert differences([one], [one, other], [one], [one]) == (
        "  targets and tasks: 1 equal, then\n"
        "    Karmada: nothing\n"
        "    model: ((('b', 1),), ())\n"
        "  copy on b: 1 equal, then\n"
        "    Karmada: nothing\n"
        "    model: ('Healthy', 1)\n"
    )
    assert differences([one], [one], [one], [other]).startswith("  at rest: 0 equal, then\n")
