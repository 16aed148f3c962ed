"""Single changes of the rules that why-not tries besides edits of objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from karmada_advisor.fleet.rules import Rules
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.structs import Struct, replace

_GATES: Final = (
    "CustomizedClusterResourceModeling",
    "MultiplePodTemplatesScheduling",
    "SchedulingOvercommitProtection",
    "WorkloadAffinity",
)


class RuleChange(Struct, frozen=True):
    """A change of one gate or plugin.

    Attributes:
        op: ``setGate`` or ``disablePlugin``.
        text: For people.
        flag: What to append to the command line of the scheduler, and of ``simulate``.
    """

    op: str
    text: str
    flag: str

    def applied(self, rules: Rules) -> Rules:
        """Return rules with the change."""
        _, _, value = self.flag.partition("=")
        if self.op == "setGate":
            return replace(rules, feature_gates=[*rules.feature_gates, value])
        return replace(rules, plugins=[*(rules.plugins or ()), value])


def alternatives(rules: Rules, gates: FeatureGates, refusing: str) -> Iterator[RuleChange]:
    """Yield changes of one gate or plugin.

    Args:
        rules: As they are.
        gates: Their feature gates.
        refusing: The plugin that refuses the cluster, "" if none does.
    """
    if refusing:
        enabled = "" if rules.plugins else "*,"
        flag = f"--plugins={enabled}-{refusing}"
        yield RuleChange("disablePlugin", f"without the plugin {refusing} ({flag})", flag)
    for name in _GATES:
        value = not gates.enabled(name)
        flag = f"--feature-gates={name}={str(value).lower()}"
        yield RuleChange("setGate", f"feature gate {name}={str(value).lower()}", flag)
