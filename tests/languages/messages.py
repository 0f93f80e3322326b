"""Reads the desk's texts from Fluent files.

The files keep to a part of Fluent: text, variables, `NUMBER()`, `LOWER()`, and selections. `docs/guide/languages.md` describes it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from fluent.syntax import FluentParser, ast

PLURALS: Final = frozenset({"zero", "one", "two", "few", "many", "other"})
NONE: Final = "none"
_COMMENT_VARIABLE: Final = re.compile(r"\$(\w+)(?: \(([^)]+)\))?")
_SEPARATOR: Final = re.compile(r"(?<!-)-(?!-)")


@dataclass(frozen=True)
class Value:
    """A variable in a text, with the form in which it is inserted: unchanged, as a number, or with its first letter in lower case."""

    name: str
    form: str = ""


@dataclass(frozen=True)
class Choice:
    """One of several texts, by the value of a variable. The last one is the default."""

    name: str
    variants: tuple[tuple[str, Pattern], ...]

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(key for key, _ in self.variants)

    @property
    def is_plural(self) -> bool:
        """True if the variable is a number: all keys are plural categories or numbers."""
        return all(key in PLURALS or key.isdigit() for key in self.keys)


Pattern: TypeAlias = tuple["str | Value | Choice", ...]


@dataclass(frozen=True)
class Message:
    """A text with its name, and the variables that its comment lists, with their types."""

    id: str
    pattern: Pattern
    comment: tuple[tuple[str, str], ...]

    @property
    def variables(self) -> dict[str, str]:
        """The variables with their types, in the order of the comment, else of their first use."""
        used = used_variables(self.pattern)
        if not self.comment:
            return used
        return {name: kind or used.get(name, "string") for name, kind in self.comment}


class Unusable(Exception):
    """Files that can't be compiled, with all of their problems."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class _Unsupported(Exception):
    """A message uses a part of Fluent that can't be compiled."""


def path_of(message_id: str) -> list[str]:
    """Return the keys of a text in its module: `a-b` is `t.a.b`; `--` stands for a hyphen, `__` for a dot, `_` for no character."""
    return [
        "" if each == "_" else each.replace("--", "-").replace("__", ".")
        for each in _SEPARATOR.split(message_id)
    ]


def used_variables(pattern: Pattern) -> dict[str, str]:
    """Return the variables of a pattern in order of their first use, with the types that follow from it."""
    found: dict[str, str] = {}
    for each in pattern:
        if isinstance(each, Value):
            _note(found, each.name, "number" if each.form == "NUMBER" else "string")
        elif isinstance(each, Choice):
            _note(found, each.name, _kind(each))
            for _, variant in each.variants:
                for name, kind in used_variables(variant).items():
                    _note(found, name, kind)
    return found


def _note(found: dict[str, str], name: str, kind: str) -> None:
    if found.get(name, "string") == "string":
        found[name] = kind


def _kind(choice: Choice) -> str:
    if choice.is_plural:
        return "number"
    if choice.keys <= {"true", "false"}:
        return "boolean"
    return "string | null | undefined" if NONE in choice.keys else "string"


def read_messages(file: Path, name: str) -> dict[str, Message]:
    """Read a Fluent file.

    Args:
        file: the path.
        name: the file's name in problems.

    Raises:
        Unusable: the file has errors.
    """
    resource = FluentParser(with_spans=True).parse(file.read_text())
    problems: list[str] = []
    found: dict[str, Message] = {}
    for entry in resource.body:
        if isinstance(entry, ast.Junk):
            problems += [
                f"{name}: {each.message}: {(entry.content or '').partition(chr(10))[0]}"
                for each in entry.annotations
            ]
        elif isinstance(entry, ast.Message):
            key = entry.id.name
            if key in found:
                problems.append(f"{name}: {key} occurs twice.")
            try:
                found[key] = _message(entry)
            except _Unsupported as error:
                problems.append(f"{name}: {key}: {error}")
        elif isinstance(entry, ast.Term):
            problems.append(f"{name}: -{entry.id.name}: terms are not supported.")
    if problems:
        raise Unusable(*problems)
    return found


def _message(entry: ast.Message) -> Message:
    if entry.value is None or entry.attributes:
        raise _Unsupported("a message has a text and no attributes.")
    comment = _COMMENT_VARIABLE.findall(entry.comment.content or "") if entry.comment else []
    return Message(entry.id.name, _pattern(entry.value), tuple(comment))


def _pattern(pattern: ast.Pattern) -> Pattern:
    parts: list[str | Value | Choice] = []
    for element in pattern.elements:
        part = element.value if isinstance(element, ast.TextElement) else _placed(element.expression)
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    return tuple(parts) or ("",)


def _placed(expression: ast.InlineExpression | ast.Placeable | ast.SelectExpression) -> str | Value | Choice:
    if isinstance(expression, ast.StringLiteral):
        return str(expression.parse()["value"])
    if isinstance(expression, ast.VariableReference):
        return Value(expression.id.name)
    if isinstance(expression, ast.FunctionReference):
        name, arguments = expression.id.name, expression.arguments.positional
        if (
            name in {"NUMBER", "LOWER"}
            and len(arguments) == 1
            and isinstance(arguments[0], ast.VariableReference)
        ):
            return Value(arguments[0].id.name, name)
        raise _Unsupported(f"{name}() is neither NUMBER($variable) nor LOWER($variable).")
    if isinstance(expression, ast.SelectExpression):
        return _choice(expression)
    raise _Unsupported(
        "only variables, texts in quotes, NUMBER(), LOWER() and selections can stand in braces."
    )


def _choice(expression: ast.SelectExpression) -> Choice:
    if not isinstance(expression.selector, ast.VariableReference):
        raise _Unsupported("a selection is by a variable.")
    variants = sorted(expression.variants, key=lambda each: each.default)
    choice = Choice(
        expression.selector.id.name,
        tuple((_key(each.key), _pattern(each.value)) for each in variants),
    )
    if choice.is_plural and variants[-1].default and _key(variants[-1].key) != "other":
        raise _Unsupported("the default of a plural is [other].")
    return choice


def _key(key: ast.Identifier | ast.NumberLiteral) -> str:
    return key.name if isinstance(key, ast.Identifier) else str(key.value)
