"""Predictions for a case, and their differences from what the control plane has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from karmada_advisor.claims.binding_spec import comparable
from karmada_advisor.claims.claim import claim
from karmada_advisor.claims.model import (
    Claims,
    DetectorOptions,
    Event,
    PolicyDeleted,
    PolicyWritten,
    TemplateClaim,
    TemplateWritten,
)
from karmada_advisor.claims.template import (
    CLAIM_ANNOTATIONS,
    CLAIM_LABELS,
    Claim,
    TemplateKey,
    read_claim,
    read_template,
)
from karmada_scheduler.api.binding_spec import BindingKey
from karmada_scheduler.api.policy import ID_LABELS, PolicyKey
from karmada_scheduler.config.features import FeatureGates
from tests.checks.claims.cases import Move
from tests.checks.claims.policies import PRIORITY_CLASSES
from tools.manifests import Manifest

_REQUIREMENTS: Final = "replicaRequirements"
NOT_COMPARED: Final = ("clusters",)
"""Fields of ``spec`` that only schedulers write; there is none in the check."""


@dataclass(frozen=True)
class Difference:
    """A value that was predicted and is another one.

    Attributes:
        template: Of which template or its binding.
        field: Which.
        predicted: By us.
        real: On the control plane.
    """

    template: str
    field: str
    predicted: object
    real: object

    def __str__(self) -> str:
        """Return it in one line."""
        return f"{self.template}: {self.field}: predicted {self.predicted}, real {self.real}"


class Ids:
    """Which policy has or had which permanent id."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def learn(self, policies: Iterable[Manifest]) -> None:
        """Read the ids of stored policies."""
        for policy in policies:
            metadata = policy["metadata"]
            found = (metadata.get("labels") or {}).get(ID_LABELS[policy["kind"]])
            if found:
                key = PolicyKey(policy["kind"], metadata.get("namespace", ""), metadata["name"])
                self._names[found] = str(key)

    def name(self, permanent_id: str) -> str:
        """Return the name of the policy with an id, whether it was predicted or is real."""
        if permanent_id in self._names:
            return self._names[permanent_id]
        return permanent_id.partition("#")[0]

    def named(self, found: Claim) -> Claim:
        """Return a claim with names instead of ids."""
        return found._replace(id=self.name(found.id), cluster_id=self.name(found.cluster_id))


def options(gates: Mapping[str, bool]) -> DetectorOptions:
    """Return how the detector of the check runs."""
    return DetectorOptions(FeatureGates(gates), PRIORITY_CLASSES)


def events_of(move: Move, stored: Sequence[Manifest]) -> list[Event]:
    """Return the events of a move.

    Args:
        move: The move; policies are predicted from what was sent, with our own defaults.
        stored: What the API server has made of its objects; templates are read from here.
    """
    found: list[Event] = []
    for sent, kept in zip(move.objects, stored, strict=True):
        is_policy = sent["kind"] in ID_LABELS
        if is_policy and move.verb == "delete":
            metadata = sent["metadata"]
            found.append(
                PolicyDeleted(PolicyKey(sent["kind"], metadata.get("namespace", ""), metadata["name"]))
            )
        elif is_policy:
            found.append(PolicyWritten(sent))
        else:
            found.append(TemplateWritten(read_template(without_claim(kept))))
    return found


def without_claim(manifest: Manifest) -> Manifest:
    """Return a template as it is without the claim of a policy."""
    metadata = dict(manifest["metadata"])
    for field, names in (("labels", CLAIM_LABELS), ("annotations", CLAIM_ANNOTATIONS)):
        metadata[field] = {
            name: value for name, value in (metadata.get(field) or {}).items() if name not in names
        }
    return {**manifest, "metadata": metadata}


def predicted(
    before: tuple[list[Manifest], list[Manifest], list[Manifest]],
    events: Sequence[Event],
    detector: DetectorOptions,
) -> Claims:
    """Return the prediction from templates, policies and bindings as they are, and a change."""
    templates, policies, bindings = before
    return claim(
        [read_template(each) for each in templates], policies, bindings, events=events, options=detector
    )


def differences(
    claims: Claims, templates: Iterable[Manifest], bindings: Iterable[Manifest], ids: Ids
) -> list[Difference]:
    """Compare the claims of templates and bindings, and the spec of every binding."""
    real_templates = {read_template(each).key: each for each in templates}
    real_bindings = {_binding_key(each): each for each in bindings}
    found: list[Difference] = []
    for key in sorted(set(claims.templates) | set(real_templates)):
        if key not in claims.templates or key not in real_templates:
            found.append(Difference(str(key), "exists", key in claims.templates, key in real_templates))
            continue
        expected = claims.templates[key]
        real = ids.named(read_claim(real_templates[key]["metadata"]))
        _compare(found, key, "claim of the template", ids.named(expected.claim_after), real)
        _compare_binding(found, key, expected, real_bindings.pop(key.binding, None), ids)
    found += [Difference(str(key), "binding exists", False, True) for key in real_bindings]
    return found


def _compare_binding(
    found: list[Difference], key: TemplateKey, expected: TemplateClaim, real: Manifest | None, ids: Ids
) -> None:
    wanted = expected.binding_after
    if wanted is None or real is None:
        _compare(found, key, "binding exists", wanted is not None, real is not None)
        return
    _compare(
        found,
        key,
        "claim of the binding",
        ids.named(read_claim(wanted["metadata"])),
        ids.named(read_claim(real["metadata"])),
    )
    mine, theirs = _compared(wanted["spec"]), _compared(real["spec"])
    for name in sorted(set(mine) | set(theirs)):
        _compare(found, key, f"spec.{name}", mine.get(name), theirs.get(name))


def _compared(spec: Mapping[str, Any]) -> dict[str, Any]:
    resource = {name: value for name, value in spec["resource"].items() if name != "resourceVersion"}
    kept = {name: value for name, value in spec.items() if name not in NOT_COMPARED}
    if _REQUIREMENTS in kept:
        kept[_REQUIREMENTS] = comparable(kept[_REQUIREMENTS])
    return {**kept, "resource": resource}


def _compare(found: list[Difference], key: TemplateKey, field: str, mine: object, theirs: object) -> None:
    if mine != theirs:
        found.append(Difference(str(key), field, mine, theirs))


def is_alternative(claims: Claims, templates: Iterable[Manifest], bindings: Iterable[Manifest]) -> bool:
    """Return whether every template has the predicted result, or one of its alternatives."""
    real_bindings = {_binding_key(each): each for each in bindings}
    for manifest in templates:
        template = read_template(manifest)
        expected = claims.templates[template.key]
        real = real_bindings.get(template.key.binding)
        results = [(expected.policy_after, _spec(expected.binding_after))]
        results += [
            (each.policy, None if each.spec is None else _compared(each.spec))
            for each in expected.alternatives
        ]
        if (template.claim.policy, _spec(real)) not in results:
            return False
    return True


def _binding_key(binding: Manifest) -> BindingKey:
    metadata = binding["metadata"]
    return BindingKey(binding["kind"], metadata.get("namespace", ""), metadata["name"])


def _spec(binding: Manifest | Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if binding is None else _compared(binding["spec"])
