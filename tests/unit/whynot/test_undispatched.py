"""Remedies that take no effect by themselves say so: dispatching is suspended, the policy is Lazy, or no capacity is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler.testing import binding, cluster
from tests import commands
from tests.unit.plan.fleet import write
from tests.unit.rebalance.proposing import settled

ID = "propagationpolicy.karmada.io/permanent-id"


@pytest.mark.parametrize(("listed", "is_said"), [("b", True), ("a", False)])
def test_each_remedy_says_that_dispatching_to_the_cluster_is_suspended(
    tmp_path: Path, listed: str, is_said: bool
) -> None:
    made = settled(binding("web").replicas(4, cpu="1").dynamic_weight().names("a", "b").on(a=4)).manifest()
    made["spec"]["suspension"] = {"dispatchingOnClusters": {"clusterNames": [listed]}}
    files = write(tmp_path, clusters=[cluster(name).manifest() for name in "ab"], bindings=[made])

    found = commands.run("why-not", "web-deployment", "b", *files, "-o=json").fields["remedies"]

    text = "Dispatching to b is suspended: nothing new arrives there."
    assert found
    assert all((text in each["caution"]) is is_said for each in found)


def _lazy(*names: str, preference: str = "Lazy") -> dict[str, Any]:
    """Return the policy of the binding, which selects some clusters."""
    division = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
    weights = {"weightPreference": {"dynamicWeight": "AvailableReplicas"}}
    affinity = {"clusterAffinity": {"clusterNames": [*names]}}
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "web", "namespace": "default", "labels": {ID: "web"}},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
            "placement": {**affinity, "replicaScheduling": {**division, **weights}},
            **({"activationPreference": preference} if preference else {}),
        },
    }


@pytest.mark.parametrize(
    ("policy", "sides"),
    [
        (_lazy("b"), {"trigger"}),
        (_lazy("a", "b"), {"trigger", "policy", "workload"}),
        (_lazy("a", "b", preference=""), {"trigger", "policy", "workload"}),
    ],
    ids=["its edit waits", "lazy", "not lazy"],
)
def test_a_change_of_the_template_brings_the_edit_of_a_lazy_policy(
    tmp_path: Path, policy: dict[str, Any], sides: set[str]
) -> None:
    made = binding("web").replicas(4, cpu="1").dynamic_weight().names("a", "b").on(a=4).label(ID, "web")
    clusters = [cluster(name).manifest() for name in "ab"]
    files = write(tmp_path, clusters=clusters, bindings=[settled(made).manifest()], policies=[policy])

    found = commands.run("why-not", "web-deployment", "b", *files, "-o=json").fields["remedies"]

    assert {edit["side"] for each in found for edit in each["edits"]} == sides
    waits = "PropagationPolicy default/web is Lazy: its edit waits for the next change of the template."
    is_lazy = "activationPreference" in policy["spec"]
    for each in found:
        assert (waits in each["caution"]) is (is_lazy and each["edits"][0]["side"] == "policy")


def test_what_is_not_reported_is_not_called_too_little(tmp_path: Path) -> None:
    made = binding("web").replicas(4, cpu="1").dynamic_weight().names("a", "b").on(a=4)
    bare = cluster("b").without_summary().manifest()
    bare["status"].pop("apiEnablements", None)
    files = write(tmp_path, clusters=[cluster("a").manifest(), bare], bindings=[settled(made).manifest()])

    found = commands.run("why-not", "web-deployment", "b", *files, "-o=json").fields["remedies"]

    cautions = [each["caution"] for each in found if each["harm"] == "unchecked"]
    assert cautions
    assert all("whether Pods start on b is not known: no resource summary" in each for each in cautions)
