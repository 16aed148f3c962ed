"""A short run of tools/live/compare: the same random changes under karmada-scheduler and under ours."""

from __future__ import annotations

from pathlib import Path

from tools.live.compare.run import fuzz_run

SEED, STEPS = 17, 45
OUTCOMES = {"Success", "NoClusterFit", "Unschedulable", "SchedulerError"}


def test_both_schedulers_react_alike_to_the_same_random_changes(tmp_path: Path) -> None:
    with fuzz_run(tmp_path, seed=SEED, say=print) as made:
        report = made.run(STEPS)
    assert report.found is None, (
        f"{report.found}\nagain: python -m tools.live compare --steps {STEPS} --seed {SEED}"
    )
    assert report.steps.total() > STEPS
    assert len(report.steps) > 15, "the run has become monotonous"
    assert report.outcomes.keys() >= OUTCOMES, "look for a seed with which attempts end in every way"
