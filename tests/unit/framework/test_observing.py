"""Plugins with ``observe`` follow bindings and clusters."""

from __future__ import annotations

import gc
import logging
from typing import Any

import pytest

from karmada_scheduler.framework import SUCCESS, BindingKey
from karmada_scheduler.framework.runtime.observing import AGAIN_SECONDS, Observing
from karmada_scheduler.testing import FakeHandle, binding, cluster, make, snapshot


class Follows:
    """Keeps the changes."""

    name = "Follows"
    fails = False

    def __init__(self, args: object, handle: object) -> None:
        self.seen: list[tuple[str, str]] = []

    def filter(self, context: object, /) -> Any:
        return SUCCESS

    def observe(self, old: Any, new: Any, /) -> None:
        if Follows.fails:
            raise LookupError("boom")
        self.seen.append((_name(old), _name(new)))


def _name(found: Any) -> str:
    key = getattr(found, "key", None)
    return key.name if isinstance(key, BindingKey) else getattr(found, "name", "-")


@pytest.fixture(autouse=True)
def _works() -> None:
    Follows.fails = False


def test_it_gets_everything_that_exists_first_and_then_every_change() -> None:
    handle = FakeHandle(binding("a"))
    handle.show(snapshot(cluster("m1")))
    plugin = make(Follows, handle=handle)
    assert plugin.seen == [("-", "-"), ("-", "m1"), ("-", "a-deployment")]
    del plugin.seen[:]
    handle.put(binding("b").build())
    handle.put(binding("b").replicas(3).build())
    handle.show(snapshot(cluster("m2")))
    assert plugin.seen == [("-", "b-deployment"), ("b-deployment",) * 2, ("m1", "-"), ("-", "m2")]


def test_nothing_is_passed_on_before_it_starts_and_everything_once(caplog: pytest.LogCaptureFixture) -> None:
    handle = FakeHandle(binding("a"))
    plugin = Follows(None, handle)
    observing = Observing(plugin, handle)
    handle.put(binding("b").build())
    assert plugin.seen == []
    observing.start()
    observing.start()
    assert plugin.seen == [("-", "-"), ("-", "a-deployment"), ("-", "b-deployment")]


def test_when_all_objects_are_replaced_it_forgets_and_gets_all_again() -> None:
    handle = FakeHandle(binding("a"))
    plugin = make(Follows, handle=handle)
    del plugin.seen[:]
    for follower in handle._followers:
        follower(None, None)
    assert plugin.seen == [("-", "-"), ("-", "a-deployment")]


def test_after_a_failure_it_gets_all_objects_again_a_minute_later(caplog: pytest.LogCaptureFixture) -> None:
    handle = FakeHandle(binding("a"))
    plugin = make(Follows, handle=handle)
    Follows.fails = True
    with caplog.at_level(logging.ERROR):
        handle.put(binding("b").build())  # raises nothing
    assert 'plugin "Follows" failed at observe, and gets all objects again' in caplog.text
    Follows.fails = False
    del plugin.seen[:]
    handle.put(binding("c").build())
    assert plugin.seen == []
    handle.time += AGAIN_SECONDS
    handle.put(binding("d").build())
    assert plugin.seen == [("-", "-"), *(("-", f"{name}-deployment") for name in "abcd")]
    handle.put(binding("e").build())
    assert plugin.seen[-1] == ("-", "e-deployment")


def test_a_plugin_that_always_fails_is_called_once_a_minute() -> None:
    handle = FakeHandle(*(binding(f"b{i}") for i in range(5)))
    Follows.fails = True
    calls = []

    class Fails(Follows):
        def observe(self, old: Any, new: Any, /) -> None:
            calls.append(new)
            super().observe(old, new)

    make(Fails, handle=handle)
    for _ in range(5):
        handle.put(binding("b").build())
    assert len(calls) == 1
    gc.collect()
