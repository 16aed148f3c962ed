"""The fleet that is full, and what is read from it."""

from __future__ import annotations

from random import Random

from tools.apiserver_model import ApiServerModel
from tools.contention.__main__ import quantile, row
from tools.contention.jobs import CLUSTERS, CPUS, FIRST_HIGH, HIGH, LOAD, Job, jobs
from tools.contention.members import Members
from tools.contention.run import ROWS, run
from tools.simulation.environment import START
from tools.simulation.simulation import Simulation


def place(model: ApiServerModel, name: str, cluster: str) -> None:
    found = model.get("ResourceBinding", "default", name)
    assert found is not None
    found["spec"]["clusters"] = [{"name": cluster, "replicas": found["spec"]["replicas"]}]
    model.put(found)


def test_jobs_of_a_seed_are_always_the_same() -> None:
    assert jobs(1, 5400) == jobs(1, 5400) != jobs(2, 5400)


def test_low_priority_asks_for_more_than_there_is() -> None:
    low = [job for seed in range(20) for job in jobs(seed, 5400) if not job.priority]
    asked = sum(job.replicas * job.seconds for job in low) / 20 / 5400
    assert 0.95 * LOAD < asked / (CLUSTERS * CPUS) < 1.05 * LOAD


def test_eleven_important_jobs_come_in_an_hour_and_a_half() -> None:
    high = [job for job in jobs(1, 5400) if job.priority == HIGH]
    assert [(job.created, job.replicas, job.one_cluster) for job in high[:2]] == [
        (600, 40, True),
        (900, 120, False),
    ]
    assert len(high) == 11


def test_a_job_for_one_cluster_loses_nothing_as_long_as_one_cluster_is_left_to_it() -> None:
    simulation = Simulation(Random(1))
    model = ApiServerModel(now=lambda: START, new_uid=lambda: "uid")
    members = Members(simulation, model, counted_from=0.0)
    members.used = dict.fromkeys(members.used, 60)
    members.create(Job("high-1", -1, HIGH, 40, True, 100))
    for index in range(10):
        members.create(Job(f"low-{index}", 0, 0, 4, True, 100))
        assert members.figures.inversions == 0
        place(model, f"low-{index}", f"m{index}")
    assert members.figures.inversions == 1


def test_a_job_for_any_cluster_loses_what_others_take() -> None:
    simulation = Simulation(Random(1))
    model = ApiServerModel(now=lambda: START, new_uid=lambda: "uid")
    members = Members(simulation, model, counted_from=0.0)
    members.used = dict.fromkeys(members.used, 60)
    members.create(Job("high-1", -1, HIGH, 39, False, 100))
    members.create(Job("low-1", 0, 0, 1, True, 100))
    members.create(Job("low-2", 0, 0, 1, True, 100))
    place(model, "low-1", "m1")
    assert members.figures.inversions == 0
    place(model, "low-2", "m1")
    assert members.figures.inversions == 1


def test_what_was_decided_when_a_job_was_created_takes_nothing_from_it() -> None:
    simulation = Simulation(Random(1))
    model = ApiServerModel(now=lambda: START, new_uid=lambda: "uid")
    members = Members(simulation, model, counted_from=0.0)
    members.create(Job("low-1", -10, 0, 4, True, 100))
    members.create(Job("high-1", 0, HIGH, CLUSTERS * CPUS, False, 100))
    place(model, "low-1", "m1")
    assert members.figures.inversions == 0


def test_a_quantile_is_one_of_the_values() -> None:
    assert [quantile(range(1, 12), share) for share in (0.5, 0.9, 1.0)] == [6, 10, 11]


def test_a_fleet_that_is_not_full_yet_places_all_at_once() -> None:
    until = FIRST_HIGH / 4
    result = run(ROWS[0], 1, until)
    assert result.figures.placements == len(jobs(1, until)) == result.decisions
    assert max(result.figures.waits.values()) < 0.1


def test_a_row_has_the_least_and_the_most_of_its_runs() -> None:
    base = {"rules": "r", "high": 11, "utilization": 0.9, "low_p50": 0.0, "decisions": 1000}
    base |= dict.fromkeys(("p50", "p90", "max", "inversions", "placements"), 3.0)
    cells = row([{**base, "unplaced": 2}, {**base, "unplaced": 0, "p90": 1200.0}])
    assert cells == ["r", "3 s", "3 to 1,200 s", "3 s", "2, 0 of 11", "3", "3", "0.90", "0 s", "1,000"]
