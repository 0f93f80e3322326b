"""Events beyond the contract: drafts of those that no domain shapes by itself; `webhooks.publish.extend` stores and delivers them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import iso
from deskwire.engine.events.internal import actor_view
from deskwire.engine.events.types import Draft

Gone = Literal["redacted", "deleted"]


def message_gone(what: Gone, conversation_id: str, message_id: str, at: int, actor: Actor) -> Draft:
    """Return the event of a message of which something is no more, `at` this time (ms). It says nothing of what it held."""
    data = {
        "conversationId": conversation_id,
        "messageId": message_id,
        "at": iso(at),
        "actor": actor_view(actor),
    }
    return Draft("message.redacted" if what == "redacted" else "message.deleted", None, data)


def contact_changed(contact: Mapping[str, Any], changed: Sequence[str], actor: Actor) -> Draft:
    """Return the event of a change of a contact that `contact.updated` does not show.

    Args:
        contact: the object as the API shows it, after the change.
        changed: the names of its fields that changed.
    """
    return Draft(
        "contact.changed", None, {"contact": contact, "changed": [*changed], "actor": actor_view(actor)}
    )


def contact_merged(contact: Mapping[str, Any], merged_id: str, merged_user_id: str, actor: Actor) -> Draft:
    """Return the event of a merge.

    Args:
        contact: the object as the API shows it, which has everything now.
        merged_id, merged_user_id: the ids of the contact that is no more.
    """
    merged = {"id": merged_id, "userId": merged_user_id}
    data = {"contact": contact, "merged": merged, "actor": actor_view(actor)}
    return Draft("contact.merged", None, data)


def response_created(survey_id: str, version: int, response: Mapping[str, Any]) -> Draft:
    """Return the event of a new response to a version of a survey; `response` is the object as the API shows it."""
    return Draft(
        "survey.response.created",
        None,
        {"survey": {"id": survey_id, "version": version}, "response": response},
    )


def response_deleted(survey_id: str, response_id: str) -> Draft:
    """Return the event of a response that is no more: its ids, and nothing of what it said."""
    return Draft(
        "survey.response.deleted", None, {"survey": {"id": survey_id}, "response": {"id": response_id}}
    )


def conversations_imported(conversations: Sequence[Mapping[str, Any]]) -> Draft:
    """Return the event of a part of an import that causes no others.

    Args:
        conversations: of each one that has something new its `id`, its `sequence`, and in `messages` the number of them after
            this part; in `imported` how many of these this part has stored, and in `firstMessageId` the first of those.
    """
    return Draft("conversations.imported", None, {"conversations": [*conversations]})


def survey_deleted(survey_id: str) -> Draft:
    """Return the event of a survey that is no more, and none of its responses is."""
    return Draft("survey.deleted", None, {"survey": {"id": survey_id}})
