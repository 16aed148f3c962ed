"""The examples of docs/examples and the first plugin of docs/writing-plugins.md, on the control plane."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.chart import objects, one
from tests.docs.documents import Command, File, read
from tests.docs.packages import EXAMPLES, install
from tests.e2e.conftest import StartScheduler
from tests.e2e.workload import AGGREGATED, DUPLICATED, DYNAMIC, WORK, Workload, condition, named, placed
from tools.controlplane import ControlPlane, Object

pytestmark = pytest.mark.in_members

DOCUMENT = Path(__file__).parents[2] / "docs" / "writing-plugins.md"
PLUGINS = EXAMPLES / "plugins"
ONE_CLUSTER = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
Write = Callable[[Mapping[str, Any]], Path]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a scheduler that has the example packages installed."""
    return install("testfilter", "spacecloud", into=tmp_path_factory.mktemp("site-packages"))


@pytest.fixture(scope="module")
def with_test_filter(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a scheduler that has one of them installed."""
    return install("testfilter", into=tmp_path_factory.mktemp("test-filter"))


@pytest.fixture
def configuration(tmp_path: Path) -> Write:
    """Write a configuration with some of the examples' profiles: by file, what replaces their plugin's args."""

    def write(args_by_file: Mapping[str, Any]) -> Path:
        profiles = []
        for file, args in args_by_file.items():
            config = yaml.safe_load((EXAMPLES / file).read_text())
            for profile in config["profiles"]:
                for each in profile.get("pluginConfig", ()):
                    each["args"] |= args
            profiles += [each for each in config["profiles"] if each["schedulerName"] != "default-scheduler"]
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump({**config, "profiles": profiles}))
        return path

    return write


def refused_with(workload: Workload, text: str) -> Object:
    """Wait until a workload is refused in these words."""
    return workload.wait(lambda found: text in condition(found).get("message", ""), f"refused: {text}")


def test_test_filter_runs_once_it_is_installed_and_not_when_the_flag_disables_it(
    web: Workload, start_scheduler: StartScheduler, with_test_filter: dict[str, str]
) -> None:
    first = start_scheduler(env=with_test_filter)
    web.create(named("sim-a1", "sim-a2", replicaScheduling=DUPLICATED))
    found = refused_with(web, "2 cluster(s) are not admitted by TestFilter")
    assert condition(found)["reason"] == "NoClusterFit"
    first.process.stop()
    second = start_scheduler("--plugins=*,-TestFilter", env=with_test_filter)
    web.wait_placed({"sim-a1": 4, "sim-a2": 4})
    assert '"TestFilter" is disabled' in second.log


class OfSharedPolicy(Workload):
    """A workload whose policy is there already."""

    def apply_policy(
        self, placement: Mapping[str, Any], *, scheduler: str | None = None, **fields: Any
    ) -> None:
        """Leave the policy alone."""


def share_policy(plane: ControlPlane, namespace: str, scheduler: str, placement: Object) -> None:
    """Create a policy for two Deployments, left and right."""
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name} for name in ("left", "right")]
    plane.client.create(
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "PropagationPolicy",
            "metadata": {"name": "shared", "namespace": namespace},
            "spec": {"schedulerName": scheduler, "resourceSelectors": selectors, "placement": placement},
        }
    )


def test_one_process_serves_every_other_example_by_profile(
    controlplane: ControlPlane,
    namespace: str,
    start_scheduler: StartScheduler,
    installed: dict[str, str],
    configuration: Write,
    tmp_path: Path,
) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text('{"sim-a1": 3, "sim-a2": 1, "sim-b1": 2}')
    in_three_days = (datetime.now(UTC).weekday() + 3) % 7
    config = configuration(
        {
            "spacecloud/config.yaml": {"spaces": 1},
            "plugins/cost.yaml": {"prices": str(prices)},
            "plugins/free_gpu.yaml": {"resource": "cpu"},  # the members have no GPUs
            "plugins/replica_bounds.yaml": {},
            "plugins/even_split.yaml": {},
            "plugins/business_hours.yaml": {"timezone": "UTC", "days": [in_three_days]},
            "plugins/soft_anti_affinity.yaml": {},
        }
    )
    controlplane.wait_for(
        lambda: on_cluster(controlplane, "sim-c1", "sim-c2"), "nothing on sim-c*", until=lambda on: not on
    )
    start_scheduler(f"--config={config}", f"--plugin-dir={PLUGINS}", name="cheap", env=installed)

    def workload(name: str, scheduler: str, placement: Object, replicas: int = 4) -> Workload:
        return Workload(controlplane, namespace, name).create(
            placement, scheduler=scheduler, replicas=replicas
        )

    three = ("sim-a1", "sim-a2", "sim-b1")
    one = {"spreadConstraints": ONE_CLUSTER, "replicaScheduling": DUPLICATED}
    share_policy(controlplane, namespace, "apart", named(*three, **one))
    space = named("sim-c1", "sim-c2", spreadConstraints=ONE_CLUSTER, replicaScheduling=DUPLICATED)
    tenants = [workload(f"tenant{number}", "space-cloud", space) for number in range(3)]
    left = OfSharedPolicy(controlplane, namespace, "left").create({})
    cheap = workload("cheap", "cheap", named(*three, **one))
    gpu = workload("gpu", "gpu", named("real1", "real2", **one))
    bounded = workload("bounded", "bounded", named(*three, replicaScheduling=AGGREGATED), replicas=12)
    even = workload("even", "even", named("real1", *three[:2], replicaScheduling=DYNAMIC), replicas=9)
    office = workload("office", "office", named("sim-a1", replicaScheduling=DUPLICATED))

    cheap.wait_placed({"sim-a2": 4})
    cheap.wait_event_from("cheap")
    gpu.wait_placed({"real1": 4})
    bounded.wait_placed({"sim-a1": 4, "sim-a2": 4, "sim-b1": 4})
    even.wait_placed({"real1": 3, "sim-a1": 3, "sim-a2": 3})
    assert not placed(refused_with(office, "outside business hours until"))
    [first] = left.wait_settled(replicas=4)
    [second] = OfSharedPolicy(controlplane, namespace, "right").create({}).wait_settled(replicas=4)
    assert first != second
    found = [each.wait(condition, "decided") for each in tenants]
    assert sorted(tuple(placed(each)) for each in found) == [(), ("sim-c1",), ("sim-c2",)]
    [unplaced] = [each for each in found if not placed(each)]
    assert "2 cluster(s) had no space for another workload" in condition(unplaced)["message"]


def grant_deployments(plane: ControlPlane) -> None:
    """Let my-scheduler read Deployments, by the rule that the chart renders from its value."""
    values = {"workloadMetadata": {"resources": [{"apiGroups": ["apps"], "resources": ["deployments"]}]}}
    [*_, rule] = one(objects(values, side="karmada"), "ClusterRole")["rules"]
    api, name = "rbac.authorization.k8s.io", {"metadata": {"name": "my-scheduler:deployments"}}
    head = {"apiVersion": f"{api}/v1", **name}
    plane.client.apply({**head, "kind": "ClusterRole", "rules": [rule]})
    plane.client.apply(
        {
            **head,
            "kind": "ClusterRoleBinding",
            "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "my-scheduler:deployments"},
            "subjects": [{"apiGroup": api, "kind": "User", "name": "my-scheduler"}],
        }
    )


def test_the_annotation_of_the_deployment_decides_and_a_change_of_it_is_noticed(
    controlplane: ControlPlane, namespace: str, start_scheduler: StartScheduler, configuration: Write
) -> None:
    config = configuration({"plugins/space_type.yaml": {"label": "no-such-label"}})
    scheduler = start_scheduler(
        f"--config={config}", f"--plugin-dir={PLUGINS}", "--scheduler-name=space-type"
    )

    def workload(name: str, annotations: Mapping[str, str]) -> Workload:
        return Workload(controlplane, namespace, name).create(
            named("sim-a1", replicaScheduling=DYNAMIC),
            scheduler="space-type",
            replicas=2,
            annotations=annotations,
        )

    grounded = workload("grounded", {})
    satellite = workload("satellite", {"type": "space"})
    refused_with(grounded, "workloadMetadata of the chart's side=karmada grants")
    grant_deployments(controlplane)
    grounded.wait_placed({"sim-a1": 2})
    refused_with(satellite, "1 cluster(s) were not in space")
    # A change of the metadata requeues an unplaced binding, and moves no placed one.
    controlplane.client.patch(satellite.deployment_path, {"metadata": {"annotations": {"type": None}}})
    controlplane.client.patch(grounded.deployment_path, {"metadata": {"annotations": {"type": "space"}}})
    satellite.wait_placed({"sim-a1": 2})
    assert grounded.placed() == {"sim-a1": 2}
    grounded.scale(3)
    refused_with(grounded, "1 cluster(s) were not in space")
    assert scheduler.log.count("Cannot watch the metadata of workloads") == 1


def on_cluster(plane: ControlPlane, *clusters: str) -> list[str]:
    """The bindings that are on some clusters."""
    listed = plane.client.list(f"{WORK}/resourcebindings")
    return [each["metadata"]["name"] for each in listed if not placed(each).keys().isdisjoint(clusters)]


def test_the_first_plugin_of_the_document_runs_and_a_saved_file_is_live(
    web: Workload, start_scheduler: StartScheduler, tmp_path: Path, controlplane: ControlPlane
) -> None:
    parts = list(read(DOCUMENT))
    plugin = next(part for part in parts if isinstance(part, File))
    [line] = [part.line for part in parts if isinstance(part, Command) and "--kubeconfig" in part.line]
    plugin.write_into(tmp_path)
    program, *flags = shlex.split(line)
    assert (program, flags[:2]) == ("karmada-pyscheduler", ["--kubeconfig", "$KUBECONFIG"])
    folder = str(tmp_path / "plugins")
    scheduler = start_scheduler(*[folder if flag == "plugins" else flag for flag in flags[2:]])
    web.create(named("real1", "sim-a1", replicaScheduling=DUPLICATED)).wait_placed({"real1": 4, "sim-a1": 4})
    ours = plugin.text.replace('== "test"', f'== "{web.namespace}"')
    plugin_of_ours = File(plugin.name, ours.replace('("tier") == "prod"', '("kind") == "sim"'))
    plugin_of_ours.write_into(tmp_path)
    controlplane.wait_for(lambda: scheduler.log.count("Loaded plugin"), "the saved file to be live")
    web.scale(5)
    web.wait_placed({"real1": 5})
