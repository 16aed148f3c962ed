"""CEL expressions about a placement; the one door to the library, which is imported with the first expression."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from karmada_scheduler.api import quantity
from karmada_scheduler.api.manifest import ManifestError

if TYPE_CHECKING:  # a file is checked without the objects of a case
    from karmada_advisor.whatif.placement_tests.expectations import WorkloadData

INSTALL: Final = "pip install 'karmada-pyscheduler[cel]'"

_ROWS: Final = ("placed", "clusters", "before")
_ERROR: Final = re.compile(r"ERROR: <input>:(\d+):(\d+): (.*)")
_MISSING_KEY: Final = re.compile(r'Key not found in map : "(.*)"')
_STATUS: Final = re.compile(r"^[A-Z_]+: ")
_SHOWN_PARTS: Final = re.compile(
    r"\b(?:replicas|total|regions|providers|zones|share|survives)\([^()]*\)"
    r"|\b(?:placed|clusters|before)\.size\(\)|\bresult\.\w+\b"
)
_MOST_ITEMS: Final = 5


_Declared = tuple[str, list[Any], Any, Callable[..., Any]]
"""Name, types of the parameters, type of the result, and what computes it."""


class NoCelError(Exception):
    """The library is not installed; the text has the command."""


class ExpressionError(Exception):
    """An expression that can never be evaluated.

    Attributes:
        line: In the expression, from 1.
        column: In the line, from 1.
    """

    def __init__(self, line: int, column: int, text: str) -> None:
        super().__init__(text)
        self.line = line
        self.column = column


class Evaluated(NamedTuple):
    """The result of an expression.

    Attributes:
        holds: Whether it is true.
        text: Why it is not: an error, or "" if it is just false.
        parts: The values of its parts, for people.
    """

    holds: bool
    text: str = ""
    parts: Sequence[str] = ()


class Expressions:
    """Compiles and evaluates expressions.

    Raises:
        NoCelError: The library is not installed.
    """

    def __init__(self) -> None:
        """Declare what expressions may name."""
        try:
            from cel_expr_python import cel
            from cel_expr_python.ext import ext_math, ext_optional, ext_strings
        except ImportError as error:
            raise NoCelError(f"expressions (that) need the CEL library: {INSTALL}") from error
        self._data: WorkloadData | None = None
        type_ = cel.Type
        self._bool, self._allowed = type_.BOOL, (type_.BOOL, type_.DYN)
        text, number, dyn = type_.STRING, type_.DOUBLE, type_.DYN
        texts, any_list = type_.List(text), type_.List(dyn)
        functions: Sequence[_Declared] = (
            ("replicas", [text], type_.INT, self._reads("replicas")),
            ("total", [], type_.INT, lambda: sum(each["replicas"] for each in self._now.placed)),
            ("regions", [], texts, lambda: self._now.values("region")),
            ("providers", [], texts, lambda: self._now.values("provider")),
            ("zones", [], texts, lambda: self._now.values("zone")),
            ("share", [text, text], dyn, self._reads("share")),
            ("survives", [text], type_.BOOL, self._reads("survives")),
            ("quantity", [text], number, _quantity),
            ("quantity", [type_.INT], number, _quantity),
            ("quantity", [number], number, _quantity),
        )
        methods: Sequence[_Declared] = (
            ("sum", [any_list], dyn, sum),
            ("min", [any_list], dyn, min),
            ("max", [any_list], dyn, max),
            ("isLessThan", [number, number], type_.BOOL, operator.lt),
            ("isGreaterThan", [number, number], type_.BOOL, operator.gt),
            ("compareTo", [number, number], type_.INT, lambda one, other: (one > other) - (one < other)),
            ("asApproximateFloat", [number], number, float),
        )
        overloads: dict[str, list[Any]] = {}
        for is_member, rows in ((False, functions), (True, methods)):
            for name, parameters, result, impl in rows:
                known = overloads.setdefault(name, [])
                id_ = f"{name}_of_{len(parameters)}_{len(known)}"
                types = {"return_type": result, "parameters": parameters}
                known.append(cel.Overload(id_, **types, is_member=is_member, impl=impl))
        self._env = cel.NewEnv(
            variables={
                **dict.fromkeys(_ROWS, any_list),
                "result": type_.Map(text, dyn),
                "workload": type_.Map(text, dyn),
            },
            extensions=[ext_optional.ExtOptional(), ext_strings.ExtStrings(), ext_math.ExtMath()],
            functions=[cel.FunctionDecl(*overload) for overload in overloads.items()],
        )
        self._compiled: dict[str, Any] = {}

    def _reads(self, name: str) -> Callable[..., Any]:
        def read(*arguments: str) -> Any:
            return getattr(self._now, name)(*arguments)

        return read

    @property
    def _now(self) -> WorkloadData:
        assert self._data is not None  # set while an expression is evaluated
        return self._data

    def compile(self, text: str) -> None:
        """Check an expression.

        Raises:
            ExpressionError: It cannot be evaluated, or its result is neither true nor false.
        """
        found = self._compile(text)
        if found.return_type() not in self._allowed:
            name = str(found.return_type().name()).partition("<")[0].lower()
            raise ExpressionError(1, 1, f"expected true or false, got {name}")

    def _compile(self, text: str) -> Any:
        if text not in self._compiled:
            try:
                self._compiled[text] = self._env.compile(text)
            except RuntimeError as error:
                raise _problem(str(error)) from error
        return self._compiled[text]

    def evaluate(self, text: str, data: WorkloadData) -> Evaluated:
        """Return whether an expression holds."""
        self._data = data
        try:
            value = self._value(text)
            if value.type() == self._bool:
                is_true = bool(value.plain_value())
                return Evaluated(is_true, "", () if is_true else self._parts(text))
            shown = str(value.plain_value())
            if str(value.type().name()) != "ERROR":
                return Evaluated(holds=False, text=f"expected true or false, got {shown}")
            return Evaluated(holds=False, text=_evaluation_error(shown), parts=self._parts(text))
        finally:
            self._data = None

    def _value(self, text: str) -> Any:
        compiled = self._compile(text)
        names = {*re.findall(r"[a-z]+", text)}
        variables = {
            name: getattr(self._now, name) if name in names else [] if name in _ROWS else {}
            for name in (*_ROWS, "result", "workload")
        }
        return compiled.eval(data=variables)

    def _parts(self, text: str) -> list[str]:
        """Return the values of calls and variables in an expression; those within macros cannot be evaluated alone."""
        found: dict[str, str] = {}
        for part in dict.fromkeys(_SHOWN_PARTS.findall(text)):
            try:
                value = self._value(part)
            except ExpressionError:
                continue
            plain = value.plain_value()
            is_list = isinstance(plain, list)
            is_shown = len(plain) <= _MOST_ITEMS if is_list else isinstance(plain, str | int | float)
            if is_shown and str(value.type().name()) != "ERROR":
                found[part] = f"{part} is {plain!r}".replace("'", '"') if is_list else f"{part} is {plain}"
        return list(found.values())


@lru_cache(maxsize=1)
def expressions() -> Expressions:
    """Return the evaluator of this process.

    Raises:
        NoCelError: The library is not installed.
    """
    return Expressions()


def _quantity(value: object) -> float:
    try:
        return quantity.read(str(value), "quantity").milli_value / 1000
    except ManifestError as error:
        raise ValueError(str(error)) from error


def _problem(message: str) -> ExpressionError:
    """Return the first error of the compiler."""
    found = _ERROR.search(message)
    if found is None:
        return ExpressionError(1, 1, _STATUS.sub("", message).strip())
    line, column, text = found.groups()
    text = text.replace(" (in container '')", "").partition(" expecting {")[0]
    text = text.replace("mismatched input '<EOF>'", "it ends too early")
    return ExpressionError(int(line), int(column), text)


def _evaluation_error(message: str) -> str:
    if (missing := _MISSING_KEY.search(message)) is not None:
        return f"there is no key {missing[1]}; .?{missing[1]}.orValue('') allows that"
    return _STATUS.sub("", message)
