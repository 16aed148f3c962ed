"""Helm 3 and Helm 4 make the same of the chart, also as a subchart, and of both `helm test`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.chart import (
    CHART,
    EVERYTHING,
    SECURE_METRICS,
    TEAM_PAGE,
    HelmError,
    Object,
    Values,
    helm,
    objects,
    one,
    pod_of,
    profiles,
    read,
    render,
)
from tests.deploy.programs import HELM_VERSIONS

BOTH = pytest.mark.parametrize("major", HELM_VERSIONS)
OWN_IDS = {"runAsUser": "", "runAsGroup": "", "fsGroup": ""}


@BOTH
def test_each_helm_is_the_version_of_its_pin(major: int) -> None:
    assert helm("version", "--template={{.Version}}", major=major) == HELM_VERSIONS[major]


@pytest.mark.parametrize("side", ["host", "karmada"])
@pytest.mark.parametrize(
    "values", [{}, EVERYTHING, TEAM_PAGE, SECURE_METRICS], ids=["default", "everything", "page", "metrics"]
)
def test_both_render_the_same_and_no_two_objects_share_a_name(values: Values, side: str) -> None:
    found = objects(values, side=side)
    assert found == objects(values, side=side, major=4)
    names = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in found]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("values", [{}, TEAM_PAGE], ids=["default", "page"])
def test_helm_4_lints_without_a_finding(values: Values) -> None:
    answer = helm("lint", "--strict", str(CHART), "--values=-", stdin=json.dumps(dict(values)), major=4)
    assert not re.search(r"\[(WARNING|ERROR)\]|level=(WARN|ERROR)", answer)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"repicas": 2}, "additional properties 'repicas' not allowed"),
        ({"metrics": None}, "missing property 'metrics'"),
        ({"plugins": ["*", "-TaintTolerations"]}, r"plugins has -TaintTolerations.*add TaintTolerations to image\.plugins"),
        (profiles({"plugins": {"filter": {"disabled": [{"name": "TaintTolerations"}]}}}), r"profiles\[0\]\.plugins\.filter\.disabled has TaintTolerations.*add TaintTolerations to image\.plugins"),
    ],
)  # fmt: skip
def test_helm_4_refuses_what_helm_3_does(values: Values, message: str) -> None:
    for major in HELM_VERSIONS:
        with pytest.raises(HelmError) as refusal:
            render(values, major=major)
        assert re.search(message, str(refusal.value), re.DOTALL)


def _parent(folder: Path, *aliases: str, **values: Any) -> Path:
    """Write a chart that has this one as its dependency, once for each alias, with values of its own for them."""
    shutil.copytree(CHART, folder / "charts" / CHART.name)
    entry = {"name": CHART.name, "version": "0.1.0", "repository": ""}
    listed = [{**entry, "alias": alias} for alias in aliases] or [entry]
    chart = {"apiVersion": "v2", "name": "parent", "version": "1.0.0", "dependencies": listed}
    (folder / "Chart.yaml").write_text(yaml.safe_dump(chart))
    (folder / "values.yaml").write_text(yaml.safe_dump(dict.fromkeys(aliases or (CHART.name,), values)))
    return folder


def _of(chart: Path, major: int) -> list[Object]:
    options = ("--namespace=karmada-system", "--skip-tests")
    return read(helm("template", "platform", str(chart), *options, major=major))


@BOTH
def test_values_of_a_parent_chart_are_unset_without_null(major: int, tmp_path: Path) -> None:
    """Helm 4 keeps a default of a subchart that a parent's values.yaml sets to null."""
    found = _of(
        _parent(tmp_path, podSecurityContext=OWN_IDS, podDisruptionBudget={"maxUnavailable": 1}), major
    )
    assert one(found, "Deployment")["metadata"]["name"] == "platform-karmada-pyscheduler"
    assert pod_of(found)["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    budget = one(found, "PodDisruptionBudget")["spec"]
    assert (budget["maxUnavailable"], "minAvailable" in budget) == (1, False)


@BOTH
def test_two_schedulers_of_one_parent_have_names_of_their_own(major: int, tmp_path: Path) -> None:
    found = _of(_parent(tmp_path, "blue", "green"), major)
    names = [each["metadata"]["name"] for each in found if each["kind"] == "Deployment"]
    assert sorted(names) == ["platform-blue", "platform-green"]
    selectors = [
        each["spec"]["selector"]["matchLabels"]["app.kubernetes.io/name"]
        for each in found
        if each["kind"] == "Deployment"
    ]
    assert sorted(selectors) == ["blue", "green"]


def _tests(values: Values, major: int) -> list[Object]:
    """Return the objects of `helm test`."""
    options = ("--namespace=karmada-system", "--values=-")
    text = helm("template", "my-scheduler", str(CHART), *options, stdin=json.dumps(dict(values)), major=major)
    return [
        each for each in read(text) if each["metadata"].get("annotations", {}).get("helm.sh/hook") == "test"
    ]


@BOTH
@pytest.mark.parametrize("replicas", [0, 2])
@pytest.mark.parametrize("page", [{}, TEAM_PAGE], ids=["no page", "page"])
def test_helm_test_asks_the_scheduler_and_the_page_if_they_have_pods(
    major: int, replicas: int, page: Values
) -> None:
    found = _tests({**page, "replicas": replicas, "podDisruptionBudget": {}}, major)
    rendered = objects(page)
    wanted = {
        f"my-scheduler{end}-test": one(rendered, "Deployment", f"my-scheduler{end}")["spec"]["selector"]
        for end, is_there in (("", replicas), ("-web", page))
        if is_there
    }

    services = [each for each in found if each["kind"] == "Service"]
    assert {
        each["metadata"]["name"]: {"matchLabels": each["spec"]["selector"]} for each in services
    } == wanted
    pods = [each["spec"]["containers"][0]["args"] for each in found if each["kind"] == "Pod"]
    assert pods == ([["10351", *(f"{name}.karmada-system.svc" for name in wanted)]] if wanted else [])


@BOTH
def test_the_pod_of_helm_test_has_no_rights_and_the_security_context_of_the_others(major: int) -> None:
    found = _tests({}, major)
    pod, scheduler = one(found, "Pod"), one(objects(), "Deployment")["spec"]["template"]
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert not {"volumes", "serviceAccountName"} & pod["spec"].keys()
    assert pod["spec"]["securityContext"] == scheduler["spec"]["securityContext"]
    [own], [other] = pod["spec"]["containers"], scheduler["spec"]["containers"]
    assert (own["image"], own["securityContext"]) == (other["image"], other["securityContext"])
    service = one(found, "Service")
    assert own["args"] == [str(service["spec"]["ports"][0]["port"]), "my-scheduler-test.karmada-system.svc"]
    selected = service["spec"]["selector"].items()
    assert selected <= scheduler["metadata"]["labels"].items()
    assert not selected <= pod["metadata"]["labels"].items()
