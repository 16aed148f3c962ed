"""``karmada-pyscheduler plan``: what a change would move, before it is made.

Reads the objects of a control plane, or files as ``simulate`` reads them. Nothing is written.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial

from karmada_advisor.cli.flags.what_if import FAIL_ON
from karmada_advisor.cli.output import CommandAnswer, exit_status, print_errors
from karmada_advisor.cli.questions import process_rules_of, read_whole_fleet, rules_of, source_of, words_of
from karmada_advisor.fleet.files import read_changes
from karmada_advisor.views.plan_text import plan_markdown, plan_text
from karmada_advisor.whatif.plan.answer import plan_of_fleet
from karmada_advisor.whatif.plan.fleet_rules import check_fleet
from karmada_advisor.whatif.plan.model import Plan
from karmada_advisor.whatif.plan.question import EDITS, PlanQuestion
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.process.memory import no_collection


def answer(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> CommandAnswer:
    """Return what to print, and the exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.

    Raises:
        NoAnswerError: There is no answer.
    """
    with no_collection():
        plan, problems = plan_of(arguments, own)
    check_fleet(arguments.expect, plan.fingerprint, "plan")
    return CommandAnswer(
        plan,
        partial(plan_text, plan),
        status_of(plan, problems, arguments.fail_on),
        others={"markdown": lambda _: plan_markdown(plan)},
    )


def status_of(plan: Plan, problems: Sequence[str], fail_on: str) -> int:
    """Return the exit status of a plan.

    Args:
        plan: The plan.
        problems: What could not be read.
        fail_on: The classes of ``--fail-on``.

    Raises:
        NoAnswerError: There is no such class.
    """
    return exit_status(is_good=not plan.violates(_fail_on(fail_on)), problems=problems)


def _fail_on(written: str) -> frozenset[str]:
    return frozenset(word for word, _, _ in words_of("--fail-on", written, FAIL_ON)) - {"none"}


def plan_of(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> tuple[Plan, Sequence[str]]:
    """Return the plan, and what could not be read.

    Raises:
        NoAnswerError: There is no answer.
        ChangeError: The change cannot be applied.
    """
    _fail_on(arguments.fail_on)
    source, rules = source_of(arguments), process_rules_of(arguments, own, before="current_")
    changes = read_changes(arguments.filename, source.default_namespace())
    question = PlanQuestion(
        source=source,
        rules=rules,
        rule_change=rules_of(arguments),
        manifests=changes.objects,
        side=arguments.apply,
        edits=edits_of(arguments),
        evicts=arguments.enable_no_execute_taint_eviction,
        with_drift=not arguments.no_drift,
    )
    print_errors(map(str, changes.problems))
    fleet = read_whole_fleet(source, without_clusters="There is no cluster, so nothing is decided.")
    plan, unread = plan_of_fleet(question, fleet)
    print_errors(unread)
    return plan, [*map(str, changes.problems), *fleet.problems]


def edits_of(arguments: argparse.Namespace) -> Mapping[str, Sequence[str]]:
    """Return the flags that edit objects."""
    return {name: getattr(arguments, name) for name in ("add", *EDITS)}
