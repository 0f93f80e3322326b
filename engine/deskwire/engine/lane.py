"""Lanes of the event log: one conversation's events, or one contact's with those of its conversations."""

from __future__ import annotations

from typing import Literal, NamedTuple

import orjson

from deskwire.engine.events import StoredEvent


class Lane(NamedTuple):
    """What a conversation's or a contact's channel follows; a tuple, as each event is looked up by two.

    Args:
        project: storage key.
        subject: the `cnv_` id, or the contact's `userId`. Neither need exist.
    """

    project: int
    kind: Literal["conversation", "contact"]
    subject: str


def lanes_of(event: StoredEvent) -> tuple[Lane, ...]:
    """The lanes an event stands in, as its envelope has it; that has them also of what was deleted."""
    match orjson.loads(event.body):
        case {"data": {"conversation": {"id": str(conversation), "contact": {"userId": str(contact)}}}}:
            return (
                Lane(event.project, "conversation", conversation),
                Lane(event.project, "contact", contact),
            )
        case {"data": {"contact": {"userId": str(contact)}}}:
            return (Lane(event.project, "contact", contact),)
        case _:
            return ()
