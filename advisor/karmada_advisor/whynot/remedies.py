"""Changes that place a binding which is not placed, for ``explain``: a search of why-not in a short time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from karmada_advisor.claims.template import Template
from karmada_advisor.explain.explaining import Explaining
from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.explain.model import Explanation, Remedy, RemedyEdit, RemedySearch
from karmada_advisor.state.curable import lacks_a_decision
from karmada_advisor.state.model import StateName
from karmada_advisor.state.quota import KIND as QUOTA
from karmada_advisor.whynot.answer import WhyNotQuestion, answer
from karmada_advisor.whynot.found_edits import SearchBounds
from karmada_advisor.whynot.goals import IsDecided, IsPlaced
from karmada_advisor.whynot.model import EditShown, VerifiedRemedy
from karmada_advisor.whynot.objects import ObjectSet
from karmada_advisor.whynot.undecided import claiming, decided_again, overwritten, resumed
from karmada_scheduler.api.binding import Binding, BindingKey
from karmada_scheduler.api.cluster import KIND as CLUSTER
from karmada_scheduler.api.policy import ID_LABELS
from karmada_scheduler.framework.edits import BECOME_READY, ObjectRef, Side
from karmada_scheduler.structs import replace

_NOT_RETRIED: Final = "NotRetried"

_HELD: Final = frozenset({StateName.HELD, StateName.NOBODY_DECIDES})


def with_remedies(
    explanation: Explanation, inputs: ExplainInputs, using: Explaining, seconds: float
) -> Explanation:
    """Return an explanation with the changes that help the binding; the same unless ``state.curable`` says that it may be cured.

    Args:
        explanation: The explanation of the binding.
        inputs: What its decision read.
        using: The objects and the rules.
        seconds: The time of the search.
    """
    if inputs.not_known:
        return explanation  # none could be verified
    binding = inputs.binding
    state, policies = explanation.state, using.fleet.policies or ()
    manifest = using.fleet.manifests[binding.key]
    propagating = [resumed(binding, manifest, policies)]
    if any(each.is_conflict for each in state.rows):
        propagating.append(overwritten(binding, manifest, policies))
    arriving = (_remedy(remedy, explanation) for remedy in propagating if remedy is not None)
    explanation = replace(explanation, remedies=tuple(arriving))
    if not lacks_a_decision(state, binding):
        return explanation
    is_held = binding.spec.scheduling_suspended or state.name in _HELD
    bindings = None if using.dry_run.is_coupled else [binding]  # others change nothing
    found = answer(
        editable(using, binding.key, bindings),
        WhyNotQuestion("", IsDecided() if is_held else IsPlaced()),
        SearchBounds(seconds),
        state=explanation.state,
        provenance=explanation.provenance,
        causes=lambda _: (),
    )
    remedies = list(found.remedies)
    if found.next_holds and not remedies and any(each.code == _NOT_RETRIED for each in explanation.causes):
        asking = decided_again(binding, manifest, found.next.result, inputs.facts.now or datetime.now(UTC))
        remedies += [asking] if asking is not None else []
    facts, listed = found.search, (*(_remedy(each, explanation) for each in remedies), *explanation.remedies)
    search = RemedySearch(facts.runs, facts.seconds, facts.complete, facts.ended_by, facts.timeout_seconds)
    return replace(explanation, remedies=listed, remedy_search=search)


def with_claiming_remedies(
    explanation: Explanation, template: Template, policies: Sequence[Mapping[str, Any]]
) -> Explanation:
    """Return the explanation of a template without a binding, with the edits after which a policy claims it."""
    found = claiming(policies, template)
    return replace(explanation, remedies=tuple(_remedy(each, explanation) for each in found))


def editable(using: Explaining, key: BindingKey, bindings: Sequence[Binding] | None = None) -> ObjectSet:
    """Return the objects that a search edits.

    Args:
        using: What was read, and what schedules the changed objects.
        key: The binding in question.
        bindings: It, and those that decisions about it read; None for all.
    """
    objects = using.fleet
    chosen = objects.bindings if bindings is None else bindings
    mine = next(each for each in chosen if each.key == key)
    quotas = objects.quotas_of(key.namespace) or ()
    counting = {ObjectRef(QUOTA, quota.namespace, quota.name) for quota in quotas}
    return ObjectSet(
        key,
        using.dry_run,
        {
            ObjectRef(CLUSTER, "", each.name): (objects.manifests[each.name], each)
            for each in objects.clusters
        },
        {ObjectRef(*each.key): (objects.manifests[each.key], each) for each in chosen},
        quotas={ref: each for each in objects.quotas or () if (ref := ObjectRef.of(each)) in counting},
        policies={ObjectRef.of(each): each for each in objects.policies or ()},
        template_labels=objects.template_labels(mine.spec.resource),
        schedulers=objects.schedulers(using.rules.running),
        has_all_bindings=not objects.unlisted,
        as_new=using.as_new,
    )


def _remedy(found: VerifiedRemedy, explanation: Explanation) -> Remedy:
    first = found.edits[0]
    # Karmada's controllers would set these taints again.
    set_by_karmada = {edit.object for edit in found.edits if edit.op == BECOME_READY}
    return Remedy(
        side=first.side.value,
        subject=_subject(first, explanation),
        change=", and ".join(_change(each) for each in found.edits),
        result=found.result,
        edits=tuple(
            RemedyEdit(edit.side.value, edit.op, edit.object, edit.text, edit.instead) for edit in found.edits
        ),
        apply=tuple(patch for patch in found.apply if patch.object not in set_by_karmada),
        moves=found.moves,
        rank=found.rank,
        harm=found.harm.value,
        caution=found.caution,
    )


def _subject(edit: EditShown, explanation: Explanation) -> str:
    """Return the object that a person changes: the policy rather than the binding, which has its placement."""
    if edit.side is Side.POLICY and edit.object.kind not in ID_LABELS:
        policy = explanation.binding.policy
        return policy.name if policy is not None else ""
    return "" if edit.object.name == explanation.binding.name else edit.object.name


def _change(edit: EditShown) -> str:
    if edit.minimal is None:
        return edit.text
    return f"{edit.text} ({edit.minimal.fails_at}{edit.minimal.unit} is not enough)"
