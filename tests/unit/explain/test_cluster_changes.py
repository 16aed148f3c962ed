"""When clusters changed, as the process has seen it."""

from karmada_pyscheduler.records.recorder import ClusterChangeTimes
from karmada_scheduler.testing import cluster


def test_spec_and_summary_have_their_own_times() -> None:
    now = [10.0]
    changes = ClusterChangeTimes(lambda: now[0])
    first = cluster("m1").capacity(cpu=4).build()
    changes.on_cluster(None, first)
    now[0] = 20.0
    labelled = cluster("m1").capacity(cpu=4).label("tier", "prod").build()
    changes.on_cluster(first, labelled)
    assert changes.times() == {"m1": (20.0, 10.0)}
    now[0] = 30.0
    changes.on_cluster(labelled, cluster("m1").capacity(cpu=5).label("tier", "prod").build())
    assert changes.times() == {"m1": (20.0, 30.0)}


def test_the_oldest_summary_of_known_clusters_counts() -> None:
    now = [10.0]
    changes = ClusterChangeTimes(lambda: now[0])
    changes.on_cluster(None, cluster("m1").build())
    now[0] = 20.0
    changes.on_cluster(None, cluster("m2").build())
    assert changes.oldest_summary(["m2", "m1", "m9"]) == 10.0
    changes.on_cluster(cluster("m1").build(), None)
    assert changes.oldest_summary(["m1"]) is None
    assert list(changes.times()) == ["m2"]
