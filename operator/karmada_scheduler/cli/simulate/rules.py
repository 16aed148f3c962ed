"""The plugins of a simulation: built from the command line as in the scheduler, for bindings of files."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME, Binding
from karmada_scheduler.api.workload import Workload
from karmada_scheduler.cli.simulate.state import SimulatedBindings, SimulatedHandle
from karmada_scheduler.cli.simulate.workloads import StoredWorkloads, Workloads
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.config.flags import plugin_tokens
from karmada_scheduler.config.options import LeaderElection, Options
from karmada_scheduler.config.profiles import SchedulerConfiguration, load, plugin_budget
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.framework.extension_points import Point
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.framework.profile.inputs import BuiltProfiles
from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.framework.runtime.plugin_call import PluginCaller
from karmada_scheduler.framework.runtime.timeouts import SigalrmTimeout
from karmada_scheduler.framework.workload import needs_workload
from karmada_scheduler.plugin_loader import PluginSetup
from karmada_scheduler_plugins.registry import IN_TREE, ORIGIN, in_tree

_NOT_RUN: Final = (Point.PRE_BIND, Point.BIND, Point.POST_BIND)
_NO_ELECTION: Final = LeaderElection(enabled=False)


@dataclass(frozen=True)
class Rules:
    """The plugins and workloads of a simulation.

    Attributes:
        framework_of: Returns the plugins of a binding's profile; None if another scheduler is responsible.
        workloads: The workloads of the files.
        stored_workloads: The workloads of other bindings, for plugins.
        plugins: The plugins of all profiles.
    """

    framework_of: Callable[[Binding], Framework | None]
    workloads: Workloads
    stored_workloads: StoredWorkloads
    plugins: BuiltProfiles

    @property
    def has_own_plugins(self) -> bool:
        """Whether a profile has plugins of the user's own, which may read other bindings."""
        return any(each.registration.origin != ORIGIN for each in self.plugins.made.values())


def add_rule_arguments(parser: Any) -> None:
    """Add the arguments that determine the plugins and gates."""
    parser.add_argument(
        "--plugins",
        action="append",
        metavar="LIST",
        help="plugins to enable: *, *,-Name, Name,Other (default *)",
    )
    parser.add_argument("--config", type=Path, metavar="FILE", help="profiles and plugin args; no extenders")
    parser.add_argument(
        "--scheduler-name",
        metavar="NAME",
        help="as for the scheduler; with it or --config, bindings of other schedulers are reported and not decided "
        "(default: without --config all bindings are decided)",
    )
    parser.add_argument(
        "--plugin-dir",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="directory of plugin files; may be repeated",
    )
    parser.add_argument(
        "--feature-gates", action="append", default=[], metavar="LIST", help="gates, as A=true,B=false"
    )
    parser.add_argument(
        "--enable-empty-workload-propagation",
        nargs="?",
        const="true",
        default="false",
        choices=("true", "false"),
        help="keep selected clusters with 0 replicas in the result",
    )


@contextmanager
def rules_of(
    arguments: argparse.Namespace,
    gates: FeatureGates,
    own: Sequence[Registration],
    *,
    snapshot: Callable[[], Snapshot],
    known: SimulatedBindings,
    workloads: Sequence[Workload] | None,
) -> Iterator[Rules]:
    """Build the plugins, with warnings on standard error; the timeout of plugins ends with the context.

    Args:
        arguments: The command line; see ``add_rule_arguments``.
        gates: Feature gates.
        own: The plugins of a main program of the user's own.
        snapshot: Returns the clusters that the handles of plugins show.
        known: The bindings that they show.
        workloads: The workloads of the files, None without files.

    Raises:
        ConfigError: The configuration, a profile or a plugin cannot be used.
    """
    name = arguments.scheduler_name or DEFAULT_SCHEDULER_NAME
    configuration = (
        load(arguments.config, scheduler_name=name) if arguments.config else SchedulerConfiguration()
    )
    budget = plugin_budget(configuration, _NO_ELECTION)
    found = Workloads(workloads)
    stored_workloads = StoredWorkloads(found, known.get)
    setup = PluginSetup.of(
        Options(
            plugins=plugin_tokens(arguments.plugins),
            plugin_dirs=tuple(arguments.plugin_dir),
            scheduler_name=name,
        ),
        in_tree(gates),
        handle_for=lambda profile: SimulatedHandle(
            profile, snapshot, known, time.time, stored_workloads.for_profile
        ),
        own=own,
        configuration=configuration,
        disabled_by_gates=IN_TREE,
    )
    with closing(SigalrmTimeout(budget)) as alarm:
        caller = PluginCaller(timeout=alarm, coroutine_seconds=budget, interrupts=(KeyboardInterrupt,))
        frameworks = _frameworks(
            setup,
            configuration,
            caller,
            every=not configuration.profiles and not arguments.scheduler_name,
        )
        stored_workloads.framework_of = frameworks
        stored_workloads.declaring = {
            name: any(map(needs_workload, plugins.unique)) for name, plugins in setup.built.by_name.items()
        }
        yield Rules(frameworks, found, stored_workloads, setup.built)


def _frameworks(
    setup: PluginSetup, configuration: SchedulerConfiguration, caller: PluginCaller, *, every: bool
) -> Callable[[Binding], Framework | None]:
    """Return the function that finds the plugins of a binding: those of its profile, or, with ``every``, the only ones.

    Raises:
        ConfigError: A profile or a plugin cannot be used.
    """
    if configuration.extenders:
        print_error("extenders are not called, as if there were none")
    built = setup.start()
    by_name = {name: Framework(plugins, caller=caller) for name, plugins in built.by_name.items()}
    for warning in (*configuration.warnings, *built.warnings):
        print_error(warning)
    for message in setup.messages:
        if message.warning:
            print_error(message.text)
    for text in _not_called(built):
        print_error(text)
    if every:
        [only] = by_name.values()
        return lambda _: only
    return lambda binding: by_name.get(binding.spec.responsible_scheduler)


def _not_called(built: BuiltProfiles) -> Iterator[str]:
    """Yield a line with the plugins at extension points that do not run, without the mandatory in-tree ones."""
    found = {
        f"{plugin.name} ({point.label})": None
        for profile, plugins in built.by_name.items()
        for point in _NOT_RUN
        for plugin in plugins.at(point)
        if not built.made[profile, plugin.name].registration.mandatory
    }
    if found:
        yield f"PreBind, Bind and PostBind are not called: {', '.join(found)}"


def print_error(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr)  # noqa: T201 (a command, not a server)
