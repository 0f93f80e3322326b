"""The payload of a push: the title and text of the notification, in the words of the desk's own ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from deskwire.engine.accounts.notifications import NotificationSettings
from deskwire.engine.push.encryption import PAYLOAD_MAX

_NAME: Final = "Deskwire"
_TITLE_MAX: Final = 120
_BODY_MAX: Final = 500  # systems show fewer; in bytes of JSON it always fits one record
_VISITOR: Final = re.compile(r"visitor-\w{22}(\w{4})")


def payload_of(
    event: Mapping[str, Any], event_id: str, project_id: str, user_id: str, settings: NotificationSettings
) -> bytes:
    """Return the payload for an event. The envelope must be read when the push is sent: then it has no erased text."""
    data = event["data"]
    conversation = data["conversation"]
    return orjson.dumps(
        {
            "title": _short(contact_name(conversation["contact"]) or _NAME, _TITLE_MAX),
            "body": _short(_body(event["type"], data, user_id, settings), _BODY_MAX),
            "projectId": project_id,
            "conversationId": conversation["id"],
            "eventId": event_id,
            "silent": not settings.sound,
        }
    )


def contact_name(contact: Mapping[str, Any] | None) -> str:
    """Return the name of a contact as the desk shows it."""
    if contact is None:
        return ""
    named = contact.get("name") or contact.get("email")
    return named or _VISITOR.sub(r"Visitor \1", contact.get("userId") or "")


def _body(event_type: str, data: Mapping[str, Any], user_id: str, settings: NotificationSettings) -> str:
    if event_type == "message.created":
        return (settings.preview and data["message"]["text"]) or "New message"
    if event_type == "note.created":
        author, text = data["message"]["author"]["name"] or _NAME, data["message"]["text"]
        return f"Note by {author}: {text}" if settings.preview and text else f"New note by {author}"
    assignee = data["conversation"]["assignee"]
    to = "you" if assignee["id"] == user_id else assignee["name"]
    return f"{data['actor'].get('name') or _NAME} assigned this conversation to {to}"


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


# A character takes at most 6 bytes in JSON, as an escaped control character.
assert (_TITLE_MAX + _BODY_MAX) * 6 < PAYLOAD_MAX
