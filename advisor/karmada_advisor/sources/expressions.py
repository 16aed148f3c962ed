"""Checks CEL expressions in a file, with the place of what is wrong in them."""

from __future__ import annotations

from typing import Any

from karmada_advisor.placement_tests.cel import ExpressionError, NoCelError, expressions
from karmada_advisor.placement_tests.model import FilePlace
from karmada_advisor.placement_tests.report_model import FileProblem
from karmada_advisor.sources.located_yaml import LocatedFile
from karmada_scheduler.config.yaml_places import YamlPath


def check_expression(located: LocatedFile, path: YamlPath, name: str, value: Any) -> bool:
    """Return whether a value is an expression; what is wrong is noted in the file.

    Args:
        located: The file.
        path: Where the value is.
        name: ``that[0]``, for messages.
        value: The value.
    """
    extent = located.extent(path)
    if not isinstance(value, str):
        what = {dict: "a mapping", bool: "true or false"}.get(type(value), "another value")
        hint = 'Put it in quotes: it has ": "' if isinstance(value, dict) else "Put it in quotes"
        located.problem(path, f"{name}: expected an expression, got {what}. {hint}")
        return False
    if extent is not None and not extent.style:
        rest = located.line(extent.end_line)[extent.end_column - 1 :].strip()
        if rest.startswith("#"):
            located.problem(path, f'{name}: " #" begins a comment here; put the expression in quotes')
            return False
    try:
        expressions().compile(value)
    except NoCelError as problem:
        located.problem_once(path, str(problem))
    except ExpressionError as problem:
        line = (value.splitlines() or [""])[problem.line - 1]
        excerpt = (line, " " * (problem.column - 1) + "^")
        place = located.place(path)
        written = (
            "" if extent is None else located.line(extent.line)[extent.column - 1 : extent.end_column - 1]
        )
        if extent is not None and value in written and problem.line == 1:
            place = FilePlace(place.line, place.column + problem.column - (0 if extent.style else 1))
        located.problems.append(FileProblem(located.path, *place, f"{name}: {problem}", excerpt))
    else:
        return True
    return False
