"""The rules of workflows, each with a code and a message.

The validation, the guide and the tests use this list.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from deskwire.engine.definitions.rules import COMMON_RULES, DefinitionError

RULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **COMMON_RULES,
        "unknown_trigger": "There is no such trigger.",
        "unknown_action": "There is no such type of action.",
        "unknown_type": "There is no such type of field, or of assignee.",
        "unknown_assignee": "The project has no user or team with this id that conversations can be given to; viewers can't work on them.",
        "bad_wait": "A wait has 1 to 31,536,000 whole seconds, which is a year.",
        "too_deep": "Attributes are nested more than 200 deep.",
        "unknown_flow": "A `goto`, case or default is the id of a flow, or `end`.",
        "bad_operand": "A branch looks at `attributes.<key>`, `answers.<actionId>` or `answers.<actionId>.<fieldId>`.",
        "unknown_answer": "No action, or no field of a form, gives the answer that a branch looks at.",
        "impossible_case": "The case is none of the options of the buttons that a branch looks at.",
        "unreachable_flow": "Nothing leads to the flow.",
        "unreachable_action": "The actions in front of it never go on to it.",
        "endless_loop": "The flows lead back here without a step that waits.",
        "endless": "Nothing leads from here to an end of the workflow.",
    }
)
"""The message of each rule, by its code."""


def broken(code: str, path: str, message: str | None = None) -> DefinitionError:
    """Return the error that the value at `path` violates the rule with this code."""
    return DefinitionError(path, code, message or RULES[code])
