"""Lanes of the event log: one conversation's events, or one contact's with those of its conversations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple


class Lane(NamedTuple):
    """What a conversation's or a contact's channel follows; a tuple, as each event is looked up by two.

    Args:
        project: storage key.
        subject: the `cnv_` id, or the contact's `userId`. Neither need exist.
    """

    project: int
    kind: Literal["conversation", "contact"]
    subject: str


def lanes_of(project: int, data: Mapping[str, Any]) -> tuple[Lane, ...]:
    """The lanes an event stands in, by its envelope's `data`; that has them also of what was deleted."""
    match data:
        case {"conversation": {"id": str(conversation), "contact": {"userId": str(contact)}}}:
            return (Lane(project, "conversation", conversation), Lane(project, "contact", contact))
        case {"contact": {"userId": str(contact)}}:
            return (Lane(project, "contact", contact),)
        case _:
            return ()
