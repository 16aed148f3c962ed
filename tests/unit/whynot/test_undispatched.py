"""A remedy that puts replicas where dispatching is suspended says that they do not arrive there."""

from __future__ import annotations

from pathlib import Path

import pytest

from karmada_scheduler.testing import binding, cluster
from tests import commands
from tests.unit.plan.fleet import write
from tests.unit.rebalance.proposing import settled


@pytest.mark.parametrize(("listed", "is_said"), [("b", True), ("a", False)])
def test_each_remedy_says_that_dispatching_to_the_cluster_is_suspended(
    tmp_path: Path, listed: str, is_said: bool
) -> None:
    made = settled(binding("web").replicas(4, cpu="1").dynamic_weight().names("a", "b").on(a=4)).manifest()
    made["spec"]["suspension"] = {"dispatchingOnClusters": {"clusterNames": [listed]}}
    files = write(tmp_path, clusters=[cluster(name).manifest() for name in "ab"], bindings=[made])

    found = commands.run("why-not", "web-deployment", "b", *files, "-o=json").fields["remedies"]

    text = "Dispatching to b is suspended: nothing new arrives there."
    assert found
    assert all((text in each["caution"]) is is_said for each in found)
