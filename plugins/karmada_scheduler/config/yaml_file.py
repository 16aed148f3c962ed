"""A YAML file of configuration as plain data; a duplicate key in a mapping is a problem."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from karmada_scheduler.config.file_content import FileContentError, as_text, read_text_file
from karmada_scheduler.config.problems import ConfigError, ConfigProblem
from karmada_scheduler.config.yaml_document import YamlError, read_document

_MAX_BYTES: Final = 16 * 2**20


def read(path: Path) -> object:
    """Read a file with one document.

    Raises:
        ConfigError: It cannot be read or parsed, or has a duplicate key; the text has the line.
    """
    try:
        text = read_text_file(path, limit=_MAX_BYTES)
    except FileContentError as error:
        raise ConfigError([ConfigProblem("", str(error))]) from error
    return parse(text)


def parse(text: str | bytes, *, unique_keys: bool = True) -> object:
    """Read one document; raises as ``read`` does.

    Args:
        text: The document. An error names the line and the column, and shows no text: it may contain secrets.
        unique_keys: Whether a duplicate key is a problem.
    """
    try:
        found = read_document(text if isinstance(text, str) else as_text(text))
    except FileContentError as error:
        raise ConfigError([ConfigProblem("", str(error))]) from error
    except YamlError as error:
        raise ConfigError([ConfigProblem("", f"is no YAML: {error}")]) from error
    if found.repeated and unique_keys:
        raise ConfigError(
            [
                ConfigProblem("", f'line {each.line}: "{each.key}" stands already in line {each.before}')
                for each in found.repeated
            ]
        )
    return found.value
