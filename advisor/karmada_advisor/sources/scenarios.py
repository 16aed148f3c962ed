"""The scenario of a file of placement tests: its objects as values, and the scheduler that it names."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from karmada_advisor.claims.model import DetectorOptions
from karmada_advisor.placement_tests.model import PlacementTestFile
from karmada_advisor.placement_tests.scenario import CaseClock, Scenario, objects_of, schedulers_named
from karmada_advisor.plan.inputs import known_of
from karmada_advisor.sources import rules
from karmada_scheduler.api.binding import DEFAULT_SCHEDULER_NAME
from karmada_scheduler.config.decision_rules import RULES
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.dryrun.objects import ShownObjects, Workloads
from karmada_scheduler.framework.profile.factory import Registration


@contextmanager
def scenario_of(file: PlacementTestFile, own: Sequence[Registration] = ()) -> Iterator[Scenario]:
    """Provide the scenario of a file; its plugins are usable within the block.

    Args:
        file: The file.
        own: The plugins of a main program of the user's own.

    Raises:
        ChangeError: An object cannot be read.
        ConfigError: The configuration of the scheduler, or a plugin, cannot be used.
    """
    clock = CaseClock()
    objects = objects_of(file)
    known = known_of(objects)
    shown = ShownObjects(Workloads(None), clock=clock.now)
    scheduler = file.scheduler
    arguments = argparse.Namespace(
        plugins=list(scheduler.plugins) or None,
        config=Path(scheduler.config) if scheduler.config else None,
        plugin_dir=[Path(each) for each in scheduler.plugin_dirs],
        scheduler_name=None,
        enable_empty_workload_propagation="false",
        process_rules=None,
    )
    gates = FeatureGates(scheduler.gates, RULES[scheduler.decisions_of])
    with rules.dry_running(arguments, gates, own, shown) as dry_run:
        yield Scenario(
            objects,
            known,
            dry_run,
            clock,
            schedulers_named(
                scheduler.names or sorted(dry_run.frameworks.names or (DEFAULT_SCHEDULER_NAME,))
            ),
            _detector(file),
            file.controller_manager.evicts,
        )


def _detector(file: PlacementTestFile) -> DetectorOptions:
    gates = FeatureGates({**file.scheduler.gates, **file.controller_manager.gates})
    return DetectorOptions(
        preemption=gates.enabled("PropagationPolicyPreemption"),
        workload_affinity=gates.enabled("WorkloadAffinity"),
        priority_based_scheduling=gates.enabled("PriorityBasedScheduling"),
        resource_quota_estimate=gates.enabled("ResourceQuotaEstimate"),
        priority_classes=file.priority_classes,
        sizes=dict(file.sizes),
    )
