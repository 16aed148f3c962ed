"""Remedies are ordered by what speaks against them, and say it; near values come first."""

from __future__ import annotations

import pytest

from karmada_scheduler.testing import ClusterBuilder, binding, cluster
from tests.unit.whynot.asking import Asked, ask

PLACED = ("--placed",)


def with_cpu(**free: float) -> list[ClusterBuilder]:
    return [cluster(name).capacity(cpu=cpu, memory="1000Gi", pods=1000) for name, cpu in free.items()]


def cautions(found: Asked) -> list[tuple[str, str]]:
    return [(each["harm"], each["caution"]) for each in found.remedies]


def test_ranks_grow_with_the_harm() -> None:
    asked = binding("web").replicas(4, cpu=200).dynamic_weight()

    found = ask(asked, *with_cpu(m1=16, m2=16), options=PLACED)

    assert [each["rank"] for each in found.remedies] == list(range(1, len(found.remedies) + 1))
    degrees = [["none", "narrows", "widens", "unchecked"].index(each["harm"]) for each in found.remedies]
    assert degrees == sorted(degrees)


def test_what_turns_the_check_of_capacity_off_is_no_answer_while_there_are_others() -> None:
    asked = binding("web").replicas(4, cpu=200).dynamic_weight()

    found = ask(asked, *with_cpu(m1=16, m2=16), options=PLACED)

    assert all(each["harm"] == "none" for each in found.remedies)
    assert not any({"dropRequests", "setStrategy"} & set(ops) for ops in found.ops)


def test_what_turns_the_check_off_says_which_pods_would_stay_pending() -> None:
    asked = binding("web").replicas(3).request({"example.com/gpu": "1"}).dynamic_weight()

    found = ask(asked, cluster("m1").deleting(), *with_cpu(m2=9), options=PLACED)

    assert [each["harm"] for each in found.remedies] == ["none", "unchecked", "unchecked"]
    request, strategy = (each["caution"] for each in found.remedies[1:])
    assert request == (
        "It only ends the check: all Pods would stay Pending, or lack what they ask for, because m2 cannot take one "
        "(1 example.com/gpu)."
    )
    assert strategy.startswith(
        "It only ends the check: all Pods would stay Pending, because m2 cannot take one"
    )


def test_a_cluster_that_is_down_has_to_come_back() -> None:
    [m1] = with_cpu(m1=9)
    asked = binding("web").replicas(2, cpu=1).dynamic_weight()

    found = ask(asked, m1.taint("cluster.karmada.io/not-ready:NoSchedule"), options=PLACED)

    assert found.ops == [["becomeReady"]]
    [edit] = found.remedies[0]["edits"]
    assert edit["instead"].startswith("Repair m1 until its condition Ready is True")


def test_no_remedy_removes_or_tolerates_a_taint_of_karmada_together_with_others() -> None:
    [m1] = with_cpu(m1=9)
    asked = binding("web").replicas(2, cpu=1).dynamic_weight()
    m1.taint("cluster.karmada.io/unreachable:NoExecute").taint("dedicated=gpu:NoSchedule")

    found = ask(asked, m1, options=PLACED)

    assert ["becomeReady", "tolerate"] in [sorted(ops) for ops in found.ops]
    assert not any({"removeTaints", "removeTaint"} & set(ops) for ops in found.ops[:1])
    texts = [edit["text"] for each in found.remedies for edit in each["edits"] if edit["op"] == "tolerate"]
    assert all("karmada.io" not in text for text in texts)


@pytest.mark.parametrize(
    ("key", "first", "second", "caution"),
    [
        (
            "dedicated=gpu",
            "tolerate",
            "removeTaint",
            "Somebody set the taint: m1 is then open to all workloads.",
        ),
        (
            "cluster.karmada.io/unschedulable",
            "removeTaint",
            "tolerate",
            "m1 is cordoned: somebody took it out of use.",
        ),
    ],
)
def test_a_taint_that_somebody_set_is_tolerated_before_it_is_removed_and_a_cordon_is_removed_first(
    key: str, first: str, second: str, caution: str
) -> None:
    [m1] = with_cpu(m1=9)
    found = ask(
        binding("web").replicas(2, cpu=1).dynamic_weight(), m1.taint(f"{key}:NoSchedule"), options=PLACED
    )
    assert found.ops[:2] == [[first], [second]]
    assert cautions(found)[1] == ("widens", caution)


@pytest.mark.parametrize(
    "toleration",
    [
        {"key": "dedicate", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"},
        {"key": "dedicated", "operator": "Equal", "value": "gpus", "effect": "NoSchedule"},
        {"key": "dedicated", "operator": "Equal", "value": "gpu", "effect": "NoExecute"},
        {"key": "dedicate", "operator": "Exists"},
    ],
)
def test_a_toleration_with_a_near_key_value_or_effect_is_corrected_first(toleration: dict[str, str]) -> None:
    [m1] = with_cpu(m1=9)
    asked = binding("web").replicas(2, cpu=1).dynamic_weight().tolerates(**toleration)

    found = ask(asked, m1.taint("dedicated=gpu:NoSchedule"), options=PLACED)

    assert found.ops[0] == ["correctToleration"]
    [cause] = [each for each in found.fields["causes"] if each["code"] == "UntoleratedTaint"]
    assert cause["evidence"]["nearToleration"].startswith("dedicate")


@pytest.mark.parametrize(
    ("selector", "op"),
    [
        ({"matchLabels": {"pool": "gpu"}}, "correctLabel"),
        ({"matchLabels": {"pol": "gpus"}}, "correctLabelKey"),
        ({"matchExpressions": [{"key": "pool", "operator": "In", "values": ["gpu"]}]}, "correctValue"),
        ({"matchExpressions": [{"key": "pol", "operator": "Exists"}]}, "correctLabelKey"),
    ],
)
def test_the_near_label_comes_before_a_wider_selector(selector: dict[str, object], op: str) -> None:
    [m1, m2, m3] = with_cpu(m1=9, m2=9, m3=9)
    asked = binding("web").replicas(2, cpu=1).dynamic_weight().affinity(labelSelector=selector)

    found = ask(asked, m1.label("pool", "gpus"), m2, m3, options=PLACED)

    assert found.primary == "ValueUnknown"
    assert found.ops[0] == [op]
    assert found.result(op) == {"m1": 2}
    wide = [each for each in found.remedies if each["harm"] == "widens"]
    assert all(
        "widens what the owner of the policy has restricted: 3 clusters" in each["caution"] for each in wide
    )


@pytest.mark.parametrize(
    ("key", "written"), [("region", "eu-wst-1"), ("provider", "amazn"), ("zone", "eu-west-1b")]
)
def test_the_near_region_provider_or_zone_is_selected_first_and_no_cluster_is_moved_there(
    key: str, written: str
) -> None:
    [m1, m2] = with_cpu(m1=9, m2=9)
    m1.region("eu-west-1").provider("amazon").zones("eu-west-1a")
    m2.region("us-east-1").provider("google").zones("us-east-1a")
    expression = {"key": key, "operator": "In", "values": [written]}
    asked = binding("web").replicas(2, cpu=1).dynamic_weight()
    asked.affinity(fieldSelector={"matchExpressions": [expression]})

    found = ask(asked, m1, m2, options=PLACED)

    assert found.primary == "ValueUnknown"
    assert found.result("correctValue") == {"m1": 2}
    assert found.ops[0] == ["correctValue"]
    assert not any({"setRegion", "setProvider", "setZones"} & set(ops) for ops in found.ops)


def test_both_minima_are_lowered_together_to_what_is_feasible() -> None:
    clusters = with_cpu(a=9, b=9, c=9, d=9, e=9, f=9, g=9)
    for index, each in enumerate(clusters):
        each.region(f"r{index % 5}")
    asked = binding("web").replicas(9, cpu=1).dynamic_weight().spread("region", 9, 9).spread("cluster", 9, 9)

    found = ask(asked, *clusters, options=PLACED)

    assert sorted(edit["text"] for edit in found.remedies[0]["edits"]) == [
        "cluster minGroups 7 (9 now)",
        "region minGroups 5 (9 now)",
    ]
    assert found.remedies[0]["harm"] == "none"
    [dropped] = [each for each in found.remedies if each["harm"] == "widens"]
    assert dropped["caution"] == "It gives up every spread that the owner of the policy asked for."


def test_a_set_of_components_gets_the_least_capacity_that_suffices() -> None:
    asked = binding("flink").component("jobmanager", 1, cpu="1").component("taskmanager", 4, cpu="4")
    asked.dynamic_weight().spread("cluster", 1, 1)

    found = ask(
        asked,
        *with_cpu(m1=16),
        options=PLACED,
        flags=("--feature-gates", "MultiplePodTemplatesScheduling=true"),
    )

    assert found.ops[0] == ["addCapacity"]
    [edit] = found.remedies[0]["edits"]
    assert edit["text"] == "1 cpu free: 1 set of Pods fits (0 now)"
    ends_check = [each for each in found.remedies if each["harm"] == "unchecked"]
    assert all("would stay Pending" in each["caution"] for each in ends_check)


def test_a_resource_of_no_model_is_added_to_the_models() -> None:
    gpus = cluster("m1").allocatable({"cpu": 64, "pods": 110, "nvidia.com/gpu": 8})
    gpus.grade(0, nodes=0, cpu=0).grade(1, nodes=4, cpu=16)
    asked = binding("train").request({"cpu": 1, "nvidia.com/gpu": 1}).replicas(2).dynamic_weight()

    found = ask(asked, gpus, options=PLACED)
    more = ask(asked.replicas(9), gpus, options=PLACED)

    assert found.primary == "ResourceNotInModels"
    edit = found.edit("addToModels")
    assert edit["text"].startswith("a grade with nvidia.com/gpu in spec.resourceModels that takes a replica")
    assert "--feature-gates=CustomizedClusterResourceModeling=false" in edit["instead"]
    assert found.result("addToModels") == {"m1": 2}
    assert more.result("addCapacity", "addToModels") == {"m1": 9}


def test_the_workload_is_written_in_a_version_that_the_cluster_serves() -> None:
    asked = binding("web").resource("example.com/v1beta1", "Widget").duplicated()

    found = ask(asked, cluster("m1").serves({"example.com/v1": ["Widget"]}), cluster="m1")

    assert found.fields["causes"][0]["evidence"]["otherVersions"] == ["example.com/v1"]
    assert ["setApiVersion"] in found.ops
    assert ["serveApi"] in found.ops
    assert "Install what serves" in found.edit("serveApi")["instead"]


def test_a_suspended_binding_with_too_few_replicas_is_resumed() -> None:
    asked = binding("web").replicas(8, cpu=1).dynamic_weight().on(m1=4).applied().suspended()

    placed = ask(asked, *with_cpu(m1=9, m2=9), options=PLACED)
    more = ask(asked, *with_cpu(m1=9, m2=9), cluster="m1", options=("--replicas", "5"))

    assert placed.ops == [["resume"]]
    assert more.ops[0] == ["resume"]
    assert placed.fields["state"]["name"] == "held"
    assert not placed.fields["holds"]
