"""The door to msgspec: classes of values with fields, as dataclasses are, which are defined and created in C.

Decision record 0059 says what they save, and which classes stay dataclasses.
"""

from __future__ import annotations

from msgspec import Struct, field, to_builtins
from msgspec.structs import asdict, replace
from msgspec.structs import fields as struct_fields

__all__ = [
    "IdentityStruct", "Struct", "asdict", "equal_without", "field", "is_struct", "replace", "struct_fields", "to_builtins",
]  # fmt: skip


def is_struct(type_: object) -> bool:
    """Return whether something is a class of structs."""
    return isinstance(type_, type) and issubclass(type_, Struct)


class IdentityStruct(Struct, eq=False, dict=True, weakref=True):
    """An object of a process that is made of its parts: it equals itself only, and its text shows none of them."""

    __repr__ = object.__repr__


def equal_without(name: str, one: Struct, other: object) -> bool:
    """Return whether two structs of one class are equal in all fields but one, for an ``__eq__``."""
    return other.__class__ is one.__class__ and all(
        getattr(one, each) == getattr(other, each) for each in one.__struct_fields__ if each != name
    )
