"""The columns of conversations: one table that defines the statements and the row mapping.

A new field of `Conversation` that is stored needs a migration and a row in COLUMNS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

import orjson

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.conversation import Conversation, Status

WriteOccasion: TypeAlias = Literal["by SQLite", "once", "always", "by turns", "by commands", "rarely"]
"""The changes that write a column. "always" is every change; "by turns" are changes of `waiting_since`."""

_STATUSES: Final[Mapping[str, Status]] = {status: status for status in get_args(Status)}
"""Shares the strings of statuses among all states."""
_NO_ATTRIBUTES: Final[Mapping[str, Any]] = {}
"""Shared by all states without attributes, which are never changed in place."""


class ConversationColumn(NamedTuple):
    """A column, and the field of the state that it stores.

    Args:
        name: of the column.
        written: when; "by turns" and "rarely" are for indexed columns, as SQLite writes every index whose column a
            statement names, changed or not.
        field: of the state, if it has another name.
        write: converts a state to the stored value; None stores the field unchanged.
        read: converts a stored value to the field's value; None takes it unchanged.
    """

    name: str
    written: WriteOccasion
    field: str | None = None
    write: Callable[[Conversation], object] | None = None
    read: Callable[[Any], object] | None = None

    @property
    def source(self) -> str:
        """The name of the state's field."""
        return self.field or self.name


def _status(stored: str) -> str:
    return _STATUSES.get(stored, stored)


def _attributes(stored: str) -> Any:
    return _NO_ATTRIBUTES if stored == "{}" else orjson.loads(stored)


def _tags(stored: str) -> tuple[str, ...]:
    return () if stored == "[]" else tuple(orjson.loads(stored))


COLUMNS: Final = (
    ConversationColumn("rowid", "by SQLite"),
    ConversationColumn("id", "once"),
    ConversationColumn("project", "once"),
    ConversationColumn("created_at", "once"),
    ConversationColumn("imported_at", "once"),
    ConversationColumn("channel", "once"),
    ConversationColumn("client_id", "once"),
    ConversationColumn("revision", "always"),
    ConversationColumn("sequence", "always"),
    ConversationColumn("last_turn", "always"),
    ConversationColumn("unread", "always", read=bool),
    ConversationColumn("messages", "always"),
    ConversationColumn("contact_messages", "always"),
    ConversationColumn("last_message_at", "always"),
    ConversationColumn("updated_at", "always"),
    ConversationColumn("waiting_since", "by turns"),
    ConversationColumn("title", "by commands"),
    ConversationColumn("closed_by", "by commands"),
    ConversationColumn("closed_at", "by commands"),
    ConversationColumn("rating", "by commands"),
    ConversationColumn("rated_at", "by commands"),
    ConversationColumn("rating_comment", "by commands"),
    ConversationColumn("ticket_id", "by commands"),
    ConversationColumn("visible", "by commands", read=bool),
    ConversationColumn("attributes", "by commands", write=lambda state: orjson.dumps(state.attributes).decode(), read=_attributes),
    ConversationColumn("tags", "by commands", write=lambda state: orjson.dumps(state.tags).decode(), read=_tags),
    ConversationColumn("no_answer_needed_since", "by commands"),
    ConversationColumn("merged_into", "rarely"),
    ConversationColumn("merged", "by commands", write=lambda state: orjson.dumps(state.merged).decode(), read=_tags),
    ConversationColumn("merged_at", "by commands"),
    ConversationColumn("split_from", "by commands"),
    ConversationColumn("split_into", "rarely", write=lambda state: orjson.dumps(state.split_into).decode(), read=_tags),
    ConversationColumn("contact_seen_index", "by commands"),
    ConversationColumn("contact_seen_at", "by commands"),
    ConversationColumn("contact_reached_index", "by commands"),
    ConversationColumn("contact_reached_at", "by commands"),
    ConversationColumn("seen_until", "by commands"),
    ConversationColumn("network_logs_at", "by commands"),
    ConversationColumn("asked_at", "by commands"),
    ConversationColumn("answered_at", "by commands"),
    ConversationColumn("opened_at", "by commands"),
    ConversationColumn("replier_id", "by commands"),
    ConversationColumn("team_id", "by commands"),
    ConversationColumn("status", "rarely", read=_status),
    ConversationColumn("archived", "rarely", read=bool),
    ConversationColumn("assignee_type", "rarely", "assignee", lambda state: state.assignee and state.assignee.type),
    ConversationColumn("assignee_id", "rarely", "assignee", lambda state: state.assignee and state.assignee.id),
    ConversationColumn("assignee_name", "rarely", "assignee", lambda state: state.assignee and state.assignee.name),
    ConversationColumn("human", "rarely", read=bool),
    ConversationColumn("archived_at", "rarely"),
    ConversationColumn("snoozed_until", "rarely"),
)  # fmt: skip
ALWAYS_WRITTEN: Final = ("activity", "routed")
"""Columns without a field that every change writes: the key of lists, and the last sequence sent to each endpoint."""
HOUR: Final = "hour"
"""The column with the hour of the last activity. It is indexed, so it is written only when it changes."""
OWNER: Final = "contact"
"""The column with the contact, which is written once and has no field."""
HOUR_MS: Final = 3_600_000
NOT_STORED: Final = ("run",)
"""Fields without a column; a run has its own table."""


def _written(*when: WriteOccasion) -> list[ConversationColumn]:
    """Return the columns written on these occasions, those that store a field unchanged last."""
    return sorted(
        (column for column in COLUMNS if column.written in when), key=lambda column: column.write is None
    )


def _update(columns: Sequence[ConversationColumn], *more: str) -> str:
    names = (*ALWAYS_WRITTEN, *more, *(column.name for column in columns))
    return f"UPDATE conversations SET {', '.join(f'{name} = ?' for name in names)} WHERE rowid = ?"


def _made(columns: Sequence[ConversationColumn]) -> list[Callable[[Conversation], object]]:
    return [column.write for column in columns if column.write is not None]


def _fields(columns: Sequence[ConversationColumn]) -> Callable[[Conversation], tuple[Any, ...]]:
    """Return a function from a state to its fields that are stored unchanged, with its key at the end."""
    names = (*(column.source for column in columns if column.write is None), "rowid")
    taken: Callable[[Conversation], tuple[Any, ...]] = _compiled(
        f"lambda state: ({', '.join(f'state.{name}' for name in names)})"
    )
    return taken


def _differ(*when: WriteOccasion) -> Callable[[Conversation, Conversation], bool]:
    """Return a function that says whether two states may differ in the columns written on these occasions.

    It compares identities, because in Python 1 equals true, also inside attributes.
    """
    names = dict.fromkeys(column.source for column in COLUMNS if column.written in when)
    differ: Callable[[Conversation, Conversation], bool] = _compiled(
        f"lambda a, b: {' or '.join(f'a.{name} is not b.{name}' for name in names)}"
    )
    return differ


def _compiled(source: str) -> Any:
    """Compile a function of field names. It takes two thirds of the time of an `attrgetter`."""
    return eval(source, {"__builtins__": {}})


_BY_MESSAGES: Final = _written("always")
_BY_TURNS: Final = _written("always", "by turns")
_USUAL: Final = _written("always", "by commands")
_ALL: Final = _written("always", "by turns", "by commands", "rarely")
_INSERTED: Final = _written("once", "always", "by turns", "by commands", "rarely")

BY_MESSAGES, BY_TURNS = _update(_BY_MESSAGES), _update(_BY_TURNS)
USUAL, ALL = _update(_USUAL), _update(_ALL, HOUR)
INSERT: Final = (
    f"INSERT INTO conversations ({', '.join((OWNER, *ALWAYS_WRITTEN, HOUR, *(column.name for column in _INSERTED)))}) "
    f"VALUES ({', '.join('?' * (2 + len(ALWAYS_WRITTEN) + len(_INSERTED)))})"
)

_made_usual, _made_all, _made_inserted = _made(_USUAL), _made(_ALL), _made(_INSERTED)
_fields_by_messages, _fields_by_turns = _fields(_BY_MESSAGES), _fields(_BY_TURNS)
_fields_usual, _fields_all = _fields(_USUAL), _fields(_ALL)
_fields_inserted: Final = _fields(_INSERTED)
_differ_by_turns, _differ_by_commands = _differ("by turns"), _differ("by commands")
_differ_rarely: Final = _differ("rarely")
assert not _made(_BY_TURNS), "nothing is made of a state for each message"


def insertion(state: Conversation, contact: int, routed: Mapping[int, int]) -> tuple[Any, ...]:
    """Return the values of INSERT."""
    made = [write(state) for write in _made_inserted]
    activity = _activity(state)
    return (contact, activity, _packed(routed), activity // HOUR_MS, *made, *_fields_inserted(state)[:-1])


def update(
    before: Conversation, state: Conversation, routed: Mapping[int, int]
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that writes the changed columns, with its values."""
    activity = _activity(state)
    hour, besides = activity // HOUR_MS, (activity, _packed(routed))
    turned = _differ_by_turns(state, before)
    if hour == _activity(before) // HOUR_MS and not _differ_rarely(state, before):
        if not _differ_by_commands(state, before):
            if turned:
                return BY_TURNS, (*besides, *_fields_by_turns(state))
            return BY_MESSAGES, (*besides, *_fields_by_messages(state))
        if not turned:
            return USUAL, (*besides, *[write(state) for write in _made_usual], *_fields_usual(state))
    return ALL, (*besides, hour, *[write(state) for write in _made_all], *_fields_all(state))


def _activity(state: Conversation) -> int:
    return state.last_message_at or state.created_at


def _packed(routed: Mapping[int, int]) -> str:
    if not routed:
        return "{}"
    return orjson.dumps({str(endpoint): sequence for endpoint, sequence in routed.items()}).decode()


def routed_of(stored: str) -> dict[int, int]:
    """Return the last sequence sent to each endpoint, by the endpoint's storage key."""
    return {int(endpoint): sequence for endpoint, sequence in orjson.loads(stored).items()}


def _in_order_of_fields() -> tuple[ConversationColumn, ...]:
    """Return the columns in the order of the state's fields; further columns of a field are at the end."""
    first = {column.source: column for column in reversed(COLUMNS)}
    ordered = [first[name] for name in Conversation.__struct_fields__ if name not in NOT_STORED]
    return (*ordered, *(column for column in COLUMNS if column not in ordered))


_SELECTED: Final = _in_order_of_fields()
_FIELDS: Final = len({column.source for column in COLUMNS})
_ASSIGNEE: Final = [column.name for column in _SELECTED].index("assignee_type")
_READ: Final = [(place, column.read) for place, column in enumerate(_SELECTED) if column.read is not None]

SELECTED: Final = ", ".join(f"c.{column.name}" for column in _SELECTED)
"""The columns of a state, for a statement in which `c` is the table."""
WIDTH: Final = len(_SELECTED)


def conversation_of(row: Sequence[Any]) -> Conversation:
    """Return the state in a row that starts with SELECTED, without its run."""
    values = [*row]
    for place, read in _READ:
        values[place] = read(values[place])
    if values[_ASSIGNEE] is not None:
        values[_ASSIGNEE] = Assignee(values[_ASSIGNEE], *values[_FIELDS:WIDTH])
    return Conversation(*values[:_FIELDS])
