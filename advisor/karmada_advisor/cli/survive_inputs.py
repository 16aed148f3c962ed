"""What the flags of ``survive`` name: files, failure domains, pairs of them, and what the exit status depends on."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from karmada_advisor.cli.flags.survive import DOMAINS
from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.names import nearest_hint, unknown
from karmada_advisor.sources.control_plane import control_plane
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.files import Contents, read
from karmada_advisor.sources.gathered import Objects
from karmada_advisor.state.stored import value_at
from karmada_advisor.survive.domains import KINDS, LABEL, PAIR, FailureDomain, FailureDomains
from karmada_advisor.survive.fail_on import WORDS, FailOn, Figures, figures_in
from karmada_advisor.survive.loss import Loss
from karmada_advisor.survive.model import LossSettings, SurvivalReport
from karmada_advisor.survive.settings import read_settings
from karmada_advisor.survive.taints import LossTaints, taints_by_policies
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.manifest import ManifestError
from karmada_scheduler.structs import replace


def settings_of(path: str, loss: Loss) -> LossSettings:
    """Return how karmada-controller-manager is set.

    Raises:
        NoAnswerError: The file cannot be used.
    """
    if not path:
        return LossSettings(loss)
    found = read([path], partial(read_settings, loss=loss))
    if found.problems or len(found.objects) != 1:
        problem = str(found.problems[0]) if found.problems else f"{path}: expected one Deployment or Pod"
        raise NoAnswerError(f"--controller-manager: {problem}")
    return found.objects[0]


def baseline_of(path: str, loss: Loss) -> Figures | None:
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


def check_baseline(baseline: Figures, report: SurvivalReport) -> None:
    """Check that an earlier report has a domain of this fleet.

    Raises:
        NoAnswerError: It has none.
    """
    if not any((each.kind, each.name) in baseline for each in report.domains):
        raise NoAnswerError("--baseline: is a report about another fleet: no failure domain is in both")


def taint_policies_of(
    arguments: argparse.Namespace, sources: Objects
) -> tuple[Sequence[Mapping[str, Any]] | None, str]:
    """Return the ClusterTaintPolicies, None if they are not known; and why those of a control plane are not.

    Raises:
        NoAnswerError: A file cannot be used.
    """
    if arguments.taint_policies:
        found: Contents[Mapping[str, Any]] = read(arguments.taint_policies, _as_taint_policy)
        if found.problems:
            raise NoAnswerError(f"--taint-policies: {found.problems[0]}")
        return found.objects, ""
    if not sources.is_live:
        return None, ""
    from karmada_advisor.sources import live  # the client, which files do not need

    try:
        return live.read_taint_policies(control_plane(arguments)), ""
    except NoAnswerError as error:
        return None, f"clustertaintpolicies: which taints they would add is not known: {error}"


def _as_taint_policy(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    if manifest.get("kind") != "ClusterTaintPolicy":
        raise ManifestError("kind", f"expected ClusterTaintPolicy, got {manifest.get('kind')!r}")
    return manifest


def taints_of(
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


def with_policies(
    settings: LossSettings, policies: Sequence[Mapping[str, Any]] | None, taints: LossTaints
) -> LossSettings:
    """Return the settings with what ClusterTaintPolicies do to lost clusters; ``policies`` is None if they are not known."""
    evicting = [found for name in taints.by_policies if (found := taints.no_execute(name))]
    keys = sorted({each.key for found in evicting for each in found})
    return replace(
        settings,
        tainted_clusters=None if policies is None else len(evicting),
        taint=", ".join(keys) or settings.taint,
    )


def purge_modes(sources: Objects) -> Mapping[BindingKey, str]:
    """Return the purge modes of the bindings that have one for the failover of clusters."""
    found = {}
    for each in sources.bindings:
        if each.spec.failover_purge_modes:
            mode: Any = value_at(sources.manifests[each.key], "spec", "failover", "cluster", "purgeMode")
            if isinstance(mode, str) and mode:
                found[each.key] = mode
    return found


def kinds_of(written: Sequence[str]) -> list[str]:
    """Return the kinds of ``--domain``.

    Raises:
        NoAnswerError: There is no such kind.
    """
    kinds = [each for text in written for each in text.split(",") if each]
    for kind in kinds:
        if kind in KINDS or (kind.startswith(LABEL) and kind != LABEL):
            continue
        raise NoAnswerError(f"--domain: expected {DOMAINS}, got {kind}{nearest_hint(kind, KINDS)}")
    return kinds


def named(found: FailureDomains, names: Sequence[str]) -> FailureDomains:
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


def pairs_of(written: Sequence[str]) -> tuple[list[tuple[str, str]], int]:
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


def with_pairs(
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


def is_reported_by(arguments: argparse.Namespace) -> Callable[[Binding], bool]:
    """Return what says whether the flags ask for a binding: by its namespace, its policy and its priority."""
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


def fail_on_of(written: str) -> list[FailOn]:
    """Return what ``--fail-on`` asks for.

    Raises:
        NoAnswerError: There is no such word, or no such kind of domain.
    """
    found = []
    for text in (each.strip() for each in written.split(",") if each.strip()):
        word, separator, kind = text.partition("@")
        if word not in WORDS:
            hint = nearest_hint(word, WORDS)
            raise NoAnswerError(f"--fail-on: {word} is none of {', '.join(WORDS)}{hint}")
        if separator and kind not in (*KINDS, PAIR) and not (kind.startswith(LABEL) and kind != LABEL):
            raise NoAnswerError(f"--fail-on: expected {DOMAINS} after @, got {kind or 'nothing'}")
        found.append(FailOn(word, kind))
    return found
