"""The inputs of explanations, from objects and rules."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.sources import rules
from karmada_advisor.sources.gathered import Objects
from karmada_advisor.sources.objects import workload_reader
from karmada_advisor.sources.process_rules import ProcessConfiguration, running
from karmada_advisor.state.reading import Facts
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.dryrun.forecast import as_new
from karmada_scheduler.dryrun.objects import ShownObjects, Workloads
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.framework.profile.factory import Registration
from karmada_scheduler.structs import Struct, field, replace

if TYPE_CHECKING:  # only a search schedules changed objects
    from karmada_advisor.sources.simulated import SimulatedScheduler


class Explaining(Struct, frozen=True):
    """Objects, and the rules by which decisions about them are explained.

    Attributes:
        objects: What was read.
        dry_run: Decides.
        snapshot: The clusters.
        as_new: Whether decisions are those about bindings that were never scheduled.
        rules: What the rules of ``dry_run`` are, for people.
        process: Which schedulers run, as ``Objects.schedulers`` takes it.
        plugin_dirs: Where the process that decides has loaded plugins from.
    """

    objects: Objects
    dry_run: DryRun
    snapshot: Snapshot
    as_new: bool = False
    rules: str = ""
    process: Mapping[str, str] = field(default_factory=dict)
    plugin_dirs: Sequence[str] = ()

    @property
    def facts(self) -> Facts:
        """What is stored besides bindings."""
        return self.objects.facts(self.process)

    @property
    def scheduler(self) -> SimulatedScheduler:
        """What schedules changed objects."""
        from karmada_advisor.sources.simulated import SimulatedScheduler

        return SimulatedScheduler(self.dry_run, self.as_new)

    def show(self, snapshot: Snapshot) -> None:
        """Let plugins see clusters, and the bindings that were read."""
        bindings = self.objects.bindings
        self.dry_run.objects.show(snapshot, map(as_new, bindings) if self.as_new else bindings)

    def inputs_of(self, binding: Binding, snapshot: Snapshot | None = None) -> ExplainInputs:
        """Return what a decision about a binding reads.

        Args:
            binding: The binding.
            snapshot: The clusters; None for those that were read.
        """
        objects = self.objects
        return replace(
            ExplainInputs.of(
                self.dry_run, as_new(binding) if self.as_new else binding, snapshot or self.snapshot
            ),
            binding_manifest=objects.manifests.get(binding.key),
            cluster_manifest=objects.manifests.get,
            policies=objects.policies,
            template_labels=objects.template_labels(binding.spec.resource),
            others=objects.bindings,
            now=objects.at or datetime.now(UTC),
            schedulers=objects.schedulers(self.process),
            events=objects.warning_events(),
            rules=self.rules,
            missing=self.dry_run.frameworks.missing.get(binding.spec.responsible_scheduler, ()),
            plugin_dirs=self.plugin_dirs,
        )


@contextmanager
def explaining(
    arguments: argparse.Namespace,
    objects: Objects,
    own: Sequence[Registration],
    *,
    as_new: bool = False,
    say: Callable[[str], None] = rules.print_warning,
) -> Iterator[Explaining]:
    """Provide the scheduler of the command line, with the objects that were read.

    Args:
        arguments: With the flags of ``cli.flags.shared.add_rules``.
        objects: What was read.
        own: The plugins of a main program of the user's own.
        as_new: Whether the bindings count as never scheduled.
        say: Takes warnings; prints them by default.

    Raises:
        NoAnswerError: The configuration or a plugin cannot be used.
    """
    shown = ShownObjects(Workloads(objects.workloads, read=workload_reader(arguments, objects)))
    process: ProcessConfiguration | None = arguments.process_rules
    with rules.usable_dry_run(arguments, own, shown, say=say) as dry_run:
        using = Explaining(
            objects,
            dry_run,
            Snapshot.of(objects.clusters),
            as_new,
            rules.described(arguments),
            running(arguments),
            () if process is None else process.directories,
        )
        using.show(using.snapshot)
        yield using
