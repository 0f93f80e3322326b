"""The reference page of survey definitions: every rule with an example that violates it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from deskwire.engine.surveys.logic import PRESENCE
from deskwire.engine.surveys.question_types import TYPES
from deskwire.engine.surveys.validation.rules import RULES, VALID
from deskwire.http.description.tables import markdown_table

_EXAMPLE_MAX: Final = 600

INTRODUCTION: Final = """\
# Survey definitions

<!-- Written by `make docs` from the registry of rules; do not edit. -->

The rules for a definition to be published. `POST /v3/engagement/surveys/{surveyId}/validate` reports up to 1,000
problems: `code` is one of those below, `path` a JSON pointer into the definition. [The guide](../guide/surveys.md) explains
the members.

This definition satisfies every rule:
"""

_RULES: Final = """\
## Rules

Each example shows members that, put into the definition above, violate only this rule.
"""

_OPERATORS: Final = """\
## Operators

The comparisons of a jump's `when` with an answer. An unanswered question matches only `not_answered`.
"""


def markdown() -> str:
    """Return the page."""
    presence = ", ".join(f"`{op}`" for op in PRESENCE)
    rows = [(f"`{kind}`", ", ".join(f"`{op}`" for op in rules.operators)) for kind, rules in TYPES.items()]
    table = markdown_table(("Type", "Operators"), [*rows, ("every type", f"{presence}, without `value`")])
    return (
        "\n".join((INTRODUCTION, _block(dict(VALID)), _OPERATORS, table, _RULES, *_sections())).rstrip()
        + "\n"
    )


def _sections() -> Iterator[str]:
    for rule in RULES.values():
        yield f"### `{rule.code}`\n\n{rule.meaning}\n"
        yield _block(dict(rule.example))


def _block(value: Any) -> str:
    """Return JSON with one line per outer member, shortened if it is long on purpose."""
    members = [f"  {orjson.dumps(name).decode()}: {_short(each)}" for name, each in value.items()]
    return "```json\n{\n" + ",\n".join(members) + "\n}\n```\n"


def _short(value: Any) -> str:
    text = orjson.dumps(value).decode().replace('":', '": ').replace(",", ", ")
    return text if len(text) <= _EXAMPLE_MAX else f"{text[:60]} … {text[-20:]}"
