"""A plugin with ``observe`` follows the caches of the scheduler, and so does the version that replaces it."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

from karmada_pyscheduler.cache.bindings import BindingCache
from karmada_pyscheduler.cache.clusters import ClusterCache
from karmada_pyscheduler.plugin_loader.handle import HandleBackend
from karmada_scheduler.config.features import FeatureGates
from karmada_scheduler.framework.handle import PluginHandle
from karmada_scheduler.framework.runtime.waiting_bindings import WaitingBindings
from karmada_scheduler.plugin_loader import PluginSetup
from karmada_scheduler.structs import replace
from karmada_scheduler.testing import binding, cluster
from karmada_scheduler_plugins.registry import in_tree

SOURCE = """
from karmada_scheduler.framework import SUCCESS

class Follows:
    name = "Follows"

    def __init__(self, args, handle):
        self.version, self.seen = {version}, []

    def filter(self, context, /):
        return SUCCESS

    def observe(self, old, new, /):
        self.seen.append((old and old.resource_version, new and new.resource_version))
"""


def test_a_new_version_of_the_file_gets_everything_and_then_the_changes(tmp_path: Path) -> None:
    bindings, clusters = BindingCache(), ClusterCache()
    backend = HandleBackend(bindings=bindings, clusters=clusters, waiting=WaitingBindings(), now=lambda: 0.0)
    file = tmp_path / "follows.py"
    file.write_text(SOURCE.format(version=1))
    setup = PluginSetup(
        in_tree(FeatureGates()), handle_for=backend.handle_for, directories=[tmp_path], packages=list
    )

    def plugin(built: Any) -> Any:
        [plugins] = built.by_name.values()
        return next(each for each in plugins.unique if each.name == "Follows")

    def put(version: int) -> None:
        bindings.put(replace(binding("web").build(), resource_version=str(version)))

    first = plugin(setup.start())
    put(1)
    clusters.put(replace(cluster("m1").build(), resource_version="5"))
    assert first.seen == [(None, None), (None, "1"), (None, "5")]
    file.write_text(SOURCE.format(version=2))
    built = setup.reload()
    assert built is not None
    second = plugin(built)
    put(2)  # between the load in a thread and the use
    assert second.version == 2
    assert second.seen == []
    built.start_observing()
    assert sorted(second.seen[1:]) == [(None, "2"), (None, "5")]
    before = len(first.seen)
    del built
    gc.collect()
    put(3)
    assert second.seen[-1] == ("2", "3")
    assert len(first.seen) == before  # the version that was replaced is not called any more


def test_the_plugins_of_all_profiles_share_a_mapping() -> None:
    backend = HandleBackend(
        bindings=BindingCache(), clusters=ClusterCache(), waiting=WaitingBindings(), now=lambda: 0.0
    )
    one, other = backend.handle_for("one"), backend.handle_for("other")
    one.shared["Counts"] = 3
    assert other.shared == {"Counts": 3}
    assert (one.is_dry_run, PluginHandle().is_dry_run) == (False, True)
