"""A fake extender, and HttpExtenders that are closed after the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from karmada_pyscheduler.extenders.http_extender import HttpExtender, Manifests
from karmada_scheduler.config.extenders import ExtenderConfig
from tests.unit.extenders.fake import FakeExtender


@pytest.fixture
async def fake() -> AsyncIterator[FakeExtender]:
    """An extender that listens for HTTP."""
    server = FakeExtender()
    await server.start()
    yield server
    await server.stop()


class ExtenderFactory:
    """Makes extenders; ``seen`` has their observations, and ``now`` is the time of their clocks."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []
        self.seconds: list[float] = []
        self.now = 0.0
        self.all: list[HttpExtender] = []

    def __call__(self, url: str, manifests: Manifests, **fields: Any) -> HttpExtender:
        offered = {
            "filter_verb": "filter",
            "prioritize_verb": "prioritize",
            "bind_verb": "bind",
            "weight": 1,
            "http_timeout": 60.0,  # for busy machines
        }
        made = HttpExtender(
            ExtenderConfig(url_prefix=url, **{**offered, **fields}),
            manifests,
            clock=self._clock,
            observe=self._observe,
        )
        self.all.append(made)
        return made

    def _clock(self) -> float:
        return self.now

    def _observe(self, name: str, verb: str, outcome: str, seconds: float) -> None:
        self.seen.append((name, verb, outcome))
        self.seconds.append(seconds)


@pytest.fixture
async def make() -> AsyncIterator[ExtenderFactory]:
    """Make an extender for a URL."""
    made = ExtenderFactory()
    yield made
    for each in made.all:
        await each.close()
