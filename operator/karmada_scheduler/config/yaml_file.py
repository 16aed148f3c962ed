"""A YAML file as plain data; a duplicate key in a mapping is a problem."""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Final

import yaml

from karmada_scheduler.config.problems import ConfigError, ConfigProblem


def read(path: Path) -> object:
    """Read a file with one document.

    Raises:
        ConfigError: It cannot be read or parsed, or has a duplicate key; the text has the line.
    """
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError([ConfigProblem("", f"cannot read it: {error.strerror}")]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([ConfigProblem("", f"is no text in UTF-8: {error}")]) from error


def parse(text: str | bytes, *, unique_keys: bool = True) -> object:
    """Read one document; raises as ``read`` does.

    Args:
        text: The document. An error names the line and the column, and shows no text: it may contain secrets.
        unique_keys: Whether a duplicate key is a problem.
    """
    try:
        loader = _Loader(text)
        try:
            data: object = loader.get_single_data()
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise ConfigError([ConfigProblem("", f"is no YAML: {_text_of(error)}")]) from error
    except RecursionError as error:
        raise ConfigError([ConfigProblem("", "is no YAML: it is nested too deeply")]) from error
    if loader.repeated and unique_keys:
        raise ConfigError(loader.repeated)
    return data


_QUOTED: Final = re.compile(r"""(['"]).*\1""")


def _text_of(error: yaml.YAMLError) -> str:
    """Return what is wrong and where, without any text of the file."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return " ".join(str(error).split())  # of a single character
    what = ", ".join(text for text in (error.context, error.problem) if text)
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return place + _QUOTED.sub("'...'", what)


class _Loader(yaml.SafeLoader):
    def __init__(self, text: str | bytes) -> None:
        super().__init__(text)
        self.repeated: list[ConfigProblem] = []

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 (PyYAML's)
        try:
            return super().construct_object(node, deep=deep)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # Such as the 45th of January, or a number of too many digits.
            what = f"the value is no {node.tag.rpartition(':')[2]}"
            raise yaml.constructor.ConstructorError(None, None, what, node.start_mark) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 (PyYAML's)
        met: dict[object, int] = {}
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                line = key.start_mark.line + 1
                if key.value in met:
                    self.repeated.append(
                        ConfigProblem(
                            "", f'line {line}: "{key.value}" stands already in line {met[key.value]}'
                        )
                    )
                met[key.value] = line
        return super().construct_mapping(node, deep=deep)
