"""Capacities in columns equal counting cluster by cluster, for any numbers."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from karmada_scheduler.api import quantity
from karmada_scheduler.api.binding import ReplicaRequirements
from karmada_scheduler.api.cluster import Cluster
from karmada_scheduler.api.quantity import MAX_INT32
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.core.algorithms import columns
from karmada_scheduler.core.available_replicas import Estimators, available_replicas, least_by_row
from karmada_scheduler.core.budget import run_sync
from karmada_scheduler.estimator.general import GeneralEstimator
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.framework.runtime.filter_cache import FilterResults
from karmada_scheduler.testing import binding, cluster

AMOUNTS = (
    *("0", "1", "-1", "7", "110", "1m", "1500m", "-500m", "999999n", "1u", "2k", "0.5", "1Ki", "3Gi"),
    *("2147483647", "2147483648", "4294967296", "9223372036854775", "9223372036854776"),
    *(
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "9E",
        "8Ei",
        "1e18",
        "1e30",
        "-1e30",
    ),
)
NAMES = ("cpu", "memory", "pods", "nvidia.com/gpu", "unheard-of")
GRADES = ("0", "1", "2", "16")

amounts = st.sampled_from(AMOUNTS) | st.integers(0, 10**6).map(str) | st.integers(0, 10**9).map("{}m".format)
resources = st.dictionaries(st.sampled_from(NAMES), amounts)
summaries = (
    st.fixed_dictionaries({"allocatable": resources, "allocated": resources, "allocating": resources})
    | st.none()
)
models = st.lists(st.integers(0, 5), min_size=len(GRADES), max_size=len(GRADES)) | st.none()
shapes = st.tuples(summaries, models)
requests = st.none() | st.dictionaries(st.sampled_from(NAMES), amounts)

Shape = tuple[Mapping[str, Mapping[str, str]] | None, Sequence[int] | None]


def built(number: int, shape: Shape) -> Cluster:
    summary, free = shape
    status: dict[str, object] = {}
    spec: dict[str, object] = {}
    if summary is not None:
        status["resourceSummary"] = dict(summary)
        if free is not None:
            spec["resourceModels"] = [
                {
                    "grade": grade,
                    "ranges": [
                        {"name": "cpu", "min": least, "max": "1000"},
                        {"name": "memory", "min": f"{least}Gi", "max": "1000Gi"},
                    ],
                }
                for grade, least in enumerate(GRADES)
            ]
            status["resourceSummary"] = {
                **summary,
                "allocatableModelings": [
                    {"grade": grade, "count": count} for grade, count in enumerate(free)
                ],
            }
    return Cluster.from_manifest(
        {
            "metadata": {"name": f"m{number:04}", "uid": "u", "resourceVersion": "1"},
            "spec": spec,
            "status": status,
        }
    )


def requiring(request: Mapping[str, str] | None) -> ReplicaRequirements | None:
    if request is None:
        return None
    return ReplicaRequirements({name: quantity.parse(amount) for name, amount in request.items()})


def one_by_one(clusters: Sequence[Cluster], requirements: ReplicaRequirements | None) -> list[int]:
    return GeneralEstimator(FeatureGates()).max_available_replicas(clusters, requirements, {})


WHOLE_CPUS = {"cpu": "9223372036854775807", "pods": "5"}


@settings(deadline=None, max_examples=150)
@given(
    st.lists(shapes, max_size=6),
    st.lists(st.tuples(st.integers(0, 5), shapes | st.just("gone")), max_size=4),
    st.lists(requests, min_size=1, max_size=3),
)
@example([({"allocatable": WHOLE_CPUS, "allocated": {}, "allocating": {}}, None)], [], [{"cpu": "1"}])
@example([({"allocatable": WHOLE_CPUS, "allocated": {}, "allocating": {}}, None)], [], [WHOLE_CPUS])
@example(
    [({"allocatable": {"pods": "5", "cpu": "1500m"}, "allocated": {}, "allocating": {}}, None)],
    [],
    [{"cpu": "9223372036854775807"}],
)
@example(
    [({"allocatable": {"pods": "4294967297", "cpu": "9E"}, "allocated": {}, "allocating": {}}, None)],
    [],
    [{"cpu": "1m"}, {}, None],
)
def test_columns_equal_counting_cluster_by_cluster(
    first: Sequence[Shape],
    later: Sequence[tuple[int, Shape | str]],
    requests: Sequence[Mapping[str, str] | None],
) -> None:
    clusters = {number: built(number, shape) for number, shape in enumerate(first)}
    estimator, results = GeneralEstimator(FeatureGates()), FilterResults("key")
    for change in (None, *later):
        if change is not None:
            number, shape = change
            clusters.pop(number, None)
            if not isinstance(shape, str):
                clusters[number] = built(number, shape)
        results.refresh(Snapshot.of(clusters.values()), lambda _: {})
        for request in requests:
            requirements = requiring(request)
            expected = one_by_one(results.feasible, requirements)
            rows = columns.all_rows(len(expected))
            assert estimator.replicas_by_row(results, rows, requirements).tolist() == expected
            few = estimator.replicas_by_row(results, rows[1::2], requirements).tolist()
            assert few == expected[1::2]


def test_capacities_move_with_the_rows_of_their_clusters() -> None:
    plenty = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    shape = {"allocatable": plenty, "allocated": {}, "allocating": {}}
    first, with_models, last = (
        built(0, (shape, None)),
        built(1, (shape, (0, 0, 1, 0))),
        built(2, (shape, None)),
    )
    estimator, results = GeneralEstimator(FeatureGates()), FilterResults("key")
    for clusters in ([first, with_models, last], [with_models, last], [first, with_models, last], [last]):
        results.refresh(Snapshot.of(clusters), lambda _: {})
        for request in ({"cpu": "1"}, {"memory": "1Gi"} if first not in clusters else {}):
            counted = estimator.replicas_by_row(results, columns.all_rows(len(clusters)), requiring(request))
            assert counted.tolist() == one_by_one(clusters, requiring(request))
        without_columns = estimator._columns[results].scalar_rows(columns.all_rows(len(clusters)))
        assert [clusters[row] for row in without_columns] == [
            each for each in clusters if each is with_models
        ]


def test_a_resource_that_is_requested_after_rows_have_moved_is_counted_for_all_clusters() -> None:
    plenty = {
        "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"},
        "allocated": {},
        "allocating": {},
    }
    first, last = (built(number, (plenty, None)) for number in range(2))
    estimator, results = GeneralEstimator(FeatureGates()), FilterResults("key")
    for clusters, request in (([last], {"cpu": "1"}), ([first, last], {"memory": "1Gi"})):
        results.refresh(Snapshot.of(clusters), lambda _: {})
        counted = estimator.replicas_by_row(results, columns.all_rows(len(clusters)), requiring(request))
        assert counted.tolist() == one_by_one(clusters, requiring(request))


def test_columns_are_dropped_with_their_filter_results() -> None:
    estimator, results = GeneralEstimator(FeatureGates()), FilterResults("key")
    results.refresh(Snapshot.of([cluster("m1").capacity(pods=3).build()]), lambda _: {})
    assert estimator.replicas_by_row(results, columns.all_rows(1), None).tolist() == [3]
    gone = weakref.ref(results)
    del results
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("pods", [0, 7, 2**31 - 1, 2**31, 2**32 + 5])
def test_pods_wrap_to_32_bits(pods: int) -> None:
    estimator, results = GeneralEstimator(FeatureGates()), FilterResults("key")
    results.refresh(Snapshot.of([cluster("m1").capacity(pods=pods).build()]), lambda _: {})
    expected = one_by_one(results.feasible, None)
    assert estimator.replicas_by_row(results, columns.all_rows(1), None).tolist() == expected


def test_minus_one_is_no_opinion_in_columns() -> None:
    spec, results = binding("w").replicas(3).build().spec, FilterResults("key")
    built = cluster("m1").capacity(pods=2**32 - 1).build()
    results.refresh(Snapshot.of([built]), lambda _: {})
    estimator = GeneralEstimator(FeatureGates())
    known = run_sync(
        available_replicas(
            spec, [built], estimators=Estimators([estimator]), gates=FeatureGates(), assumed={}
        )
    )
    assert known == [3]
    assert least_by_row(spec, results, columns.all_rows(1), [estimator]).tolist() == [MAX_INT32]


def test_few_of_thousands_of_resources_are_cached() -> None:
    names = [f"example.com/r{number}" for number in range(2000)]
    plenty = cluster("m1").allocatable({**dict.fromkeys(names, 3), "pods": 5, "cpu": 8}).build()
    estimator, results = GeneralEstimator(FeatureGates()), FilterResults("key")
    results.refresh(Snapshot.of([plenty, cluster("m2").capacity(cpu=8).build()]), lambda _: {})
    wanted = requiring(dict.fromkeys(names, "1"))
    assert estimator.replicas_by_row(results, columns.all_rows(2), wanted).tolist() == [3, 0]
    unknown = requiring({f"unknown.example.com/r{number}": "1" for number in range(2000)})
    assert estimator.replicas_by_row(results, columns.all_rows(2), unknown).tolist() == [0, 0]
    assert len(estimator._columns[results]._units) <= 32
    assert all(len(capacity._left) <= 32 for capacity in estimator._capacities.values())
    assert estimator.replicas_by_row(results, columns.all_rows(2), requiring({"cpu": "4"})).tolist() == [2, 2]


def test_capacities_of_removed_clusters_are_dropped() -> None:
    estimator, results = GeneralEstimator(FeatureGates()), FilterResults("key")
    for number in range(1000):
        clusters = [cluster(f"m{number}-{each}").capacity(pods=3).build() for each in range(5)]
        results.refresh(Snapshot.of(clusters), lambda _: {})
        assert estimator.replicas_by_row(results, columns.all_rows(5), None).tolist() == [3] * 5
    assert len(estimator._capacities) < 150


def test_a_new_cluster_is_counted_in_columns_that_are_taken_from_other_filter_results() -> None:
    plenty = {"allocatable": {"cpu": "64", "pods": "110"}, "allocated": {}, "allocating": {}}
    clusters = [built(number, (plenty, None)) for number in range(2)]
    estimator, few, all_ = GeneralEstimator(FeatureGates()), FilterResults("few"), FilterResults("all")
    few.refresh(Snapshot.of(clusters[:1]), lambda _: {})
    all_.refresh(Snapshot.of(clusters), lambda _: {})
    for results in (few, all_):
        rows = columns.all_rows(len(results.feasible))
        counted = estimator.replicas_by_row(results, rows, requiring({"cpu": "1"})).tolist()
        assert counted == one_by_one(results.feasible, requiring({"cpu": "1"}))
        further = FilterResults("further")
        further.refresh(Snapshot.of(clusters), lambda _: {})
        estimator.replicas_by_row(further, columns.all_rows(2), None)
        assert list(estimator._columns[further]._units) == ["cpu"]
