"""Anything in the annotations of this scheduler: the readers raise nothing, and other bindings move as without it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from karmada_scheduler.api.own_annotations import (
    FAIL_BACK,
    HELD,
    LAST_MOVE,
    change_in,
    held_in,
    moves_in,
    unreadable_annotation,
)
from tests.fuzz.measuring import fuzzed, measured
from tests.unit.plugins.test_placement_guard import Guarded, budgeted, move_all, moved, to

_AT = st.sampled_from(
    ("2026-01-02T00:00:00Z", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "")
) | st.text(max_size=30)
_NUMBER = st.integers() | st.floats() | st.none() | st.booleans() | st.just(10**5000)
_MOVE = st.fixed_dictionaries({}, optional={"at": _AT, "replicas": _NUMBER, "x": st.text()})
_RECORD = st.fixed_dictionaries(
    {},
    optional={
        "moves": st.lists(_MOVE | _NUMBER, max_size=30) | _NUMBER,
        "since": _AT | _NUMBER,
        "cause": st.text() | _NUMBER,
        "n": _NUMBER,
        "at": _AT | _NUMBER,
        "from": st.text() | _NUMBER,
        "to": st.text() | _NUMBER,
        "left": _AT | _NUMBER,
    },
)


def _json(value: Any) -> str:
    try:
        return json.dumps(value)
    except ValueError:  # an integer with more digits than Python writes
        digits = "9" * 5000
        return f'{{"moves":[{{"at":"2026-01-02T00:00:00Z","replicas":{digits}}}],"n":{digits}}}'


_TEXT = st.one_of(
    st.text(),
    _RECORD.map(_json),
    st.tuples(st.sampled_from(("[", '{"a":', '{"moves":[')), st.integers(0, 50_000)).map(
        lambda each: each[0] * each[1]
    ),
    st.integers(0, 300_000).map(lambda count: '{"moves":[],"x":"' + "x" * count + '"}'),
)


@fuzzed(300)
@given(text=_TEXT)
@example(text="[" * 100_000)
@example(text='{"moves":[{"at":"2026-01-02T00:00:00Z","replicas":1e999}]}')
def test_the_readers_raise_nothing(text: str) -> None:
    with measured("annotations", text):
        for read in (moves_in, held_in, change_in):
            read(text)
        unreadable_annotation(dict.fromkeys((LAST_MOVE, HELD, FAIL_BACK), text))


@fuzzed(40)
@given(text=_TEXT)
def test_a_text_of_one_binding_uses_up_at_most_one_window_of_the_budget_of_others(text: str) -> None:
    async def run() -> None:
        harness: Guarded = budgeted(bindings=100)
        harness.on_m1("odd")
        harness.server.change("odd", annotations={LAST_MOVE: text, HELD: text, FAIL_BACK: text})
        await move_all(harness, 2)
        assert moved(harness) == 2
        await harness.edit("odd", placement=to("m2"))
        await harness.run(after=700)
        assert harness.placed("odd") == ["m2"]

    asyncio.run(run())
