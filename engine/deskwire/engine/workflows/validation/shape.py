"""Validation of the members of a workflow: types, sizes and ids. The checks accept arbitrary JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from deskwire.engine.accounts.people import ASSIGNEE_TYPES
from deskwire.engine.core.text import MESSAGE_TEXT_MAX
from deskwire.engine.definitions.attributes import ATTRIBUTES_BYTES, ATTRIBUTES_MAX, KEY_MAX, size_of
from deskwire.engine.definitions.checks import (
    Errors,
    escaped,
    identifier,
    is_whole,
    items,
    listed,
    members,
    text,
    wrong_type,
)
from deskwire.engine.workflows.definition import ACTION_TYPES, END, FIELD_TYPES, TRIGGERS
from deskwire.engine.workflows.validation.rules import broken

NAME_MAX: Final = 200
LABEL_MAX: Final = 200
FLOWS_MAX: Final = 50
ACTIONS_MAX: Final = 200
"""Actions of all flows together. A run carries out at most this many between two that wait."""

OPTIONS_MAX: Final = 20
FIELDS_MAX: Final = 20
CASES_MAX: Final = 50
CASE_MAX: Final = 200
"""Characters of a branch's case."""

WAIT_MAX_S: Final = 365 * 86_400
ACTION_ID_MAX: Final = 999_999_999
ID_MAX: Final = 64
"""Characters of an assignee's id."""


def workflow_shape(value: Mapping[str, Any]) -> Errors:
    """Yield errors of the members of a workflow, without its control flow."""
    yield from members(value, "", ("name", "trigger", "flows"))
    if "name" in value:
        yield from text(value["name"], "/name", NAME_MAX)
    if "trigger" in value:
        yield from _trigger(value["trigger"])
    if "flows" not in value:
        return
    yield from items(value["flows"], "/flows", FLOWS_MAX)
    flow_ids: set[str] = set()
    action_ids: set[int] = set()
    actions = 0
    for index, flow in enumerate(listed(value["flows"], FLOWS_MAX)):
        yield from _flow(flow, f"/flows/{index}", flow_ids, action_ids)
        own = flow.get("actions") if isinstance(flow, Mapping) else None
        actions += len(own) if isinstance(own, list) else 0
    if actions > ACTIONS_MAX:
        yield broken(
            "too_many", "/flows", f"All flows together have at most {ACTIONS_MAX} actions; these {actions:,}."
        )


def _trigger(value: Any) -> Errors:
    if not isinstance(value, Mapping):
        yield wrong_type("/trigger", "an object")
        return
    yield from members(value, "/trigger", ("type",))
    if "type" in value and value["type"] not in TRIGGERS:
        yield broken("unknown_trigger", "/trigger/type", f"The triggers are {', '.join(TRIGGERS)}.")


def _flow(value: Any, path: str, flow_ids: set[str], action_ids: set[int]) -> Errors:
    if not isinstance(value, Mapping):
        yield wrong_type(path, "an object")
        return
    yield from members(value, path, ("id", "actions"))
    if "id" in value:
        yield from _flow_id(value["id"], f"{path}/id", flow_ids)
    if "actions" not in value:
        return
    yield from items(value["actions"], f"{path}/actions", ACTIONS_MAX)
    for index, action in enumerate(listed(value["actions"], ACTIONS_MAX)):
        yield from _action(action, f"{path}/actions/{index}", action_ids)


def _flow_id(value: Any, path: str, taken: set[str]) -> Errors:
    yield from identifier(value, path)
    if value == END:
        yield broken("bad_id", path, f"No flow can have the id {END}: it is where a workflow ends.")
    if isinstance(value, str):
        yield from _unique(value, path, taken)


def _unique(value: Any, path: str, taken: set[Any]) -> Errors:
    if value in taken:
        yield broken("duplicate_id", path, "An earlier one has the same id.")
    taken.add(value)


def _action(value: Any, path: str, taken: set[int]) -> Errors:
    if not isinstance(value, Mapping):
        yield wrong_type(path, "an object")
        return
    action_id, kind = value.get("id", 0), value.get("type")
    if "id" not in value:
        yield broken("required", f"{path}/id", "This is required.")
    elif not is_whole(action_id) or not 0 <= action_id <= ACTION_ID_MAX:
        yield broken(
            "bad_id", f"{path}/id", f"The id of an action is an integer from 0 to {ACTION_ID_MAX:,}."
        )
    else:
        yield from _unique(action_id, f"{path}/id", taken)
    if "type" not in value:
        yield broken("required", f"{path}/type", "This is required.")
    elif not isinstance(kind, str) or kind not in ACTION_TYPES:
        yield broken("unknown_action", f"{path}/type", f"The actions are {', '.join(ACTION_TYPES)}.")
    else:
        yield from _MEMBERS[kind](value, path)


def _own(
    value: Mapping[str, Any], path: str, required: tuple[str, ...], optional: tuple[str, ...] = ()
) -> Errors:
    """Yield errors for missing and unknown members other than `id` and `type`."""
    yield from members(
        {name: value[name] for name in value if name not in ("id", "type")}, path, required, optional
    )


def _message(value: Mapping[str, Any], path: str) -> Errors:
    yield from _own(value, path, ("text",))
    yield from _text(value, path)


def _text(value: Mapping[str, Any], path: str) -> Errors:
    if "text" in value:
        yield from text(value["text"], f"{path}/text", MESSAGE_TEXT_MAX)


def _buttons(value: Mapping[str, Any], path: str) -> Errors:
    yield from _own(value, path, ("text", "options"), ("allowText",))
    yield from _text(value, path)
    if not isinstance(value.get("allowText", False), bool):
        yield wrong_type(f"{path}/allowText", "true or false")
    if "options" in value:
        yield from _labelled(value["options"], f"{path}/options", OPTIONS_MAX, _option)


def _option(value: Mapping[str, Any], path: str) -> Errors:
    yield from members(value, path, ("id", "label"), ("goto",))


def _form(value: Mapping[str, Any], path: str) -> Errors:
    yield from _own(value, path, ("text", "fields"))
    yield from _text(value, path)
    if "fields" in value:
        yield from _labelled(value["fields"], f"{path}/fields", FIELDS_MAX, _field)


def _field(value: Mapping[str, Any], path: str) -> Errors:
    yield from members(value, path, ("id", "type", "label"), ("required",))
    if "type" in value and value["type"] not in FIELD_TYPES:
        yield broken("unknown_type", f"{path}/type", f"The types of fields are {', '.join(FIELD_TYPES)}.")
    if not isinstance(value.get("required", False), bool):
        yield wrong_type(f"{path}/required", "true or false")


def _labelled(
    value: Any, path: str, limit: int, members_of: Callable[[Mapping[str, Any], str], Errors]
) -> Errors:
    """Yield errors of a list of objects with an id and a label."""
    yield from items(value, path, limit)
    taken: set[str] = set()
    for index, each in enumerate(listed(value, limit)):
        here = f"{path}/{index}"
        if not isinstance(each, Mapping):
            yield wrong_type(here, "an object")
            continue
        yield from members_of(each, here)
        if "id" in each:
            yield from identifier(each["id"], f"{here}/id")
            yield from _unique(str(each["id"]), f"{here}/id", taken)
        if "label" in each:
            yield from text(each["label"], f"{here}/label", LABEL_MAX)


def _wait(value: Mapping[str, Any], path: str) -> Errors:
    yield from _own(value, path, ("seconds",))
    seconds = value.get("seconds", 1)
    if not is_whole(seconds) or not 1 <= seconds <= WAIT_MAX_S:
        yield broken("bad_wait", f"{path}/seconds")


def _assign(value: Mapping[str, Any], path: str) -> Errors:
    yield from _own(value, path, ("assignee",))
    here, assignee = f"{path}/assignee", value.get("assignee")
    if not isinstance(assignee, Mapping):
        if "assignee" in value:
            yield wrong_type(here, "an object with the type user or team and an id")
        return
    yield from members(assignee, here, ("type", "id"))
    if "type" in assignee and assignee["type"] not in ASSIGNEE_TYPES:
        yield broken(
            "unknown_type", f"{here}/type", f"The types of assignees are {', '.join(ASSIGNEE_TYPES)}."
        )
    if "id" in assignee:
        yield from text(assignee["id"], f"{here}/id", ID_MAX)


def _set_attributes(value: Mapping[str, Any], path: str) -> Errors:
    yield from _own(value, path, ("attributes",))
    yield from _keyed(value, "attributes", path, "an object", ATTRIBUTES_MAX, KEY_MAX)
    attributes = value.get("attributes")
    if isinstance(attributes, Mapping):
        size = size_of(attributes)
        if size is None:
            yield broken("too_deep", f"{path}/attributes")
        elif size > ATTRIBUTES_BYTES:
            message = f"All attributes together have at most {ATTRIBUTES_BYTES:,} bytes."
            yield broken("too_long", f"{path}/attributes", message)


def _branch(value: Mapping[str, Any], path: str) -> Errors:
    yield from _own(value, path, ("on", "cases", "default"))
    yield from _keyed(value, "cases", path, "an object with a flow for each value", CASES_MAX, CASE_MAX)


def _keyed(
    owner: Mapping[str, Any], name: str, path: str, expected: str, keys_max: int, key_max: int
) -> Errors:
    """Yield errors of a member that is an object with arbitrary keys."""
    value, here = owner.get(name), f"{path}/{name}"
    if not isinstance(value, Mapping):
        if name in owner:
            yield wrong_type(here, expected)
        return
    if not value:
        yield broken("empty", here)
    if len(value) > keys_max:
        yield broken("too_many", here, f"At most {keys_max} are allowed.")
    for key in value:
        yield from text(key, f"{here}/{escaped(key)}", key_max)


def _nothing(value: Mapping[str, Any], path: str) -> Errors:
    yield from _own(value, path, ())


_MEMBERS: Final[Mapping[str, Callable[[Mapping[str, Any], str], Errors]]] = {
    "message": _message,
    "buttons": _buttons,
    "form": _form,
    "wait": _wait,
    "assign": _assign,
    "set_attributes": _set_attributes,
    "branch": _branch,
    "close": _nothing,
    "hand_off": _nothing,
}
