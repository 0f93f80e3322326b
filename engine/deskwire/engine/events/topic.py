"""Lanes of the event log: one conversation's events, or one contact's with those of its conversations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple


class Topic(NamedTuple):
    """What a conversation's or a contact's channel follows; a tuple, as each event is looked up by two.

    Args:
        project: storage key.
        subject: the `cnv_` id, or the contact's `userId`. Neither need exist.
    """

    project: int
    kind: Literal["conversation", "contact"]
    subject: str


def lanes_of(project: int, data: Mapping[str, Any]) -> tuple[Topic, ...]:
    """The lanes an event stands in, by its envelope's `data`; that has them also of what was deleted."""
    conversation = data.get("conversation")
    contact = (data if conversation is None else conversation).get("contact")
    if contact is None:
        return ()
    of_contact = Topic(project, "contact", contact["userId"])
    if conversation is None:
        return (of_contact,)
    return (Topic(project, "conversation", conversation["id"]), of_contact)
