"""Where mistakes can be made in a module, and the functions that make them."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, Final

from tools.mutants import operators

ROOT: Final = Path(__file__).resolve().parents[2]
PROBE: Final = "__mutants_reached__"
"""A builtin in processes that trace: it is called with the number of a block when the block begins."""

_NOT_MUTATED: Final = ("__repr__", "__str__", "__hash__")


@dataclass(frozen=True, slots=True)
class Mutation:
    """One mistake; ``apply`` makes it in the tree of its module, in a process that ends afterwards."""

    module: str
    """The path of the module from the root of the repository."""
    function: str
    """The qualified name of the outermost function."""
    block: str
    """The block of statements that contains it: the function, and a number within the function."""
    line: int
    operator: str
    before: str
    after: str
    nth: int
    """The number of this mistake among those of the function with equal texts."""
    body: str
    """A hash of the function without its mistakes."""
    first_line: int
    _parent: Any
    _field: str
    _index: int | None
    _new: ast.AST

    @property
    def id(self) -> str:
        """The same name in each version of the module, as long as the place is there."""
        text = "\0".join((self.module, self.function, self.operator, self.before, self.after, str(self.nth)))
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def apply(self) -> None:
        """Make the mistake in the tree."""
        if self._index is None:
            setattr(self._parent, self._field, self._new)
        else:
            getattr(self._parent, self._field)[self._index] = self._new


class Module:
    """The syntax tree of one module, and the mistakes that can be made in it."""

    def __init__(self, path: str) -> None:
        """Read the module; ``path`` is relative to the root of the repository."""
        self.path = path
        self.source = (ROOT / path).read_text(encoding="utf-8")
        self.tree = ast.parse(self.source)
        self.mutations: list[Mutation] = []
        self._places: dict[str, tuple[ast.AST, str]] = {}
        self._function_name = ""
        self._numbers: Counter[str] = Counter()
        self._seen: Counter[tuple[str, ...]] = Counter()
        self._functions(self.tree.body, "")

    @property
    def blocks(self) -> Collection[str]:
        """The blocks of statements, by function and number."""
        return self._places

    def code(self) -> CodeType:
        """Compile the tree as it is now."""
        tree = ast.fix_missing_locations(self.tree)
        return compile(tree, str(ROOT / self.path), "exec", dont_inherit=True)

    def add_probes(self) -> None:
        """Let each block of statements say that it was reached."""
        for block, (parent, field) in self._places.items():
            statement = ast.parse(f"{PROBE}(({self.path!r}, {block!r}))").body[0]
            first = getattr(parent, field)[0]
            for node in ast.walk(statement):
                ast.copy_location(node, first)
            getattr(parent, field).insert(0, statement)

    def _functions(self, body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    self._function(node, prefix)
                case ast.ClassDef():
                    self._functions(node.body, f"{prefix}{node.name}.")
                case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                    pass
                case ast.If() | ast.Try() | ast.With():
                    self._functions(node.body, prefix)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, prefix: str) -> None:
        if node.name in _NOT_MUTATED:
            return
        name = self._function_name = f"{prefix}{node.name}"
        digest = hashlib.sha256(ast.dump(node).encode()).hexdigest()[:16]
        first_line = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        for mutation in list(self._block(node, "body")):
            block, line, operator, before, after, parent, field, index, new = mutation
            if node.name == "__init__" and after == "pass" and before.startswith("self."):
                continue  # an attribute that is missing is no small mistake
            nth = self._seen[name, operator, before, after]
            self._seen[name, operator, before, after] += 1
            place = (self.path, name, block, line, operator, before, after, nth, digest, first_line)
            self.mutations.append(Mutation(*place, parent, field, index, new))

    def _block(self, parent: ast.AST, field: str) -> Iterator[tuple[Any, ...]]:
        block = f"{self._function_name}:{self._numbers[self._function_name]}"
        self._numbers[self._function_name] += 1
        self._places[block] = (parent, field)
        for index, node in enumerate(getattr(parent, field)):
            if operators.is_message(node) or _is_docstring(node):
                continue
            for operator, new in operators.statements(node):
                yield block, node.lineno, operator, _text(node), _text(new), parent, field, index, new
            yield from self._children(node, block)

    def _children(self, node: ast.AST, block: str) -> Iterator[tuple[Any, ...]]:
        if isinstance(node, ast.Raise | ast.JoinedStr | ast.arguments):
            return
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "pattern", "type_params", "ctx"):
                continue
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield from self._block(node, field)
            elif isinstance(value, list):
                for index, each in enumerate(value):
                    if isinstance(each, ast.AST):
                        yield from self._at(node, field, index, each, block)
            elif isinstance(value, ast.AST):
                yield from self._at(node, field, None, value, block)

    def _at(
        self, parent: ast.AST, field: str, index: int | None, node: ast.AST, block: str
    ) -> Iterator[tuple[Any, ...]]:
        if isinstance(node, ast.expr):
            for operator, new in operators.expressions(node):
                yield block, node.lineno, operator, _text(node), _text(new), parent, field, index, new
        elif isinstance(node, ast.ExceptHandler):
            for operator, handler in operators.handlers(node):
                yield block, node.lineno, operator, _text(node), _text(handler), parent, field, index, handler
        yield from self._children(node, block)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _text(node: ast.AST) -> str:
    """The source of an expression, or the first line of a statement."""
    return ast.unparse(node).split("\n", 1)[0]
