"""Problems of a configuration, each with its path, and the error that reports all of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from karmada_scheduler.structs import Struct, equal_without


class ConfigProblem(Struct, frozen=True):
    """One invalid value.

    Attributes:
        path: Path from the root of the file: ``profiles[0].plugins.score.enabled[2].name``.
        text: What is wrong and what is accepted.
        cause: The exception, if other code found the problem.
    """

    path: str
    text: str
    cause: BaseException | None = None

    def __eq__(self, other: object) -> bool:
        return equal_without("cause", self, other)

    def __hash__(self) -> int:
        return hash((self.path, self.text))

    def below(self, path: str) -> ConfigProblem:
        """Return the same problem with a path from a parent."""
        return ConfigProblem(join(path, self.path), self.text, self.cause)

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class ConfigError(ValueError):
    """A configuration that cannot be used; the text has one line per problem."""

    def __init__(self, problems: Sequence[ConfigProblem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)

    def within(self, file: object) -> ConfigError:
        """Return the same error with the file's name before each problem."""
        return ConfigError(
            [
                ConfigProblem(f"{file}: {each.path}" if each.path else str(file), each.text, each.cause)
                for each in self.problems
            ]
        )


def join(path: str, rest: str) -> str:
    """Put two parts of a path together; a part that is an index (``[2]``) needs no dot."""
    return path + rest if not path or not rest or rest.startswith("[") else f"{path}.{rest}"


def known(names: Iterable[str]) -> str:
    """Return the end of an error text about an unknown name: the known names."""
    return f"known: {', '.join(names) or 'none'}"


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a question that suggests the known name most similar to an unknown one; "" if none is."""
    by_lower = {other.lower(): other for other in names}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    return f'did you mean "{by_lower[found[0]]}"? ' if found else ""
