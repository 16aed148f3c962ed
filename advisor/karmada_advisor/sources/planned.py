"""The configurations of the scheduler that a plan compares: the current one, and the one after the change."""

from __future__ import annotations

import argparse
import copy
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from karmada_advisor.plan.change_model import ChangeShown
from karmada_advisor.sources.process_rules import ProcessConfiguration
from karmada_advisor.sources.rules import parsed_gates, print_warning, usable_dry_run
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.config import features
from karmada_scheduler.config.decision_rules import DEFAULT_RULES
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.dryrun.objects import ShownObjects, Workloads
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.structs import Struct, field

_OVERCOMMIT: Final = "SchedulingOvercommitProtection"


class Configurations(Struct):
    """Both configurations; ``rules`` builds them.

    Attributes:
        arguments: As parsed.
        workloads: What their plugins see; None for none.
        own: The plugins of a main program of the user's own.
        stack: As long as it is open, plugins are usable.
    """

    arguments: argparse.Namespace
    workloads: Sequence[Workload] | None
    own: Sequence[Registration]
    stack: ExitStack
    _warned: set[str] = field(default_factory=set)

    def rules(self, arguments: argparse.Namespace) -> DryRun:
        """Return the rules of one configuration.

        Raises:
            NoAnswerError: It cannot be used.
        """
        objects = ShownObjects(Workloads(self.workloads))
        return self.stack.enter_context(usable_dry_run(arguments, self.own, objects, say=self._warn_once))

    def _warn_once(self, text: str) -> None:
        """Print a warning that may concern each of the configurations."""
        if text not in self._warned:
            self._warned.add(text)
            print_warning(text)

    @property
    def current(self) -> argparse.Namespace:
        """The arguments of the configuration before the change."""
        given, changed = self.arguments, copy.copy(self.arguments)
        changed.feature_gates = list(given.current_feature_gates)
        changed.decisions_of = given.current_decisions_of
        changed.plugins = list(given.current_plugins) or None
        changed.config = _path(given.current_config)
        changed.plugin_dir = [_path([each]) for each in given.current_plugin_dir]
        return changed

    @property
    def changed(self) -> argparse.Namespace:
        """The arguments of the configuration after the change."""
        given, changed = self.arguments, self.current
        changed.feature_gates = [*changed.feature_gates, *given.feature_gates]
        changed.decisions_of = given.decisions_of or changed.decisions_of
        changed.plugins = given.plugins or changed.plugins
        changed.config = given.config or changed.config
        changed.plugin_dir = [*changed.plugin_dir, *given.plugin_dir]
        if given.plugins or given.config:
            changed.process_rules = None  # not those of --from
        return changed

    @property
    def other_mode(self) -> argparse.Namespace:
        """The arguments after the change with the other value of SchedulingOvercommitProtection."""
        changed = self.changed
        value = str(not parsed_gates(changed).enabled(_OVERCOMMIT)).lower()
        changed.feature_gates = [*changed.feature_gates, f"{_OVERCOMMIT}={value}"]
        return changed

    def shown(self) -> tuple[ChangeShown, ...]:
        """Return how the change of the configuration is shown; empty if nothing changes."""
        before, after = self.current, self.changed
        old, new = parsed_gates(before), parsed_gates(after)
        found = [
            ChangeShown("~", f"feature gate {name}", f"{_on(old.enabled(name))} -> {_on(new.enabled(name))}")
            for name in features.KNOWN
            if old.enabled(name) != new.enabled(name)
        ]
        if old.rules is not new.rules:
            text = f"{old.rules.decisions_of} -> {new.rules.decisions_of}"
            found.append(ChangeShown("~", "--decisions-of", text))
        for name in ("plugins", "config", "plugin_dir"):
            one, other = getattr(before, name), getattr(after, name)
            if one != other:
                found.append(
                    ChangeShown("~", f"--{name.replace('_', '-')}", f"{_text(one)} -> {_text(other)}")
                )
        return tuple(found)


def fingerprinted(arguments: argparse.Namespace) -> str:
    """Return the rules of the command line for a fingerprint."""
    gates = parsed_gates(arguments)
    config = arguments.config.read_bytes().decode(errors="replace") if arguments.config else ""
    process: ProcessConfiguration | None = arguments.process_rules
    return ("" if process is None else repr(process)) + repr(
        (
            [
                *sorted((name, gates.enabled(name)) for name in features.KNOWN),
                *(() if gates.rules is DEFAULT_RULES else (gates.rules,)),
            ],
            arguments.plugins,
            config,
            list(map(str, arguments.plugin_dir)),
            arguments.scheduler_name,
            arguments.enable_empty_workload_propagation,
        )
    )


def _path(given: Sequence[str]) -> Path | None:
    return Path(given[-1]) if given else None


def _on(value: object) -> str:
    return "on" if value else "off"


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value)) or "default"
    return str(value) if value else "default"
