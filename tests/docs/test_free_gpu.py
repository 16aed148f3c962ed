"""FreeGPU: clusters with free GPUs first."""

from __future__ import annotations

from karmada_scheduler.testing import ClusterBuilder, binding, cluster, schedule
from tests.docs.conftest import Example

TRAINING = binding("training").replicas(1).spread("cluster", 1, 1)


def with_gpus(name: str, *, there: int, taken: int = 0) -> ClusterBuilder:
    gpu = "nvidia.com/gpu"
    return cluster(name).allocatable({"pods": 100, gpu: there}).allocated({"pods": 0, gpu: taken})


def test_free_gpus_count_instead_of_installed_ones(example: Example) -> None:
    members = [with_gpus("m1", there=16, taken=14), with_gpus("m2", there=8), cluster("m3")]
    run = schedule(TRAINING, *members, plugins=example("free_gpu"))
    assert run.placed == {"m2": 1}
    assert run.scores["FreeGPU"] == {"m1": 250, "m2": 1000, "m3": 0}


def test_an_over_allocated_cluster_and_one_without_a_summary_have_no_free_gpus(example: Example) -> None:
    members = [with_gpus("m1", there=2, taken=4), cluster("m2").without_summary(), with_gpus("m3", there=1)]
    run = schedule(TRAINING, *members, plugins=example("free_gpu"))
    assert run.scores["FreeGPU"] == {"m1": 0, "m2": 0, "m3": 1000}


def test_without_gpus_all_scores_are_equal(example: Example) -> None:
    run = schedule(TRAINING, cluster("m1"), cluster("m2"), plugins=example("free_gpu"))
    assert run.scores["FreeGPU"] == {"m1": 0, "m2": 0}
