"""The mutants of a module: every way in which it can be wrong by one small step.

Some code is never mutated: docstrings, annotations, decorators and options of classes (`frozen`), assertions (they
state rules, and implement none), texts, calls of a `log`, and imports under `TYPE_CHECKING`. A `|` outside functions
joins types.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Final

_COMPARED: Final[dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]]] = {
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
_CALCULATED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_UNTOUCHED: Final = {"annotation", "returns", "decorator_list", "bases"}
_DROPPED: Final = (ast.AugAssign, ast.Raise, ast.Delete, ast.Break, ast.Continue)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module with one change.

    Args:
        line: its line in the module.
        was, became: the changed piece of code, before and after.
        code: the changed module.
    """

    line: int
    was: str
    became: str
    code: CodeType


def mutants(source: str, filename: str, only: tuple[str, ...] = ()) -> Iterator[Mutant]:
    """Yield each mutant of a module, in the order of its lines.

    Args:
        only: names of the module's top-level definitions to mutate; all if empty.
    """
    module = ast.parse(source, filename)
    for top in module.body:
        if only and getattr(top, "name", None) not in only:
            continue
        for holder, field, index, node in _places(module, "body", module.body.index(top), top):
            for changed in _changes(node, inside=node is not top):
                yield _made(module, filename, (holder, field, index), node, changed)


def _made(
    module: ast.Module, filename: str, place: tuple[ast.AST, str, int | None], node: ast.AST, changed: ast.AST
) -> Mutant:
    """Return the mutant with `changed` in the place of `node`; the tree is left as it was."""
    was, became = ast.unparse(node), ast.unparse(ast.fix_missing_locations(ast.copy_location(changed, node)))
    _put(place, changed)
    try:
        return Mutant(getattr(node, "lineno", 0), was, became, compile(module, filename, "exec"))
    finally:
        _put(place, node)


def _put(place: tuple[ast.AST, str, int | None], node: ast.AST) -> None:
    holder, field, index = place
    if index is None:
        setattr(holder, field, node)
    else:
        getattr(holder, field)[index] = node


def _places(
    holder: ast.AST, field: str, index: int | None, node: ast.AST
) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Yield the node and all nodes below it, each with its place in its parent."""
    if isinstance(node, (ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr)) or is_silent(node):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    yield holder, field, index, node
    for name, value in list(ast.iter_fields(node)):
        if name in _UNTOUCHED or (name == "keywords" and isinstance(node, ast.ClassDef)):
            continue
        if isinstance(value, ast.AST):
            yield from _places(node, name, None, value)
        elif isinstance(value, list):
            for at, each in enumerate(value):
                if isinstance(each, ast.AST):
                    yield from _places(node, name, at, each)


def is_silent(node: ast.AST) -> bool:
    """Return whether the statement is a docstring, writes to the log, or is unreachable."""
    if not isinstance(node, ast.Expr):
        return False
    return isinstance(node.value, ast.Constant) or ast.unparse(node.value).startswith(
        ("log.", "assert_never(")
    )


def _changes(node: ast.AST, *, inside: bool) -> Iterator[ast.AST]:
    """Yield replacements for the node; `inside` unless it is a statement at the module's top."""
    match node:
        case ast.Compare(left, ops, right):
            for at, op in enumerate(ops):
                for other in _COMPARED[type(op)]:
                    yield ast.Compare(left, [*ops[:at], other(), *ops[at + 1 :]], right)
        case ast.BinOp(left, operator, right) if type(operator) in _CALCULATED and inside:
            if not (isinstance(operator, ast.BitOr) and "None" in ast.unparse(node)):
                yield ast.BinOp(left, _CALCULATED[type(operator)](), right)
        case ast.BoolOp(operator, values):
            yield ast.BoolOp(ast.Or() if isinstance(operator, ast.And) else ast.And(), values)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() | float() as value):
            yield from (ast.Constant(value + 1), ast.Constant(value - 1))
        case ast.If(test, body, orelse) if isinstance(
            test, (ast.Name, ast.Attribute, ast.Call, ast.NamedExpr)
        ):
            yield ast.If(ast.UnaryOp(ast.Not(), test), body, orelse)
        case ast.IfExp(test, body, orelse) if isinstance(test, (ast.Name, ast.Attribute, ast.Call)):
            yield ast.IfExp(test, orelse, body)
        case ast.Return(value) if value is not None and ast.unparse(value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.Assign([ast.Attribute() | ast.Subscript()]) | ast.Expr():
            yield ast.Pass()
        case _ if isinstance(node, _DROPPED):
            yield ast.Pass()
