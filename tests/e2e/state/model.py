"""Situations as data: how a binding comes into a state, and what the commands have to say about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.e2e.state.scene import Scene

Fields = Mapping[str, Any]
"""The JSON output of a command."""

PLACED: Final = {"all": "PLACED", "part": "PLACED IN PART", "none": "NOT PLACED"}

HEADLINES: Final = {
    "unknown": "UNKNOWN",
    "being deleted": "BEING DELETED",
    "no placement": "NO PLACEMENT",
    "not claimed": "NOT CLAIMED",
    "held": "{placed}, held",
    "nobody decides": "{placed}, nobody decides",
    "moving": "{placed}, moving",
    "stuck": "{placed}, stuck",
    "not placed": "NOT PLACED",
    "not decided yet": "NOT PLACED, not decided yet",
    "out of date": "{placed}, out of date",
    "not running": "{placed}, not running",
    "nothing to place": "NOTHING TO PLACE",
    "placed": "{placed}",
}
"""The words with which a headline begins, by the name of the state."""

HEALTHY: Final = frozenset(("placed", "nothing to place"))


@dataclass(frozen=True, slots=True)
class Expected:
    """What ``explain`` has to say.

    Attributes:
        state: ``state.name``.
        placed: ``state.placed``: all, part or none.
        headline: A regular expression for the rest of the headline, after its words.
        cause: One for ``Code: text`` of the primary cause; "" if there must be no cause.
        remedy: One for the text of the first remedy; "" if there must be none.
        never: One that the text of no remedy may match; "" for no such rule.
        would_be: One for ``wouldBe`` as JSON; "" without a rule.
        quiet: One for the output of ``-q``; "" without a rule.
        fields: Paths of the JSON output, such as ``state.wanted``, with their values or what they must match.
        problem: A regular expression for the standard error; "" if nothing may be there.
        status: The exit status; by default that of the state.
    """

    state: str
    placed: str
    headline: str
    cause: str = ""
    remedy: str = ""
    never: str = ""
    would_be: str = ""
    quiet: str = ""
    fields: Mapping[str, object] = field(default_factory=dict)
    problem: str = ""
    status: int | None = None

    @property
    def exit_status(self) -> int:
        """The exit status."""
        if self.status is not None:
            return self.status
        return 0 if self.state in HEALTHY else 1

    @property
    def words(self) -> str:
        """The words with which the headline begins."""
        return HEADLINES[self.state].format(placed=PLACED[self.placed])


@dataclass(frozen=True, slots=True)
class Also:
    """Another command about the same binding.

    Attributes:
        arguments: The command with its arguments; ``{binding}`` and ``{cluster}`` stand for names of the scene.
        status: The exit status; None if it depends on the other situations of the control plane.
        line: A regular expression for the first line of the text.
        fields: As in ``Expected``.
        never: A regular expression that no line of the text may match.
        says: One that has to match the text.
        effect: One for the effect of the scene's binding in a plan; "" without a rule.
        applies: Whether the patches of the first remedy are applied, and the binding has to be placed as promised.
        file: Returns the object that the file ``{file}`` of the arguments has; None without a file.
    """

    arguments: Sequence[str]
    status: int | None
    line: str = ""
    fields: Mapping[str, object] = field(default_factory=dict)
    never: str = ""
    says: str = ""
    effect: str = ""
    applies: bool = False
    file: Callable[[Scene], Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """One situation.

    Attributes:
        name: Unique; words with hyphens.
        source: Where it was found, in one neutral sentence.
        make: Creates it, and returns when it is stored.
        expected: What ``explain`` has to say.
        ask: The name that ``explain`` is given.
        flags: Further flags of it; ``{from}`` stands for the address of the scheduler's record.
        also: Other commands.
        after: Replicas by cluster once the first remedy is applied; None: what the remedy promises.
        applies: Whether the patches of the first remedy are applied.
        page: The badge of the binding's page, and of its row in the list; "" if the page is not looked at.
        alone: Whether it disturbs others, so that it is made after all of them.
        rights: The rights that the user who asks has not, as names of ``plane.READS``.
        labels: Labels of the namespace.
    """

    name: str
    source: str
    make: Callable[[Scene], None]
    expected: Expected
    ask: str = "deployment/web"
    flags: Sequence[str] = ()
    also: Sequence[Also] = ()
    after: Mapping[str, int] | None = None
    applies: bool = True
    page: str = ""
    alone: bool = False
    rights: Sequence[str] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


REGISTERED: Final[list[Situation]] = []
"""The situations of all modules that were imported."""

_Make = Callable[["Scene"], None]


def situation(
    expected: Expected, *, name: str = "", source: str = "", **fields: Any
) -> Callable[[_Make], _Make]:
    """Register the function that creates a situation.

    Args:
        expected: What ``explain`` has to say.
        name: By default that of the function.
        source: By default the first line of the function's docstring.
        fields: Further fields of ``Situation``.
    """

    def register(make: _Make) -> _Make:
        words = source or (make.__doc__ or "").splitlines()[0]
        title = name or make.__name__.replace("_", "-")
        REGISTERED.append(Situation(title, words, make, expected, **fields))
        return make

    return register
