from __future__ import annotations

import itertools
from collections import Counter
from functools import cache

import pytest

from tools.oracle import features
from tools.oracle.generator.scenarios import scenarios

CASES = 6000

EXPECTED = """
ClusterResourceBinding
ResourceBinding
a cluster assigned twice
accurate estimator
accurate estimator fails
affinity terms
applied placement
assigned to an unknown cluster
assumed workloads
binding being deleted
cluster being deleted
cluster with provider
cluster with region
cluster with resourceModels
cluster with taints
cluster with zones
cluster without provider
cluster without region
cluster without resource summary
cluster without resourceModels
cluster without taints
cluster without zones
clusterTolerations
clusters: 1
clusters: 2-12
clusters: 13-60
clusters: 61-500
components: 0
components: 1
components: 2+
empty overflow affinities
empty-workload propagation
eviction
first assignment
gate CustomizedClusterResourceModeling off
gate CustomizedClusterResourceModeling on
gate MultiplePodTemplatesScheduling off
gate MultiplePodTemplatesScheduling on
gate PriorityBasedScheduling off
gate PriorityBasedScheduling on
gate SchedulingOvercommitProtection off
gate SchedulingOvercommitProtection on
gate WorkloadAffinity off
gate WorkloadAffinity on
negative node count
no applied placement
no placement
observed term first
observed term known
observed term unknown
overflow affinities
peers in groups
peers written but not yet seen
plugins switched off
previous assignment
quantity binary suffix
quantity binary suffix, fraction
quantity decimal suffix
quantity exponent
quantity fraction
quantity integer
quantity integer over 18 digits
quantity nano or micro
quantity negative
replicas given
replicas missing
replicas zero
request binary suffix
request binary suffix, fraction
request decimal suffix
request exponent
request fraction
request integer
request integer over 18 digits
request nano or micro
request negative
requirements
requirements without request
single affinity
spread by cluster
spread by label
spread by provider
spread by region
spread by zone
spread without maxGroups
spread without minGroups
static weight with selector
static weight zero or huge
strategy Divided
strategy Divided Aggregated
strategy Divided Odd
strategy Divided Weighted dynamic
strategy Divided Weighted static
strategy Divided Weighted without weights
strategy Duplicated
strategy Duplicated Weighted
strategy Other Odd
strategy empty
strategy missing
summary with allocatable
summary with allocatableModelings
summary with allocated
summary with allocating
trigger after last schedule
trigger at last schedule
trigger before last schedule
uid even
uid missing
uid odd
workload groups
""".strip().splitlines()


@cache
def met() -> Counter[str]:
    counted: Counter[str] = Counter()
    for scenario in scenarios(1, cases=CASES):
        counted.update(set(features.of_scenario(scenario)))
        for binding in scenario["bindings"]:
            counted.update(set(features.of_case(binding)))
    return counted


@pytest.mark.parametrize("feature", EXPECTED)
def test_every_feature_is_generated(feature: str) -> None:
    assert met()[feature] > 0


def test_every_generated_feature_is_expected() -> None:
    assert sorted(set(met()) - set(EXPECTED)) == []


def test_equal_seeds_give_equal_scenarios() -> None:
    assert list(scenarios(7, cases=300)) == list(scenarios(7, cases=300))


def test_other_seeds_give_other_scenarios() -> None:
    assert next(scenarios(7, cases=1)) != next(scenarios(8, cases=1))


def test_workers_share_a_seed_without_overlap() -> None:
    whole = list(scenarios(7, cases=400))
    parts = [list(scenarios(7, cases=400, first=number, step=3)) for number in range(3)]
    together = [scenario for row in itertools.zip_longest(*parts) for scenario in row if scenario is not None]
    assert together == whole


def test_a_run_has_at_least_the_given_number_of_cases() -> None:
    assert sum(len(scenario["bindings"]) for scenario in scenarios(3, cases=250)) >= 250
