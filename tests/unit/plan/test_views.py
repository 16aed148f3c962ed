"""How a plan shows what it warns of, what stays, and who lets go of what, as text and Markdown."""

from __future__ import annotations

import pytest

from karmada_advisor.explain.model import Stage
from karmada_advisor.views.plan_text import plan_markdown, plan_text
from karmada_advisor.views.text import Style
from karmada_advisor.whatif.plan.model import Plan
from karmada_scheduler.testing import cluster
from tests.unit.plan.asking import plan_of
from tests.unit.plan.fleet import policy
from tests.unit.plan.test_classes import DYNAMIC, policy_p, settled, web
from tests.unit.plan.test_holds import quota, schedulers
from tests.unit.plan.test_warnings import placed, planned


def blocked() -> Plan:
    return plan_of(
        [cluster("m1"), cluster("m2")],
        [settled(web("s"), m1=4).suspended(), settled(web("n"), m1=4).scheduler("my-schedler")],
        lambda draft: draft.without("m1"),
        schedulers=schedulers(),
    )


def test_the_text_says_that_a_deleted_cluster_stays_and_why() -> None:
    text = plan_text(blocked(), Style(100))

    assert text.startswith("Plan: cluster m1 stays Terminating (8 replicas of 2 bindings), against ")
    assert "! blocked: Cluster/m1 stays Terminating while 2 bindings are on it" in text
    assert "    default/s-deployment   held: scheduling is suspended (spec.suspension)" in text
    assert "would be m2 4" in text
    assert text.endswith("Plan: 0 moved, 0 unplaced, 0 stuck, 1 held, 1 undecided; 1 deletion blocked.\n")


def test_markdown_says_that_a_deleted_cluster_stays_and_why() -> None:
    markdown = plan_markdown(blocked())

    assert markdown.startswith(
        "### Plan: 0 moved, 0 unplaced, 0 stuck, 1 held, 1 undecided; 1 deletion blocked\n"
    )
    assert "> [!WARNING]\n> **blocked:** Cluster/m1 stays Terminating while 2 bindings are on it;" in markdown
    assert "- default/s-deployment \u00b7 held: scheduling is suspended (spec.suspension)" in markdown
    assert "> [!WARNING]\n> **undecided:** 1 binding" in markdown


def test_a_refusal_of_a_quota_is_shown_once_with_what_it_allows() -> None:
    plan = plan_of(
        [cluster("m1")],
        [settled(web(), m1=4)],
        lambda draft: draft.scale("default/web", 30),
        quotas=[quota("10", "4")],
    )
    text = plan_text(plan, Style(120))
    assert (
        text.count("quota default/team allows 10 cpu, and 30 would be used; it allows 10 of 30 replicas") == 1
    )
    assert "! held: 1 binding, quota default/team" in text


def test_warnings_come_before_the_classes_and_in_the_summary() -> None:
    plan = planned(placed(clusterAffinity={"clusterNames": ["sim-2", "sim-x"]}))
    text = plan_text(plan, Style(200))

    assert text.index("! warning: ClusterUnknown: ClusterPropagationPolicy/p: spec.placement.") < text.index(
        "unchanged"
    )
    assert text.endswith("; 1 warning.\n")
    assert "> **warning:** ClusterUnknown: ClusterPropagationPolicy/p: " in plan_markdown(plan)


def test_a_plan_that_moves_nothing_still_shows_its_warnings() -> None:
    plan = plan_of(
        [cluster("m1")],
        [],
        lambda draft: draft.put(placed(clusterAffinity={"exclude": ["m9"]})),
        policies=[policy_p()],
    )
    text = plan_text(plan, Style(200))
    assert "! warning: ClusterUnknown" in text
    assert text.endswith("No changes, 1 warning. 0 bindings keep their placement.\n")
    assert plan_markdown(plan).startswith("### Plan: 0 moved, 0 unplaced, 0 stuck; 1 warning\n")


def test_many_warnings_are_counted_and_shown_with_all() -> None:
    names = [f"gone-{number}" for number in range(14)]
    plan = planned(placed(clusterAffinity={"exclude": names}))
    assert "! and 4 more warnings (--all)" in plan_text(plan, Style(200))
    assert "gone-13" in plan_text(plan, Style(200, unfolded=True))


@pytest.mark.parametrize("colour", [False, True])
def test_colours_repeat_what_the_words_say(colour: bool) -> None:
    text = plan_text(planned(placed(clusterAffinity={"exclude": ["gone"]})), Style(200, colour))
    assert ("\x1b[33m! warning:\x1b[0m" in text) is colour
    assert "! warning:" in text


def test_released_and_adopted_bindings_are_named_with_the_policy_that_they_leave() -> None:
    second = policy("second", {"replicaScheduling": DYNAMIC})
    second["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}]
    plan = plan_of(
        [cluster("m1")],
        [settled(web(), m1=4), settled(web("api"), m1=4)],
        lambda draft: draft.delete("ClusterPropagationPolicy", "", "p"),
        policies=[policy_p(), second],
    )
    text = plan_text(plan, Style(120))

    assert (
        "  adopted by ClusterPropagationPolicy second from ClusterPropagationPolicy p:\n    default/web-deployment\n"
        in text
    )
    assert "  released by ClusterPropagationPolicy p: no policy claims them any more" in text
    assert "    default/api-deployment\n" in text
    assert "; 1 adopted; 1 released." in text
    assert "\n  - default/api-deployment\n" in plan_markdown(plan)


def test_the_first_cause_of_a_failure_is_that_of_the_filter() -> None:
    made = settled(web(clusterAffinity={"clusterNames": ["m1"]}), m1=4)
    plan = plan_of([cluster("m1"), cluster("m2")], [made], lambda draft: draft.without("m1"))
    [group] = plan.failures
    assert group.causes[0].stage is Stage.FILTER
    assert "StaleCondition" not in {each.code for each in group.causes}
    assert [each.primary for each in group.causes] == [True] + [False] * (len(group.causes) - 1)
