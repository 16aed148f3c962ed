"""Questions that have a remedy: why-not finds it, and simulate confirms it."""

from __future__ import annotations

from typing import Any

import pytest

from karmada_scheduler.api.well_known import MANAGED_BY_LABEL
from karmada_scheduler.testing import BindingBuilder, ClusterBuilder, binding, cluster
from tests.unit.core.test_decisions_of_1_19 import BACKUP, ROOMY, TAINTED, in_backup
from tests.unit.explain.fleet import billing, checkout, fleet
from tests.unit.whynot.asking import ask

SCHEDULED = "2026-11-22T10:00:00Z"
CORDON = "cluster.karmada.io/unschedulable:NoSchedule"


def with_cpu(**free: float) -> list[ClusterBuilder]:
    return [cluster(name).capacity(cpu=cpu, memory="1000Gi", pods=1000) for name, cpu in free.items()]


def placed(**replicas: int) -> BindingBuilder:
    made = binding("web").replicas(sum(replicas.values()), cpu=1).dynamic_weight().on(**replicas)
    return made.applied().last_scheduled(SCHEDULED)


def test_a_new_cluster_is_used_after_a_rebalance() -> None:
    found = ask(placed(m1=3, m2=3), *with_cpu(m1=100, m2=100, m3=100), cluster="m3")

    assert found.primary == "NothingAsks"
    assert found.result("reschedule") == {"m1": 2, "m2": 2, "m3": 2}
    assert found.sides[0] == ["trigger"]


@pytest.mark.parametrize("decisions_of", ["1.18", "1.19"])
def test_a_binding_returns_to_its_first_term_by_a_workload_rebalancer_since_1_19(decisions_of: str) -> None:
    flags = (f"--decisions-of={decisions_of}",)
    found = ask(in_backup(is_requested=False), ROOMY, BACKUP, cluster="p", flags=flags)

    offered = ["reschedule"] in found.ops
    assert offered is (decisions_of == "1.19")
    if offered:
        assert found.result("reschedule") == {"p": 6}


def test_a_workload_rebalancer_that_would_remove_the_workload_is_not_offered() -> None:
    asked = in_backup(is_requested=False).spread("cluster", 2, 3).applied()
    found = ask(asked, TAINTED, BACKUP, cluster="p", flags=("--decisions-of=1.19",))
    assert ["reschedule"] not in found.ops


def test_an_uncordoned_cluster_is_used_after_a_rebalance() -> None:
    found = ask(placed(m2=4), *with_cpu(m1=100, m2=100), cluster="m1")

    assert found.result("reschedule") == {"m1": 2, "m2": 2}


def test_a_wider_policy_moves_what_is_placed_after_a_rebalance() -> None:
    asked = binding("web").replicas(4, cpu=1).dynamic_weight().names("m1", "m2").on(m1=4)
    asked.applied({"clusterAffinity": {"clusterNames": ["m1"]}}).last_scheduled(SCHEDULED)

    found = ask(asked, *with_cpu(m1=100, m2=100), cluster="m2")

    assert found.primary == "SteadyKeeps"
    assert found.result("reschedule") == {"m1": 2, "m2": 2}


def test_where_no_rebalance_counts_the_policy_asks_for_the_decision_after_the_cluster_was_mended() -> None:
    # It was never scheduled, so that a WorkloadRebalancer is ignored.
    asked = binding("web").resource("example.com/v1", "Widget").replicas(2).names("m2").static_weights()
    served = {"example.com/v1": ["Widget"]}
    [m1, m2] = with_cpu(m1=9, m2=9)

    found = ask(asked.on(m2=2).applied(), m1, m2.serves(served), cluster="m1")

    assert ["serveApi", "addClusterName"] in found.ops


def test_a_suspended_binding_is_placed_when_it_is_resumed() -> None:
    found = ask(binding("web").replicas(2, cpu=1).dynamic_weight().suspended(), *with_cpu(m1=9), cluster="m1")

    assert found.primary == "Suspended"
    assert found.result("resume") == {"m1": 2}


def test_the_name_that_does_not_exist_is_corrected() -> None:
    found = ask(
        binding("web").replicas(2, cpu=1).dynamic_weight().names("m-1"),
        *with_cpu(m1=9, m2=9, m3=9),
        cluster="m1",
    )

    assert found.result("correctClusterName") == {"m1": 2}


def test_a_name_is_corrected_to_the_nearest_one_only() -> None:
    asked = binding("web").replicas(2, cpu=1).dynamic_weight().names("eu-wst-1")
    clusters = with_cpu(**{"ap-south-1": 9, "eu-west-1": 9, "us-east-1": 9})

    anywhere = ask(asked, *clusters, options=("--placed",))
    elsewhere = ask(asked, *clusters, cluster="us-east-1")

    assert anywhere.result("correctClusterName") == {"eu-west-1": 2}
    assert ["correctClusterName"] not in elsewhere.ops
    assert elsewhere.result("addClusterName") == {"us-east-1": 2}
    tried = {edit["text"] for each in elsewhere.fields["ineffective"] for edit in each["edits"]}
    assert "write eu-west-1 instead of eu-wst-1, which does not exist" in tried


def test_a_cordoned_cluster_is_uncordoned_or_tolerated() -> None:
    [m1, m2] = with_cpu(m1=9, m2=9)
    found = ask(
        binding("web").replicas(2, cpu=1).dynamic_weight().names("m1"), m1.taint(CORDON), m2, cluster="m1"
    )

    assert found.primary == "UntoleratedTaint"
    assert found.result("removeTaint") == {"m1": 2}
    assert found.result("tolerate") == {"m1": 2}


def test_a_missing_crd_is_installed() -> None:
    asked = binding("web").resource("example.com/v1", "Widget").duplicated()
    [m1, m2] = with_cpu(m1=9, m2=9)

    found = ask(asked, m1, m2.serves({"example.com/v1": ["Widget"]}), cluster="m1")

    assert found.primary == "ApiMissing"
    assert found.result("serveApi") == {"m1": 0, "m2": 0}


def test_a_region_is_set_or_the_constraint_dropped() -> None:
    asked = binding("web").replicas(2, cpu=1).dynamic_weight().spread("region", 1, 1)

    found = ask(asked, *with_cpu(m1=9), cluster="m1")

    assert found.primary == "RegionMissing"
    assert found.result("setRegion") == {"m1": 2}
    assert found.result("dropConstraint") == {"m1": 2}


def test_an_eviction_task_is_ended() -> None:
    asked = binding("web").replicas(2, cpu=1).dynamic_weight().evicted_from("m1")

    found = ask(asked, *with_cpu(m1=9), cluster="m1")

    assert found.primary == "BeingEvicted"
    assert found.result("endEviction") == {"m1": 2}


def test_there_is_a_remedy_on_each_side() -> None:
    found = ask(billing(), *fleet(), options=("--placed",))

    assert found.fields["next"]["reason"] == "NoClusterFit"
    assert {side for sides in found.sides for side in sides} == {"policy", "cluster"}


def test_an_affinity_group_is_left() -> None:
    asked = binding("web").replicas(2, cpu=1).dynamic_weight().groups(affinity="blue")
    peer = binding("peer").replicas(2, cpu=1).dynamic_weight().groups(affinity="blue").on(m2=2).applied()
    peer.last_scheduled(SCHEDULED)

    found = ask(
        asked,
        *with_cpu(m1=9, m2=9),
        cluster="m1",
        peers=[peer],
        flags=("--feature-gates", "WorkloadAffinity=true"),
    )

    assert found.primary == "GroupAffinity"
    assert ["leaveGroup"] in found.ops
    assert ["releasePeer"] in found.ops


def test_a_maximum_is_set() -> None:
    asked = binding("web").replicas(2, cpu=1).duplicated().spread("cluster", 1, 0)

    found = ask(asked, *with_cpu(m1=9, m2=9), cluster="m1")

    assert found.primary == "MaxGroupsZero"
    assert found.result("setGroups") == {"m1": 2}
    assert found.edit("setGroups")["minimal"]["failsAt"] == 0


def test_the_refused_cluster_is_admitted_or_one_is_enough() -> None:
    [m1, m2] = with_cpu(m1=9, m2=9)
    asked = binding("web").replicas(2, cpu=1).dynamic_weight().spread("cluster", 2, 2)

    found = ask(asked, m1, m2.taint(CORDON), cluster="m2")

    assert found.result("removeTaint") == {"m1": 1, "m2": 1}
    assert found.result("tolerate") == {"m1": 1, "m2": 1}
    other = ask(asked, m1, m2, options=("--placed",))
    assert ["setGroups"] in other.ops


def test_one_region_is_enough_and_no_cluster_gets_another_region() -> None:
    asked = binding("web").replicas(2, cpu=1).dynamic_weight().spread("region", 2, 2)
    [m1, m2] = with_cpu(m1=9, m2=9)

    found = ask(asked, m1.region("r1"), m2.region("r1"), cluster="m1")

    assert found.ops[0] == ["setGroups"]
    assert all("setRegion" not in ops for ops in found.ops)


def test_a_strategy_that_observes_the_spread_constraint_leaves_one_cluster() -> None:
    asked = binding("web").replicas(10, cpu=1).static_weights(m1=2, m2=8).spread("cluster", 1, 1)
    asked.on(m1=2, m2=8).applied().last_scheduled(SCHEDULED)

    found = ask(asked, *with_cpu(m1=50, m2=90), cluster="m1", options=("--off",))

    assert found.primary == "SpreadIgnored"
    assert found.result("setStrategy") == {"m2": 10}


def test_the_tied_region_wins_without_another_or_with_more_replicas() -> None:
    asked = checkout().on(**{"ap-south-1": 4, "eu-west-1": 12, "eu-west-2": 8}).applied()
    asked.last_scheduled(SCHEDULED)

    found = ask(asked, *fleet(), cluster="us-east-1")

    assert found.primary == "RegionTie"
    assert found.result("setReplicas") == {"eu-west-1": 17, "eu-west-2": 11, "us-east-1": 5}
    assert (found.edit("setReplicas")["minimal"]["at"], found.edit("setReplicas")["minimal"]["failsAt"]) == (
        33,
        32,
    )
    assert found.result("excludeCluster") == {"eu-west-1": 13, "eu-west-2": 9, "us-east-1": 2}
    tried = {edit["text"] for each in found.fields["ineffective"] for edit in each["edits"]}
    assert "a WorkloadRebalancer" in tried


def test_the_same_edit_has_another_effect_on_a_binding_that_is_new() -> None:
    asked = checkout().on(**{"ap-south-1": 4, "eu-west-1": 12, "eu-west-2": 8}).applied()
    asked.last_scheduled(SCHEDULED)

    found = ask(asked, *fleet(), cluster="us-east-1", options=("--as-new",))

    assert found.result("excludeCluster") == {"eu-west-1": 8, "eu-west-2": 6, "us-east-1": 10}


def test_one_more_group_brings_in_the_new_cluster_after_a_rebalance() -> None:
    asked = binding("web").replicas(30, cpu=1).dynamic_weight().spread("cluster", 1, 4)
    asked.on(m1=6, m2=9, m3=6, m4=9).applied().last_scheduled(SCHEDULED)

    found = ask(asked, *with_cpu(m1=6, m2=9, m3=6, m4=9, m5=90), cluster="m5")

    assert found.primary == "LocalityKeeps"
    assert ["reschedule", "setGroups"] in [sorted(ops) for ops in found.ops]


def test_one_more_cluster_or_fewer_replicas() -> None:
    asked = binding("web").replicas(120, cpu=1).dynamic_weight().spread("cluster", 1, 3)

    found = ask(asked, *with_cpu(m1=28, m2=36, m3=24, m4=44), options=("--placed",))

    assert found.primary == "TooLittleSelected"
    assert found.result("setGroups") == {"m1": 25, "m2": 33, "m3": 22, "m4": 40}
    assert found.edit("setGroups")["minimal"] == {"at": 4, "failsAt": 3, "unit": "", "monotone": "sampled"}
    assert found.result("setReplicas") == {"m1": 28, "m2": 36, "m4": 44}
    assert found.edit("setReplicas")["minimal"]["at"] == 108


def test_six_replicas_are_enough_for_the_smaller_weight() -> None:
    asked = binding("web").replicas(4, cpu=1).static_weights(m1=10, m2=1)

    found = ask(asked, *with_cpu(m1=50, m2=50), cluster="m2")

    assert found.primary == "ZeroSeats"
    assert found.result("setReplicas") == {"m1": 5, "m2": 1}


def test_a_rule_is_added_for_the_cluster_that_no_weight_names() -> None:
    asked = binding("web").replicas(6, cpu=1).static_weights(m1=1, m2=1)

    found = ask(asked, *with_cpu(m1=50, m2=50, m3=50), cluster="m3")

    assert found.primary == "WeightMissing"
    assert found.result("addWeight") == {"m1": 2, "m2": 2, "m3": 2}


def test_division_by_weight_uses_what_aggregated_division_leaves_out() -> None:
    asked = binding("web").replicas(12, cpu=1).aggregated()

    found = ask(asked, *with_cpu(A=8, B=12, C=18), cluster="A")

    assert found.primary == "AggregatedFewest"
    assert any("setStrategy" in ops for ops in found.ops)


def test_a_rebalance_divides_all_replicas_again() -> None:
    asked = binding("web").replicas(12, cpu=1).dynamic_weight().on(m1=12).applied().last_scheduled(SCHEDULED)

    found = ask(asked, *with_cpu(m1=20, m2=100), cluster="m2")

    assert found.result("reschedule") == {"m1": 3, "m2": 9}


@pytest.mark.parametrize(
    ("op", "expected"),
    [("setReplicas", {"m1": 1, "m2": 2}), ("setRequest", {"m1": 3, "m2": 5})],
)
def test_fewer_replicas_a_smaller_request_or_more_capacity(op: str, expected: dict[str, Any]) -> None:
    asked = binding("web").replicas(8, cpu=1).dynamic_weight()

    found = ask(asked, *with_cpu(m1=1, m2=2), options=("--placed",))

    assert [op] in found.ops
    assert sum(found.result(op).values()) == sum(expected.values())


def test_overflow_adds_the_capacity_of_the_second_cluster() -> None:
    asked = binding("web").replicas(6, cpu=1).dynamic_weight()
    asked.term("first", "m1").term("second", "m2")

    found = ask(asked, *with_cpu(m1=4, m2=3), cluster="m2")

    assert found.result("addOverflow") == {"m1": 4, "m2": 2}


def test_a_term_that_was_left_is_used_again_after_an_edit_of_the_placement() -> None:
    asked = binding("web").replicas(2, cpu=1).dynamic_weight()
    asked.term("first", "m1").term("second", "m2")
    asked.on(m2=2).applied().observing("second").last_scheduled(SCHEDULED)

    found = ask(asked, *with_cpu(m1=9, m2=9), cluster="m1")

    assert all("policy" in sides for sides in found.sides)
    assert found.remedies


def test_a_cluster_that_is_being_deleted_has_no_remedy() -> None:
    [m1, m2] = with_cpu(m1=9, m2=9)

    found = ask(binding("web").replicas(2, cpu=1).dynamic_weight(), m1.deleting(), m2, cluster="m1")

    assert found.fields["remedies"] == []
    assert found.fields["search"]["complete"]


def test_a_binding_whose_clusters_only_change_their_order_is_not_touched() -> None:
    found = ask(
        binding("web").replicas(6, cpu=1).dynamic_weight().names("m2"),
        cluster("m1").capacity(cpu=5),
        cluster("m2").capacity(cpu=4),
        peers=[binding("peer").replicas(1, cpu=1).duplicated()],
    )

    [capacity] = [each for each in found.remedies if each["edits"][0]["op"] == "addCapacity"]
    assert capacity["touches"] == {"bindings": 1, "checked": True}


def _expression(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "env", "operator": operator, "values": list(values)}]}


def _static_weight(target: dict[str, Any]) -> dict[str, Any]:
    return {
        "replicaScheduling": {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"staticWeightList": [{"targetCluster": target, "weight": 1}]},
        }
    }


_LIKE = {"labelSelector": _expression("Like", "prod")}


@pytest.mark.parametrize(
    ("placement", "ops", "path"),
    [
        ({"clusterAffinity": _LIKE}, ["dropExpression"], "/clusterAffinity/labelSelector/matchExpressions/0"),
        (
            {"clusterAffinity": {"labelSelector": _expression("in", "prod")}},
            ["correctExpression"],
            "/clusterAffinity/labelSelector/matchExpressions/0/operator",
        ),
        (
            {"clusterAffinity": {"labelSelector": {"matchLabels": {"-x": "v"}}}},
            ["dropExpression"],
            "/clusterAffinity/labelSelector/matchLabels/-x",
        ),
        (
            {"clusterAffinity": {"fieldSelector": _expression("In", "prod")}},
            ["dropExpression"],
            "/clusterAffinity/fieldSelector/matchExpressions/0",
        ),
        (
            {
                "clusterAffinities": [
                    {
                        "affinityName": "one",
                        "clusterNames": ["m1"],
                        "overflowAffinities": [{"affinityName": "o", **_LIKE}],
                    }
                ]
            },
            ["dropExpression"],
            "/clusterAffinities/0/overflowAffinities/0/labelSelector/matchExpressions/0",
        ),
        ({"clusterTolerations": [{"operator": "~"}]}, ["dropToleration"], "/clusterTolerations/0"),
        (
            {"clusterTolerations": [{"key": "a", "operator": "Exist"}]},
            ["correctExpression"],
            "/clusterTolerations/0/operator",
        ),
        (
            {"clusterTolerations": [{"key": "a", "operator": "Exists", "effect": "noschedule"}]},
            ["correctExpression"],
            "/clusterTolerations/0/effect",
        ),
        (
            _static_weight(_LIKE),
            ["dropWeight"],
            "/replicaScheduling/weightPreference/staticWeightList/0",
        ),
    ],
)  # fmt: skip
def test_an_expression_that_is_not_known_is_corrected_or_dropped(
    placement: dict[str, Any], ops: list[str], path: str
) -> None:
    m1, *_ = with_cpu(m1=9)

    found = ask(binding("web").replicas(2, cpu=1).placement(placement), m1.labels(env="prod"), cluster="m1")

    [remedy] = [each for each in found.remedies if [edit["op"] for edit in each["edits"]] == ops]
    assert remedy["apply"][0]["patch"][0]["path"] == f"/spec/placement{path}"


def test_what_else_refuses_is_changed_together_with_the_expression() -> None:
    [m1] = with_cpu(m1=9)

    found = ask(
        binding("web").replicas(2, cpu=1).placement({"clusterAffinity": _LIKE}), m1.taint("a:NoSchedule"),
        cluster="m1",
    )  # fmt: skip

    assert ["tolerate", "dropExpression"] in found.ops or ["dropExpression", "tolerate"] in found.ops


def test_a_cluster_is_left_once_the_expression_is_dropped() -> None:
    asked = binding("web").replicas(2, cpu=1).placement({"clusterAffinity": _LIKE}).on(m1=2)

    found = ask(asked, *with_cpu(m1=9, m2=9), cluster="m1", options=("--off",))

    assert all("dropExpression" in ops for ops in found.ops)
    assert found.ops


def test_no_policy_is_edited_where_a_multiclusterservice_overrules_it() -> None:
    asked = binding("web").replicas(2, cpu=1).names("m9")
    assert ["policy"] in ask(asked, cluster("m1")).sides
    assert ask(asked.label(MANAGED_BY_LABEL, "MultiClusterService"), cluster("m1")).sides == []
