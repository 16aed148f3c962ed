"""Other configurations of the scheduler for why-not: one gate or one plugin changed."""

from __future__ import annotations

import argparse
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from karmada_scheduler.config.features import FeatureGates

_GATES: Final = (
    "CustomizedClusterResourceModeling",
    "MultiplePodTemplatesScheduling",
    "SchedulingOvercommitProtection",
    "WorkloadAffinity",
)


@dataclass(frozen=True, slots=True)
class Configuration:
    """A change of the configuration.

    Attributes:
        op: ``setGate`` or ``disablePlugin``.
        text: For people.
        flags: What to append to the command line of the scheduler, and of ``simulate``.
    """

    op: str
    text: str
    flags: tuple[str, ...]

    def applied(self, arguments: argparse.Namespace) -> argparse.Namespace:
        """Return arguments with the change."""
        changed = copy.copy(arguments)
        [flag] = self.flags
        name, _, value = flag.removeprefix("--").partition("=")
        attribute = name.replace("-", "_")
        setattr(changed, attribute, [*(getattr(arguments, attribute) or ()), value])
        return changed


def alternatives(
    arguments: argparse.Namespace, gates: FeatureGates, refusing: str
) -> Iterator[Configuration]:
    """Yield changes of one gate or plugin.

    Args:
        arguments: The command line.
        gates: Its feature gates.
        refusing: The plugin that refuses the cluster, "" if none does.
    """
    if refusing:
        enabled = "" if arguments.plugins else "*,"
        flag = f"--plugins={enabled}-{refusing}"
        yield Configuration("disablePlugin", f"without the plugin {refusing} ({flag})", (flag,))
    for name in _GATES:
        value = not gates.enabled(name)
        flag = f"--feature-gates={name}={str(value).lower()}"
        yield Configuration("setGate", f"feature gate {name}={str(value).lower()}", (flag,))
