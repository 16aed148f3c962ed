"""Objects that are made of parts."""

from __future__ import annotations

import weakref

from karmada_scheduler.structs import IdentityStruct


class Door(IdentityStruct, kw_only=True):
    key: str
    is_open: bool = False


def test_an_object_of_the_process_equals_itself_only() -> None:
    one, other = Door(key="a"), Door(key="a")
    assert one == one
    assert one != other
    assert len({one, other}) == 2
    assert weakref.ref(one)() is one


def test_the_text_of_an_object_of_the_process_has_none_of_its_parts() -> None:
    door = Door(key="hunter2")
    assert "hunter2" not in f"{door!r} {door}"
    assert "hunter2" not in f"{[door]}"
