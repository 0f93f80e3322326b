"""Examples: responses from the examples of their fields, bodies from a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deskwire.http.description.openapi.schemas import Schema

_CONVERSATION: Final = "cnv_01KZ00000000000000000000C1"
_DEFINITION: Final[Mapping[str, Any]] = {
    "schemaVersion": "2.0",
    "title": "After the chat",
    "languages": ["en"],
    "primaryLanguage": "en",
    "questions": [
        {"id": "q1", "type": "csat", "title": {"en": "How satisfied are you?"}, "required": True},
        {"id": "q2", "type": "text", "title": {"en": "What went wrong?"}},
    ],
    "logic": [{"from": "q1", "to": "end", "when": {"op": "gte", "value": 4}}],
    "thankYou": {"en": "Thank you!"},
}

_WORKFLOW: Final[Mapping[str, Any]] = {
    "name": "Orders",
    "trigger": {"type": "manual"},
    "flows": [
        {
            "id": "main",
            "actions": [
                {
                    "id": 1,
                    "type": "buttons",
                    "text": "What is it about?",
                    "options": [{"id": "order", "label": "My order"}],
                },
                {"id": 2, "type": "hand_off"},
            ],
        }
    ],
}

BODIES: Final[Mapping[str, Any]] = {
    "AgentMessageBody": {"text": "It left us today.", "ifSequence": 12, "then": {"close": True}},
    "AgentPatch": {"tags": ["returns"], "status": "PENDING"},
    "AssignBody": {"assignee": {"type": "user", "id": "usr_01KZ0000000000000000AGENT1"}},
    "BulkBody": {
        "selection": {"ids": ["tkt_01KZ00000000000000000000T1"]},
        "payload": {"priority": "HIGH"},
    },
    "CloseBody": {"closedBy": "bot"},
    "AgentMergeBody": {"from": "con_01KZ000000000000000000V1S1"},
    "ContactPatch": {"email": "ada@shop.example.org", "attributes": {"plan": "pro"}, "tags": ["vip"]},
    "DraftBody": {"text": "It left us this", "version": 0, "baseSequence": 12},
    "SendHeldBody": {},
    "ConversationPatch": {"title": "Order A-1001", "attributes": {"order": "A-1001"}},
    "CreateBody": {
        "contact": {"userId": "u1", "name": "Ada Lovelace"},
        "title": "Where is my order?",
        "message": {"text": "Hello, where is my order?"},
    },
    "DefinitionBody": {"definition": _DEFINITION},
    "Empty": {},
    "EndpointBody": {
        "url": "https://crm.example.org/deskwire",
        "events": ["message.created"],
        "description": "The CRM",
    },
    "EndpointPatch": {"status": "disabled"},
    "Identity": {"name": "Ada Lovelace", "email": "ada@example.org"},
    "InsightsBody": {
        "themes": [
            {
                "id": "delivery",
                "title": "Delivery",
                "sentiment": "negative",
                "count": 1,
                "quotes": ["It came late."],
            }
        ],
        "summary": "Most are content; deliveries are late.",
    },
    "CredentialBody": {
        "name": "CRM",
        "permissions": ["tickets.manage", "tickets.read"],
        "expiresAt": "2027-11-01T12:00:00.000Z",
    },
    "CredentialPatch": {"permissions": ["tickets.read"], "expiresAt": None},
    "PushBody": {"url": "https://siem.example.com/deskwire"},
    "RotateBody": {"overlapSeconds": 3600},
    "KeyBody": {"label": "CRM"},
    "LoginBody": {"email": "grace@example.org", "password": "a long enough password"},
    "MergeBody": {"from": "visitor-7"},
    "MemberBody": {"email": "grace@example.org", "name": "Grace Hopper", "role": "agent"},
    "MemoryBody": {"name": "shoe size", "content": "43"},
    "MemoryPatch": {"content": "44"},
    "MessageBody": {"text": "Hello, where is my order?"},
    "NameBody": {"name": "Grace Hopper"},
    "NetworkLogsBody": {
        "requests": [
            {"url": "https://shop.example.org/cart", "type": "fetch", "duration": 84.5, "success": True}
        ]
    },
    "PasswordBody": {"password": "a long enough password", "newPassword": "another long password"},
    "ProjectBody": {"name": "Shop", "settings": {"languages": ["en", "de"]}},
    "ProjectPatch": {"settings": {"archivedRetentionDays": 90}},
    "RedactBody": {"ranges": [{"start": 5, "end": 21}], "attachments": ["upl_01KZ00000000000000000000VP"]},
    "TagsBody": {"tags": ["returns", "vip"]},
    "RatingBody": {"rating": 9},
    "ReplayBody": {"conversationId": _CONVERSATION, "from": 3, "dryRun": True},
    "RecoverBody": {"since": "2026-11-01T12:00:00Z", "dryRun": True},
    "SurveyResponseBody": {"answers": {"q1": 5}, "contact": {"userId": "u1"}},
    "ReplyBody": {"actionId": 2, "value": "order"},
    "StartBody": {
        "contact": {"userId": "u1", "name": "Ada Lovelace"},
        "title": "Your order A-1001",
        "message": {"text": "Hello Ada, your order has left us today."},
    },
    "StartWorkflowBody": {"workflowId": "wfl_01KZ00000000000000000000F1"},
    "WorkflowCreateBody": _WORKFLOW,
    "WorkflowBody": {"name": "Orders and returns"},
    "WorkflowDraft": _WORKFLOW,
    "SimulationBody": {"flows": _WORKFLOW["flows"], "attributes": {"plan": "pro"}, "answers": ["order"]},
    "RoleBody": {"role": "admin"},
    "SnippetBody": {
        "shortcut": "late-parcel",
        "title": "The parcel is late",
        "text": "Hello {contact.name}, it is on its way.\n\n{agent.name}",
    },
    "SnippetPatch": {"title": "The parcel is very late"},
    "SurveyBody": {"name": "After the chat", "definition": _DEFINITION},
    "SurveyPatch": {"status": "CLOSED"},
    "TeamBody": {"name": "Returns", "members": ["usr_01KZ0000000000000000AGENT1"]},
    "TeamPatch": {"name": "Returns and refunds"},
    "TicketBody": {
        "title": "Parcel lost",
        "priority": "HIGH",
        "conversationId": _CONVERSATION,
        "tags": ["lost"],
    },
    "TicketPatch": {"status": "DONE"},
    "TranslationBody": {"language": "en", "fields": {"text": "Checkout"}},
    "SeenBody": {"index": 3},
    "TypingBody": {"typing": True},
    "ReopenBody": {},
    "AllSeenBody": {},
    "ContactTypingBody": {"typing": True},
    "VersionBody": {"definition": _DEFINITION},
    "ViewBody": {"conversationIds": ["cnv_01KZ00000000000000000000C1"], "composing": None},
    "VoiceReplyBody": {
        "audioUrl": "https://support.example.com/v3/uploads/upl_01KZ00000000000000000000VP/note.wav?expires=1&signature=x",
        "mode": "dictate",
    },
}
"""An example of each body by model name; a test fails for a missing or refused example."""

LINES: Final[Mapping[str, Any]] = {
    "ImportedConversation": {
        "type": "conversation",
        "externalId": "zendesk-1001",
        "contact": {"userId": "u1", "name": "Ada Lovelace"},
        "title": "Where is my order?",
        "status": "CLOSED",
        "closedBy": "agent",
        "createdAt": "2024-03-01T09:00:00Z",
        "closedAt": "2024-03-01T09:30:00Z",
    },
    "ImportedMessage": {
        "type": "message",
        "externalId": "zendesk-comment-2001",
        "conversation": "zendesk-1001",
        "author": {"type": "contact"},
        "text": "Hello, where is my order?",
        "createdAt": "2024-03-01T09:00:00Z",
    },
    "ImportedDeletion": {
        "type": "deletion",
        "conversation": "zendesk-1001",
        "message": "zendesk-comment-2002",
    },
}
"""An example of each line of an NDJSON body by model name."""


def sample(schema: Schema, known: Mapping[str, Schema]) -> Any:
    """Return a value that matches the schema, from the examples of its fields.

    Args:
        known: the referenced schemas by name.
    """
    match schema:
        case {"$ref": str(reference)}:
            return sample(known[reference.rpartition("/")[2]], known)
        case {"examples": [first, *_]} | {"const": first} | {"enum": [first, *_]}:
            return first
        case {"anyOf": [*options]} | {"oneOf": [*options]}:
            return sample(next(each for each in options if each.get("type") != "null"), known)
        case {"properties": properties}:
            return {
                name: sample(each, known) for name, each in properties.items() if _shown(name, each, schema)
            }
        case {"type": "array", "items": items}:
            return [sample(items, known)]
        case {"type": "boolean"}:
            return False
        case {"type": "null"}:
            return None
        case {"type": "object"}:
            return {}
        case _:
            return {"string": "text", "integer": 1, "number": 1.0}.get(schema.get("type", ""), None)


def _shown(name: str, field: Schema, schema: Schema) -> bool:
    """Return whether the example has the field: if it is required, or has its own example."""
    return name in schema.get("required", ()) or "examples" in field
