"""SpaceCloud: a cluster has space for so many workloads."""

from pathlib import Path

import pytest
from karmada_scheduler.config.problems import ConfigError
from karmada_scheduler.testing import FakeHandle, binding, cluster, make, profiles, schedule
from spacecloud import SpaceCloud

FULL = "cluster(s) had no space for another workload"
CONFIG = Path(__file__).with_name("config.yaml")


def test_a_full_cluster_is_refused() -> None:
    handle = FakeHandle(binding("a").on("m1"), binding("b").on("m1", "m2"))
    run = schedule(
        binding("web"), cluster("m1"), cluster("m2"), plugins=[make(SpaceCloud, {"spaces": 2}, handle=handle)]
    )
    assert run.placed == {"m2": 0}
    assert run.refused == {"m1": FULL}


def test_a_label_of_the_cluster_goes_first() -> None:
    handle = FakeHandle(binding("a").on("m1"))
    plugin = make(SpaceCloud, {"spaces": 1}, handle=handle)
    roomy = cluster("m1").label("spacecloud.example.com/spaces", "2")
    assert schedule(binding("web"), roomy, plugins=[plugin]).placed == {"m1": 0}


def test_a_workload_keeps_its_space() -> None:
    plugin = make(SpaceCloud, {"spaces": 0})
    assert schedule(binding("web").on("m1"), cluster("m1"), plugins=[plugin]).placed == {"m1": 0}


def test_what_is_decided_and_not_yet_written_takes_space() -> None:
    plugin = make(SpaceCloud, {"spaces": 1})
    on_its_way = binding("other").on("m1")
    run = schedule(binding("web"), cluster("m1"), plugins=[plugin], in_flight=[on_its_way])
    assert run.refused == {"m1": FULL}
    assert run.methods_of("SpaceCloud") == ["pre_filter", "add_binding"]


def test_what_moves_is_not_counted_twice() -> None:
    moves = binding("other").on("m1")
    plugin = make(SpaceCloud, {"spaces": 2}, handle=FakeHandle(moves))
    run = schedule(binding("web"), cluster("m1"), plugins=[plugin], in_flight=[moves])
    assert run.placed == {"m1": 0}


def test_what_moves_away_leaves_its_space() -> None:
    handle = FakeHandle(binding("other").on("m1"))
    plugin = make(SpaceCloud, {"spaces": 1}, handle=handle)
    members = cluster("m1"), cluster("m2")
    run = schedule(
        binding("web"), *members, plugins=[plugin], handle=handle, in_flight=[binding("other").on("m2")]
    )
    assert run.placed == {"m1": 0}
    assert run.refused == {"m2": FULL}


def test_only_its_own_profile_has_it() -> None:
    handle = FakeHandle(*(binding(name).on("m1") for name in "abc"))
    default, space = profiles(CONFIG, plugins=[SpaceCloud], handle=handle).values()
    assert schedule(binding("web"), cluster("m1"), plugins=default).placed == {"m1": 0}
    assert schedule(binding("web"), cluster("m1"), plugins=space, handle=handle).refused == {"m1": FULL}


def test_an_error_names_the_invalid_argument() -> None:
    with pytest.raises(ConfigError, match=r"args: spaces must be 0 or more"):
        make(SpaceCloud, {"spaces": -1})
