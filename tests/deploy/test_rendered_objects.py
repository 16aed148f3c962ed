"""Real API servers accept everything that the chart renders, each side its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.deploy.chart import (
    CHART,
    EVERYTHING,
    PAGE,
    ROOT,
    SECURE_METRICS,
    HelmError,
    Object,
    Values,
    helm,
    objects,
    one,
    render,
)
from tests.deploy.programs import HELM_VERSIONS
from tools.controlplane import ControlPlane
from tools.controlplane.api import ApiError
from tools.controlplane.members import Member

pytestmark = pytest.mark.e2e
EXAMPLES = sorted((ROOT / "manifests" / "examples" / "host").glob("*.yaml"))
SETTINGS = {
    "": {},
    "everything": EVERYTHING,
    "page": PAGE,
    "secure metrics": SECURE_METRICS,
    "in its place": {"schedulerName": "default-scheduler"},
}


def _dry_run(plane: ControlPlane, text: str, kubeconfig: Path) -> int:
    arguments = ("apply", "--dry-run=server", "--validate=strict", "--filename=-")
    return plane.kubectl(*arguments, kubeconfig=kubeconfig, stdin=text).count("(server dry run)")


@pytest.mark.parametrize("values", SETTINGS.values(), ids=SETTINGS)
def test_the_host_accepts_its_side_with_strict_validation(
    plane: ControlPlane, host: Member, values: Values
) -> None:
    """ServiceMonitor and PrometheusRule, too: their CRDs are generated from Prometheus Operator's types."""
    assert _dry_run(plane, render(values), host.kubeconfig) == len(objects(values))


@pytest.mark.parametrize("values", SETTINGS.values(), ids=SETTINGS)
def test_the_karmada_api_server_accepts_its_side_with_strict_validation(
    plane: ControlPlane, values: Values
) -> None:
    text = render(values, side="karmada")
    assert _dry_run(plane, text, plane.kubeconfig) == len(objects(values, side="karmada"))


def test_the_manifests_are_accepted(plane: ControlPlane, host: Member) -> None:
    folder = ROOT / "manifests"
    assert _dry_run(plane, (folder / "host.yaml").read_text(), host.kubeconfig) == 2
    assert _dry_run(plane, (folder / "karmada.yaml").read_text(), plane.kubeconfig) == 4


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_for_the_host_is_accepted(plane: ControlPlane, host: Member, path: Path) -> None:
    assert _dry_run(plane, path.read_text(), host.kubeconfig) == 1


def test_strict_validation_refuses_a_typo(plane: ControlPlane, host: Member) -> None:
    with pytest.raises(RuntimeError, match="unknown field"):
        _dry_run(
            plane, render().replace("terminationGracePeriodSeconds", "terminationGrace"), host.kubeconfig
        )


def test_a_namespace_that_enforces_the_restricted_standard_admits_the_pod(host: Member) -> None:
    template = one(objects(), "Deployment")["spec"]["template"]

    def create(spec: Object) -> None:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "probe", "namespace": "karmada-system"},
            "spec": spec,
        }
        host.client.request(
            "POST", "/api/v1/namespaces/karmada-system/pods", body=pod, params={"dryRun": "All"}
        )

    create(template["spec"])
    with pytest.raises(ApiError, match='violates PodSecurity "restricted'):
        create({**template["spec"], "securityContext": {}})


@pytest.mark.parametrize("side", ["host", "karmada"])
@pytest.mark.parametrize("name", ["my-scheduler", "default-scheduler"])
def test_the_notes_name_the_next_steps(side: str, name: str, plane: ControlPlane, host: Member) -> None:
    settings = [f"--set=side={side},schedulerName={name}", "--dry-run=server", "--namespace=karmada-system"]
    kubeconfig = host.kubeconfig if side == "host" else plane.kubeconfig
    _, _, notes = helm("install", "mine", str(CHART), *settings, kubeconfig=kubeconfig).partition("NOTES:\n")
    wanted = {
        ("host", "my-scheduler"): "get lease my-scheduler",
        ("host", "default-scheduler"): "scale deployment/karmada-scheduler --replicas=0",
        ("karmada", "my-scheduler"): "User system:karmada:my-scheduler",
        ("karmada", "default-scheduler"): "User system:karmada:default-scheduler",
    }
    assert wanted[side, name] in notes
    assert ("system:masters" in notes) == (side == "host")


@pytest.mark.parametrize("major", HELM_VERSIONS)
@pytest.mark.parametrize(
    ("values", "there", "not_there"),
    [
        ("replicas=0,web.enabled=true", "this is the page alone. Wait", "get lease"),
        ("web.enabled=true", "port-forward deployment/mine-web 10354", "the page alone"),
        ("replicas=1,leaderElection.enabled=false", "get events -A --field-selector source=my-", "get lease"),
        (
            "schedulerName=default-scheduler,leaderElection.leaseName=other",
            "get lease other",
            "both have the",
        ),
        (
            "side=karmada,rbac.subjects[0].kind=Group,rbac.subjects[0].name=a",
            "--as anybody --as-group a",
            "page",
        ),
        (
            (
                "side=karmada,web.enabled=true,rbac.subjects[0].kind=ServiceAccount,rbac.subjects[0].name=a,"
                "rbac.subjects[0].namespace=b"
            ),
            "--as system:serviceaccount:b:a",
            "helm test",
        ),
    ],
)
def test_the_notes_fit_the_values(
    values: str, there: str, not_there: str, major: int, plane: ControlPlane, host: Member
) -> None:
    settings = [
        f"--set={values},web.kubeconfig.secretName=web",
        "--dry-run=server",
        "--namespace=karmada-system",
    ]
    kubeconfig = plane.kubeconfig if "side=karmada" in values else host.kubeconfig
    answer = helm("install", "mine", str(CHART), *settings, kubeconfig=kubeconfig, major=major)
    notes = answer.partition("NOTES:\n")[2]
    assert there in notes
    assert not_there not in notes


@pytest.mark.parametrize("side", ["host", "karmada"])
def test_a_side_cannot_be_installed_into_the_other_api_server(
    side: str, plane: ControlPlane, host: Member
) -> None:
    other = plane.kubeconfig if side == "host" else host.kubeconfig
    with pytest.raises(HelmError, match=f"side is {side}, and this is"):
        helm(
            "install",
            "mine",
            str(CHART),
            f"--set=side={side}",
            "--namespace=karmada-system",
            kubeconfig=other,
        )


@pytest.mark.parametrize(
    "subject", ["kind=User", "kind=Group", "kind=ServiceAccount,rbac.subjects[0].namespace=karmada-system"]
)
def test_the_check_of_the_notes_says_yes_about_each_kind_of_subject_once_it_may(
    subject: str, plane: ControlPlane
) -> None:
    options = ("--namespace=karmada-system",)
    settings = (
        f"--set=side=karmada,schedulerName=noted,rbac.subjects[0].name=reader,rbac.subjects[0].{subject}"
    )
    notes = helm("install", "noted", str(CHART), settings, *options, kubeconfig=plane.kubeconfig)
    [command] = re.findall(r"kubectl (auth can-i .*)", notes)
    try:
        assert plane.kubectl(*command.split()).strip() == "yes"
    finally:
        helm("uninstall", "noted", *options, kubeconfig=plane.kubeconfig)
    with pytest.raises(RuntimeError, match="status 1"):
        plane.kubectl(*command.split())
