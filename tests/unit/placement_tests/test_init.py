"""``--init`` writes a fleet, workloads and tests of first decisions, which pass."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from karmada_scheduler.testing import binding, cluster
from tests.commands import Ran, run
from tests.unit.placement_tests.files import POLICY


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a fleet, bindings and policies in files."""
    clusters = [cluster(name).region("r1").labels(tier="prod") for name in ("b", "a")]
    bindings = [
        binding("web", namespace="shop").replicas(4, cpu="500m").duplicated().on(a=4).manifest(),
        binding("lost", namespace="shop").replicas(1).duplicated().manifest(),
    ]
    for each in bindings:
        each["metadata"]["labels"] = {"team": each["spec"]["resource"]["name"]}
    (tmp_path / "clusters.yaml").write_text(yaml.safe_dump_all([each.manifest() for each in clusters]))
    (tmp_path / "bindings.yaml").write_text(yaml.safe_dump_all(bindings))
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "web.yaml").write_text(POLICY)
    return tmp_path


def made(folder: Path, name: str = "out", *flags: str) -> Ran:
    """Run the command in a folder of this name."""
    files = (f"--clusters={folder}/clusters.yaml", f"--bindings={folder}/bindings.yaml")
    return run("test", "--init", str(folder / name), f"--policies={folder}/policies", *files, *flags)


def test_what_is_written_passes_and_has_a_case_for_each_policy(folder: Path) -> None:
    found = made(folder)
    assert (found.status, found.err) == (0, "")
    first, unclaimed, elsewhere = found.out.splitlines()
    assert first == f"wrote 2 clusters, 2 workloads, 1 case to {folder}/out. All pass."
    assert unclaimed == "1 workload without a policy of the files, in no case."
    assert elsewhere.startswith("1 workload placed otherwise now")
    content = yaml.safe_load((folder / "out" / "placements_test.yaml").read_text())
    assert content["policies"] == ["../policies"]
    assert content["cases"] == [
        {
            "name": "PropagationPolicy/shop/web places its workloads",
            "expect": {
                "shop/deployment/web": {"policy": "PropagationPolicy/shop/web", "clusters": {"a": 2, "b": 2}}
            },
        }
    ]
    assert run("test", str(folder / "out")).status == 0


def test_equal_inputs_give_equal_files(folder: Path) -> None:
    made(folder, "one")
    made(folder, "two")
    for name in ("fleet.yaml", "workloads.yaml", "placements_test.yaml"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()


def test_what_depends_on_the_uid_is_expected_by_name(folder: Path) -> None:
    odd = binding("web", namespace="shop").replicas(3).duplicated().manifest()
    (folder / "bindings.yaml").write_text(yaml.safe_dump(odd))
    assert made(folder).status == 0
    content = yaml.safe_load((folder / "out" / "placements_test.yaml").read_text())
    assert content["cases"][0]["expect"]["shop/deployment/web"]["clusters"] == ["a", "b"]


def test_a_namespace_and_labels_choose_workloads(folder: Path) -> None:
    assert "1 workload, 1 case" in made(folder, "one", "--selector=team=web").out
    found = made(folder, "two", "-n", "nowhere")
    assert (found.status, "there is no workload with a policy" in found.err) == (2, True)


def test_schedulers_that_have_decided_exist(folder: Path) -> None:
    manifests = [
        binding("web", namespace="shop").replicas(4).duplicated().scheduler("mine").condition(**decided)
        for decided in ({"type": "Scheduled", "status": "True"}, {"type": "Other", "status": "True"})
    ]
    policy = POLICY.replace("spec:\n", "spec:\n  schedulerName: mine\n", 1)
    (folder / "policies" / "web.yaml").write_text(policy)
    for each, name in zip(manifests, ("decided", "other"), strict=True):
        (folder / "bindings.yaml").write_text(yaml.safe_dump(each.manifest()))
        assert made(folder, name).status == 0
    decided, other = (
        yaml.safe_load((folder / each / "placements_test.yaml").read_text()) for each in ("decided", "other")
    )
    assert decided["scheduler"] == {"names": ["default-scheduler", "mine"]}
    assert decided["cases"][0]["expect"]["shop/deployment/web"]["clusters"] == {"a": 2, "b": 2}
    assert "scheduler" not in other
    assert other["cases"][0]["expect"]["shop/deployment/web"]["notPlaced"] == "OtherScheduler"


def test_where_no_policy_claims_anything_nothing_is_left_behind(folder: Path) -> None:
    found = made(folder, "out", "--selector=team=lost")
    assert (found.status, "no policy of --policies claims a workload" in found.err) == (2, True)
    assert list((folder / "out").iterdir()) == []


def test_a_kind_with_an_interpreter_gets_its_size(folder: Path) -> None:
    manifest = binding("web", namespace="shop").replicas(2, cpu="1").duplicated().manifest()
    manifest["spec"]["resource"] |= {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet"}
    (folder / "bindings.yaml").write_text(yaml.safe_dump(manifest))
    policy = POLICY.replace("apps/v1, kind: Deployment", "apps.kruise.io/v1alpha1, kind: CloneSet")
    (folder / "policies" / "web.yaml").write_text(policy)
    assert made(folder).status == 0
    content = yaml.safe_load((folder / "out" / "placements_test.yaml").read_text())
    assert content["sizes"] == {"shop/cloneset/web": {"replicas": 2, "cpu": "1"}}
    assert content["cases"][0]["expect"]["shop/cloneset/web"]["notPlaced"] == "NoClusterFit"


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--init=OUT"], "--init: name the files of policies (--policies)"),
        (["--init=OUT", "--policies=nowhere"], "--policies: nowhere does not exist ("),
        (["--init=OUT", "--policies=POLICIES", "--selector=a ~ b"], "--selector: 'a ~ b' cannot be read"),
        (["--init=OUT", "--policies=POLICIES", "--clusters=nowhere.yaml"], "used together"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, flags: list[str], problem: str) -> None:
    given = [
        each.replace("OUT", str(folder / "out")).replace("POLICIES", str(folder / "policies"))
        for each in flags
    ]
    found = run("test", *given)
    assert (found.status, problem in found.err) == (2, True), found.err
    assert not (folder / "out").exists()


def test_files_that_are_there_are_not_written_over(folder: Path) -> None:
    made(folder)
    before = (folder / "out" / "placements_test.yaml").read_text()
    found = made(folder)
    assert found.status == 2
    assert "has fleet.yaml, workloads.yaml, placements_test.yaml already; name another folder" in found.err
    assert (folder / "out" / "placements_test.yaml").read_text() == before


def test_a_folder_that_cannot_be_made_is_no_answer(folder: Path) -> None:
    (folder / "file").write_text("")
    found = made(folder, "file/out")
    assert (found.status, "--init: " in found.err) == (2, True)
