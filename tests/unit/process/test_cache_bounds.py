"""All caches of the process are known, and each has a bound in bytes."""

from __future__ import annotations

import ast
import importlib
import operator
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Final

import pytest

import karmada_advisor
import karmada_pyscheduler
import karmada_scheduler
import karmada_scheduler_plugins
from karmada_advisor.web.pages import KEPT_ROWS
from karmada_scheduler.api.content_cache import MAX_BYTES, MEBI, cached_by_content, interned, interned_map
from karmada_scheduler.framework.runtime.filter_cache import MAX_ENTRIES
from karmada_scheduler.records.refusals import _MAX_CACHED as REFUSALS

CLUSTERS: Final = 5_000
BINDINGS: Final = 60_000
"""The largest fleet that the bounds are for."""
POINTER: Final = 8
ENTRY: Final = 128
"""An entry of a dict with a short key."""
NAME: Final = 253

FIELDS: Final = 2
"""Fields of a Cluster with a cache of contents."""
CONTENT: Final = "cached_by_content"
OTHERS: Final[dict[str, int]] = {
    # names and numbers, longer ones are not cached
    "api.binding_manifest:_shared_target": (1 << 15) * (NAME + ENTRY),
    "api.binding_manifest:_shared_health": (1 << 15) * (NAME + ENTRY),
    "api.binding_manifest:_shared_replicas": (1 << 15) * (8 * POINTER + ENTRY),
    "api.content_cache:_interned_map": (1 << 13) * 4096,
    "records.record:_to_the_second": 4 * ENTRY,
    "logs:_second": ENTRY,
    # of addresses, users and refused tokens, for the page, and for the readers of records and metrics each
    "rate_limit:_buckets": 3 * 10_000 * (NAME + 3 * ENTRY),
    # code
    "config.structure:_converter": MEBI,
    "views.fields:_names_of": MEBI,
    "api.object_fields:keys_of": MEBI,
    "web.pages:_environment": 4 * MEBI,
    "process.memory:_malloc_trim": ENTRY,
    "whatif.placement_tests.cel:expressions": MEBI,
    "framework.runtime.plugin_call:_waiting": ENTRY,
    # the objects of a page or of an explanation, of which there are one or two states
    "web.fleet:clusters_of": 2 * CLUSTERS * 1024,
    "api_enablement:_serving": CLUSTERS * (NAME + POINTER),
    "explain.causes_failure:_values_of": CLUSTERS * (NAME + POINTER),
    "web.answer_worker:_kept": 32 * MEBI,
    "web.state:rendered_rows": KEPT_ROWS * 4096,
    # rows of lists that viewers see, which later ones replace, and where they are in lists
    "web.scoped_fleet:part": KEPT_ROWS * 4096,
    "web.scoped_fleet:_kept": (20_000 + 2 * BINDINGS) * 12 * ENTRY,
    "web.watched:_rendered_rows": KEPT_ROWS * 4096,
    "web.answer_worker:_turns": 1000 * ENTRY,
    "web.quotas:_kept": 200 * 50 * (4 * NAME + ENTRY),
    # bounded by their own number of bytes, which a flag sets
    "records.recorder:_records": 64 * MEBI,
    # bounded by entries of clusters
    "core.ordering.cache:_caches": MAX_ENTRIES * POINTER,
    "core.ordering.cache:shared": MAX_ENTRIES * POINTER,
    "core.ordering.columnar:scored_regions": MAX_ENTRIES * POINTER,
    "core.select_clusters:_selected_groups": MAX_ENTRIES * POINTER,
    "framework.runtime.keyed_results:_filter_results": MAX_ENTRIES * POINTER,
    "framework.runtime.keyed_results:_results": MAX_ENTRIES * POINTER,
    "api.content_cache:_values": MAX_ENTRIES * POINTER,
    "records.refusals:_cache": REFUSALS * (NAME + POINTER),
    "estimator.capacity:_units": 32 * CLUSTERS * POINTER,
    "estimator.general:_columns": 32 * CLUSTERS * POINTER,
    "strict_priority:_same": 32 * CLUSTERS * 8 * POINTER,
    # one entry per profile
    "core.schedule:_caches": ENTRY,
    # one entry per object that exists
    "cache.store:_tombstones": 10_000 * ENTRY,
    "informer.workloads.metadata_store:_recent": 1_000 * 4096,
    "core.cluster_changes:_affected_cache": BINDINGS * ENTRY,
    "core.cluster_changes:_may_take_cache": BINDINGS * ENTRY,
    # for the seconds of ``--scheduler-estimator-answer-ttl``
    "estimator.accurate:_sent": CLUSTERS * 4096,
    # 4,096 Events of at most ten messages of 1,024 characters
    "client.event_correlator:_entries": 4096 * 10 * 1024,
    # in the page, and for the readers of records and metrics each: 1,000 users of 64 KiB at most, and 10,000 hashes
    "client.reviews:_kept": 1_000 * 65_536 + 10_000 * ENTRY,
    # one entry per class of the API, at most 40
    "api.object_fields:_fields_of": 40 * ENTRY,
    # in commands and the page only: contexts with up to 200 certificates
    "fleet.process_http:tls_of": 4 * 2**20,
    # the content cache itself, counted where it is used
    "api.content_cache:of_long": 0,
}
"""By module and name: the bytes of a cache that is no content cache."""

_PACKAGES = (karmada_scheduler, karmada_pyscheduler, karmada_advisor, karmada_scheduler_plugins)
_CLASSES = {"OrderedDict", "LRUCache", "SnapshotCache", "WeakKeyDictionary", "WeakValueDictionary"}


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for package in _PACKAGES:
        assert package.__file__ is not None
        root = Path(package.__file__).parent
        for path in sorted(root.rglob("*.py")):
            name = ".".join(path.relative_to(root).with_suffix("").parts)
            yield f"{package.__name__}.{name}", ast.parse(path.read_text())


def _decorated(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the name and the decorator of each function with a cache."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                called = decorator.func if isinstance(decorator, ast.Call) else decorator
                kind = ast.unparse(called).rpartition(".")[2]
                if kind in ("cache", "lru_cache", CONTENT):
                    yield node.name, kind


def _assigned(tree: ast.Module) -> Iterator[str]:
    """Yield the name of each variable and attribute that holds a cache: by its class, or a dict by its name."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        name = ast.unparse(target).rpartition(".")[2]
        classes = {ast.unparse(each.func) for each in ast.walk(node.value) if isinstance(each, ast.Call)}
        is_dict = isinstance(node.value, ast.Dict) or "dict" in classes
        classes |= {ast.unparse(each.value) for each in ast.walk(node.value) if isinstance(each, ast.keyword)}
        if classes & _CLASSES or (is_dict and "cache" in name):
            yield name


@pytest.fixture(scope="module")
def caches() -> dict[str, str]:
    """Return the kind of each cache by module and name."""
    found: dict[str, str] = {}
    for module, tree in _modules():
        _, _, short = module.partition(".")
        found |= {f"{short}:{name}": kind for name, kind in _decorated(tree)}
        found |= {f"{short}:{name}": "object" for name in _assigned(tree)}
    return found


def test_every_cache_has_a_bound_in_bytes(caches: dict[str, str]) -> None:
    others = {name for name, kind in caches.items() if kind != CONTENT}
    assert others == OTHERS.keys(), "use cached_by_content for texts, or add the bound of a new cache"


def _content_bound(name: str) -> int:
    module, _, function = name.partition(":")
    folder = module.replace(".", "/") + ".py"
    (root,) = (root for root in _PACKAGES if (Path(root.__path__[0]) / folder).exists())
    found = getattr(importlib.import_module(f"{root.__name__}.{module}"), function, None)
    if function == "read_json":  # one for each field of a cluster
        return FIELDS * (512 * 4096 + 8 * MEBI)
    bound: int = getattr(found, MAX_BYTES)
    return bound


def test_all_texts_that_are_cached_together_take_a_fifth_of_the_memory_limit_of_the_chart(
    caches: dict[str, str],
) -> None:
    bounds = {name: _content_bound(name) for name, kind in caches.items() if kind == CONTENT}
    assert len(bounds) >= 10
    assert all(bounds.values())
    assert reduce(operator.add, bounds.values()) < 1024 * MEBI / 5


def test_a_content_cache_has_its_bound() -> None:
    @cached_by_content(entries=3, short=5, long_bytes=100)
    def read(text: str) -> str:
        return text

    assert getattr(read, MAX_BYTES) == 115


@pytest.mark.parametrize("names", [1, 100])
def test_a_map_with_long_names_is_not_cached_as_a_whole(names: int) -> None:
    found = {f"{number}".zfill(5000 // names): "" for number in range(names)}
    assert interned_map(dict(found)) is not interned_map(dict(found))
    assert [*interned_map(found)] == [*found]
    assert all(interned(name) is name for name in interned_map(found))
