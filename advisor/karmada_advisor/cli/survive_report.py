"""Makes the reports of ``survive`` about objects that were read, for the command and the page."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from karmada_advisor.cli.flags.survive import DEFAULT_FAIL_ON
from karmada_advisor.cli.fleet import fleet_rules, now, progress_of_bindings
from karmada_advisor.cli.survive_inputs import (
    baseline_of,
    check_baseline,
    fail_on_of,
    is_reported_by,
    kinds_of,
    named,
    pairs_of,
    purge_modes,
    settings_of,
    taints_of,
    with_pairs,
    with_policies,
)
from karmada_advisor.explain.model import Provenance, Tense
from karmada_advisor.explain.trace_trigger import at
from karmada_advisor.plan.fingerprint import SHOWN, binding_digest
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.gathered import Objects
from karmada_advisor.survive.domains import failure_domains
from karmada_advisor.survive.engine import Losses
from karmada_advisor.survive.fail_on import failing
from karmada_advisor.survive.loss import Loss
from karmada_advisor.survive.loss_inputs import LossInputs
from karmada_advisor.survive.model import SurvivalReport
from karmada_advisor.survive.report import survival_report
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.structs import replace

if TYPE_CHECKING:  # the search for edits, which most reports do without
    from karmada_advisor.survive.remedies import FoundRemedy

_DIGESTS_AT_ONCE: Final = 50
"""Bindings of one step; each takes some 0.2 ms."""


def report_steps(
    arguments: argparse.Namespace,
    sources: Objects,
    own: Sequence[Registration] = (),
    *,
    taint_policies: Sequence[Mapping[str, Any]] | None = None,
    others: Sequence[Loss] = (),
    more_notes: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Generator[None, None, Sequence[SurvivalReport]]:
    """Make the report about objects that were read, in steps; returns it, and those of other worlds.

    Args:
        arguments: As parsed.
        sources: The objects, with at least one cluster.
        own: The plugins of a main program of the user's own.
        taint_policies: ClusterTaintPolicies; None if they are not known.
        others: Worlds besides that of the arguments; their reports have no remedies.
        more_notes: What the reader of the reports should know besides.
        progress: Called with the number of bindings that are done, and their total; None for the terminal.

    Raises:
        NoAnswerError: There is no answer.
    """
    holds = arguments.demand == "holds"
    asked = fail_on_of(arguments.fail_on or (f"{DEFAULT_FAIL_ON},interrupted" if holds else DEFAULT_FAIL_ON))
    kinds = kinds_of(arguments.domain)
    deadline = time.monotonic() + arguments.timeout
    loss = Loss(arguments.loss)
    settings = settings_of(arguments.controller_manager, loss)
    baseline = baseline_of(arguments.baseline, loss)
    taints = taints_of(settings, taint_policies, sources)
    settings = with_policies(settings, taint_policies, taints)
    every = failure_domains(sources.clusters, kinds, spanning_is_lost=arguments.spanning == "lost")
    pairs, count = pairs_of(arguments.pairs)
    domains = named(every, arguments.names)
    domains = replace(domains, domains=with_pairs(domains.domains, every.domains, pairs))
    if not domains.domains:
        raise NoAnswerError(f"no cluster has a value for {', '.join(kinds)}, so nothing is lost together")
    is_reported = is_reported_by(arguments)
    digests = []
    for each in sources.bindings:  # each is read from what is kept of it, which takes time
        digests.append(binding_digest(sources.manifests[each.key]))
        if len(digests) % _DIGESTS_AT_ONCE == 0:
            yield
    with fleet_rules(arguments, sources, own, again="survive", bindings=digests) as found:
        losses = Losses(
            LossInputs(
                sources.clusters,
                sources.bindings,
                found.rules,
                domains.domains,
                tuple(dict.fromkeys((loss, *others, Loss.ITSELF))),
                hold_of=found.hold_of,
                purge_modes=purge_modes(sources),
                purge_mode=settings.purge_mode,
                taints=taints,
                progress=progress or progress_of_bindings(),
                is_over=lambda: time.monotonic() >= deadline,
            )
        )
        yield from losses.steps()
        remedies: Sequence[FoundRemedy] = ()
        notes: Sequence[str] = ()
        if not arguments.no_remedies:
            from karmada_advisor.cli.survive_remedies import remedy_steps  # the search for edits

            remedies, notes = yield from remedy_steps(arguments, sources, losses, settings, deadline)
        if pairs or count:
            from karmada_advisor.survive.pairs import decide_pairs, drawn

            names = [each.name for each in domains.domains]
            numbers = [(names.index(one), names.index(other)) for one, other in pairs]
            numbers += drawn(losses, count, loss, found.fingerprint) if count else ()
            decided = decide_pairs(losses, list(dict.fromkeys(numbers)))
            domains = replace(domains, domains=(*domains.domains, *decided))
        reports = []
        for world in dict.fromkeys((loss, *others)):
            report = survival_report(
                losses,
                domains,
                replace(settings, loss=world),
                provenance=Provenance(Tense.RECOMPUTED, sources.source, at(now()), found.fingerprint[:SHOWN]),
                fingerprint=found.fingerprint,
                is_reported=is_reported,
                every_loss=arguments.all,
                remedies=remedies if world is loss else (),
                more_notes=(*more_notes, *notes) if world is loss else more_notes,
            )
            yield
            if baseline is not None:
                check_baseline(baseline, report)
            reports.append(
                replace(
                    report,
                    fail_on=tuple(map(str, asked)),
                    failing=failing(report, asked, baseline)[0],
                    has_baseline=baseline is not None,
                )
            )
    return reports
