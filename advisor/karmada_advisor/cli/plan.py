"""``karmada-pyscheduler plan``: what a change would move, before it is made.

Reads the objects of a control plane, or files as ``simulate`` reads them. Nothing is written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from karmada_advisor.claims.quota import Quota, read_quota
from karmada_advisor.cli.collection import no_collection
from karmada_advisor.cli.flags.plan import FAIL_ON
from karmada_advisor.cli.fleet import as_manifests, check_fleet, now
from karmada_advisor.cli.output import CommandAnswer, exit_status, print_answer, print_errors
from karmada_advisor.cli.planned_changes import apply, namespace_of
from karmada_advisor.explain.names import nearest
from karmada_advisor.explain.trace_trigger import at
from karmada_advisor.plan.change import Draft
from karmada_advisor.plan.derive import selected_kinds
from karmada_advisor.plan.inputs import Known, PlanInputs
from karmada_advisor.plan.lint_selectors import TemplatesKnown
from karmada_advisor.plan.model import Plan
from karmada_advisor.plan.objects import PlanObjects, template_key
from karmada_advisor.plan.result import make_plan
from karmada_advisor.plan.stored import ChangeError
from karmada_advisor.sources import planned
from karmada_advisor.sources.change_files import read_changes
from karmada_advisor.sources.control_plane import control_plane
from karmada_advisor.sources.controllers import notes_about_controllers
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.files import as_workload, read
from karmada_advisor.sources.gathered import Objects as Sources
from karmada_advisor.sources.objects import gather
from karmada_advisor.sources.process import decisions_of, gates_of, read_configuration
from karmada_advisor.sources.process_http import address_of
from karmada_advisor.sources.process_rules import running, use
from karmada_advisor.views.plan_markdown import plan_markdown
from karmada_advisor.views.plan_text import plan_text
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.framework.profile.factory import Registration


def run(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> int:
    """Run the command; return its exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.
    """
    return print_answer(arguments, lambda: _answer(arguments, own), (NoAnswerError, ChangeError))


def _answer(arguments: argparse.Namespace, own: Sequence[Registration]) -> CommandAnswer:
    with no_collection():
        plan, problems = plan_of(arguments, own)
    check_fleet(arguments.expect, plan.fingerprint, "plan")
    return CommandAnswer(
        plan,
        lambda style: plan_text(plan, style),
        status_of(plan, problems, arguments.fail_on),
        others={"markdown": lambda: plan_markdown(plan)},
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


def plan_of(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> tuple[Plan, Sequence[str]]:
    """Return the plan, and what could not be read.

    Raises:
        NoAnswerError: There is no answer.
        ChangeError: The change cannot be applied.
    """
    _fail_on(arguments.fail_on)
    if arguments.process:
        _use_process(arguments)
    changes = read_changes(arguments.filename, namespace_of(arguments))
    sources, before = _gathered(arguments)
    problems = [*map(str, changes.problems), *sources.problems]
    print_errors((*problems, *sources.warnings))
    if not before.clusters:
        raise NoAnswerError("There is no cluster, so nothing is decided.")
    plan, unread = made(arguments, sources, before, changes.objects, own)
    print_errors(unread)
    return plan, problems


def _no_change(arguments: argparse.Namespace) -> str:
    """Return that there is no change, and what would be one."""
    if arguments.decisions_of is None:
        return "there is no change: use -f, --delete, --without, --cordon, ... (see --help)"
    return (
        f"there is no change: the decisions are those of {arguments.decisions_of} already; say what they are now: "
        "--from, --scheduler-manifest or --current-decisions-of"
    )


def _use_process(arguments: argparse.Namespace) -> None:
    """Let the rules before the change be those of the process of ``--from``, unless flags name others.

    Raises:
        NoAnswerError: The URL is not one of a process, or a flag contradicts it.
    """
    found = read_configuration(address_of(arguments))
    arguments.current_feature_gates = gates_of(
        arguments.process, found.gates, arguments.current_feature_gates
    )
    arguments.current_decisions_of = decisions_of(found, arguments.current_decisions_of)
    is_named = bool(arguments.current_config or arguments.current_plugins or arguments.scheduler_name)
    use(arguments, found, is_named=is_named)


def made(
    arguments: argparse.Namespace,
    sources: Sources,
    before: PlanObjects,
    changes: Sequence[Mapping[str, Any]],
    own: Sequence[Registration] = (),
) -> tuple[Plan, Sequence[str]]:
    """Return the plan of a change, and which templates could not be read.

    Args:
        arguments: With all flags of the command; they are a part of the change.
        sources: What was read.
        before: The same as manifests.
        changes: Further objects of the change.
        own: The plugins of a main program of the user's own.

    Raises:
        NoAnswerError: There is no answer.
        ChangeError: The change cannot be applied.
    """
    unread: Sequence[str] = ()
    known = TemplatesKnown(all=bool(arguments.workloads))
    draft = Draft(before)
    for manifest in changes:
        draft.put(manifest)
    apply(draft, arguments)
    if sources.source.startswith(("http://", "https://")) and not arguments.workloads:
        known, unread = _read_templates(arguments, draft, before)
    quotas, no_quotas = _quotas(arguments, sources)
    with planned.configurations_of(arguments, sources.workloads, own) as configurations:
        rule_changes = configurations.shown()
        if not draft.shown and not rule_changes:
            raise NoAnswerError(_no_change(arguments))
        rules = configurations.rules(configurations.current)
        plan = make_plan(
            PlanInputs(
                before,
                draft,
                rules,
                configurations.rules(configurations.changed) if rule_changes else rules,
                other_mode=lambda: configurations.rules(configurations.other_mode),
                rules_text=configurations.text(),
                rule_changes=rule_changes,
                evicts=arguments.enable_no_execute_taint_eviction,
                with_drift=not arguments.no_drift,
                schedulers=sources.schedulers(running(arguments)),
                quotas=quotas,
                no_quotas=no_quotas,
                is_live=sources.is_live,
                templates_known=known,
                more_notes=notes_about_controllers(arguments, sources),
                source=sources.source,
                at=at(now()),
                known=Known(
                    {each.name: each for each in sources.clusters},
                    {each.key: each for each in sources.bindings},
                ),
                progress=_progress(),
            )
        )
    return plan, unread


def _gathered(arguments: argparse.Namespace) -> tuple[Sources, PlanObjects]:
    """Read the objects as they are, with the templates of ``--workloads``."""
    sources = gather(arguments, all_bindings=True)
    found = as_manifests(sources)
    if arguments.workloads and "-" not in arguments.workloads:
        templates = read(arguments.workloads, lambda manifest: (as_workload(manifest), manifest)[1])
        found.templates = {template_key(each): each for each in templates.objects}
    return sources, found


def _quotas(arguments: argparse.Namespace, sources: Sources) -> tuple[list[Quota] | None, str]:
    """Return the quotas, and why they are not known; None if they are not.

    Raises:
        NoAnswerError: The control plane does not answer any more.
    """
    manifests: Sequence[Mapping[str, Any]] | None = sources.quotas
    problems = ["no --quotas were given"]
    if manifests is None and sources.is_live:
        from karmada_advisor.sources import live  # the client, which files do not need

        manifests, problems = live.read_quotas(control_plane(arguments), timeout=arguments.request_timeout)
    if manifests is None:
        return None, "; ".join(problems)
    quotas = []
    for each in manifests:
        try:
            quotas.append(read_quota(each))
        except ManifestError as problem:
            name = (each.get("metadata") or {}).get("name", "")
            return None, f"{each.get('kind')} {name}: {problem}"
    return quotas, ""


def _read_templates(
    arguments: argparse.Namespace, draft: Draft, before: PlanObjects
) -> tuple[TemplatesKnown, Sequence[str]]:
    """Read the metadata of the templates that changed policies select; return what could not be read, too."""
    from karmada_advisor.sources import live
    from karmada_scheduler.client.metadata import KindName

    kinds = [KindName(*each) for each in selected_kinds(before, draft.after)]
    if not kinds:
        return TemplatesKnown(), ()
    found = live.read_templates(control_plane(arguments), kinds)
    for each in found.objects:
        key = template_key(each)
        for objects in (before, draft.after):
            if objects.templates.setdefault(key, each) is each:
                objects.metadata_only.add(key)
    return TemplatesKnown(kinds=found.kinds, not_served=found.not_served), found.problems


def _fail_on(written: str) -> frozenset[str]:
    names = [each.strip() for each in written.split(",") if each.strip()]
    for name in names:
        if name not in FAIL_ON:
            near = nearest(name, FAIL_ON)
            hint = f"; nearest: {near}" if near else ""
            raise NoAnswerError(f"--fail-on: {name} is none of {', '.join(FAIL_ON)}{hint}")
    return frozenset(names) - {"none"}


def _progress() -> Callable[[str, int, int], None]:
    """Return what draws a progress bar on standard error, nothing if that is no terminal."""
    if not sys.stderr.isatty():
        return lambda _phase, _done, _total: None

    def draw(phase: str, done: int, total: int) -> None:
        if done % max(1, total // 100) and done != total:
            return
        sys.stderr.write(f"\r[{'#' * (40 * done // total):<40}] {done}/{total} {phase}\x1b[K")
        if done == total:
            sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()

    return draw
