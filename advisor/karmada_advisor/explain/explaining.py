"""The inputs of explanations, from objects and rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

from karmada_advisor.explain.inputs import ExplainInputs
from karmada_advisor.fleet.fleet import Fleet
from karmada_advisor.fleet.read import workload_reader
from karmada_advisor.fleet.rules import Rules, not_known, print_warning
from karmada_advisor.fleet.source import ControlPlane
from karmada_advisor.state.reading import Facts
from karmada_advisor.state.schedulers import Schedulers
from karmada_scheduler.api.binding import Binding
from karmada_scheduler.dryrun.dry_run import DryRun
from karmada_scheduler.dryrun.forecast import as_new
from karmada_scheduler.dryrun.objects import ShownObjects, Workloads
from karmada_scheduler.framework import Snapshot
from karmada_scheduler.structs import Struct, replace


class Explaining(Struct, frozen=True, dict=True):
    """Objects, and the rules by which decisions about them are explained.

    Attributes:
        fleet: What was read.
        rules: The rules.
        dry_run: Decides by them.
        snapshot: The clusters.
        schedulers: Which schedulers exist.
        as_new: Whether decisions are those about bindings that were never scheduled.
    """

    fleet: Fleet
    rules: Rules
    dry_run: DryRun
    snapshot: Snapshot
    schedulers: Schedulers
    as_new: bool = False

    @cached_property
    def facts(self) -> Facts:
        """What is stored besides bindings."""
        return replace(self.fleet.facts(self.rules.running), schedulers=self.schedulers)

    def show(self, snapshot: Snapshot) -> None:
        """Let plugins see clusters, and the bindings that were read."""
        bindings = self.fleet.bindings
        self.dry_run.objects.show(snapshot, map(as_new, bindings) if self.as_new else bindings)

    def inputs_of(self, binding: Binding, snapshot: Snapshot | None = None) -> ExplainInputs:
        """Return what a decision about a binding reads.

        Args:
            binding: The binding.
            snapshot: The clusters; None for those that were read.
        """
        fleet, process, name = self.fleet, self.rules.process, binding.spec.responsible_scheduler
        found = self.dry_run.of(binding)
        is_stock = found is not None and found is not self.dry_run
        is_known = found is not None or name not in self.rules.unknown(self.schedulers)
        of_process = frozenset[str]() if is_stock or not is_known else self.rules.scheduler_names
        asked = as_new(binding) if self.as_new else binding
        inputs = ExplainInputs.of(self.dry_run, asked, snapshot or self.snapshot)
        return replace(
            inputs,
            scheduler_names=of_process or inputs.scheduler_names,
            binding_manifest=fleet.manifests.get(binding.key),
            facts=self.facts,
            template_labels=fleet.template_labels(binding.spec.resource),
            quotas=fleet.quotas_of(binding.key.namespace),
            others=fleet.bindings,
            events=fleet.warning_events(),
            rules=str(self.rules.stock if is_stock else self.rules) if is_known else "",
            missing=self.dry_run.frameworks.missing.get(name, ()),
            not_known="" if is_known else not_known(name),
            plugin_dirs=() if process is None else process.directories,
        )


@contextmanager
def explaining(
    fleet: Fleet,
    rules: Rules,
    plane: ControlPlane,
    *,
    as_new: bool = False,
    say: Callable[[str], None] = print_warning,
) -> Iterator[Explaining]:
    """Provide the scheduler of some rules, with the objects that were read.

    Args:
        fleet: What was read.
        rules: By which decisions are made.
        plane: Where the fleet was read, if it is live; workloads are read there when a plugin needs them.
        as_new: Whether the bindings count as never scheduled.
        say: Takes warnings; prints them by default.

    Raises:
        NoAnswerError: The configuration or a plugin cannot be used.
    """
    shown = ShownObjects(Workloads(fleet.workloads, read=workload_reader(plane, fleet)))
    schedulers = fleet.schedulers(rules.running)
    with rules.dry_run(shown, schedulers, say=say) as dry_run:
        using = Explaining(fleet, rules, dry_run, Snapshot.of(fleet.clusters), schedulers, as_new)
        using.show(using.snapshot)
        yield using
