"""A plan of a control plane: what is read, and that nothing is written."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from karmada_scheduler import command
from tests.bindings_documents import OF_1_17, OF_1_18, OF_1_19, document
from tests.fake_apiserver import Answer, FakeApiServer, binding, cluster, policy, status
from tests.fake_apiserver.process import write_kubeconfig


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    with FakeApiServer() as server:
        for name in ("m1", "m2"):
            server.put(cluster(name))
        server.put(policy("p"))
        made = binding("web-deployment", replicas=2, clusters={"m1": 2}, requests={"cpu": "100m"})
        made["spec"]["resource"]["name"] = "web"
        made["metadata"]["annotations"] = {
            "propagationpolicy.karmada.io/name": "p",
            "propagationpolicy.karmada.io/namespace": made["metadata"]["namespace"],
        }
        server.put(made)
        for name in ("my-scheduler", "karmada-scheduler"):
            server.put(lease(name, datetime.now(UTC)))
        yield server


def lease(name: str, renewed: datetime) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": "karmada-system", "name": name},
        "spec": {
            "holderIdentity": "one",
            "renewTime": renewed.strftime("%Y-%m-%dT%H:%M:%S.000000Z"),
            "leaseDurationSeconds": 15,
        },
    }


def plan(server: FakeApiServer, tmp_path: Path, *flags: str) -> int:
    config = write_kubeconfig(server, tmp_path / "config")
    return command.main(["plan", "--kubeconfig", str(config), *flags])


def test_a_control_plane_is_only_read(
    server: FakeApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert plan(server, tmp_path, "--without", "m1", "--scale", "default/web=5", "-o", "json") in {0, 1}

    fields = json.loads(capsys.readouterr().out)
    assert (fields["clusters"], fields["total"]) == (2, 1)
    assert fields["provenance"]["source"].startswith("http")
    assert {request.verb for request in server.requests} == {"GET", "LIST"}


@pytest.mark.parametrize(
    ("flags", "is_written"), [(["--scale", "default/web=5"], True), (["--cordon", "m1"], False)]
)
def test_what_the_detector_writes_is_not_judged_by_events(
    server: FakeApiServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    flags: list[str],
    is_written: bool,
) -> None:
    plan(server, tmp_path, *flags, "-o", "json")

    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any("Events are not read" in note for note in notes) is is_written


def test_an_edited_policy_changes_its_bindings_although_templates_cannot_be_listed(
    server: FakeApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = copy.deepcopy(policy("p"))
    edited["spec"]["placement"] = {"clusterAffinity": {"clusterNames": ["m2"]}}
    edited["spec"]["resourceSelectors"] = [
        {"apiVersion": "apps/v1", "kind": "Deployment", "labelSelector": {"matchLabels": {"app": "web"}}}
    ]
    (tmp_path / "p.yaml").write_text(json.dumps(edited))
    forbidden = status(403, "Forbidden", "deployments are forbidden")
    server.fault(method="LIST", path="deployments", answer=forbidden)

    assert plan(server, tmp_path, "-f", str(tmp_path / "p.yaml"), "-o", "json", "--fail-on", "none") == 0

    captured = capsys.readouterr()
    fields = json.loads(captured.out)
    assert fields["changes"][0]["object"] == "PropagationPolicy/default/p"
    assert [each["after"] for each in fields["bindings"]] == [[{"name": "m2", "replicas": 2}]]
    assert "templates of kind Deployment: deployments are forbidden" in captured.err
    assert {request.verb for request in server.requests} == {"GET", "LIST"}


NEW = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"namespace": "default", "name": "new", "uid": "uid-new"},
    "spec": {"replicas": 3, "template": {"spec": {"containers": [{"name": "c"}]}}},
}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}
CUSTOMIZATION = {
    "kind": "ResourceInterpreterCustomization",
    "metadata": {"name": "twice"},
    "spec": {
        "target": {"apiVersion": "apps/v1", "kind": "Deployment"},
        "customizations": {"replicaResource": {"luaScript": "..."}},
    },
}


def serve_the_new_deployment(server: FakeApiServer, *customizations: dict[str, Any]) -> None:
    kinds = {
        "resources": [
            {"name": "deployments", "kind": "Deployment", "namespaced": True, "verbs": ["list", "watch"]}
        ]
    }
    for path, body in (
        ("/apis/apps/v1$", kinds),
        ("/deployments$", {"items": [{"metadata": NEW["metadata"]}], "metadata": {"resourceVersion": "1"}}),
        ("/deployments/new$", NEW),
        ("interpretercustomizations$", {"items": customizations, "metadata": {"resourceVersion": "1"}}),
    ):
        server.fault(path=path, answer=Answer(body=json.dumps(body).encode()))


@pytest.mark.parametrize("selected", [{"name": "new"}, {}], ids=["by name", "all"])
def test_a_template_without_a_binding_is_read_for_its_replicas(
    server: FakeApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], selected: dict[str, str]
) -> None:
    serve_the_new_deployment(server)
    claiming = policy("q")
    claiming["spec"]["resourceSelectors"] = [{"apiVersion": "apps/v1", "kind": "Deployment", **selected}]
    (tmp_path / "q.yaml").write_text(json.dumps(claiming))

    assert plan(server, tmp_path, "-f", str(tmp_path / "q.yaml"), "-o", "json") == 0

    placed = [row for row in json.loads(capsys.readouterr().out)["bindings"] if row["effect"] == "placed"]
    assert [target["replicas"] for row in placed for target in row["after"]] == [3, 3]


@pytest.mark.parametrize(
    "flags",
    [["-f", "new.yaml", "-f", "claiming.yaml"], ["-f", "web.yaml"], ["--scale", "default/web=5"]],
    ids=["new", "changed", "scaled"],
)
def test_replicas_that_a_customization_of_the_interpreter_counts_are_not_judged(
    server: FakeApiServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    flags: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    serve_the_new_deployment(server, CUSTOMIZATION)
    metadata = {"namespace": "default", "name": "web", "labels": {"app": "web"}}
    for name, manifest in (
        ("new", NEW),
        ("web", {**NEW, "metadata": metadata}),
        ("claiming", {**policy("q"), "spec": {"resourceSelectors": [{**DEPLOYMENT, "name": "new"}]}}),
    ):
        (tmp_path / f"{name}.yaml").write_text(json.dumps(manifest))
    monkeypatch.chdir(tmp_path)

    assert plan(server, tmp_path, *flags, "-o", "json") in {0, 1}

    found = json.loads(capsys.readouterr().out)
    assert "ResourceInterpreterCustomization twice counts the replicas" in " ".join(found["notes"])
    [row] = found["bindings"]
    assert (row["effect"], row["held"]["by"], row["held"]["targets"]) == ("not-judged", "replicas", [])


def test_customizations_that_may_not_be_read_are_named(
    server: FakeApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.fault(
        path="interpretercustomizations", answer=status(403, "Forbidden", "customizations are forbidden")
    )

    assert plan(server, tmp_path, "--scale", "default/web=5", "-o", "json") in {0, 1}

    notes = " ".join(json.loads(capsys.readouterr().out)["notes"])
    assert "whether a ResourceInterpreterCustomization counts replicas otherwise is not known" in notes


def test_policies_that_may_not_be_read_are_a_warning(
    server: FakeApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.fault(method="LIST", path="policies", answer=status(403, "Forbidden", "policies are forbidden"))

    assert plan(server, tmp_path, "--cordon", "m1", "-o", "json") == 0
    assert "propagationpolicies: " in capsys.readouterr().err


COMMANDS: dict[str, list[str]] = {"plan": ["--cordon", "m1"], "survive": [], "rebalance": ["--max-moves=9"]}
WHAT_CONTROLLERS_DO = "what its controllers do is computed as those of Karmada v1.18.2 do it"


def serve_bindings_of(server: FakeApiServer, spec: dict[str, Any]) -> None:
    """Serve the OpenAPI document of bindings of a version."""
    url = "/openapi/v3/apis/work.karmada.io/v1alpha2"
    listed = {"paths": {url.removeprefix("/openapi/v3/"): {"serverRelativeURL": f"{url}?hash=1"}}}
    for path, body in (("/openapi/v3$", listed), (url, document(spec))):
        server.fault(path=path, answer=Answer(body=json.dumps(body).encode()))


OF_OLDER = "the control plane serves the bindings of Karmada 1.17 (/openapi/v3); "
NOT_KNOWN = "which version of Karmada the control plane serves is not known: /openapi/v3: no documents; "


@pytest.mark.parametrize(
    ("name", "spec", "note"),
    [
        *((name, OF_1_17, OF_OLDER) for name in COMMANDS),
        ("plan", OF_1_18, ""),
        ("plan", None, NOT_KNOWN),
    ],
    ids=[*(f"1.17-{name}" for name in COMMANDS), "1.18-plan", "forbidden-plan"],
)
def test_another_version_than_that_of_the_known_controllers_has_a_note(
    server: FakeApiServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    spec: dict[str, Any] | None,
    note: str,
) -> None:
    if spec is None:
        server.fault(path="/openapi/v3$", answer=status(403, "Forbidden", "no documents"))
    else:
        serve_bindings_of(server, spec)
    config = write_kubeconfig(server, tmp_path / "config")

    assert command.main([name, "--kubeconfig", str(config), "-o", "json", *COMMANDS[name]]) in {0, 1}

    notes = json.loads(capsys.readouterr().out)["notes"]
    assert [each for each in notes if each.endswith(WHAT_CONTROLLERS_DO)] == (
        [f"{note}{WHAT_CONTROLLERS_DO}"] if note else []
    )


@pytest.mark.parametrize(("decisions_of", "has_note"), [("1.18", True), ("1.19", False)])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_control_plane_of_1_19_has_a_note_if_decisions_are_of_another(
    server: FakeApiServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    decisions_of: str,
    has_note: bool,
) -> None:
    serve_bindings_of(server, OF_1_19)
    config, flag = write_kubeconfig(server, tmp_path / "config"), f"-decisions-of={decisions_of}"
    flags = [f"--current{flag}"] if name == "plan" else [f"-{flag}"]
    arguments = [name, "--kubeconfig", str(config), "-o", "json", *COMMANDS[name], *flags]
    if name == "plan":
        arguments.append(f"-{flag}")
    assert command.main(arguments) in {0, 1}
    notes = [each for each in json.loads(capsys.readouterr().out)["notes"] if "serves the bindings" in each]
    assert bool(notes) is has_note
    for note in notes:
        assert note.endswith("decisions are those of 1.18 (--decisions-of=1.19 decides as it does)")


@pytest.mark.parametrize(("spec", "effect"), [(OF_1_18, "moved"), (OF_1_19, "held")])
def test_the_detector_of_1_19_does_not_update_what_names_a_missing_priority_class(
    server: FakeApiServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    spec: dict[str, Any],
    effect: str,
) -> None:
    """Whatever decides: the gate of karmada-controller-manager is that of the version that is served."""
    serve_bindings_of(server, spec)
    named = policy("p")
    named["spec"]["schedulePriority"] = {
        "priorityClassSource": "KubePriorityClass",
        "priorityClassName": "gold",
    }
    server.put(named)
    listed = {"kind": "PriorityClassList", "apiVersion": "scheduling.k8s.io/v1"}
    classes = listed | {"metadata": {"resourceVersion": "1"}, "items": []}
    server.fault(path="priorityclasses", answer=Answer(body=json.dumps(classes).encode()))

    assert plan(server, tmp_path, "--scale", "default/web=5", "-o", "json") in {0, 1}

    [row] = json.loads(capsys.readouterr().out)["bindings"]
    assert row["effect"] == effect


# --- schedulers, quotas and templates ---


def edited(tmp_path: Path, *selectors: dict[str, Any]) -> str:
    """Write the policy with other selectors; return the path."""
    found = copy.deepcopy(policy("p"))
    found["spec"]["resourceSelectors"] = list(selectors)
    path = tmp_path / "p.yaml"
    path.write_text(json.dumps(found))
    return str(path)


def test_nobody_decides_about_the_bindings_of_a_scheduler_whose_lease_has_run_out(
    server: FakeApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.put(lease("my-scheduler", datetime.now(UTC) - timedelta(minutes=8)))

    assert plan(server, tmp_path, "--without", "m1", "-o", "json") == 1

    fields = json.loads(capsys.readouterr().out)
    assert fields["counts"]["undecided"] == 1
    assert fields["blocked"][0]["object"] == "Cluster/m1"
    assert fields["bindings"][0]["held"]["by"] == "scheduler"


def test_a_quota_of_the_control_plane_refuses_what_is_beyond_it(
    server: FakeApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.put(
        {
            "apiVersion": "policy.karmada.io/v1alpha1",
            "kind": "FederatedResourceQuota",
            "metadata": {"namespace": "default", "name": "team"},
            "spec": {"overall": {"cpu": "1"}},
            "status": {"overallUsed": {"cpu": "200m"}},
        }
    )

    assert plan(server, tmp_path, "--scale", "default/web=50", "-o", "json") == 0

    fields = json.loads(capsys.readouterr().out)
    assert fields["counts"]["held"] == 1
    assert fields["failures"][0]["message"].startswith("quota default/team allows 1 cpu")
    assert not any("FederatedResourceQuota" in each for each in fields["notes"])


def test_quotas_that_may_not_be_read_are_a_note_where_something_grows(
    server: FakeApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.fault(
        method="LIST", path="federatedresourcequotas", answer=status(403, "Forbidden", "quotas are forbidden")
    )

    assert plan(server, tmp_path, "--scale", "default/web=5", "-o", "json") == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any(each.startswith("whether a FederatedResourceQuota refuses") for each in notes)

    assert plan(server, tmp_path, "--cordon", "m2", "-o", "json") == 0
    assert not any("FederatedResourceQuota" in each for each in json.loads(capsys.readouterr().out)["notes"])


def test_a_selector_that_matches_no_template_of_the_control_plane_is_a_warning(
    server: FakeApiServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.put(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "default", "name": "web"}}
    )
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "wbe"}

    assert plan(server, tmp_path, "-f", edited(tmp_path, selector), "-o", "json") == 1

    [warning] = json.loads(capsys.readouterr().out)["warnings"]
    assert (warning["code"], warning["nearest"]) == ("SelectorMatchesNothing", "web")
