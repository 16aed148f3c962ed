"""What explanations say about a reschedule by the rules of 1.19, and what they say by those of 1.18."""

from __future__ import annotations

import pytest

from karmada_advisor.claims.template import Template, TemplateKey
from karmada_advisor.explain.unclaimed import explain_unclaimed
from karmada_scheduler.testing import BindingBuilder
from tests.unit.core.test_decisions_of_1_19 import BACKUP, OF_1_18, OF_1_19, ROOMY, TAINTED, in_backup
from tests.unit.explain.asking import causes, explained, primary


def settled(replicas: int = 6) -> BindingBuilder:
    """Return the binding in its second term before anybody asks for a reschedule."""
    return in_backup(replicas, is_requested=False)


def test_a_binding_returns_to_a_term_that_it_has_left_when_a_workload_rebalancer_names_it() -> None:
    of_1_18 = {each.code: each.text for each in causes(settled(), ROOMY, BACKUP, gates=OF_1_18)}
    of_1_19 = {each.code: each.text for each in causes(settled(), ROOMY, BACKUP, gates=OF_1_19)}
    assert (
        "never returns to a term that it has left, not even with a WorkloadRebalancer"
        in of_1_18["TermBehind"]
    )
    assert "only when a WorkloadRebalancer names it" in of_1_19["TermBehind"]
    assert "after a WorkloadRebalancer it would be p 6" in of_1_19["NothingAsks"]
    assert "p 6" not in of_1_18.get("NothingAsks", "")


def test_a_cluster_of_an_earlier_term_gets_it_from_a_workload_rebalancer() -> None:
    found = primary(settled(), ROOMY, BACKUP, why_not="p", gates=OF_1_19)
    assert (found.code, found.evidence["onRebalance"]) == ("NothingAsks", {"p": 6})
    behind = primary(in_backup(), BACKUP, ROOMY, why_not="p", gates=OF_1_18)
    assert "never returns" in behind.text


def test_what_a_reschedule_of_karmada_scheduler_1_19_removes_is_named_before_anybody_asks_for_one() -> None:
    full = settled().spread("cluster", 2, 3).applied()
    found = causes(full, TAINTED, BACKUP, gates=OF_1_19)
    (removed,) = [each for each in found if each.code == "RescheduleRemoves"]
    assert "the first term primary does not fit, and karmada-scheduler 1.19 then removes b 6" in removed.text
    assert "RescheduleRemoves" not in {each.code for each in causes(full, TAINTED, BACKUP, gates=OF_1_18)}


def test_a_reschedule_that_was_kept_is_explained_by_the_term_that_does_not_fit() -> None:
    explanation = explained(in_backup(10), TAINTED, BACKUP, gates=OF_1_19)
    first, *others = explanation.causes
    assert first.code == "RescheduleRemoves"
    assert "UntoleratedTaint" in {each.code for each in others}
    assert explanation.would_be is not None
    assert "NoClusterFit" in explanation.would_be.text
    assert "Retried by timer" in explanation.would_be.text


REFUSED = 'failed to apply: ResourceBinding "web-deployment" is invalid: spec.failover.application.purgeMode: Unsupported value: "Graciously"'


@pytest.mark.parametrize(
    ("mode", "message", "code"),
    [
        ("Graciously", REFUSED, "PurgeModeRefused"),
        ("Immediately", REFUSED, "PurgeModeRefused"),
        ("Graciously", "something else", "NotClaimed"),
        ("Gracefully", REFUSED, "NotClaimed"),
    ],
)
def test_an_old_purge_mode_is_why_karmada_1_19_makes_no_binding(mode: str, message: str, code: str) -> None:
    policy = {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}],
            "failover": {"application": {"purgeMode": mode}},
        },
    }
    template = Template(TemplateKey("apps/v1", "Deployment", "shop", "web"), {})
    event = {"reason": "ApplyPolicyFailed", "message": message, "type": "Warning"}
    (cause, *_) = explain_unclaimed(template, [policy], events=[event]).causes
    assert cause.code == code
    if code == "PurgeModeRefused":
        assert "edit it to Gracefully" in cause.text or "edit it to Directly" in cause.text
