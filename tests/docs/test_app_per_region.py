"""AppPerRegion of docs/examples/apart: the workloads of other bindings decide."""

from __future__ import annotations

import pytest

from karmada_scheduler.framework.runtime.framework import Framework
from karmada_scheduler.testing import BindingBuilder, FakeHandle, binding, cluster, profiles, schedule
from tests.docs.conftest import EXAMPLES

CLUSTERS = [cluster("m1").region("a"), cluster("m2").region("a"), cluster("m3").region("b")]
REFUSED = "cluster(s) were in a region that has this app"


def of(name: str, app: str = "shop") -> BindingBuilder:
    return binding(name).workload(labels={"app": app}).replicas(1).aggregated()


def plugins(handle: FakeHandle) -> Framework:
    [framework] = profiles(plugin_dir=EXAMPLES / "apart", handle=handle).values()
    return framework


def test_a_region_that_has_a_deployment_of_the_app_is_refused() -> None:
    handle = FakeHandle(of("web").on(m1=1), of("other", app="blog").on(m3=1))
    run = schedule(of("api"), *CLUSTERS, plugins=plugins(handle), handle=handle)
    assert run.placed == {"m3": 1}
    assert run.refused == {"m1": REFUSED, "m2": REFUSED}


def test_a_workload_that_is_decided_and_not_yet_written_counts() -> None:
    handle = FakeHandle(of("web").on(m3=1))
    moved = [of("web").on(m1=1)]
    run = schedule(of("api"), *CLUSTERS, plugins=plugins(handle), handle=handle, in_flight=moved)
    assert run.placed == {"m3": 1}


@pytest.mark.parametrize("other", [binding("web").on(m1=1), of("web", app="").on(m1=1)])
def test_an_unknown_workload_or_one_without_an_app_does_not_count(other: BindingBuilder) -> None:
    handle = FakeHandle(other)
    run = schedule(of("api"), *CLUSTERS, plugins=plugins(handle), handle=handle)
    assert run.refused == {}
