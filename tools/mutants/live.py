"""Functions of modules that are imported already get the code of a changed tree."""

from __future__ import annotations

import gc
import inspect
from collections import defaultdict
from collections.abc import Collection, Iterator
from types import CodeType, FunctionType

from tools.mutants.mutation import ROOT


class Live:
    """The functions of this process, by module, qualified name and first line."""

    def __init__(self, paths: Collection[str]) -> None:
        """Find the functions of modules, by paths from the root of the repository; not after ``gc.freeze``."""
        wanted = {str(ROOT / path): path for path in paths}
        self._functions: dict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
        for each in gc.get_objects():
            if type(each) is FunctionType and each.__code__.co_filename in wanted:
                code = each.__code__
                path = wanted[code.co_filename]
                self._functions[path, code.co_qualname, code.co_firstlineno].append(each)

    def replace(self, path: str, module: CodeType, function: tuple[str, int] | None = None) -> int:
        """Give functions the code that a compiled module has for them; return for how many there was one.

        Args:
            path: The path of the module.
            module: The compiled module.
            function: The qualified name and the first line of the only one to replace; all if None.
        """
        count = 0
        for code in _outermost(module):
            key = code.co_qualname, code.co_firstlineno
            if function in (None, key) and not code.co_name.startswith("<"):
                for each in self._functions[path, *key]:
                    each.__code__ = code
                    count += 1
        return count


def _outermost(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of functions that are not inside another function."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            if each.co_flags & inspect.CO_OPTIMIZED:  # a function, not the body of a class
                yield each
            else:
                yield from _outermost(each)
