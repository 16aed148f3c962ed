"""Two releases of the chart in one namespace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.deploy.chart import (
    CHART,
    SECURE_METRICS,
    TEAM_PAGE,
    HelmError,
    Values,
    container,
    helm,
    objects,
    one,
)
from tests.deploy.programs import HELM_VERSIONS
from tools.controlplane import ControlPlane
from tools.controlplane.members import Member

OTHER = "other-scheduler"
PREFIX = "--leader-elect-resource-name="


def _names(values: Values, release: str, side: str) -> set[tuple[str, str]]:
    found = objects(values, side=side, release=release)
    return {(each["kind"], each["metadata"]["name"]) for each in found}


@pytest.mark.parametrize("values", [{}, TEAM_PAGE, SECURE_METRICS], ids=["default", "page", "metrics"])
@pytest.mark.parametrize("side", ["host", "karmada"])
def test_with_another_scheduler_name_they_share_no_object_no_pod_and_no_lease(
    values: Values, side: str
) -> None:
    second = {**values, "schedulerName": OTHER, "config": {}}
    assert not _names(values, "first", side) & _names(second, "second", side)
    if side == "host":
        first, other = (
            one(objects(each, release=release), "PodDisruptionBudget", release)["spec"]["selector"]
            for release, each in (("first", values), ("second", second))
        )
        assert first != other


def test_with_the_same_scheduler_name_one_of_them_waits_for_the_lease_of_the_other() -> None:
    leases = [
        [each for each in container(objects(values, release=release))["args"] if each.startswith(PREFIX)]
        for release, values in (("first", {}), ("second", {}), ("third", {"schedulerName": OTHER}))
    ]
    assert leases == [[f"{PREFIX}my-scheduler"], [f"{PREFIX}my-scheduler"], [f"{PREFIX}{OTHER}"]]


@contextmanager
def _installed(release: str, *settings: str, kubeconfig: Path, major: int) -> Iterator[None]:
    options = ("--namespace=karmada-system",)
    helm("install", release, str(CHART), *settings, *options, kubeconfig=kubeconfig, major=major)
    try:
        yield
    finally:
        helm("uninstall", release, *options, kubeconfig=kubeconfig, major=major)


@pytest.mark.e2e
@pytest.mark.parametrize("major", HELM_VERSIONS)
def test_helm_installs_both_and_refuses_the_second_permissions_of_one_scheduler_name(
    plane: ControlPlane, host: Member, major: int
) -> None:
    with ExitStack() as releases:

        def install(release: str, *settings: str, kubeconfig: Path) -> None:
            releases.enter_context(_installed(release, *settings, kubeconfig=kubeconfig, major=major))

        install("first", kubeconfig=host.kubeconfig)
        install("second", f"--set=schedulerName={OTHER}", kubeconfig=host.kubeconfig)
        with pytest.raises(HelmError, match=r"cannot re-?use a name that is still in use"):
            install("first", kubeconfig=host.kubeconfig)

        install("first", "--set=side=karmada", kubeconfig=plane.kubeconfig)
        owned = r'ClusterRole "system:karmada:my-scheduler".* cannot be imported .*current value is "first"'
        with pytest.raises(HelmError, match=owned):
            install("second", "--set=side=karmada", kubeconfig=plane.kubeconfig)
        install("third", f"--set=side=karmada,schedulerName={OTHER}", kubeconfig=plane.kubeconfig)
