"""Feature gates, and the rules by which decisions of supported karmada-schedulers differ, as frozen values that are handed down.

Gates have upstream's names, stages and defaults.

Source: karmada v1.18.2 pkg/features/features.go and k8s.io/component-base/featuregate (0.35); of the rules: karmada v1.17.1
and v1.18.2, pkg/estimator/client/general.go, pkg/util/selector.go; master of 2026-08-21 (f8fdd02df),
pkg/scheduler/scheduler.go, pkg/scheduler/core/common.go, pkg/features/features.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from karmada_scheduler.structs import Struct

if TYPE_CHECKING:
    from karmada_scheduler.api.placement import Placement

ModelEstimate = Literal["simulate", "by_grade"]

Stage = Literal["ALPHA", "BETA"]


class DecisionRules(Struct, frozen=True):
    """The rules of one version of karmada-scheduler.

    Attributes:
        decisions_of: The version, as ``--decisions-of`` has it.
        zones_must_all_match: Whether a ``fieldSelector`` on ``zone`` with ``In`` has to list all zones of a cluster, and
            not only one of them.
        model_estimate: How replicas are counted by resource models. ``simulate``: placed on virtual nodes, where a
            resource in no model counts as 0. ``by_grade``: the nodes of each grade that suffices times what fits on one
            of them; the resource summary, if a resource is in no model.
        reschedule_from_first: Whether a requested reschedule begins with the first affinity term, and not with the one
            in use.
        target_components: Whether targets of a workload with several components have the replicas of each.
        refuses_old_purge_modes: Whether the API server of that Karmada refuses the purge modes Immediately and Graciously.
        beta_gates: Feature gates that are BETA and on by default, and ALPHA and off in others.
    """

    decisions_of: str = "1.18"
    zones_must_all_match: bool = False
    model_estimate: ModelEstimate = "simulate"
    reschedule_from_first: bool = False
    target_components: bool = False
    refuses_old_purge_modes: bool = False
    beta_gates: frozenset[str] = frozenset()

    def placement(self, placement: Placement) -> Placement:
        """Return a placement that matches clusters by these rules; it is not for writing."""
        return placement.matching_all_zones if self.zones_must_all_match else placement


DEFAULT_RULES: Final = DecisionRules()
RULES: Final[Mapping[str, DecisionRules]] = MappingProxyType(
    {
        rules.decisions_of: rules
        for rules in (
            DEFAULT_RULES,
            DecisionRules(
                "1.19",
                reschedule_from_first=True,
                target_components=True,
                refuses_old_purge_modes=True,
                beta_gates=frozenset({"PriorityBasedScheduling"}),
            ),
            DecisionRules("1.17", zones_must_all_match=True, model_estimate="by_grade"),
        )
    }
)


class Gate(Struct, frozen=True):
    """One gate as upstream declares it."""

    stage: Stage
    default: bool
    effective: bool = True
    """Whether this process reads the gate; the others are accepted because flag sets are shared."""


KNOWN: Final[Mapping[str, Gate]] = MappingProxyType(
    {
        "PriorityBasedScheduling": Gate("ALPHA", default=False),
        "WorkloadAffinity": Gate("ALPHA", default=False),
        "SchedulingOvercommitProtection": Gate("ALPHA", default=False),
        "MultiplePodTemplatesScheduling": Gate("ALPHA", default=False),
        "CustomizedClusterResourceModeling": Gate("BETA", default=True),
        "LoggingAlphaOptions": Gate("ALPHA", default=False, effective=False),
        "LoggingBetaOptions": Gate("BETA", default=True, effective=False),
        "ContextualLogging": Gate("BETA", default=True, effective=False),
        "Failover": Gate("BETA", default=False, effective=False),
        "GracefulEviction": Gate("BETA", default=True, effective=False),
        "PropagateDeps": Gate("BETA", default=True, effective=False),
        "PropagationPolicyPreemption": Gate("ALPHA", default=False, effective=False),
        "MultiClusterService": Gate("ALPHA", default=False, effective=False),
        "ResourceQuotaEstimate": Gate("ALPHA", default=False, effective=False),
        "StatefulFailoverInjection": Gate("ALPHA", default=False, effective=False),
        "FederatedQuotaEnforcement": Gate("ALPHA", default=False, effective=False),
        "ControllerPriorityQueue": Gate("BETA", default=True, effective=False),
    }
)
_PROMOTED: Final = Gate("BETA", default=True)

GROUPS: Final[Mapping[str, Stage]] = MappingProxyType({"AllAlpha": "ALPHA", "AllBeta": "BETA"})
"""Names that set all gates of a stage."""
BOOLEANS: Final[Mapping[str, bool]] = MappingProxyType(
    dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True)
    | dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False)
)
"""Truth values as Go's strconv reads them."""


class FeatureGates(Struct, frozen=True):
    """What decides besides plugins: which gates are on, and by which version's rules.

    Attributes:
        settings: Values by name of ``KNOWN``, or ``AllAlpha``/``AllBeta``. A gate without a value has
            that of its group, or else its default.
        rules: The rules of the karmada-scheduler whose decisions are made.
    """

    settings: Mapping[str, bool] = MappingProxyType({})
    rules: DecisionRules = DEFAULT_RULES

    def enabled(self, name: str) -> bool:
        """Return whether a gate is on; KeyError for an unknown name."""
        if name in self.settings:
            return self.settings[name]
        gate = _PROMOTED if name in self.rules.beta_gates else KNOWN[name]
        group = "AllAlpha" if gate.stage == "ALPHA" else "AllBeta"
        return self.settings.get(group, gate.default)


def parse(flags: Iterable[str], decisions_of: str = DEFAULT_RULES.decisions_of) -> FeatureGates:
    """Read values of ``--feature-gates`` (``A=true,B=false``); a later value wins.

    Args:
        flags: The values.
        decisions_of: The value of ``--decisions-of``, a key of ``RULES``.

    Raises:
        ValueError: An unknown gate, a missing ``=`` or a value that is not a boolean.
    """
    settings: dict[str, bool] = {}
    for flag in flags:
        for item in filter(None, (part.strip() for part in flag.split(","))):
            name, separator, text = (part.strip() for part in item.partition("="))
            if not separator:
                raise ValueError(f"missing bool value for {name}: write {name}=true or {name}=false")
            if name not in KNOWN and name not in GROUPS:
                known = ", ".join(sorted([*KNOWN, *GROUPS]))
                raise ValueError(f"unrecognized feature gate: {name}; known: {known}")
            if text not in BOOLEANS:
                raise ValueError(f"invalid value of {name}={text}: expected true or false")
            settings[name] = BOOLEANS[text]
    return FeatureGates(MappingProxyType(settings), RULES[decisions_of])
