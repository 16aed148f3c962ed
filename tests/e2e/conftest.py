"""Fixtures of the end-to-end tests: one real control plane for many, a namespace for each.

The control plane has the members of tools/controlplane/fleet.py and karmada-scheduler as
default-scheduler. Schedulers of ours are started by the tests that want them and end with
the test; what they logged last is shown when it fails.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import fork_server
from tests.e2e.identity_provider import AUTHENTICATION, write_authentication
from tests.e2e.namespaces import new_namespace
from tests.e2e.workload import Workload
from tools.controlplane import ControlPlane, Process, binaries
from tools.controlplane.fleet import real_members, simulated_members
from tools.controlplane.ours import Scheduler
from tools.controlplane.ours import start_scheduler as start
from tools.controlplane.versions import CURRENT, named

HERE = Path(__file__).parent
ON_EVERY_VERSION = (
    "test_control_plane_schema",
    "test_graceful_eviction",
    "test_main_job",
    "test_metrics",
    "test_reactions",
    "test_upgrade",
    "test_versions",
    "test_workload_affinity",
)
"""Modules that are also run on older versions of Karmada."""
StartScheduler = Callable[..., Scheduler]
StartUpstream = Callable[..., Process]
StartEither = Callable[..., None]
StartAny = Callable[..., None]
UPSTREAM = "karmada-scheduler"
"""The scheduler of a test that runs with several, if it is not ours."""
running: list[Scheduler] = []
"""The end of their logs is shown with a failure."""
_numbers = itertools.count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark everything in this folder as e2e, and what is run on older versions of Karmada."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            if item.path.stem in ON_EVERY_VERSION:
                item.add_marker(pytest.mark.versions)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of our schedulers' logs with a failure."""
    report = yield
    if report.failed and HERE in item.path.parents:
        for scheduler in running:
            process = scheduler.process
            report.sections.append((f"end of {process.log}", process.log_tail(60)))
    return report


@contextmanager
def new_controlplane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """Start a control plane with two real and six simulated members, and karmada-scheduler as default-scheduler."""
    name = request.config.getoption("--karmada")
    version = named(name) if name else CURRENT
    capture = request.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    with capture.global_and_fixture_disabled():
        binaries.ensure(version, quiet=True)  # on a fresh machine this takes minutes, and prints so
    # Without effect where there is no quota, and no policy with groups or a PriorityClass. Only the detector gets the
    # last one: karmada-scheduler would have another queue with it.
    names = {"FederatedQuotaEnforcement", "WorkloadAffinity"} - version.unknown_gates
    gates = dict.fromkeys(sorted(names), True)
    folder = tmp_path_factory.mktemp("controlplane") / "run"
    write_authentication(folder.parent / AUTHENTICATION)
    flags = {
        "controller-manager": ["--feature-gates=PriorityBasedScheduling=true"],
        "kube-apiserver": [f"--authentication-config={folder.parent / AUTHENTICATION}"],
    }
    with ControlPlane(
        folder,
        version=version,
        audit_log=True,
        feature_gates=gates,
        extra_flags=flags,
        start=fork_server.start,
    ) as plane:
        plane.add(*real_members(2), *simulated_members(6))
        plane.start_karmada_scheduler("default-scheduler")
        yield plane


@pytest.fixture(scope="package")
def controlplane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """The control plane that the tests of one process share. It ends with the last of them: an idle one costs CPU time, too."""
    with new_controlplane(request, tmp_path_factory) as plane:
        yield plane


@pytest.fixture(autouse=True)
def _nothing_dies(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test during which a program of the control plane ended unexpectedly."""
    yield
    if "controlplane" in request.fixturenames:
        request.getfixturevalue("controlplane").check()


@pytest.fixture
def namespace(controlplane: ControlPlane, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own; it is in the members if the test has the marker ``in_members``."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.removeprefix("test_").lower())
    name = f"{words[:40].strip('-')}-{next(_numbers)}"
    in_members = request.node.get_closest_marker("in_members") is not None
    with new_namespace(controlplane.client, name, in_members=in_members):
        yield name


@pytest.fixture
def web(controlplane: ControlPlane, namespace: str) -> Workload:
    """A workload called web, not created yet."""
    return Workload(controlplane, namespace)


@pytest.fixture
def start_scheduler(controlplane: ControlPlane) -> Iterator[StartScheduler]:
    """Start schedulers of ours with start_scheduler("--flag=...", ...); see tools/controlplane/ours.py.

    Each has a Lease of its own unless one is named, so that no test waits for the Lease of the one
    before it. All are stopped at the end of the test.
    """

    def start_one(
        *flags: str, name: str = "my-scheduler", lease: str | None = None, **options: Any
    ) -> Scheduler:
        number = next(_numbers)
        return start(
            controlplane,
            *flags,
            name=name,
            lease=lease or f"{name}-{number}",
            process_name=options.pop("process_name", f"{name}-{number}"),
            started=running.append,
            **options,
        )

    yield start_one
    for scheduler in running:
        scheduler.process.stop()
        controlplane.forget(scheduler.process)
    running.clear()


@pytest.fixture
def start_upstream(controlplane: ControlPlane) -> Iterator[StartUpstream]:
    """Start another karmada-scheduler with start_upstream("its-name", "--flag=...", ...); it ends with the test."""
    processes: list[Process] = []

    def start_one(name: str, *flags: str, **options: Any) -> Process:
        processes.append(controlplane.start_karmada_scheduler(name, *flags, **options))
        return processes[-1]

    yield start_one
    for process in processes:
        process.kill()
        controlplane.forget(process)


@pytest.fixture(params=[UPSTREAM, "ours"])
def start_either(
    start_upstream: StartUpstream, start_scheduler: StartScheduler, request: pytest.FixtureRequest
) -> StartEither:
    """Start one of the two schedulers with start_either("its-name", "--flag=...", ...); a test runs with each."""

    def start_one(name: str, *flags: str) -> None:
        if request.param == UPSTREAM:
            start_upstream(name, *flags)
        else:
            start_scheduler(*flags, name=name)

    return start_one


@pytest.fixture
def start_any(
    start_upstream: StartUpstream, start_scheduler: StartScheduler, which: str, tmp_path: Path
) -> StartAny:
    """Start karmada-scheduler, if ``which`` names it, or ours with plugins, by their args, as my-scheduler."""

    def start(**args_by_plugin: Mapping[str, Any]) -> None:
        if which == UPSTREAM:
            start_upstream("my-scheduler")
        else:
            start_scheduler(enabling(tmp_path, **args_by_plugin))

    return start


def enabling(folder: Path, **args_by_plugin: Mapping[str, Any]) -> str:
    """Return the flag of a configuration file in which my-scheduler has some more plugins."""
    plugins = {"multiPoint": {"enabled": [{"name": name} for name in args_by_plugin]}}
    if "FairShare" in args_by_plugin:  # one plugin sorts the queue
        plugins["queueSort"] = {"disabled": [{"name": "PrioritySort"}]}
    profile = {
        "schedulerName": "my-scheduler",
        "plugins": plugins,
        "pluginConfig": [{"name": name, "args": dict(args)} for name, args in args_by_plugin.items()],
    }
    kind = {"apiVersion": "pyscheduler.karmada.io/v1alpha1", "kind": "KarmadaSchedulerConfiguration"}
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump({**kind, "profiles": [profile]}))
    return f"--config={path}"
