"""``karmada-pyscheduler survive``: what the loss of each cluster, zone, region or provider would do to every binding.

Reads the objects of a control plane, or files as ``simulate`` reads them. Nothing is written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from karmada_advisor.cli.collection import no_collection
from karmada_advisor.cli.flags.survive import DOMAINS
from karmada_advisor.cli.output import NO_ANSWER, CommandAnswer, print_answer, print_error
from karmada_advisor.cli.plan import as_manifests, check_fleet, now
from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.model import Provenance, Tense
from karmada_advisor.explain.names import nearest, unknown
from karmada_advisor.explain.trace_trigger import at
from karmada_advisor.plan.fingerprint import SHOWN, fingerprint
from karmada_advisor.plan.holds import stored_holds
from karmada_advisor.sources import planned
from karmada_advisor.sources.objects import NoAnswerError, Objects, gather
from karmada_advisor.sources.process import use_rules
from karmada_advisor.sources.process_rules import running
from karmada_advisor.state.stored import value_at
from karmada_advisor.survive.domains import KINDS, LABEL, FailureDomains, failure_domains
from karmada_advisor.survive.engine import Losses, LossInputs
from karmada_advisor.survive.fail_on import WORDS, FailOn, failing
from karmada_advisor.survive.loss import Loss
from karmada_advisor.survive.model import LossSettings, SurvivalReport
from karmada_advisor.survive.report import survival_report
from karmada_advisor.views.survive_text import survive_text
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.framework.profile.factory import Registration

GOOD: Final = 0
NOT_GOOD: Final = 1


def run(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> int:
    """Run the command; return its exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.
    """
    return print_answer(arguments, lambda: _answer(arguments, own))


def _answer(arguments: argparse.Namespace, own: Sequence[Registration]) -> CommandAnswer:
    with no_collection():
        report, problems = report_of(arguments, own)
    return CommandAnswer(
        report,
        lambda style: survive_text(report, style, top=arguments.top),
        status_of(report, problems),
    )


def status_of(report: SurvivalReport, problems: Sequence[str]) -> int:
    """Return the exit status of a report; ``problems`` is what could not be read."""
    if problems:
        return NO_ANSWER
    return NOT_GOOD if report.failing else GOOD


def report_of(
    arguments: argparse.Namespace, own: Sequence[Registration] = ()
) -> tuple[SurvivalReport, Sequence[str]]:
    """Return the report, and what could not be read.

    Raises:
        NoAnswerError: There is no answer.
    """
    asked, kinds = _fail_on(arguments.fail_on), _kinds(arguments.domain)
    if arguments.process:
        use_rules(arguments)
    sources = gather(arguments, all_bindings=True)
    for problem in (*sources.problems, *sources.warnings):
        print_error(problem)
    if not sources.clusters:
        raise NoAnswerError("There is no cluster, so nothing can be lost.")
    found = _named(
        failure_domains(sources.clusters, kinds, spanning_is_lost=arguments.spanning == "lost"),
        arguments.names,
    )
    if not found.domains:
        raise NoAnswerError(f"no cluster has a value for {', '.join(kinds)}, so nothing is lost together")
    loss = Loss(arguments.loss)
    with planned.configurations_of(arguments, sources.workloads, own) as configurations:
        rules = configurations.rules(configurations.changed)
        hashed = fingerprint(as_manifests(sources), configurations.text(configurations.changed))
        check_fleet(arguments.expect, hashed, "survive")
        losses = Losses(
            LossInputs(
                sources.clusters,
                sources.bindings,
                rules,
                found.domains,
                tuple(dict.fromkeys((loss, Loss.ITSELF))),
                hold_of=stored_holds(
                    sources.schedulers(running(arguments)),
                    knows_quotas=False,
                    has_guards=rules.frameworks.has_guards,
                    has_own_plugins=rules.frameworks.has_own_plugins and not rules.frameworks.missing,
                ),
                purge_modes=_purge_modes(sources),
                progress=_progress(),
            )
        )
        losses.run()
        report = survival_report(
            losses,
            found,
            LossSettings(loss),
            provenance=Provenance(Tense.RECOMPUTED, sources.source, at(now()), hashed[:SHOWN]),
            fingerprint=hashed,
            is_reported=_reported(arguments.namespaces, arguments.policy),
            every_loss=arguments.all,
        )
    return replace(
        report, fail_on=tuple(map(str, asked)), failing=failing(report.domains, asked)
    ), sources.problems


def _purge_modes(sources: Objects) -> Mapping[BindingKey, str]:
    """Return the purge modes of the bindings that have one for the failover of clusters."""
    found = {}
    for each in sources.bindings:
        if each.spec.failover_purge_modes:
            mode: Any = value_at(sources.manifests[each.key], "spec", "failover", "cluster", "purgeMode")
            if isinstance(mode, str) and mode:
                found[each.key] = mode
    return found


def _kinds(written: Sequence[str]) -> list[str]:
    """Return the kinds of ``--domain``.

    Raises:
        NoAnswerError: There is no such kind.
    """
    kinds = [each for text in written for each in text.split(",") if each]
    for kind in kinds:
        if kind in KINDS or (kind.startswith(LABEL) and kind != LABEL):
            continue
        near = nearest(kind, KINDS)
        raise NoAnswerError(
            f"--domain: expected {DOMAINS}, got {kind}" + (f"; nearest: {near}" if near else "")
        )
    return kinds


def _named(found: FailureDomains, names: Sequence[str]) -> FailureDomains:
    """Return only the domains with some names; all without any.

    Raises:
        NoAnswerError: There is no domain with one of the names.
    """
    if not names:
        return found
    known = {each.name for each in found.domains}
    for name in names:
        if name in found.deleting:
            raise NoAnswerError(f"cluster {name} is being deleted already")
        if name not in known:
            kinds = ", ".join(dict.fromkeys(each.kind for each in found.domains))
            raise NoAnswerError(unknown(f"{name}: such a domain ({kinds})", name, known))
    return FailureDomains(
        tuple(each for each in found.domains if each.name in names), found.without, found.deleting
    )


def _reported(namespaces: Sequence[str], policies: Sequence[str]) -> Callable[[Binding], bool]:
    def is_reported(binding: Binding) -> bool:
        if namespaces and binding.key.namespace not in namespaces:
            return False
        if not policies:
            return True
        policy = policy_of(binding.annotations)
        if policy is None:
            return False
        return policy.name in policies or f"{policy.namespace}/{policy.name}" in policies

    return is_reported


def _fail_on(written: str) -> list[FailOn]:
    """Return what ``--fail-on`` asks for.

    Raises:
        NoAnswerError: There is no such word, or no such kind of domain.
    """
    found = []
    for text in (each.strip() for each in written.split(",") if each.strip()):
        word, separator, kind = text.partition("@")
        if word not in WORDS:
            near = nearest(word, WORDS)
            hint = f"; nearest: {near}" if near else ""
            raise NoAnswerError(f"--fail-on: {word} is none of {', '.join(WORDS)}{hint}")
        if separator and kind not in KINDS and not (kind.startswith(LABEL) and kind != LABEL):
            raise NoAnswerError(f"--fail-on: expected {DOMAINS} after @, got {kind or 'nothing'}")
        found.append(FailOn(word, kind))
    return found


def _progress() -> Callable[[int, int], None]:
    """Return what shows how many bindings are done on standard error, nothing if that is no terminal."""
    if not sys.stderr.isatty():
        return lambda _done, _total: None

    def draw(done: int, total: int) -> None:
        if done % max(1, total // 100) == 0 or done == total:
            sys.stderr.write("\r\x1b[K" if done == total else f"\r{done}/{total} bindings\x1b[K")
            sys.stderr.flush()

    return draw
