"""The annotations that plugins of this scheduler write on bindings, and read again: what moved, what waits, what returned.

They are the memory of PlacementGuard and FailBack across restarts and changes of leader. Anyone who may patch a binding can
write anything into them, so the readers bound length, nesting, numbers and times, and raise nothing: a text that cannot be
read is an ``Unreadable``, which says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeVar

from karmada_scheduler.api.content_cache import MEBI, cached_by_content
from karmada_scheduler.api.quantity import MAX_INT32

LAST_MOVE: Final = "pyscheduler.karmada.io/last-move"
HELD: Final = "pyscheduler.karmada.io/held"
FAIL_BACK: Final = "pyscheduler.karmada.io/fail-back"

OVERFLOW: Final = "overflow"
"""``source`` of a return from an overflow tier."""
MAX_CHARACTERS: Final = 16_384
"""Of an annotation; longer ones are not parsed."""
_MAX_BRACKETS: Final = 128
"""Opening brackets of an annotation, so that it cannot be nested deeper than that."""
_MAX_MOVES: Final = 20
"""Moves of one binding that are recorded. The oldest ones are added to the next one, which counts longer."""
_MAX_CLUSTERS: Final = 100
"""Clusters of a move that are recorded."""
_MAX_NAME: Final = 253
_END_OF_TIME: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()


Read = TypeVar("Read")


class Unreadable(NamedTuple):
    """An annotation that cannot be read, and why."""

    why: str


class RecordedMove(NamedTuple):
    """A move of a binding.

    Attributes:
        at: When it was decided, in seconds since 1970.
        replicas: How many replicas moved, from 0 to 2,147,483,647.
    """

    at: float
    replicas: int


class HeldDecision(NamedTuple):
    """A decision that waits.

    Attributes:
        since: In seconds since 1970.
        cause: What it waits for.
    """

    since: float
    cause: str

    def text(self) -> str:
        """Return it as the text of the annotation."""
        return _text({"since": text_of(self.since), "cause": self.cause})


class TermChange(NamedTuple):
    """The last change of the affinity term of a binding.

    Attributes:
        number: The number of returns of which none was forgotten, from 0 to 2,147,483,647.
        at: When the last return was decided, in seconds since 1970; that of the change if there was none.
        source: The affinity term before, "" if there was none; ``OVERFLOW`` for a return from an overflow tier.
        target: The affinity term afterwards.
        left: When the binding left the term that it had returned to, in seconds since 1970; None after a return.
    """

    number: int
    at: float
    source: str
    target: str
    left: float | None = None

    @property
    def is_return(self) -> bool:
        """Whether the last change was a return."""
        return self.left is None

    def stayed(self, seconds: float) -> bool:
        """Return whether the binding is known to have stayed for so many seconds before it left again."""
        return self.left is not None and self.left - self.at >= seconds

    def text(self) -> str:
        """Return it as the text of the annotation."""
        fields: dict[str, Any] = {
            "n": min(self.number, MAX_INT32),
            "at": text_of(self.at),
            "from": self.source,
            "to": self.target,
        }
        if self.left is not None:
            fields["left"] = text_of(self.left)
        return _text(fields)


def moves_text(moves: Sequence[RecordedMove], *, clusters: Sequence[str], cause: str, term: str) -> str:
    """Return the annotation about the last moves of a binding, of which the last one left ``clusters``.

    Names that ``moves_in`` could not read for their brackets, or which would make it too long, are left out.
    """
    kept = list(moves)
    while len(kept) > _MAX_MOVES:
        first, second, *rest = kept
        kept = [RecordedMove(second.at, first.replicas + second.replicas), *rest]
    listed = [f'{{"at":"{text_of(move.at)}","replicas":{min(move.replicas, MAX_INT32)}}}' for move in kept]
    shown = f',"term":{_text(term)}' if term and len(term) <= _MAX_NAME and not _brackets(term) else ""
    begin, end = f'{{"moves":[{",".join(listed)}],"from":[', f'],"cause":{_text(cause)}{shown}}}'
    left, names = MAX_CHARACTERS - len(begin) - len(end), []
    for name in map(_text, clusters[:_MAX_CLUSTERS]):
        left -= len(name) + 1
        if left < 0:
            break
        names += [] if _brackets(name) else [name]
    return f"{begin}{','.join(names)}{end}"


def _read(text: str, parse: Callable[[dict[str, Any]], Read], empty: Read) -> Read | Unreadable:
    try:
        return parse(_fields(text)) if text else empty
    except _PROBLEMS as problem:
        return Unreadable(f"{problem} is missing" if isinstance(problem, KeyError) else str(problem)[:200])


def _moves(found: dict[str, Any]) -> tuple[RecordedMove, ...]:
    moves = found["moves"]
    if not isinstance(moves, list) or len(moves) > _MAX_MOVES:
        raise ValueError(f"moves must be a list of at most {_MAX_MOVES}")
    return tuple(sorted(RecordedMove(_time(entry["at"]), _count(entry["replicas"])) for entry in moves))


def _change(found: dict[str, Any]) -> TermChange:
    number, at, left = _count(found["n"]), _time(found["at"]), found.get("left")
    return TermChange(
        number, at, _name(found["from"]), _name(found["to"]), None if left is None else _time(left)
    )


@cached_by_content(entries=8192, short=512, long_bytes=MEBI)
def moves_in(text: str) -> tuple[RecordedMove, ...] | Unreadable:
    """Return the moves of the annotation ``LAST_MOVE`` in order of time; none for an empty text."""
    return _read(text, _moves, ())


@cached_by_content(entries=1024, short=256, long_bytes=0)
def held_in(text: str) -> HeldDecision | Unreadable | None:
    """Return the content of the annotation ``HELD``, None for an empty text."""
    return _read(text, lambda found: HeldDecision(_time(found["since"]), _name(found["cause"])), None)


@cached_by_content(entries=8192, short=512, long_bytes=MEBI)
def change_in(text: str) -> TermChange | Unreadable | None:
    """Return the content of the annotation ``FAIL_BACK``, None for an empty text."""
    return _read(text, _change, None)


_READERS: Final[Mapping[str, Callable[[str], object]]] = {
    LAST_MOVE: moves_in,
    HELD: held_in,
    FAIL_BACK: change_in,
}


def unreadable_annotation(annotations: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the name of the first annotation of this scheduler that cannot be read, and why; None if all can be read."""
    for name, read in _READERS.items():
        if name in annotations and isinstance(found := read(annotations[name]), Unreadable):
            return name, found.why
    return None


def text_of(seconds: float) -> str:
    """Return a time, in seconds since 1970, as text in UTC with milliseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


_PROBLEMS: Final = (ValueError, TypeError, KeyError, OverflowError, RecursionError)


_text: Final[Callable[[object], str]] = json.JSONEncoder(separators=(",", ":")).encode


def _brackets(text: str) -> int:
    """Return the number of opening brackets."""
    return text.count("{") + text.count("[")


def _fields(text: str) -> dict[str, Any]:
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"it has {len(text)} characters, at most {MAX_CHARACTERS} are read")
    if _brackets(text) > _MAX_BRACKETS:
        raise ValueError(f"it has more than {_MAX_BRACKETS} opening brackets")
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 (one error for all)
    return found


def _time(value: object) -> float:
    if not isinstance(value, str) or len(value) > 40:
        raise ValueError("a time must be a text such as 2026-01-01T00:00:00.000Z")
    found = datetime.fromisoformat(value)
    if found.tzinfo is None:
        raise ValueError(f"the time {value} has no zone")
    seconds = found.timestamp()
    if not 0 <= seconds <= _END_OF_TIME:
        raise ValueError(f"the time {value} is not between 1970 and 9999")
    return seconds


def _count(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_INT32:
        raise ValueError(f"a number must be an integer from 0 to {MAX_INT32}")
    return value


def _name(value: object) -> str:
    if not isinstance(value, str) or len(value) > _MAX_NAME:
        raise ValueError(f"a name must be a text of at most {_MAX_NAME} characters")
    return value
