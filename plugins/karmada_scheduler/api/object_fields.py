"""Reads objects of the API into frozen values by the types of their fields, and writes them as Go's encoder does.

A field has the key of its name in camelCase. What a reader accepts is in ``api.manifest``. Zero values are not written, as
with Go's ``omitempty``; a field whose type allows None is written unless it is None, as with a pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType
from typing import Annotated, Any, Final, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from karmada_scheduler.api.manifest import (
    Manifest,
    read_boolean,
    read_integer,
    read_mapping,
    read_mappings,
    read_optional_mapping,
    read_text,
    read_text_map,
    read_texts,
)
from karmada_scheduler.structs import Struct

T = TypeVar("T")

FieldReader = Callable[[Manifest, str, str], Any]
"""Reads the value of a key of an object; the last argument is the path of the object, for errors."""


class ApiField(NamedTuple):
    """What the type of a field does not say; the metadata of ``Annotated``.

    Attributes:
        key: Its key, if that is not its name in camelCase.
        always: Whether a zero value is written.
        inline: Whether its fields are those of the enclosing object.
        within: The key of the value in an object of its own, which is absent where the value is None.
        presence_of: It is not written, and says whether this key is there.
    """

    key: str = ""
    always: bool = False
    inline: bool = False
    within: str = ""
    presence_of: str = ""


ALWAYS: Final = ApiField(always=True)
INLINE: Final = ApiField(inline=True)


class _TypedField(NamedTuple):
    """A field; ``inner`` is the type of its value, or of those in its list."""

    name: str
    key: str
    read: FieldReader
    is_optional: bool
    about: ApiField
    inner: Any


def read_object(type_: Callable[..., T], manifest: Manifest, path: str) -> T:
    """Read an object.

    Args:
        type_: A Struct or NamedTuple.
        manifest: The object.
        path: Where it is, for errors.

    Raises:
        ManifestError: A field has the wrong type.
    """
    return type_(*[field.read(manifest, field.key, path) for field in _fields_of(type_)])


def read_objects(type_: Callable[..., T], parent: Manifest, key: str, path: str) -> tuple[T, ...]:
    """Read a list of objects; raises as ``read_object`` does."""
    return tuple(
        [
            read_object(type_, mapping, f"{path}.{key}[{index}]")
            for index, mapping in enumerate(read_mappings(parent, key, path))
        ]
    )


def object_fields(value: Any) -> dict[str, object]:
    """Return an object as JSON values, in the order of its fields."""
    found: dict[str, object] = {}
    for field in _fields_of(value.__class__):
        given = getattr(value, field.name)
        if field.about.inline:
            found |= object_fields(given)
        elif field.about.presence_of or given is None:
            continue
        elif given or field.is_optional or field.about.always:
            found[field.key] = {field.about.within: given} if field.about.within else _plain(given)
    return found


def _plain(value: Any) -> object:
    if _is_object(type(value)):
        return object_fields(value)
    if not isinstance(value, tuple):
        return value
    return dict(value) if value and type(value[0]) is tuple else [_plain(part) for part in value]


def camel(name: str) -> str:
    """Return a Python name in camelCase: ``preFilter`` of ``pre_filter``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


Keys = Mapping[str, "Keys"]
"""The keys of an object, each with those of the objects that are its value; none for another value."""


@cache
def keys_of(type_: Any) -> Keys:
    """Return the keys that an object of a type may have, in the order of its fields."""
    found: dict[str, Keys] = {}
    for field in _fields_of(type_):
        if field.about.inline:
            found |= keys_of(field.inner)
        elif not field.about.presence_of:
            within: Keys = {field.about.within: {}} if field.about.within else {}
            found[field.key] = keys_of(field.inner) if _is_object(field.inner) else within
    return found


def _is_object(type_: Any) -> bool:
    return isinstance(type_, type) and (issubclass(type_, Struct) or hasattr(type_, "_fields"))


@cache
def _fields_of(type_: Any) -> tuple[_TypedField, ...]:
    found = []
    for name, annotated in get_type_hints(type_, include_extras=True).items():
        hint, about = get_args(annotated) if get_origin(annotated) is Annotated else (annotated, ApiField())
        inner = get_args(hint)[0] if get_args(hint) else hint
        is_optional = NoneType in get_args(hint)
        key = about.key or camel(name)
        found.append(_TypedField(name, key, _reader(hint, about), is_optional, about, inner))
    return tuple(found)


_READERS: Final[dict[object, FieldReader]] = {
    str: read_text,
    int: read_integer,
    bool: read_boolean,
    tuple[str, ...]: read_texts,
    tuple[tuple[str, str], ...]: lambda parent, key, path: tuple(
        sorted(read_text_map(parent, key, path).items())
    ),
}


def _reader(hint: Any, about: ApiField) -> FieldReader:
    if about.presence_of:
        return lambda parent, _, __: parent.get(about.presence_of) is not None
    if about.inline:
        return lambda parent, _, path: read_object(hint, parent, path)
    if about.within:
        return lambda parent, key, path: _read_within(parent, key, path, about.within)
    if hint in _READERS:
        return _READERS[hint]
    inner = get_args(hint)[0] if get_args(hint) else hint
    if get_origin(hint) is tuple:
        return lambda parent, key, path: read_objects(inner, parent, key, path)
    if inner is hint:
        return lambda parent, key, path: read_object(hint, read_mapping(parent, key, path), f"{path}.{key}")
    read = _reader(inner, about)
    return lambda parent, key, path: None if parent.get(key) is None else read(parent, key, path)


def _read_within(parent: Manifest, key: str, path: str, inner: str) -> str | None:
    found = read_optional_mapping(parent, key, path)
    return None if found is None else read_text(found, inner, path)


def go_escaped(document: str) -> str:
    """Escape the characters that Go's encoder escapes in addition to those of the JSON standard."""
    if document.isascii() and not any(character in document for character in "<>&"):
        return document
    return (
        document.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        .replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    )  # fmt: skip
