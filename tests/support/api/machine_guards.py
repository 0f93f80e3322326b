"""The routes that refuse machine credentials, and those that accept any; written by hand, as `route_guards` is.

A new route accepts machines with its permission unless it is listed here.
"""

from __future__ import annotations

from typing import Final

PERSONAL: Final = frozenset(
    """
POST /v3/conversations
POST /v3/conversations/{conversationId}/messages
POST /v3/conversations/{conversationId}/typing
PUT /v3/conversations/{conversationId}/seen
GET /v3/conversations/{conversationId}/drafts
PUT /v3/conversations/{conversationId}/drafts/{mode}
GET /v3/conversations/{conversationId}/held-messages
GET /v3/drafts
GET /v3/held-messages
DELETE /v3/held-messages/{heldMessageId}
POST /v3/held-messages/{heldMessageId}/send
GET /v3/conversations/{conversationId}/context
GET /v3/inbox/counters
PUT /v3/conversations/{conversationId}/follow
DELETE /v3/conversations/{conversationId}/follow
PUT /v3/conversations/{conversationId}/mentions/seen
GET /v3/setup
PUT /v3/setup
PUT /v3/inbox/seen
GET /v3/stream
PUT /v3/stream/{streamId}/view
POST /v3/bulk-jobs
GET /v3/bulk-jobs
GET /v3/bulk-jobs/{bulkJobId}
POST /v3/bulk-jobs/{bulkJobId}/cancel
POST /v3/bulk-jobs/{bulkJobId}/undo
GET /v3/views
POST /v3/views
GET /v3/views/{viewId}
PATCH /v3/views/{viewId}
DELETE /v3/views/{viewId}
POST /v3/snippets
PATCH /v3/snippets/{snippetId}
DELETE /v3/snippets/{snippetId}
GET /v3/users/me
PATCH /v3/users/me
DELETE /v3/users/me
POST /v3/users/me/password
GET /v3/users/me/notifications
PUT /v3/users/me/notifications
GET /v3/users/me/push-subscription
PUT /v3/users/me/push-subscription
DELETE /v3/users/me/push-subscription
GET /v3/users/me/pushes
GET /v3/users/me/identities
DELETE /v3/users/me/identities/{identityId}
GET /v3/users/me/sessions
DELETE /v3/users/me/sessions
DELETE /v3/users/me/sessions/{browserSessionId}
POST /v3/auth/session/proof
POST /v3/auth/session/proof/passkey-options
GET /v3/users/me/factors
POST /v3/users/me/factors/totp
DELETE /v3/users/me/factors/totp
POST /v3/users/me/factors/totp/confirm
POST /v3/users/me/factors/passkeys
POST /v3/users/me/factors/passkeys/options
DELETE /v3/users/me/factors/passkeys/{passkeyId}
POST /v3/users/me/factors/recovery-codes
DELETE /v3/organisations/{organisationId}/members/{userId}/factors
POST /v3/auth/token/revoke
GET /v3/users/me/tokens
DELETE /v3/users/me/tokens/{tokenId}
GET /v3/organisations/{organisationId}/members/{userId}/tokens
DELETE /v3/organisations/{organisationId}/members/{userId}/tokens/{tokenId}
GET /v3/organisations
GET /v3/organisations/{organisationId}
PATCH /v3/organisations/{organisationId}
GET /v3/organisations/{organisationId}/invitations
POST /v3/organisations/{organisationId}/invitations
DELETE /v3/organisations/{organisationId}/invitations/{invitationId}
POST /v3/organisations/{organisationId}/invitations/{invitationId}/renew
POST /v3/organisations/{organisationId}/members/{userId}/password-link
GET /v3/organisations/{organisationId}/members
POST /v3/organisations/{organisationId}/members
GET /v3/organisations/{organisationId}/members/{userId}
PATCH /v3/organisations/{organisationId}/members/{userId}
DELETE /v3/organisations/{organisationId}/members/{userId}
POST /v3/organisations/{organisationId}/members/{userId}/password
GET /v3/organisations/{organisationId}/members/{userId}/sessions
DELETE /v3/organisations/{organisationId}/members/{userId}/sessions/{browserSessionId}
DELETE /v3/organisations/{organisationId}/members/{userId}/sessions
GET /v3/permissions
GET /v3/organisations/{organisationId}/roles
POST /v3/organisations/{organisationId}/roles
GET /v3/organisations/{organisationId}/roles/{roleId}
PATCH /v3/organisations/{organisationId}/roles/{roleId}
DELETE /v3/organisations/{organisationId}/roles/{roleId}
GET /v3/organisations/{organisationId}/audit
GET /v3/organisations/{organisationId}/audit.ndjson
GET /v3/organisations/{organisationId}/audit/push
PUT /v3/organisations/{organisationId}/audit/push
DELETE /v3/organisations/{organisationId}/audit/push
POST /v3/organisations/{organisationId}/audit/push/rotate-secret
GET /v3/organisations/{organisationId}/projects
POST /v3/organisations/{organisationId}/projects
GET /v3/projects
DELETE /v3/projects/{projectId}
POST /v3/projects/{projectId}/keys
""".strip().splitlines()
)
"""Routes for a person's own data, for several projects, or that would give a machine rights beyond its own."""

PARTLY: Final = {
    "GET /v3/conversations": ({"view": "agent"}, {"unread": "true"}, {"assignee": "me"}),
    "GET /v3/conversations/{conversationId}": ({"view": "agent"},),
    "PATCH /v3/conversations/{conversationId}": ({"view": "agent"},),
    "GET /v3/search": ({"q": "parcel"}, {"q": "parcel", "in": "conversations,tickets"}),
}
"""Routes that accept machines, but not with these parameters, which select a person's own data."""

ANY: Final = frozenset(
    {
        "GET /v3/projects/{projectId}",
        "GET /v3/s2s/project",
        "GET /v3/users/me/permissions",
    }
)
"""Routes for machines without any permission: they show the project, and the empty list of permissions."""

_EXPORT: Final = ("contacts.read", "conversations.read", "memory.read", "surveys.read", "tickets.read")
_WORKFLOW: Final = ("conversations.manage", "conversations.reply")

_CHANNEL: Final = ("contacts.read", "conversations.read", "conversations.reply")

ALSO: Final = {
    "POST /v3/channels": _CHANNEL,
    "PATCH /v3/channels/{channelId}": _CHANNEL,
    "POST /v3/channels/{channelId}/rotate-secret": _CHANNEL,
    "GET /v3/contacts/{contactId}/export": _EXPORT,
    "GET /v3/s2s/contacts/{userId}/export": _EXPORT,
    "GET /v3/s2s/import/conversation": ("conversations.read",),
    "POST /v3/s2s/import": ("conversations.manage", "conversations.reply"),
    "POST /v3/conversations/{conversationId}/messages/{messageId}/redact": ("conversations.read",),
    "POST /v3/s2s/conversations/{conversationId}/messages/{messageId}/redact": ("conversations.read",),
    "POST /v3/conversations/{conversationId}/voice-reply": ("conversations.read",),
    "POST /v3/tickets/{ticketId}/voice-reply": ("conversations.read", "tickets.read"),
    "PUT /v3/setup": ("conversations.read",),
    "POST /v3/workflows": _WORKFLOW,
    "PATCH /v3/workflows/{workflowId}": _WORKFLOW,
}
"""Routes that also need another permission because they reach its data; for people as for machines."""

READS_USER: Final = frozenset(
    {
        "accounts/credentials._maker",
        "accounts/access_tokens.end_own",
        "accounts/access_tokens.end_this",
        "accounts/access_tokens.list_tokens",
        "accounts/invitations.create",
        "accounts/invitations._mailed",
        "accounts/notifications.get_settings",
        "accounts/notifications.put_settings",
        "accounts/web_push.list_pushes",
        "accounts/web_push.put_subscription",
        "accounts/identities.list_identities",
        "accounts/identities.unlink_identity",
        "accounts/members.acting_member",
        "accounts/organisations.list_organisations",
        "accounts/organisations.get_organisation",
        "accounts/organisations.change_organisation",
        "accounts/own_sessions.list_sessions",
        "accounts/own_sessions.end_all",
        "accounts/own_sessions.end_one",
        "accounts/projects.list_projects",
        "accounts/proofs.prove",
        "accounts/proofs.proof_passkey_options",
        "accounts/proofs._by_factor",
        "accounts/proofs.store_proof",
        "accounts/own_factors.add_passkey",
        "accounts/own_factors.begin_passkey",
        "accounts/own_factors.begin_totp",
        "accounts/own_factors.confirm_totp",
        "accounts/own_factors.get_factors",
        "accounts/own_factors.remove_passkey",
        "accounts/own_factors.remove_totp",
        "accounts/own_factors.renew_recovery_codes",
        "accounts/sessions.end_session",
        "accounts/users.get_me",
        "accounts/users.change_me",
        "accounts/users.delete_me",
        "accounts/users.set_password",
        "accounts/users.get_permissions",
        "conversations/context._context",
        "conversations/context._others",
        "conversations/dashboard.set_typing",
        "conversations/inbox.get_conversation",
        "conversations/lists._shown",
        "conversations/lists.list_conversations",
        "conversations/following.put_seen_mentions",
        "conversations/following._change",
        "conversations/own.get_counters",
        "conversations/own.put_all_seen",
        "conversations/own.put_seen",
        "conversations/bulk_jobs._conversations",
        "conversations/bulk_jobs._find",
        "conversations/bulk_jobs._query",
        "conversations/bulk_jobs.list_jobs",
        "conversations/bulk_jobs.start",
        "conversations/saved_views._check",
        "conversations/saved_views._check_limit",
        "conversations/saved_views._counts",
        "conversations/saved_views._filter_problems",
        "conversations/saved_views._find",
        "conversations/saved_views._move",
        "conversations/saved_views.change_view",
        "conversations/saved_views.create_view",
        "conversations/saved_views.list_views",
        "conversations/starting._parts",
        "conversations/drafts.get_drafts",
        "conversations/drafts.list_drafts",
        "conversations/drafts.put_draft",
        "conversations/held_messages._ready",
        "conversations/held_messages._sent",
        "conversations/held_messages.list_held",
        "conversations/held_messages.list_of_conversation",
        "conversations/held_messages.take_back_message",
        "conversations/writing._draft_sent",
        "conversations/writing._hold",
        "conversations/writing.post_message",
        "search/search.find",
        "service/setup._view_for",
        "snippets.create_snippet",
        "snippets._editor",
        "stream/agents.show_view",
        "stream/agents._viewer",
    }
)
"""Functions of resources that read the signed-in user or role, which is a refusal for a machine: each was reviewed."""
