"""The object that orders the queue of several profiles."""

from __future__ import annotations

from pathlib import Path

import yaml

from karmada_scheduler.framework import Handle, QueuedBinding
from karmada_scheduler.testing import FakeHandle, binding, profiles, queue_sort


class Counts:
    """Keeps its profile and the changes."""

    name = "Counts"

    def __init__(self, args: object, handle: Handle) -> None:
        self.profile, self.seen = handle.profile, list[object]()

    def observe(self, old: object, new: object, /) -> None:
        self.seen.append(new)

    def less(self, a: QueuedBinding, b: QueuedBinding, /) -> bool:
        return a.since < b.since


def test_of_several_profiles_the_object_of_the_first_name_in_alphabetical_order_sorts(tmp_path: Path) -> None:
    sorts = {"queueSort": {"enabled": [{"name": "Counts"}], "disabled": [{"name": "PrioritySort"}]}}
    (tmp_path / "config.yaml").write_text(
        yaml.safe_dump(
            {
                "apiVersion": "pyscheduler.karmada.io/v1alpha1",
                "kind": "KarmadaSchedulerConfiguration",
                "profiles": [{"schedulerName": name, "plugins": sorts} for name in ("zulu", "alpha", "mike")],
            }
        )
    )
    found = profiles(tmp_path / "config.yaml", plugins=[Counts])
    plugin = queue_sort(found)
    assert plugin is found["alpha"].plugins.queue_sort[0]
    assert isinstance(plugin, Counts)
    assert plugin.profile == "alpha"


def test_the_objects_of_all_profiles_get_the_same_changes(tmp_path: Path) -> None:
    handle = FakeHandle()
    found = [profiles(plugins=[Counts], handle=handle) for _ in range(2)]
    handle.put(binding("web").build())
    one, other = (queue_sort(each) for each in found)
    assert isinstance(one, Counts)
    assert isinstance(other, Counts)
    assert one is not other
    assert one.seen == other.seen
    assert one.seen[-1] is not None
