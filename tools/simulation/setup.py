"""What is around the schedulers of a run: gates, profiles, plugin files, extenders and estimators.

``Plan.setup`` has these fields, all optional:

- ``gates``: feature gates by name.
- ``profiles``: the scheduler names of the profiles, ``my-scheduler`` among them.
- ``plugins``: the names of files of ``plugin_files``, in a directory of each replica.
- ``extenders``: entries of the configuration file; see ``extenders``.
- ``estimators``: the failure policy, if estimators are enabled; see ``estimators``.
- ``longest_backoff``: in seconds. The default of 1,000 s is longer than a run, and each event during a fault doubles it.
- ``measured``: the times at which the sizes of all containers are compared; see ``flat``.
- ``fresh_first``: the args of FreshFirst, which is enabled with them.
- ``records``: whether decisions are recorded, in memory.
- ``page``: the times at which the page is started; the one that ran until then is ended. See ``page_reader``.
- ``guard``, ``fail_back``, ``strict_priority``, ``fair_share``: the args of PlacementGuard, FailBack, StrictPriority and
  FairShare, which are enabled with them.
- ``stops_within``: the seconds within which a process ends after a signal; 0 if it may take longer.
- ``reports``: whether members report what bindings have on them; see ``cluster_reports``.
- ``works``: whether bindings have Works, whose replicas clusters report; see ``works``.
- ``started``: the args of StartedCapacity, which is enabled with them.
- ``members``: the nodes of members that start Pods, by name; see ``started_law``.
- ``front_ends``: the number of API servers in front of etcd; see ``front_ends``.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import orjson

from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.config.options import EstimatorOptions, ExplainOptions, Options, RetryLimits
from tools.simulation.members import Member
from tools.simulation.plan import Plan

NAME: Final = "my-scheduler"
SOURCES: Final = Path(__file__).parent / "plugin_files"
WORKLOAD_READER: Final = "workload_reader"
"""The file of the plugin that needs the metadata of workloads."""


def _plugin_name(file: str) -> str:
    return "".join(part.capitalize() for part in file.split("_"))


class _RecordsInMemory(ExplainOptions):
    """Records that are neither served nor written to a file."""

    @property
    def enabled(self) -> bool:
        return True


class Setup:
    """The surroundings of one run.

    Attributes:
        names: The scheduler names that the schedulers of the run are responsible for.
        gates: The feature gates.
        plugins: The names of the plugin files.
        measured: When the sizes of all containers are compared, in seconds.
        extenders: The extenders, as in a configuration file.
        stops_within: Seconds within which a process ends after a signal, 0 for no limit.
        guard, fail_back, fresh_first, started, strict_priority, fair_share: The args of PlacementGuard, FailBack,
            FreshFirst, StartedCapacity, StrictPriority and FairShare, None without the plugin.
        members: The members that start Pods, by name.
        records: Whether decisions are recorded.
        works: Whether bindings have Works.
        reports: Whether members report what bindings have on them.
        page: When the page is started, and started again.
        versions: The versions of the plugins whose decisions may have been written so far.
    """

    def __init__(self, plan: Plan) -> None:
        """Read a plan; nothing is written before ``options``."""
        found: Mapping[str, Any] = plan.setup
        self._plan = plan
        self.gates: Final = FeatureGates(MappingProxyType(dict(found.get("gates", {}))))
        self.profiles: Final[tuple[str, ...]] = tuple(found.get("profiles", ()))
        self.names: Final = frozenset(self.profiles or (NAME,))
        self.plugins: Final[tuple[str, ...]] = tuple(found.get("plugins", ()))
        self.extenders: Final[tuple[Mapping[str, Any], ...]] = tuple(found.get("extenders", ()))
        self.guard: Final[Mapping[str, Any] | None] = found.get("guard")
        self.fail_back: Final[Mapping[str, Any] | None] = found.get("fail_back")
        self.fresh_first: Final[Mapping[str, Any] | None] = found.get("fresh_first")
        self.started: Final[Mapping[str, Any] | None] = found.get("started")
        self.members: Final = {name: Member(**each) for name, each in found.get("members", {}).items()}
        self.strict_priority: Final[Mapping[str, Any] | None] = found.get("strict_priority")
        self.fair_share: Final[Mapping[str, Any] | None] = found.get("fair_share")
        self.records: Final[bool] = found.get("records", False)
        self.works: Final[bool] = found.get("works", False)
        self.reports: Final[bool] = found.get("reports", False)
        self.page: Final[tuple[float, ...]] = tuple(found.get("page", ()))
        self.estimators: Final[Any] = found.get("estimators", "")
        self.measured: Final[tuple[float, ...]] = tuple(found.get("measured", ()))
        self.stops_within: Final[float] = found.get("stops_within", 0.0)
        self.front_ends: Final[int] = found.get("front_ends", 0)
        self.versions: set[int] = {1}
        self._folder: Path | None = None

    @property
    def sorts_queue(self) -> bool:
        """Whether a plugin orders the queue by more than priorities."""
        return self.fresh_first is not None or self.fair_share is not None

    @property
    def varies_capacity(self) -> bool:
        """Whether decisions depend on more than what is stored: assumed placements, held capacity, responses, or evidence."""
        if self.estimators or self.started is not None or self.strict_priority is not None:
            return True
        return self.gates.enabled("SchedulingOvercommitProtection")

    @property
    def _given(self) -> Mapping[str, Mapping[str, Any]]:
        """The args of the plugins that are off by default, by name."""
        args = {
            "PlacementGuard": self.guard,
            "FailBack": self.fail_back,
            "FairShare": self.fair_share,
            "FreshFirst": self.fresh_first,
            "StartedCapacity": self.started,
            "StrictPriority": self.strict_priority,
        }
        return {name: each for name, each in args.items() if each is not None}

    def options(self, replica: int) -> Options:
        """Return the options of a replica, with its files."""
        more: dict[str, Any] = dict(self._plan.options)
        if self.profiles or self.extenders or self._given:
            more["config"] = self._configuration()
        if "longest_backoff" in self._plan.setup:
            more["retry_limits"] = RetryLimits(max_delay=self._plan.setup["longest_backoff"])
        if self.records:
            more["explain"] = _RecordsInMemory()
        if self.plugins:
            more["plugin_dirs"] = (self.plugin_dir(replica),)
        if self.estimators:
            ttl = 0.0 if self.estimators == "upstream" else 1.0
            more["estimators"] = EstimatorOptions(
                enabled=True,
                failure_policy=self.estimators,
                answer_ttl=ttl,
            )
        return Options(
            scheduler_name=NAME, health_address="", metrics_address="", feature_gates=self.gates, **more
        )

    def plugin_dir(self, replica: int) -> Path:
        """Return the directory with the plugin files of a replica; it is made at the first call."""
        folder = self._root() / f"scheduler-{replica}"
        if not folder.exists():
            folder.mkdir()
            for name in self.plugins:
                shutil.copyfile(SOURCES / f"{name}.py", folder / f"{name}.py")
        return folder

    def close(self) -> None:
        """Remove all files."""
        if self._folder is not None:
            shutil.rmtree(self._folder)
            self._folder = None

    def _root(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="simulation-"))
        return self._folder

    def _configuration(self) -> Path:
        path = self._root() / "config.yaml"
        if not path.exists():
            given = self._given
            names = [*map(_plugin_name, self.plugins), *given]
            enabled: dict[str, Any] = {"multiPoint": {"enabled": [{"name": each} for each in names]}}
            if self.sorts_queue:  # there is one QueueSort plugin only
                enabled["queueSort"] = {"disabled": [{"name": "PrioritySort"}]}
            plugin_config = [{"name": name, "args": each} for name, each in given.items()]
            document = {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "profiles": [
                    {"schedulerName": name, "plugins": enabled, "pluginConfig": plugin_config}
                    for name in self.profiles or (NAME,)
                ],
                "extenders": list(self.extenders),
            }
            path.write_bytes(orjson.dumps(document))
        return path
