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
    "BlockContactRequest": {"reason": "Insults"},
    "DashboardPostMessageRequest": {"text": "It left us today.", "ifSequence": 12, "then": {"close": True}},
    "DashboardChangeConversationRequest": {"tags": ["returns"], "status": "PENDING"},
    "PutSeenMentionsRequest": {"messageId": "msg_01KZ00000000000000000000M4"},
    "AssignConversationRequest": {"assignee": {"type": "user", "id": "usr_01KZ0000000000000000AGENT1"}},
    "ChangeTicketsRequest": {
        "selection": {"ids": ["tkt_01KZ00000000000000000000T1"]},
        "payload": {"priority": "HIGH"},
    },
    "CloseConversationRequest": {"closedBy": "bot"},
    "DashboardMergeContactRequest": {"from": "con_01KZ000000000000000000V1S1"},
    "PutNotificationSettingsRequest": {
        "mine": True,
        "teams": True,
        "unassigned": False,
        "mentions": True,
        "preview": True,
        "sound": True,
        "quietHours": {"start": "18:00", "end": "08:00", "days": ["sat", "sun"], "timeZone": "Europe/Berlin"},
    },
    "PutSetupRequest": {"hidden": True},
    "PutPushSubscriptionRequest": {
        "endpoint": "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV",
        "keys": {
            "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            "auth": "BTBZMqHH6r4Tts7J_aSIgg",
        },
    },
    "ChangeContactRequest": {"email": "ada@shop.example.org", "attributes": {"plan": "pro"}, "tags": ["vip"]},
    "StartCustomerSessionRequest": {
        "channelId": "chn_01KZ000000000000000000WDGT",
        "identity": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1MSJ9.c2lnbmF0dXJl",
    },
    "StartMyConversationRequest": {
        "clientId": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
        "message": {
            "text": "Hello, where is my order?",
            "clientId": "0b9df5a2-6d1c-4f0e-9a55-0f0b6a2f4a10",
        },
        "contact": {"name": "Ada Lovelace"},
        "context": {"url": "https://shop.example/cart", "language": "en-GB"},
    },
    "PostCustomerMessageRequest": {
        "text": "It is A-1001.",
        "clientId": "f47ac10b-58cc-4372-a567-0e02b2c3d479",
    },
    "MarkReceivedRequest": {
        "reached": "msg_01KZ00000000000000000000M2",
        "seen": "msg_01KZ00000000000000000000M1",
    },
    "CreateMyResponseRequest": {
        "clientId": "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        "answers": {"q1": 5},
    },
    "ChangeCustomerRequest": {
        "email": "ada@example.org",
        "context": {"url": "https://shop.example/cart", "title": "Your cart", "language": "en-GB"},
    },
    "PutDraftRequest": {"text": "It left us this", "version": 0, "baseSequence": 12},
    "SendHeldMessageRequest": {},
    "ChangeConversationRequest": {"title": "Order A-1001", "attributes": {"order": "A-1001"}},
    "CreateConversationRequest": {
        "contact": {"userId": "u1", "name": "Ada Lovelace"},
        "title": "Where is my order?",
        "message": {"text": "Hello, where is my order?"},
    },
    "ValidateSurveyRequest": {"definition": _DEFINITION},
    "Empty": {},
    "CreateWebhookEndpointRequest": {
        "url": "https://crm.example.org/deskwire",
        "events": ["message.created"],
        "description": "The CRM",
    },
    "ChangeWebhookEndpointRequest": {"status": "disabled"},
    "PutContactIdentityRequest": {"name": "Ada Lovelace", "email": "ada@example.org"},
    "PutInsightsRequest": {
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
    "CreateCredentialRequest": {
        "name": "CRM",
        "permissions": ["tickets.manage", "tickets.read"],
        "expiresAt": "2027-11-01T12:00:00.000Z",
    },
    "ChangeCredentialRequest": {"permissions": ["tickets.read"], "expiresAt": None},
    "PutAuditPushRequest": {"url": "https://siem.example.com/deskwire"},
    "RotateCredentialRequest": {"overlapSeconds": 3600},
    "CreateKeyRequest": {"label": "CRM", "expiresAt": "2027-11-01T12:00:00.000Z"},
    "ChangeOrganisationRequest": {"sessionIdleS": 3600, "sessionMaxS": None},
    "SignInRequest": {"email": "grace@example.org", "password": "a long enough password"},
    "IssueTokenRequest": {"email": "grace@example.org", "password": "a long enough password"},
    "FactorRequest": {"challenge": "sic_0123456789abcdefghijklmnopqrstuv", "code": "287082"},
    "ChallengeRequest": {"challenge": "sic_0123456789abcdefghijklmnopqrstuv"},
    "PasskeySignInRequest": {
        "challenge": "pkc_0123456789abcdefghijklmnopqrstuv",
        "credential": {"id": "AAECAwQFBgcICQ", "type": "public-key"},
    },
    "ConfirmTotpRequest": {"code": "287082"},
    "AddPasskeyRequest": {
        "challenge": "pke_0123456789abcdefghijklmnopqrstuv",
        "credential": {"id": "AAECAwQFBgcICQ", "type": "public-key"},
        "name": "Laptop",
    },
    "ProofRequest": {"password": "a long enough password"},
    "MergeContactRequest": {"from": "visitor-7"},
    "CreateRoleRequest": {
        "name": "Support lead",
        "description": "Agents who also manage surveys.",
        "permissions": ["conversations.read", "conversations.reply", "surveys.manage", "surveys.read"],
    },
    "ChangeRoleRequest": {"permissions": ["conversations.read", "conversations.reply"]},
    "InspectLinkRequest": {"token": "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"},
    "UseLinkRequest": {
        "token": "0123456789abcdefghijklmnopqrstuvwxyzABCDEFG",
        "password": "seven tidy otters",
        "name": "Ada Lovelace",
    },
    "PasswordLinkRequest": {"email": "ada@example.com"},
    "AddMemberRequest": {"email": "grace@example.org", "name": "Grace Hopper", "role": "agent"},
    "PutMemoryRequest": {"name": "shoe size", "content": "43"},
    "ChangeMemoryRequest": {"content": "44"},
    "PostMessageRequest": {"text": "Hello, where is my order?"},
    "RenameRequest": {"name": "Grace Hopper"},
    "ReplaceNetworkLogsRequest": {
        "requests": [
            {"url": "https://shop.example.org/cart", "type": "fetch", "duration": 84.5, "success": True}
        ]
    },
    "SetPasswordRequest": {"password": "a long enough password", "newPassword": "another long password"},
    "CreateProjectRequest": {"name": "Shop", "settings": {"languages": ["en", "de"]}},
    "ChangeProjectRequest": {"settings": {"archivedRetentionDays": 90}},
    "RedactMessageRequest": {
        "ranges": [{"start": 5, "end": 21}],
        "attachments": ["upl_01KZ00000000000000000000VP"],
    },
    "ReplaceTagsRequest": {"tags": ["returns", "vip"]},
    "RateConversationRequest": {"rating": 9},
    "ReplayConversationRequest": {"conversationId": _CONVERSATION, "from": 3, "dryRun": True},
    "RecoverEventsRequest": {"since": "2026-11-01T12:00:00Z", "dryRun": True},
    "CreateSurveyResponseRequest": {"answers": {"q1": 5}, "contact": {"userId": "u1"}},
    "ReplyToStepRequest": {"actionId": 2, "value": "order"},
    "StartConversationRequest": {
        "contact": {"userId": "u1", "name": "Ada Lovelace"},
        "title": "Your order A-1001",
        "message": {"text": "Hello Ada, your order has left us today."},
    },
    "StartWorkflowRequest": {"workflowId": "wfl_01KZ00000000000000000000F1"},
    "CreateWorkflowRequest": _WORKFLOW,
    "ChangeWorkflowRequest": {"name": "Orders and returns"},
    "ValidateWorkflowRequest": _WORKFLOW,
    "SimulateWorkflowRequest": {
        "flows": _WORKFLOW["flows"],
        "attributes": {"plan": "pro"},
        "answers": ["order"],
    },
    "ChangeMemberRequest": {"role": "admin"},
    "CreateChannelRequest": {
        "name": "Shop",
        "origins": ["https://shop.example", "https://*.shop.example"],
        "visitors": {"ask": ["name?", "email"]},
        "look": {
            "texts": {"en": {"title": "Questions?", "greeting": "Write to us: we answer within an hour."}}
        },
    },
    "ChangeChannelRequest": {"look": {"colour": "#1f5eff", "position": "left"}},
    "CheckSiteRequest": {"url": "https://shop.example/help"},
    "CreateViewRequest": {
        "name": "Returns that wait",
        "filter": {"tag": "returns", "waitingFor": "4h", "sort": "waiting"},
        "visibility": "project",
    },
    "ChangeViewRequest": {"name": "Late returns", "after": None},
    "StartBulkJobRequest": {
        "filter": {"status": "OPEN", "tag": "spam"},
        "action": {"type": "tag", "add": ["checked"], "remove": ["spam"]},
    },
    "CreateSnippetRequest": {
        "shortcut": "late-parcel",
        "title": "The parcel is late",
        "text": "Hello {contact.name}, it is on its way.\n\n{agent.name}",
    },
    "ChangeSnippetRequest": {"title": "The parcel is very late"},
    "CreateSurveyRequest": {"name": "After the chat", "definition": _DEFINITION},
    "ChangeSurveyRequest": {"status": "CLOSED"},
    "CreateTeamRequest": {"name": "Returns", "members": ["usr_01KZ0000000000000000AGENT1"]},
    "ChangeTeamRequest": {"name": "Returns and refunds"},
    "CreateTicketRequest": {
        "title": "Parcel lost",
        "priority": "HIGH",
        "conversationId": _CONVERSATION,
        "tags": ["lost"],
    },
    "ChangeTicketRequest": {"status": "DONE"},
    "PutTranslationRequest": {"language": "en", "fields": {"text": "Checkout"}},
    "PutSeenRequest": {"index": 3},
    "MergeConversationRequest": {"into": "cnv_01KZ000000000000000000CNV2"},
    "SplitConversationRequest": {
        "messageIds": ["msg_01KZ000000000000000000MSG1"],
        "title": "Change of address",
    },
    "MarkNoAnswerNeededRequest": {"index": 3},
    "SetTypingRequest": {"typing": True},
    "DashboardReopenConversationRequest": {},
    "PutAllSeenRequest": {},
    "SetContactTypingRequest": {"typing": True},
    "PublishSurveyVersionRequest": {"definition": _DEFINITION},
    "ShowViewRequest": {"conversationIds": ["cnv_01KZ00000000000000000000C1"], "composing": None},
    "MakeVoiceReplyRequest": {
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
