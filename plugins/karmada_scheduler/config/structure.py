"""Makes typed values of parsed YAML or JSON: strictly, and with all problems at once.

A value of another type than its field's is a problem: ``"3"`` is no number and ``yes`` no text. Keys
are the names of the fields in camelCase; unknown keys are problems that name the known ones. A duration is
``1m30s``, as everywhere in Kubernetes, in a field of type ``timedelta``; ``bytes`` are base64.

cattrs is imported on first use: without a configuration file and without plugin args, nothing is read.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import timedelta
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from karmada_scheduler.api.manifest import duration_seconds
from karmada_scheduler.api.object_fields import camel
from karmada_scheduler.config.problems import ConfigError, ConfigProblem, known
from karmada_scheduler.structs import is_struct, struct_fields

if TYPE_CHECKING:
    import cattrs

T = TypeVar("T")

KEY: Final = "key"
"""Metadata of a field: its key, if that differs from its name in camelCase."""

ALIASES: Final = "aliases"
"""Metadata of a field: other keys for it."""

READ: Final = "read"
"""Metadata of a field: a function that reads its value, instead of the type."""


def structure(data: object, type_: type[T], *, python_names: bool = False) -> T:
    """Read a value of a type.

    Args:
        data: The parsed YAML or JSON.
        type_: Usually a dataclass or struct; its ``__post_init__`` may raise for invalid values.
        python_names: Accept the fields' Python names as keys, too.

    Raises:
        ConfigError: It cannot be read; the paths begin at ``data``.
    """
    try:
        return _converter(python_names).structure(data, type_)
    except Exception as error:
        raise ConfigError(list(_problems_in(error))) from error


def seconds(text: object) -> float:
    """Read a duration in Go's syntax, as ``5s``, into seconds.

    Raises:
        ValueError: It is none.
    """
    return _duration(text).total_seconds()


def _duration(text: object) -> timedelta:
    if isinstance(text, str):
        with contextlib.suppress(ValueError):
            return timedelta(seconds=duration_seconds(text))
    raise ValueError(f"expected a duration such as 5s or 1m30s, got {shown(text)}")


def shown(value: object) -> str:
    """Return a short text with the value found and the type expected."""
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"' if len(value) <= 60 else f'"{value[:60]}…"'
        case Mapping():
            return "a mapping"
        case list():
            return "a list"
    return str(value)


class ConfigProblems(list[ConfigProblem]):
    """Problems found so far."""

    @contextlib.contextmanager
    def below(self, path: str) -> Iterator[None]:
        """Collect the problems that are raised about a part, and continue."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (all problems are reported together)
            self.extend(problem.below(path) for problem in _problems_in(error))

    def raise_if_any(self) -> None:
        """Raise all problems as one ConfigError."""
        if self:
            raise ConfigError(self)


def _problems_in(error: BaseException) -> Iterator[ConfigProblem]:
    import cattrs

    match error:
        case ConfigError():
            yield from error.problems
        case BaseExceptionGroup():
            for cause in error.exceptions:
                yield from _problems_in(cause)
        case cattrs.StructureHandlerNotFoundError():
            yield ConfigProblem("", f"the type {error.type_} cannot be read from a file")
        case _:
            yield ConfigProblem("", str(error) or type(error).__name__)


@cache
def _converter(python_names: bool) -> cattrs.Converter:  # noqa: FBT001 (the key of a cache)
    import cattrs
    from cattrs.strategies import configure_union_passthrough

    converter = cattrs.Converter(forbid_extra_keys=True)
    configure_union_passthrough(bool | int | float | str | None, converter)
    for type_, read in _SCALARS.items():
        converter.register_structure_hook(type_, read)
    for accepts, factory in (
        (_has_fields, lambda type_: _fields_reader(type_, converter, python_names=python_names)),
        (_is_list, lambda type_: _list_reader(type_, converter)),
        (_is_mapping, lambda type_: _mapping_reader(type_, converter)),
        (_is_choice, _choice_reader),
    ):
        converter.register_structure_hook_factory(accepts, factory)
    return converter


def _expect(type_: Any, text: str, data: object) -> Any:
    if not isinstance(data, type_):
        raise ValueError(f"expected {text}, got {shown(data)}")  # noqa: TRY004 (it is the file's problem)
    return data


def _exactly(type_: type, text: str) -> Callable[[object, object], Any]:
    def read(value: object, _: object) -> object:
        if type(value) is not type_:
            raise ValueError(f"expected {text}, got {shown(value)}")
        return value

    return read


def _float(value: object, _: object) -> float:
    if type(value) not in (int, float):
        raise ValueError(f"expected a number, got {shown(value)}")
    return float(value)  # type: ignore[arg-type]


def _bytes(value: object, _: object) -> bytes:
    try:
        return base64.b64decode("".join(value.split()) if isinstance(value, str) else b"?", validate=True)
    except binascii.Error:
        raise ValueError("expected base64") from None


_SCALARS: Final[dict[type, Callable[[Any, Any], Any]]] = {
    bool: _exactly(bool, "true or false"),
    int: _exactly(int, "an integer"),
    str: _exactly(str, "text"),
    float: _float,
    bytes: _bytes,
    timedelta: lambda value, _: _duration(value),
}


def _has_fields(type_: Any) -> bool:
    return dataclasses.is_dataclass(type_) or is_struct(type_)


def _fields_of(type_: Any) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yield name and metadata of each field, and whether it must be given."""
    if is_struct(type_):
        yield from ((field.name, {}, field.required) for field in struct_fields(type_))
        return
    for field in dataclasses.fields(type_):
        if field.init:
            has_default = (field.default, field.default_factory) != (dataclasses.MISSING,) * 2
            yield field.name, field.metadata, not has_default


def _keys_of(name: str, metadata: Mapping[str, Any], *, python_names: bool) -> list[str]:
    """Return the keys of a field, the one to show first."""
    keys = [metadata.get(KEY, camel(name)), *metadata.get(ALIASES, ())]
    return [*keys, name] if python_names else keys


def _fields_reader(
    type_: Any, converter: cattrs.Converter, *, python_names: bool
) -> Callable[[object, object], object]:
    hints = typing.get_type_hints(type_)
    fields = list(_fields_of(type_))
    keys_of = {name: _keys_of(name, metadata, python_names=python_names) for name, metadata, _ in fields}
    readers = {name: metadata.get(READ) for name, metadata, _ in fields}
    field_of = {key: name for name, keys in keys_of.items() for key in keys}

    def read(data: object, _: object) -> object:
        if isinstance(data, type_):
            return data
        values: dict[str, object] = {}
        met: dict[str, str] = {}
        problems = ConfigProblems()
        for key, value in _expect(Mapping, "a mapping", data).items():
            name = field_of.get(key)
            if name is None:
                names = known(keys[0] for keys in keys_of.values())
                problems.append(ConfigProblem(str(key), f"unknown field; {names}"))
            elif name in met:
                problems.append(ConfigProblem(key, f"is the same field as {met[name]}"))
            elif value is not None or _takes_none(hints[name]):
                # Otherwise an empty key is as good as none, as in Kubernetes.
                met[name] = key
                with problems.below(key):
                    own = readers[name]
                    values[name] = own(value) if own else converter.structure(value, hints[name])
        problems.extend(
            ConfigProblem(keys_of[name][0], "is required")
            for name, _, is_required in fields
            if is_required and name not in met
        )
        problems.raise_if_any()
        return type_(**values)

    return read


def _takes_none(hint: object) -> bool:
    return hint in (Any, object, None, type(None)) or type(None) in typing.get_args(hint)


_LISTS: Final[dict[object, Callable[[list[Any]], object]]] = {
    list: list,
    tuple: tuple,
    Sequence: tuple,
    set: set,
    frozenset: frozenset,
    AbstractSet: frozenset,
}


def _is_list(type_: object) -> bool:
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    return origin in _LISTS and (origin is not tuple or (len(arguments) == 2 and arguments[1] is ...))


def _list_reader(type_: Any, converter: cattrs.Converter) -> Callable[[object, object], object]:
    make, item = _LISTS[typing.get_origin(type_)], typing.get_args(type_)[0]

    def read(data: object, _: object) -> object:
        items, problems = [], ConfigProblems()
        for index, value in enumerate(_expect(list, "a list", data)):
            with problems.below(f"[{index}]"):
                items.append(converter.structure(value, item))
        problems.raise_if_any()
        return make(items)

    return read


def _is_mapping(type_: object) -> bool:
    return typing.get_origin(type_) in (dict, Mapping) and typing.get_args(type_)[0] is str


def _mapping_reader(type_: Any, converter: cattrs.Converter) -> Callable[[object, object], object]:
    item = typing.get_args(type_)[1]

    def read(data: object, _: object) -> object:
        items, problems = {}, ConfigProblems()
        for key, value in _expect(Mapping, "a mapping", data).items():
            with problems.below(f"[{key}]"):
                items[converter.structure(key, str)] = converter.structure(value, item)
        problems.raise_if_any()
        return items

    return read


def _is_choice(type_: object) -> bool:
    return typing.get_origin(type_) is Literal or (isinstance(type_, type) and issubclass(type_, Enum))


def _choice_reader(type_: Any) -> Callable[[object, object], object]:
    choices = (
        {member.value: member for member in typing.cast("type[Enum]", type_)}
        if isinstance(type_, type)
        else {choice: choice for choice in typing.get_args(type_)}
    )

    def read(value: object, _: object) -> object:
        for choice, meaning in choices.items():
            if type(value) is type(choice) and value == choice:
                return meaning
        raise ValueError(f"expected one of {', '.join(shown(each) for each in choices)}, got {shown(value)}")

    return read
