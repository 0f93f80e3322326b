"""The columns of conversations: one table, from which the statements and the row mapping are made.

A new field of `Conversation` that is stored needs a migration and a row in COLUMNS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter, is_
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

import orjson

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.conversations.conversation import Conversation, Status

Written: TypeAlias = Literal["by SQLite", "once", "always", "by commands", "rarely"]
"""When a column is written: "always" is with every change, be it a message or a command."""

_STATUSES: Final[Mapping[str, Status]] = {status: status for status in get_args(Status)}
"""Each status once in memory, and not with every state."""
_NO_ATTRIBUTES: Final[Mapping[str, Any]] = {}
"""The attributes of all states that have none; nobody changes attributes in place."""


class Column(NamedTuple):
    """A column, and the field of the state that it stores.

    Args:
        name: of the column.
        written: when; "rarely" is for indexed columns, as SQLite writes every index whose column a statement names,
            changed or not.
        field: of the state, if it has another name.
        write: makes the stored value of a state; None stores the field as it is.
        read: makes the field's value of what is stored; None takes it as it is.
    """

    name: str
    written: Written
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


COLUMNS: Final = (
    Column("rowid", "by SQLite"),
    Column("id", "once"),
    Column("project", "once"),
    Column("created_at", "once"),
    Column("imported_at", "once"),
    Column("revision", "always"),
    Column("sequence", "always"),
    Column("unread", "always", read=bool),
    Column("messages", "always"),
    Column("last_message_at", "always"),
    Column("updated_at", "always"),
    Column("status", "by commands", read=_status),
    Column("title", "by commands"),
    Column("closed_by", "by commands"),
    Column("closed_at", "by commands"),
    Column("archived", "by commands", read=bool),
    Column("rating", "by commands"),
    Column("rated_at", "by commands"),
    Column("ticket_id", "by commands"),
    Column("visible", "by commands", read=bool),
    Column("attributes", "by commands", write=lambda state: orjson.dumps(state.attributes).decode(), read=_attributes),
    Column("assignee_type", "by commands", "assignee", lambda state: state.assignee and state.assignee.type),
    Column("assignee_id", "by commands", "assignee", lambda state: state.assignee and state.assignee.id),
    Column("assignee_name", "by commands", "assignee", lambda state: state.assignee and state.assignee.name),
    Column("human", "rarely", read=bool),
    Column("archived_at", "rarely"),
)  # fmt: skip
BESIDES: Final = ("activity", "routed")
"""Columns that store no field and are always written: the order of lists, and the last sequence sent to each endpoint."""
OWNER: Final = "contact"
"""The column of the contact whose conversation it is, which is written once and stores no field."""
NOT_STORED: Final = ("run",)
"""Fields that have no column: a run is in a table of its own."""


def _written(*when: Written) -> list[Column]:
    """Return the columns that are written then: first those that store a field as it is."""
    return sorted(
        (column for column in COLUMNS if column.written in when), key=lambda column: column.write is not None
    )


def _update(columns: Sequence[Column]) -> str:
    names = (*(column.name for column in columns), *BESIDES)
    return f"UPDATE conversations SET {', '.join(f'{name} = ?' for name in names)} WHERE rowid = ?"


def _fields(columns: Sequence[Column]) -> Callable[[Conversation], tuple[Any, ...]]:
    """Return a function that takes from a state, in one call, the fields that are stored as they are; at least two."""
    return attrgetter(*(column.source for column in columns if column.write is None))


def _made(columns: Sequence[Column]) -> list[Callable[[Conversation], object]]:
    return [column.write for column in columns if column.write is not None]


_BY_MESSAGES: Final = _written("always")
_USUAL: Final = _written("always", "by commands")
_ALL: Final = _written("always", "by commands", "rarely")
_INSERTED: Final = _written("once", "always", "by commands", "rarely")

BY_MESSAGES, USUAL, ALL = _update(_BY_MESSAGES), _update(_USUAL), _update(_ALL)
INSERT: Final = (
    f"INSERT INTO conversations ({', '.join((*(column.name for column in _INSERTED), *BESIDES, OWNER))}) "
    f"VALUES ({', '.join('?' * (len(_INSERTED) + len(BESIDES) + 1))})"
)

_fields_by_messages: Final = _fields(_BY_MESSAGES)
_fields_usual, _made_usual = _fields(_USUAL), _made(_USUAL)
_fields_all, _made_all = _fields(_ALL), _made(_ALL)
_fields_inserted, _made_inserted = _fields(_INSERTED), _made(_INSERTED)
_compared_rare: Final = attrgetter(*(column.source for column in COLUMNS if column.written == "rarely"))
_compared_usual: Final = attrgetter(
    *dict.fromkeys(column.source for column in COLUMNS if column.written == "by commands")
)


def insertion(state: Conversation, contact: int, routed: Mapping[int, int]) -> tuple[Any, ...]:
    """Return the values of INSERT."""
    made = [write(state) for write in _made_inserted]
    return (*_fields_inserted(state), *made, *_besides(state, routed), contact)


def update(
    before: Conversation, state: Conversation, routed: Mapping[int, int]
) -> tuple[str, tuple[Any, ...]]:
    """Return the statement that writes what has changed, with its values."""
    if _compared_rare(state) != _compared_rare(before):
        made = [write(state) for write in _made_all]
        return ALL, (*_fields_all(state), *made, *_besides(state, routed), state.rowid)
    if not all(map(is_, _compared_usual(state), _compared_usual(before))):  # to Python 1 equals true
        made = [write(state) for write in _made_usual]
        return USUAL, (*_fields_usual(state), *made, *_besides(state, routed), state.rowid)
    return BY_MESSAGES, (*_fields_by_messages(state), *_besides(state, routed), state.rowid)


def _besides(state: Conversation, routed: Mapping[int, int]) -> tuple[int, str]:
    """Return the values of BESIDES."""
    return state.last_message_at or state.created_at, _packed_routed(routed)


def _packed_routed(routed: Mapping[int, int]) -> str:
    if not routed:
        return "{}"
    return orjson.dumps({str(endpoint): sequence for endpoint, sequence in routed.items()}).decode()


def routed_of(stored: str) -> dict[int, int]:
    """Return the last sequence that was sent to each endpoint, by the endpoint's key."""
    return {int(endpoint): sequence for endpoint, sequence in orjson.loads(stored).items()}


def _in_order_of_fields() -> tuple[Column, ...]:
    """Return the columns in the order of the state's fields; those behind the first of a field are at the end."""
    first = {column.source: column for column in reversed(COLUMNS)}
    ordered = [first[field.name] for field in fields(Conversation) if field.name not in NOT_STORED]
    return (*ordered, *(column for column in COLUMNS if column not in ordered))


_SELECTED: Final = _in_order_of_fields()
_FIELDS: Final = len({column.source for column in COLUMNS})
_ASSIGNEE: Final = [column.name for column in _SELECTED].index("assignee_type")
_READ: Final = [(place, column.read) for place, column in enumerate(_SELECTED) if column.read is not None]

SELECTED: Final = ", ".join(f"c.{column.name}" for column in _SELECTED)
"""The columns of a state's row, for a statement in which `c` is the table."""
WIDTH: Final = len(_SELECTED)


def conversation_of(row: Sequence[Any]) -> Conversation:
    """Return the state in a row that begins with SELECTED, without its run."""
    values = [*row]
    for place, read in _READ:
        values[place] = read(values[place])
    if values[_ASSIGNEE] is not None:
        values[_ASSIGNEE] = Assignee(values[_ASSIGNEE], *values[_FIELDS:WIDTH])
    return Conversation(*values[:_FIELDS])
