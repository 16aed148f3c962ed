"""Label selectors, field selectors, taints and tolerations.

A selector is compiled on first use. An invalid expression matches nothing, as upstream, which reports no error.
Here a decision does not ask it (``core.expressions``): it may be of a newer control plane, and what it selects then is not
known.

Source: karmada v1.18.2 pkg/util/selector.go, k8s.io/apimachinery v0.35.3 pkg/labels/selector.go.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Final, NamedTuple

from karmada_scheduler.api.object_fields import ALWAYS
from karmada_scheduler.structs import Struct, replace

Labels = Mapping[str, str]
Test = Callable[[Labels], bool]

IN: Final = "In"
EXISTS: Final = "Exists"
SET_OPERATORS: Final = (IN, "NotIn", EXISTS, "DoesNotExist")
_FIELDS: Final = ("provider", "region")
TOLERATION_OPERATORS: Final = ("", "Equal", EXISTS)
NO_EXECUTE: Final = "NoExecute"
EFFECTS: Final = ("", "NoSchedule", NO_EXECUTE, "PreferNoSchedule")

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_INT64: Final = re.compile(r"[+-]?[0-9]+")


def is_subdomain(name: str) -> bool:
    """Return whether Kubernetes accepts a name of most kinds, Clusters included: a DNS subdomain.

    Source: kubernetes v1.35 apimachinery pkg/util/validation IsDNS1123Subdomain.
    """
    return len(name) <= 253 and _SUBDOMAIN.fullmatch(name) is not None


def is_label_key(key: str) -> bool:
    """Return whether Kubernetes accepts a label key (a *qualified name*)."""
    prefix, slash, name = key.rpartition("/")
    if slash and not is_subdomain(prefix):
        return False
    return len(name) <= 63 and _NAME.fullmatch(name) is not None


def is_label_value(value: str) -> bool:
    """Return whether Kubernetes accepts a label value."""
    return not value or (len(value) <= 63 and _NAME.fullmatch(value) is not None)


def _int64(text: str) -> int | None:
    digits = text.lstrip("+-").lstrip("0")
    # Python refuses to parse thousands of digits, and no int64 has twenty.
    if _INT64.fullmatch(text) is None or len(digits) > 19:
        return None
    value = -int(digits or "0") if text.startswith("-") else int(digits or "0")
    return value if -(2**63) <= value < 2**63 else None


class Requirement(Struct, frozen=True):
    """One expression of a selector.

    Attributes:
        key: Of a label; in field selectors ``provider``, ``region`` or ``zone``.
        operator: ``In``, ``NotIn``, ``Exists`` or ``DoesNotExist``.
        values: For In and NotIn.
    """

    key: Annotated[str, ALWAYS]
    operator: Annotated[str, ALWAYS]
    values: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return it as one line: ``zone In [a, b]``."""
        values = f" [{', '.join(self.values)}]" if self.values else ""
        return f"{self.key} {self.operator}{values}"

    @property
    def is_valid_for_labels(self) -> bool:
        """Whether it is an expression of a label selector, which has no Gt and Lt."""
        return self.operator not in {"Gt", "Lt"} and self.compile() is not None

    @property
    def is_valid_for_fields(self) -> bool:
        """Whether it is an expression of a field selector; for ``zone`` only the operator counts."""
        if self.key == "zone":
            return self.operator in SET_OPERATORS
        return self.key in _FIELDS and self.compile() is not None

    def compile(self) -> Test | None:
        """Return the test of this expression, None if it is invalid."""
        if not is_label_key(self.key) or not all(map(is_label_value, self.values)):
            return None
        key, values = self.key, frozenset(self.values)
        match self.operator:
            case "In" if values:
                return lambda labels: labels.get(key) in values
            case "NotIn" if values:
                return lambda labels: labels.get(key) not in values
            case "Exists" if not values:
                return lambda labels: key in labels
            case "DoesNotExist" if not values:
                return lambda labels: key not in labels
            case "Gt" | "Lt" if len(self.values) == 1:
                return self._comparison()
            case _:
                return None

    def _comparison(self) -> Test | None:
        key, bound, greater = self.key, _int64(self.values[0]), self.operator == "Gt"
        if bound is None:
            return None

        def compare(labels: Labels) -> bool:
            value = _int64(labels[key]) if key in labels else None
            return value is not None and (value > bound if greater else value < bound)

        return compare


def conjunction(tests: Sequence[Test | None]) -> Test:
    """Return a test that holds if all tests hold; with an invalid test it never holds."""
    if any(test is None for test in tests):
        return _never
    valid = [test for test in tests if test is not None]
    if len(valid) == 1:
        return valid[0]
    return lambda labels: all(test(labels) for test in valid)


def _never(labels: Labels) -> bool:  # noqa: ARG001
    return False


class InvalidExpression(NamedTuple):
    """An expression that is not known.

    Attributes:
        path: Keys and indexes from the object whose part it is.
        text: The same path and the expression, for people.
    """

    path: tuple[str | int, ...]
    text: str

    def within(self, path: tuple[str | int, ...], text: str) -> InvalidExpression:
        """Return it as a part of another object, whose path comes first."""
        return InvalidExpression((*path, *self.path), text + self.text)


class LabelSelector(Struct, frozen=True, dict=True):
    """A selector over labels; an empty one matches everything."""

    match_labels: tuple[tuple[str, str], ...] = ()
    match_expressions: tuple[Requirement, ...] = ()

    @property
    def requirements(self) -> list[Requirement]:
        """All its expressions, those of ``match_labels`` included."""
        return [
            *(Requirement(key, IN, (value,)) for key, value in self.match_labels),
            *self.match_expressions,
        ]

    @cached_property
    def matches(self) -> Test:
        """The test of an object's labels."""
        return conjunction(
            [each.compile() if each.is_valid_for_labels else None for each in self.requirements]
        )

    @cached_property
    def invalid(self) -> InvalidExpression | None:
        """The first invalid expression, None if there is none."""
        count = len(self.match_labels)
        for index, requirement in enumerate(self.requirements):
            if not requirement.is_valid_for_labels:
                path = (
                    ("matchLabels", requirement.key) if index < count else ("matchExpressions", index - count)
                )
                return InvalidExpression(path, str(requirement))
        return None


class FieldSelector(Struct, frozen=True, dict=True):
    """A selector over a cluster's provider, region and zones."""

    match_expressions: tuple[Requirement, ...] = ()

    @cached_property
    def invalid(self) -> InvalidExpression | None:
        """The first invalid expression, None if there is none."""
        for index, requirement in enumerate(self.match_expressions):
            if not requirement.is_valid_for_fields:
                return InvalidExpression(("matchExpressions", index), str(requirement))
        return None

    def matches(self, *, provider: str, region: str, zones: Sequence[str]) -> bool:
        """Return whether a cluster with these fields matches.

        Expressions on ``zone`` are tested against the list of zones; all others are requirements on the map of provider
        and region, in which an empty field is an absent key.
        """
        if not all(self.matches_zones(expression, zones) for expression in self._zone_expressions):
            return False
        fields = {key: value for key, value in (("provider", provider), ("region", region)) if value}
        return self._field_test(fields)

    def matches_zones(self, expression: Requirement, zones: Sequence[str]) -> bool:
        """Return whether a zone expression matches: In needs a common zone, NotIn none."""
        match expression.operator:
            case "In":
                return any(zone in expression.values for zone in zones)
            case "NotIn":
                return not any(zone in expression.values for zone in zones)
            case "Exists":
                return bool(zones)
            case "DoesNotExist":
                return not zones
            case _:
                return False

    @cached_property
    def _zone_expressions(self) -> tuple[Requirement, ...]:
        return tuple(expression for expression in self.match_expressions if expression.key == "zone")

    @cached_property
    def _field_test(self) -> Test:
        return conjunction([each.compile() for each in self.match_expressions if each.key != "zone"])


class AllZonesSelector(FieldSelector, frozen=True):
    """A field selector whose In on ``zone`` has to list all zones of a cluster.

    Source: karmada v1.17.1 pkg/util/selector.go matchZones.
    """

    def matches_zones(self, expression: Requirement, zones: Sequence[str]) -> bool:
        """Return whether a zone expression matches: In needs all zones and at least one, NotIn none."""
        if expression.operator == IN:
            return bool(zones) and all(zone in expression.values for zone in zones)
        return super().matches_zones(expression, zones)


def matching_all_zones(found: Any) -> Any:
    """Return a placement, or a part of one, with an ``AllZonesSelector`` for every field selector."""
    if isinstance(found, FieldSelector):
        found = AllZonesSelector(found.match_expressions)
    elif type(found) is tuple:
        found = tuple(map(matching_all_zones, found))
    elif isinstance(found, Struct):
        parts = {name: matching_all_zones(getattr(found, name)) for name in found.__struct_fields__}
        found = replace(found, **parts)
    return found


class Taint(NamedTuple):
    """A taint: bindings that do not tolerate it are refused.

    Attributes:
        key: The key of the taint.
        value: The value of the key; may be empty.
        effect: ``NoSchedule``, ``NoExecute`` or ``PreferNoSchedule``.
    """

    key: str
    value: str = ""
    effect: str = ""

    @property
    def blocks_scheduling(self) -> bool:
        """Whether it refuses new bindings; PreferNoSchedule does not."""
        return self.effect in {"NoSchedule", NO_EXECUTE}

    def __str__(self) -> str:
        """Return the taint as kubectl writes it: key=value:effect, without empty parts."""
        if not self.effect:
            return f"{self.key}={self.value}:" if self.value else self.key
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class Toleration(NamedTuple):
    """A toleration of taints.

    Attributes:
        key: Key of the taint; empty for all keys.
        operator: ``Exists`` or ``Equal``; empty is Equal.
        value: Value of the taint, for Equal.
        effect: Effect of the taint; empty for all effects.
        toleration_seconds: How long a NoExecute taint is tolerated; not used in decisions.
    """

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None

    @property
    def is_valid(self) -> bool:
        """Whether its operator and its effect are known."""
        return self.operator in TOLERATION_OPERATORS and self.effect in EFFECTS

    def tolerates(self, taint: Taint) -> bool:
        """Return whether a taint is tolerated.

        An empty key does not require Exists: the empty toleration tolerates every taint without a value.
        """
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator in {"", "Equal"}:
            return self.value == taint.value
        return self.operator == EXISTS


def untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> list[Taint]:
    """Return the taints that refuse new bindings with these tolerations."""
    return [
        taint
        for taint in taints
        if taint.blocks_scheduling and not any(toleration.tolerates(taint) for toleration in tolerations)
    ]
