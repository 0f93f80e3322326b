"""Lists of values in the product's code: where a `Literal` defines them, and where a table has an entry for each."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.root import ROOT

Values = frozenset[str]
LAYERS: Final = ("engine", "http", "storage")


class Listed(NamedTuple):
    """A `Literal` of several values, or the keys of a table, with its place: `file: name`."""

    place: str
    values: Values


@cache
def modules() -> Mapping[str, ast.Module]:
    """Return the modules of the product that could have one of both, by their paths in the repository."""
    found = {}
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*.py")):
            source = path.read_text()
            if "Literal[" in source or "dict[" in source or "Mapping[" in source:
                found[str(path.relative_to(ROOT))] = ast.parse(source)
    return found


def literals(trees: Mapping[str, ast.Module]) -> Iterator[Listed]:
    """Yield each `Literal` of several strings, wherever it is written."""
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and (values := _literal(node, {})) and len(values) > 1:
                yield Listed(f"{file}:{node.lineno}", values)


def written_twice(trees: Mapping[str, ast.Module]) -> dict[Values, list[str]]:
    """Return the values of literals that are written in more than one place, with the places."""
    places: dict[Values, list[str]] = {}
    for each in literals(trees):
        places.setdefault(each.values, []).append(each.place)
    return {values: found for values, found in places.items() if len(found) > 1}


def incomplete(trees: Mapping[str, ast.Module]) -> dict[str, Values]:
    """Return the tables whose keys are of a `Literal` and that lack some of its values, with these values.

    A table is a `dict` display that is assigned to a name with the annotation `dict[Kind, …]` or `Mapping[Kind, …]`.
    """
    defined = {_module(file): _aliases(tree) for file, tree in trees.items()}
    lacking: dict[str, Values] = {}
    for file, tree in trees.items():
        known = _known(tree, defined, _module(file))
        for node in ast.walk(tree):
            if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
                values = known.get(_key_type(node.annotation), frozenset())
                keys = {each.value for each in node.value.keys if isinstance(each, ast.Constant)}
                if keys and None not in node.value.keys and (left := values - keys):
                    lacking[f"{file}: {ast.unparse(node.target)}"] = frozenset(left)
    return lacking


def _module(file: str) -> str:
    """Return the dotted name of a module by its path in the repository."""
    return ".".join(Path(file).with_suffix("").parts[1:])


def _known(tree: ast.Module, defined: Mapping[str, Mapping[str, Values]], module: str) -> dict[str, Values]:
    """Return the values of the literals that a module has a name for, its own and imported ones."""
    known = dict(defined[module])
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            theirs = defined.get(node.module or "", {})
            known |= {
                each.asname or each.name: theirs[each.name] for each in node.names if each.name in theirs
            }
    return known


def _aliases(tree: ast.Module) -> dict[str, Values]:
    """Return the names that a module gives to literals of strings."""
    found: dict[str, Values] = {}
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.Subscript() as value)
            ) if values := _literal(value, found):
                found[name] = values
    return found


def _literal(node: ast.AST, known: Mapping[str, Values]) -> Values:
    """Return the strings of a `Literal`, with those of literals in it that have a name; none for anything else."""
    if not (isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal")):
        return frozenset()
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    values = {each.value for each in parts if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    named = (known.get(each.id, frozenset()) for each in parts if isinstance(each, ast.Name))
    return frozenset(values.union(*named))


def _key_type(annotation: ast.AST) -> str:
    """Return the name of the keys' type in `Final[Mapping[Kind, …]]`; empty for another annotation."""
    if not isinstance(annotation, ast.Subscript):
        return ""
    if ast.unparse(annotation.value) == "Final":
        return _key_type(annotation.slice)
    parts = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else []
    return ast.unparse(parts[0]) if parts and ast.unparse(annotation.value) in ("dict", "Mapping") else ""
