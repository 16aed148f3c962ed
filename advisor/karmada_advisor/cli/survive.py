"""``karmada-pyscheduler survive``: what the loss of each cluster, zone, region or provider would do to every binding.

Reads the objects of a control plane, or files as ``simulate`` reads them. Nothing is written.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import orjson

from karmada_advisor.cli.collection import no_collection
from karmada_advisor.cli.flags.survive import DEFAULT_FAIL_ON, DOMAINS
from karmada_advisor.cli.fleet import as_manifests, fleet_rules, gather_fleet, now, progress_of_bindings
from karmada_advisor.cli.output import GOOD, NO_ANSWER, NOT_GOOD, CommandAnswer, print_answer, print_error
from karmada_advisor.explain.amounts import counted
from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.model import Provenance, Tense
from karmada_advisor.explain.names import nearest, unknown
from karmada_advisor.explain.trace_trigger import at
from karmada_advisor.plan.fingerprint import SHOWN
from karmada_advisor.sources.control_plane import control_plane
from karmada_advisor.sources.files import Contents, read
from karmada_advisor.sources.objects import NoAnswerError, Objects
from karmada_advisor.sources.process import use_rules
from karmada_advisor.sources.simulated import SimulatedScheduler
from karmada_advisor.state.stored import value_at
from karmada_advisor.survive import least_capacity, remedies
from karmada_advisor.survive.domains import KINDS, LABEL, PAIR, FailureDomain, FailureDomains, failure_domains
from karmada_advisor.survive.edited import FleetEditor
from karmada_advisor.survive.engine import Losses, LossInputs
from karmada_advisor.survive.fail_on import WORDS, FailOn, Figures, failing, figures_in
from karmada_advisor.survive.least_capacity import LeastCapacity
from karmada_advisor.survive.loss import Loss
from karmada_advisor.survive.model import LossSettings, SurvivalReport
from karmada_advisor.survive.pairs import decide_pairs, drawn
from karmada_advisor.survive.remedies import FoundRemedy, Remedies
from karmada_advisor.survive.report import survival_report
from karmada_advisor.survive.settings import read_settings
from karmada_advisor.survive.taints import LossTaints, taints_by_policies
from karmada_advisor.views.survive_document import survive_html, survive_markdown
from karmada_advisor.views.survive_junit import survive_junit
from karmada_advisor.views.survive_text import survive_text
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.framework.profile.factory import Registration


def run(arguments: argparse.Namespace, own: Sequence[Registration] = ()) -> int:
    """Run the command; return its exit status.

    Args:
        arguments: As parsed.
        own: The plugins of a main program of the user's own.
    """
    return print_answer(arguments, lambda: _answer(arguments, own))


def _answer(arguments: argparse.Namespace, own: Sequence[Registration]) -> CommandAnswer:
    began = time.monotonic()
    with no_collection():
        report, problems = report_of(arguments, own)
    found = CommandAnswer(
        report,
        lambda style: survive_text(report, style, top=arguments.top),
        status_of(report, problems),
        others={
            "markdown": lambda: survive_markdown(report),
            "html": lambda: survive_html(report),
            "junit": lambda: survive_junit(report),
        },
    )
    if arguments.metrics:
        from karmada_advisor.web.metrics import (
            survival_metrics,
        )  # the client library, which nothing else needs

        at_, seconds = now().timestamp(), time.monotonic() - began
        _write(Path(arguments.metrics), survival_metrics(report, top=arguments.top, at=at_, seconds=seconds))
    if arguments.write_to is not None:
        for name, output in _FILES.items():
            chosen = argparse.Namespace(**{**vars(arguments), "output": output, "color": "never"})
            _write(arguments.write_to / name, found.written(chosen).encode())
    return found


_FILES: Final = {
    "survive.json": "json",
    "survive.yaml": "yaml",
    "survive.txt": "text",
    "survive.md": "markdown",
    "survive.html": "html",
    "survive.xml": "junit",
}


def _write(path: Path, content: bytes) -> None:
    """Write a file as a whole: a reader sees the old one or the new one.

    Raises:
        NoAnswerError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        raise NoAnswerError(f"{path}: cannot be written: {error.strerror}") from error


def status_of(report: SurvivalReport, problems: Sequence[str]) -> int:
    """Return the exit status of a report; ``problems`` is what could not be read."""
    if problems or not all(each.done for each in report.domains):
        return NO_ANSWER
    return NOT_GOOD if report.failing else GOOD


def report_of(
    arguments: argparse.Namespace, own: Sequence[Registration] = ()
) -> tuple[SurvivalReport, Sequence[str]]:
    """Return the report, and what could not be read.

    Raises:
        NoAnswerError: There is no answer.
    """
    if arguments.process:
        use_rules(arguments)
    sources = gather_fleet(arguments, without_clusters="There is no cluster, so nothing can be lost.")
    steps = report_steps(arguments, sources, own, taint_policies=_taint_policies(arguments, sources))
    while True:
        try:
            next(steps)
        except StopIteration as end:
            report: SurvivalReport = end.value
            return report, sources.problems


def report_steps(
    arguments: argparse.Namespace,
    sources: Objects,
    own: Sequence[Registration] = (),
    *,
    taint_policies: Sequence[Mapping[str, Any]] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Generator[None, None, SurvivalReport]:
    """Make the report about objects that were read, in steps; returns it.

    Args:
        arguments: As parsed.
        sources: The objects, with at least one cluster.
        own: The plugins of a main program of the user's own.
        taint_policies: ClusterTaintPolicies; None if they are not known.
        progress: Called with the number of bindings that are done, and their total; None for the terminal.

    Raises:
        NoAnswerError: There is no answer.
    """
    holds = arguments.demand == "holds"
    asked = _fail_on(arguments.fail_on or (f"{DEFAULT_FAIL_ON},interrupted" if holds else DEFAULT_FAIL_ON))
    kinds = _kinds(arguments.domain)
    deadline = time.monotonic() + arguments.timeout
    loss = Loss(arguments.loss)
    settings = _settings(arguments.controller_manager, loss)
    baseline = _baseline(arguments.baseline, loss)
    taints = _taints(settings, taint_policies, sources)
    settings = _with_policies(settings, taint_policies, taints)
    every = failure_domains(sources.clusters, kinds, spanning_is_lost=arguments.spanning == "lost")
    pairs, count = _pairs(arguments.pairs)
    domains = _named(every, arguments.names)
    domains = replace(domains, domains=_with_pairs(domains.domains, every.domains, pairs))
    if not domains.domains:
        raise NoAnswerError(f"no cluster has a value for {', '.join(kinds)}, so nothing is lost together")
    with fleet_rules(arguments, sources, own, again="survive") as found:
        losses = Losses(
            LossInputs(
                sources.clusters,
                sources.bindings,
                found.rules,
                domains.domains,
                tuple(dict.fromkeys((loss, Loss.ITSELF))),
                hold_of=found.hold_of,
                purge_modes=_purge_modes(sources),
                purge_mode=settings.purge_mode,
                taints=taints,
                progress=progress or progress_of_bindings(),
                is_over=lambda: time.monotonic() >= deadline,
            )
        )
        yield from losses.steps()
        mending, notes = _remedies(arguments, sources, losses, settings, deadline)
        numbers = [_numbers(domains.domains, *each) for each in pairs]
        if count:
            numbers += drawn(losses, count, loss, found.fingerprint)
        if numbers:
            decided = decide_pairs(losses, list(dict.fromkeys(numbers)))
            domains = replace(domains, domains=(*domains.domains, *decided))
        report = survival_report(
            losses,
            domains,
            settings,
            provenance=Provenance(Tense.RECOMPUTED, sources.source, at(now()), found.fingerprint[:SHOWN]),
            fingerprint=found.fingerprint,
            is_reported=_reported(arguments),
            every_loss=arguments.all,
            remedies=mending,
            more_notes=notes,
        )
    if baseline is not None:
        _check_baseline(baseline, report)
    return replace(
        report,
        fail_on=tuple(map(str, asked)),
        failing=failing(report, asked, baseline)[0],
        has_baseline=baseline is not None,
    )


def _remedies(
    arguments: argparse.Namespace, sources: Objects, losses: Losses, settings: LossSettings, deadline: float
) -> tuple[Sequence[FoundRemedy], Sequence[str]]:
    """Return what mends losses, and notes about what was not looked for."""
    if arguments.no_remedies:
        return (), ()
    found = Remedies(
        FleetEditor(
            losses, sources.manifests, as_manifests(sources).policies, SimulatedScheduler(losses.inputs.rules)
        ),
        settings.loss,
        _reported(arguments),
        arguments.demand == "holds",
        per_policy=arguments.remedies,
        is_over=_after(remedies.SECONDS, deadline),
    )
    edits, unsearched = found.find()
    notes = []
    if unsearched:
        text = counted(unsearched, "group of failing bindings", "groups of failing bindings")
        notes.append(f"no remedy was looked for, for {text}: there are too many, or the time was over")
    capacity = LeastCapacity(losses, settings.loss, _after(least_capacity.SECONDS, deadline))
    more = [] if settings.loss is Loss.ITSELF else capacity.find()
    if capacity.looked < capacity.short:
        of = counted(capacity.short, "domain leaves", "domains leave")
        notes.append(f"{of} something short; the least capacity to add was looked for in {capacity.looked:,}")
    return [*edits, *more, *found.of_settings(settings)], notes


def _after(seconds: float, deadline: float) -> Callable[[], bool]:
    """Return what says whether some time from now, or a deadline, is over."""
    end = min(deadline, time.monotonic() + seconds)
    return lambda: time.monotonic() >= end


def _settings(path: str, loss: Loss) -> LossSettings:
    """Return how karmada-controller-manager is set.

    Raises:
        NoAnswerError: The file cannot be used.
    """
    if not path:
        return LossSettings(loss)
    read_one: Callable[[Mapping[str, Any]], LossSettings] = lambda manifest: read_settings(manifest, loss)  # noqa: E731
    found = read([path], read_one)
    if found.problems or len(found.objects) != 1:
        problem = str(found.problems[0]) if found.problems else f"{path}: expected one Deployment or Pod"
        raise NoAnswerError(f"--controller-manager: {problem}")
    return found.objects[0]


def _baseline(path: str, loss: Loss) -> Figures | None:
    """Return what is compared about an earlier report; None without one.

    Raises:
        NoAnswerError: The file cannot be used.
    """
    if not path:
        return None
    try:
        document = orjson.loads(Path(path).read_bytes())
    except OSError as error:
        raise NoAnswerError(f"--baseline: {path}: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise NoAnswerError(f"--baseline: {path}: is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("kind") != SurvivalReport.__name__:
        raise NoAnswerError(f"--baseline: {path}: expected a report of survive -o json")
    before = value_at(document, "settings", "loss")
    if before != loss.value:
        raise NoAnswerError(f"--baseline: {path}: was made with --loss {before}, not {loss.value}")
    return figures_in(document)


def _check_baseline(baseline: Figures, report: SurvivalReport) -> None:
    """Check that an earlier report has a domain of this fleet.

    Raises:
        NoAnswerError: It has none.
    """
    if not any((each.kind, each.name) in baseline for each in report.domains):
        raise NoAnswerError("--baseline: is a report about another fleet: no failure domain is in both")


def _taint_policies(arguments: argparse.Namespace, sources: Objects) -> Sequence[Mapping[str, Any]] | None:
    """Return the ClusterTaintPolicies; None if they are not known, which is said of a control plane.

    Raises:
        NoAnswerError: A file cannot be used.
    """
    if arguments.taint_policies:
        found: Contents[Mapping[str, Any]] = read(arguments.taint_policies, _as_taint_policy)
        if found.problems:
            raise NoAnswerError(f"--taint-policies: {found.problems[0]}")
        return found.objects
    if not sources.is_live:
        return None
    from karmada_advisor.sources import live  # the client, which files do not need

    try:
        return live.read_taint_policies(control_plane(arguments), timeout=arguments.request_timeout)
    except live.LiveError as error:
        print_error(f"clustertaintpolicies: which taints they would add is not known: {error}")
        return None


def _as_taint_policy(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    if manifest.get("kind") != "ClusterTaintPolicy":
        raise ManifestError("kind", f"expected ClusterTaintPolicy, got {manifest.get('kind')!r}")
    return manifest


def _taints(
    settings: LossSettings, policies: Sequence[Mapping[str, Any]] | None, sources: Objects
) -> LossTaints:
    """Return the taints of lost clusters.

    Raises:
        NoAnswerError: A policy cannot be read.
    """
    try:
        by_policies = taints_by_policies(policies or (), sources.clusters)
    except ManifestError as problem:
        raise NoAnswerError(f"ClusterTaintPolicy: {problem}") from problem
    return LossTaints(by_policies, acts=settings.failover, evicts=settings.failover and settings.eviction)


def _with_policies(
    settings: LossSettings, policies: Sequence[Mapping[str, Any]] | None, taints: LossTaints
) -> LossSettings:
    evicting = [found for name in taints.by_policies if (found := taints.no_execute(name))]
    keys = sorted({each.key for found in evicting for each in found})
    return replace(
        settings,
        tainted_clusters=None if policies is None else len(evicting),
        taint=", ".join(keys) or settings.taint,
    )


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


def _pairs(written: Sequence[str]) -> tuple[list[tuple[str, str]], int]:
    """Return the pairs that ``--pairs`` names, and how many are to be drawn.

    Raises:
        NoAnswerError: One is neither.
    """
    named, count = list[tuple[str, str]](), 0
    for text in written:
        one, separator, other = text.partition("+")
        if text.isdecimal() and int(text):
            count = int(text)
        elif separator and one and other and one != other:
            named.append((one, other))
        else:
            raise NoAnswerError(f"--pairs: expected A+B or a number from 1, got {text}")
    return named, count


def _with_pairs(
    chosen: Sequence[FailureDomain], every: Sequence[FailureDomain], pairs: Sequence[tuple[str, str]]
) -> tuple[FailureDomain, ...]:
    """Return the chosen domains with those that are lost in pairs.

    Raises:
        NoAnswerError: There is no domain with one of the names.
    """
    first = {each.name: each for each in reversed(every)}
    for name in (each for pair in pairs for each in pair):
        if name not in first:
            raise NoAnswerError(unknown(f"--pairs: {name}: such a domain", name, first))
    added = {first[name]: None for pair in pairs for name in pair}
    return tuple(dict.fromkeys((*chosen, *added)))


def _numbers(domains: Sequence[FailureDomain], one: str, other: str) -> tuple[int, int]:
    names = [each.name for each in domains]
    return names.index(one), names.index(other)


def _reported(arguments: argparse.Namespace) -> Callable[[Binding], bool]:
    namespaces, policies, least = arguments.namespaces, arguments.policy, arguments.min_priority

    def is_reported(binding: Binding) -> bool:
        if least is not None and binding.spec.priority < least:
            return False
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
        if separator and kind not in (*KINDS, PAIR) and not (kind.startswith(LABEL) and kind != LABEL):
            raise NoAnswerError(f"--fail-on: expected {DOMAINS} after @, got {kind or 'nothing'}")
        found.append(FailOn(word, kind))
    return found
