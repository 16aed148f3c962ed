"""TestFilter admits clusters by name."""

from pathlib import Path

from karmada_scheduler.testing import binding, cluster, make, profiles, schedule
from testfilter import TestFilter

MEMBERS = [cluster(f"member{number}") for number in (1, 2, 3)]
CONFIG = Path(__file__).with_name("config.yaml")


def test_only_named_clusters_get_the_binding() -> None:
    run = schedule(binding("web").replicas(2), *MEMBERS, plugins=[make(TestFilter)])
    assert run.placed == {"member1": 2, "member2": 2}
    assert run.refused == {"member3": "cluster(s) are not admitted by TestFilter"}


def test_the_list_comes_from_the_configuration() -> None:
    [framework] = profiles(CONFIG, plugins=[TestFilter]).values()
    assert schedule(binding("web").replicas(2), *MEMBERS, plugins=framework).placed == {
        "member2": 2,
        "member3": 2,
    }


def test_the_condition_reports_that_no_cluster_is_admitted() -> None:
    run = schedule(binding("web").replicas(2), MEMBERS[2], plugins=[make(TestFilter, {"clusters": []})])
    assert run.condition.message == "0/1 clusters are available: 1 cluster(s) are not admitted by TestFilter."
