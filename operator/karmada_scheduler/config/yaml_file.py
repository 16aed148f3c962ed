"""A YAML file as plain data; a duplicate key in a mapping is a problem."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

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


def parse(text: str) -> object:
    """Read one document; raises as ``read`` does."""
    loader = _Loader(text)
    try:
        data: object = loader.get_single_data()
    except yaml.YAMLError as error:
        raise ConfigError([ConfigProblem("", f"is no YAML: {' '.join(str(error).split())}")]) from error
    finally:
        loader.dispose()
    if loader.repeated:
        raise ConfigError(loader.repeated)
    return data


class _Loader(yaml.SafeLoader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.repeated: list[ConfigProblem] = []

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
