"""``explain -A``, and ``explain`` of a namespace, a policy or a cluster: all bindings by state and cause."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime

from karmada_advisor.explain.explain import policy_of
from karmada_advisor.explain.model import Provenance, Tense
from karmada_advisor.explain.names import unknown
from karmada_advisor.explain.overview import ExplanationSummary, causes_of_state, summary_of
from karmada_advisor.explain.situation import Situation
from karmada_advisor.explain.trace_trigger import at
from karmada_advisor.sources.control_plane import context_namespace, reads_files
from karmada_advisor.sources.errors import NoAnswerError
from karmada_advisor.sources.gathered import Objects
from karmada_advisor.sources.inputs import Explaining, explaining
from karmada_advisor.sources.label_selectors import selector_of
from karmada_advisor.sources.objects import gather
from karmada_advisor.state.model import BindingState
from karmada_advisor.state.reading import state_of
from karmada_advisor.views.state import headline
from karmada_scheduler.api.binding import RESOURCE_BINDING, Binding
from karmada_scheduler.framework.profile.factory import Registration


def is_asked(arguments: argparse.Namespace) -> bool:
    """Return whether the flags name many bindings; a namespace alone does, too."""
    many = bool(arguments.all_namespaces or arguments.policy or arguments.on or arguments.selector)
    if many and arguments.name:
        raise NoAnswerError("give the name of one binding, or -A, -l, --policy or --on, not both")
    return many or bool(arguments.namespace and not arguments.name and not arguments.replay)


def summary(
    arguments: argparse.Namespace, own: Sequence[Registration]
) -> tuple[ExplanationSummary, Sequence[str], Sequence[str]]:
    """Return the summary, what could not be read, and warnings.

    Raises:
        NoAnswerError: Nothing can be read, or a name is unknown.
    """
    selects = selector_of(arguments.selector)
    objects = gather(arguments, all_bindings=True)
    chosen, scope = _chosen(arguments, objects)
    if arguments.selector:
        chosen = [each for each in chosen if selects(each.labels)]
        scope = " ".join(each for each in (scope, f"with the labels {arguments.selector}") if each)
    with explaining(arguments, objects, own) as using:
        states = [(each, _state(using, each)) for each in chosen]
        provenance = Provenance(
            Tense.RECOMPUTED if objects.at is None else Tense.REPLAYED,
            objects.source,
            at(objects.at or datetime.now(UTC)),
            rules=using.rules,
        )
        found = summary_of(
            states,
            lambda binding: causes_of_state(Situation(using.inputs_of(binding))),
            headline,
            scope=scope,
            clusters=len(objects.clusters),
            provenance=provenance,
        )
    return found, objects.problems, objects.warnings


def _chosen(arguments: argparse.Namespace, objects: Objects) -> tuple[list[Binding], str]:
    """Return the bindings that the flags name, and which these are for people."""
    chosen = list(objects.bindings)
    if arguments.on:
        names = [each.name for each in objects.clusters]
        if arguments.on not in names:
            raise NoAnswerError(unknown(f"cluster {arguments.on}", arguments.on, names))
        return [each for each in chosen if arguments.on in each.spec.target_names], f"with {arguments.on}"
    if arguments.policy:
        namespace, _, name = arguments.policy.rpartition("/")
        found = [
            each
            for each in chosen
            if (policy := policy_of(each.annotations)) is not None
            and policy.name == name
            and (not namespace or policy.namespace == namespace)
        ]
        return found, f"of the policy {arguments.policy}"
    if arguments.all_namespaces:
        return chosen, ""
    namespace = arguments.namespace or ("" if reads_files(arguments) else context_namespace(arguments))
    if not namespace:
        return chosen, ""
    return [
        each for each in chosen if (each.key.kind, each.key.namespace) == (RESOURCE_BINDING, namespace)
    ], f"in the namespace {namespace}"


def _state(using: Explaining, binding: Binding) -> BindingState:
    manifest = using.objects.manifests.get(binding.key) or {}
    return state_of(binding, manifest, using.facts)
