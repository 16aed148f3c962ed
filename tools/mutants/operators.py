"""The mistakes: what can be replaced in a node of a syntax tree.

Only mistakes that lose or move something are made. Messages, log lines, annotations of types, ``__repr__`` and values
that are computed at import (constants, defaults of parameters, fields of classes) are left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final

_COMPARISONS: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_CALLS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}
_TEXT: Final = (ast.JoinedStr, ast.List, ast.Tuple)
_DECIDED: Final = (ast.Compare, ast.BoolOp, ast.Constant)


def is_message(node: ast.AST) -> bool:
    """Return whether a statement only writes a log line."""
    match node:
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="log")))):
            return True
        case ast.Assert():
            return True
    return False


def expressions(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield the name of each mistake at an expression, and what stands there instead."""
    match node:
        case ast.Compare():
            yield from _compared(node)
        case ast.BoolOp(op, values):
            for index in range(len(values)):
                left = [*values[:index], *values[index + 1 :]]
                yield "operand", left[0] if len(left) == 1 else ast.BoolOp(op, left)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield "unary", operand
        case ast.BinOp(left, op, right) if type(op) in _ARITHMETIC and not (
            _is_text(left) or _is_text(right)
        ):
            yield "arithmetic", ast.BinOp(left, _ARITHMETIC[type(op)](), right)
        case ast.Constant(bool() as value):
            yield "constant", ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield "number", ast.Constant(value + 1)
        case ast.IfExp(test, body, other) if not isinstance(test, _DECIDED):
            yield "condition", ast.IfExp(_negated(test), body, other)
        case ast.Call(ast.Name(name), arguments, keywords) if name in _CALLS:
            yield "call", ast.Call(ast.Name(_CALLS[name], ast.Load()), arguments, keywords)
        case ast.Call(ast.Name("replace"), arguments, keywords) if len(keywords) > 1:
            for index in range(len(keywords)):
                yield "keyword", ast.Call(node.func, arguments, [*keywords[:index], *keywords[index + 1 :]])
        case ast.Tuple(elements, ast.Load()) | ast.List(elements, ast.Load()) | ast.Set(elements):
            yield from _shorter(node, elements)
    yield from _unconditional(node)


def statements(node: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the name of each mistake at a statement, and what stands there instead."""
    match node:
        case ast.Expr(ast.Call() | ast.Await()) | ast.Delete() | ast.Raise() | ast.Continue() | ast.Break():
            yield "statement", ast.Pass()
        case ast.Return(None):
            yield "statement", ast.Pass()
        case ast.Assign(targets) if all(isinstance(each, ast.Attribute | ast.Subscript) for each in targets):
            yield "statement", ast.Pass()
        case ast.AnnAssign(ast.Attribute(), _, ast.expr()):
            yield "statement", ast.Pass()
        case ast.AugAssign(target, op, value):
            yield "statement", ast.Pass()
            if type(op) in _ARITHMETIC and not _is_text(value):
                yield "arithmetic", ast.AugAssign(target, _ARITHMETIC[type(op)](), value)
        case ast.If(test, body, other) if not isinstance(test, (*_DECIDED, ast.UnaryOp)):
            yield "condition", ast.If(_negated(test), body, other)
        case ast.While(test, body, other) if not isinstance(test, (*_DECIDED, ast.UnaryOp)):
            yield "condition", ast.While(_negated(test), body, other)


def handlers(node: ast.ExceptHandler) -> Iterator[tuple[str, ast.ExceptHandler]]:
    """Yield a handler of exceptions without each of its types."""
    match node:
        case ast.ExceptHandler(ast.Tuple(types, context), name, body):
            for index in range(len(types)):
                left = ast.Tuple([*types[:index], *types[index + 1 :]], context)
                yield "exception", ast.ExceptHandler(left, name, body)


def _compared(node: ast.Compare) -> Iterator[tuple[str, ast.expr]]:
    for index, operator in enumerate(node.ops):
        for other in _COMPARISONS[type(operator)]:
            yield (
                "compare",
                ast.Compare(
                    node.left, [*node.ops[:index], other(), *node.ops[index + 1 :]], node.comparators
                ),
            )


def _shorter(node: ast.expr, elements: Sequence[ast.expr]) -> Iterator[tuple[str, ast.expr]]:
    """Yield a display without one element, if it spreads one: then no code counts on its length."""
    if not any(isinstance(each, ast.Starred) for each in elements) or len(elements) < 2:
        return
    for index in range(len(elements)):
        left = [*elements[:index], *elements[index + 1 :]]
        match node:
            case ast.Set():
                yield "element", ast.Set(left)
            case ast.List():
                yield "element", ast.List(left, ast.Load())
            case ast.Tuple():
                yield "element", ast.Tuple(left, ast.Load())


def _unconditional(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield a comprehension without each of its conditions."""
    match node:
        case (
            ast.ListComp(generators=found)
            | ast.SetComp(generators=found)
            | ast.GeneratorExp(generators=found)
        ):
            pass
        case ast.DictComp(generators=found):
            pass
        case _:
            return
    for index, each in enumerate(found):
        for number in range(len(each.ifs)):
            left = ast.comprehension(
                each.target, each.iter, [*each.ifs[:number], *each.ifs[number + 1 :]], each.is_async
            )
            generators = [*found[:index], left, *found[index + 1 :]]
            if isinstance(node, ast.DictComp):
                yield "condition", ast.DictComp(node.key, node.value, generators)
            else:
                yield "condition", type(node)(node.elt, generators)


def _negated(test: ast.expr) -> ast.expr:
    return (
        test.operand
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
        else ast.UnaryOp(ast.Not(), test)
    )


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, _TEXT) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
