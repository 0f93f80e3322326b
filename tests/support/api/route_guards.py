"""Every route with its intended credential, permission and body limit.

Written by hand, apart from the sources: a route that is missing here, or has become more open, fails a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Guard:
    """The conditions for calls of a route; `-` stands for none."""

    credential: str
    permission: str
    body: str


_TABLE: Final = """
GET /                                                           | none         | -                    | -
GET /desk                                                       | none         | -                    | -
GET /desk/notification-worker.js                                | none         | -                    | -
GET /desk/{place}                                               | none         | -                    | -
GET /docs                                                       | none         | -                    | -
GET /docs/errors                                                | none         | -                    | -
GET /docs/{asset}                                               | none         | -                    | -
GET /healthz                                                    | none         | -                    | -
GET /metrics                                                    | metrics      | -                    | -
GET /readyz                                                     | none         | -                    | -
GET /v3/asyncapi.json                                           | none         | -                    | -
GET /v3/auth/methods                                            | none         | -                    | -
POST /v3/auth/links/inspect                                     | none         | -                    | 8 KiB
POST /v3/auth/links/use                                         | none         | -                    | 64 KiB
POST /v3/auth/password-links                                    | none         | -                    | 8 KiB
DELETE /v3/auth/session                                         | visitor      | -                    | 8 KiB
GET /v3/auth/session                                            | visitor      | -                    | -
POST /v3/auth/session                                           | none         | -                    | 8 KiB
GET /v3/auth/oidc/start                                         | visitor      | -                    | -
GET /v3/auth/oidc/callback                                      | none         | -                    | -
POST /v3/auth/oidc/backchannel-logout                           | none         | -                    | 64 KiB
POST /v3/auth/token                                             | none         | -                    | 8 KiB
POST /v3/auth/passkey                                           | none         | -                    | 64 KiB
POST /v3/auth/passkey/options                                   | none         | -                    | 8 KiB
POST /v3/auth/session/factor                                    | none         | -                    | 64 KiB
POST /v3/auth/session/factor/passkey-options                    | none         | -                    | 8 KiB
POST /v3/auth/session/proof/passkey-options                     | user         | -                    | 8 KiB
GET /v3/users/me/factors                                        | user         | -                    | -
POST /v3/users/me/factors/totp                                  | user         | -                    | 8 KiB
DELETE /v3/users/me/factors/totp                                | user         | -                    | 8 KiB
POST /v3/users/me/factors/totp/confirm                          | user         | -                    | 8 KiB
POST /v3/users/me/factors/passkeys                              | user         | -                    | 64 KiB
POST /v3/users/me/factors/passkeys/options                      | user         | -                    | 8 KiB
DELETE /v3/users/me/factors/passkeys/{passkeyId}                | user         | -                    | 8 KiB
POST /v3/users/me/factors/recovery-codes                        | user         | -                    | 8 KiB
DELETE /v3/organisations/{organisationId}/members/{userId}/factors | organisation | members.manage       | 8 KiB
POST /v3/auth/session/proof                                     | user         | -                    | 64 KiB
POST /v3/auth/token/revoke                                      | user         | -                    | 8 KiB
GET /v3/users/me/tokens                                         | user         | -                    | -
DELETE /v3/users/me/tokens/{tokenId}                            | user         | -                    | 8 KiB
GET /v3/organisations/{organisationId}/members/{userId}/tokens  | organisation | members.manage       | -
DELETE /v3/organisations/{organisationId}/members/{userId}/tokens/{tokenId} | organisation | members.manage       | 8 KiB
GET /v3/contacts                                                | dashboard    | contacts.read        | -
DELETE /v3/contacts/{contactId}                                 | dashboard    | conversations.delete | 8 KiB
GET /v3/contacts/{contactId}                                    | dashboard    | contacts.read        | -
PATCH /v3/contacts/{contactId}                                  | dashboard    | contacts.manage      | 512 KiB
GET /v3/contacts/{contactId}/export                             | dashboard    | contacts.manage      | -
GET /v3/contacts/{contactId}/sessions                           | dashboard    | contacts.read        | -
GET /v3/contacts/{contactId}/presence                           | dashboard    | contacts.read        | -
DELETE /v3/contacts/{contactId}/sessions/{customerSessionId}    | dashboard    | contacts.manage      | 8 KiB
GET /v3/customer/stream                                         | customer     | -                    | -
GET /v3/customer/events                                         | customer     | -                    | -
GET /v3/customer/me                                             | customer     | -                    | -
PATCH /v3/customer/me                                           | customer     | -                    | 64 KiB
DELETE /v3/customer/me                                          | customer     | -                    | 8 KiB
POST /v3/customer/session                                       | none         | -                    | 64 KiB
POST /v3/contacts/{contactId}/merge                             | dashboard    | contacts.manage      | 64 KiB
POST /v3/contacts/{contactId}/block                             | dashboard    | contacts.manage      | 64 KiB
POST /v3/contacts/{contactId}/unblock                           | dashboard    | contacts.manage      | 8 KiB
GET /v3/conversations                                           | dashboard    | conversations.read   | -
POST /v3/conversations                                          | dashboard    | conversations.reply  | 512 KiB
DELETE /v3/conversations/{conversationId}                       | dashboard    | conversations.delete | 8 KiB
GET /v3/conversations/{conversationId}                          | dashboard    | conversations.read   | -
PATCH /v3/conversations/{conversationId}                        | dashboard    | conversations.manage | 512 KiB
GET /v3/conversations/{conversationId}/activity                 | dashboard    | conversations.read   | -
POST /v3/conversations/{conversationId}/assign                  | dashboard    | conversations.manage | 8 KiB
POST /v3/conversations/{conversationId}/close                   | dashboard    | conversations.manage | 8 KiB
GET /v3/conversations/{conversationId}/consumers                | dashboard    | conversations.read   | -
GET /v3/conversations/{conversationId}/context                  | dashboard    | conversations.read   | -
GET /v3/conversations/{conversationId}/deliveries               | dashboard    | conversations.read   | -
GET /v3/conversations/{conversationId}/drafts               | dashboard    | conversations.reply  | -
PUT /v3/conversations/{conversationId}/drafts/{mode}        | dashboard    | conversations.reply  | body_limit_bytes
GET /v3/conversations/{conversationId}/events                   | dashboard    | conversations.read   | -
GET /v3/conversations/{conversationId}/held-messages        | dashboard    | conversations.reply  | -
POST /v3/conversations/{conversationId}/merge                   | dashboard    | conversations.manage | 8 KiB
GET /v3/conversations/{conversationId}/messages                 | dashboard    | conversations.read   | -
POST /v3/conversations/{conversationId}/messages                | dashboard    | conversations.reply  | 512 KiB
DELETE /v3/conversations/{conversationId}/messages/{messageId}  | dashboard    | conversations.delete | 8 KiB
POST /v3/conversations/{conversationId}/messages/{messageId}/redact | dashboard    | conversations.manage | 64 KiB
GET /v3/conversations/{conversationId}/network-logs             | dashboard    | conversations.read   | -
PUT /v3/conversations/{conversationId}/no-answer-needed         | dashboard    | conversations.reply  | 8 KiB
DELETE /v3/conversations/{conversationId}/no-answer-needed      | dashboard    | conversations.reply  | 8 KiB
POST /v3/conversations/{conversationId}/read                    | dashboard    | conversations.manage | 8 KiB
POST /v3/conversations/{conversationId}/reopen                  | dashboard    | conversations.manage | 8 KiB
PUT /v3/conversations/{conversationId}/seen                     | dashboard    | conversations.read   | 8 KiB
PUT /v3/conversations/{conversationId}/follow                   | dashboard    | conversations.read   | 8 KiB
DELETE /v3/conversations/{conversationId}/follow                | dashboard    | conversations.read   | 8 KiB
PUT /v3/conversations/{conversationId}/mentions/seen            | dashboard    | conversations.read   | 8 KiB
POST /v3/conversations/{conversationId}/split                   | dashboard    | conversations.manage | 64 KiB
POST /v3/conversations/{conversationId}/typing                  | dashboard    | conversations.reply  | 8 KiB
POST /v3/conversations/{conversationId}/unmerge                 | dashboard    | conversations.manage | 8 KiB
POST /v3/conversations/{conversationId}/voice-reply             | dashboard    | conversations.reply  | 64 KiB
GET /v3/conversations/{conversationId}/workflow                 | dashboard    | conversations.read   | -
POST /v3/conversations/{conversationId}/workflow/start          | dashboard    | conversations.manage | 8 KiB
GET /v3/deliveries/{deliveryId}                                 | dashboard    | webhooks.manage      | -
POST /v3/deliveries/{deliveryId}/redeliver                      | dashboard    | webhooks.manage      | 8 KiB
GET /v3/drafts                                              | dashboard    | conversations.reply  | -
GET /v3/engagement/surveys                                      | dashboard    | surveys.read         | -
POST /v3/engagement/surveys                                     | dashboard    | surveys.manage       | body_limit_bytes
DELETE /v3/engagement/surveys/{surveyId}                        | dashboard    | surveys.manage       | 8 KiB
GET /v3/engagement/surveys/{surveyId}                           | dashboard    | surveys.read         | -
PATCH /v3/engagement/surveys/{surveyId}                         | dashboard    | surveys.manage       | 8 KiB
GET /v3/engagement/surveys/{surveyId}/figures                   | dashboard    | surveys.read         | -
GET /v3/engagement/surveys/{surveyId}/insights                  | dashboard    | surveys.read         | -
PUT /v3/engagement/surveys/{surveyId}/insights                  | dashboard    | surveys.manage       | body_limit_bytes
GET /v3/engagement/surveys/{surveyId}/insights/refresh          | dashboard    | surveys.read         | -
POST /v3/engagement/surveys/{surveyId}/insights/refresh         | dashboard    | surveys.manage       | 8 KiB
GET /v3/engagement/surveys/{surveyId}/responses                 | dashboard    | surveys.read         | -
GET /v3/engagement/surveys/{surveyId}/responses.csv             | dashboard    | surveys.read         | -
DELETE /v3/engagement/surveys/{surveyId}/responses/{responseId} | dashboard    | surveys.manage       | 8 KiB
GET /v3/engagement/surveys/{surveyId}/responses/{responseId}    | dashboard    | surveys.read         | -
POST /v3/engagement/surveys/{surveyId}/validate                 | dashboard    | surveys.read         | body_limit_bytes
GET /v3/engagement/surveys/{surveyId}/versions                  | dashboard    | surveys.read         | -
POST /v3/engagement/surveys/{surveyId}/versions                 | dashboard    | surveys.manage       | body_limit_bytes
GET /v3/engagement/surveys/{surveyId}/versions/{version}        | dashboard    | surveys.read         | -
GET /v3/events                                                  | dashboard    | conversations.read   | -
GET /v3/events/{eventId}                                        | dashboard    | conversations.read   | -
GET /v3/held-messages                                       | dashboard    | conversations.reply  | -
DELETE /v3/held-messages/{heldMessageId}                    | dashboard    | conversations.reply  | 8 KiB
POST /v3/held-messages/{heldMessageId}/send                 | dashboard    | conversations.reply  | 8 KiB
GET /v3/inbox/counters                                          | dashboard    | conversations.read   | -
PUT /v3/inbox/seen                                               | dashboard    | conversations.read   | 8 KiB
GET /v3/openapi.json                                            | none         | -                    | -
GET /v3/organisations                                           | user         | -                    | -
GET /v3/organisations/{organisationId}                          | organisation | -                    | -
PATCH /v3/organisations/{organisationId}                        | organisation | members.manage       | 8 KiB
GET /v3/organisations/{organisationId}/audit                    | organisation | members.manage       | -
GET /v3/organisations/{organisationId}/audit.ndjson             | organisation | members.manage       | -
GET /v3/organisations/{organisationId}/audit/push              | organisation | members.manage       | -
PUT /v3/organisations/{organisationId}/audit/push              | organisation | members.manage       | 64 KiB
DELETE /v3/organisations/{organisationId}/audit/push           | organisation | members.manage       | 8 KiB
POST /v3/organisations/{organisationId}/audit/push/rotate-secret | organisation | members.manage       | 8 KiB
GET /v3/organisations/{organisationId}/invitations              | organisation | members.manage       | -
POST /v3/organisations/{organisationId}/invitations             | organisation | members.manage       | 8 KiB
DELETE /v3/organisations/{organisationId}/invitations/{invitationId}| organisation | members.manage       | 8 KiB
POST /v3/organisations/{organisationId}/invitations/{invitationId}/renew| organisation | members.manage       | 8 KiB
POST /v3/organisations/{organisationId}/members/{userId}/password-link| organisation | members.manage       | 8 KiB
GET /v3/organisations/{organisationId}/members                  | organisation | -                    | -
POST /v3/organisations/{organisationId}/members                 | organisation | members.manage       | 8 KiB
GET /v3/permissions                                             | user         | -                    | -
GET /v3/organisations/{organisationId}/roles                    | organisation | -                    | -
POST /v3/organisations/{organisationId}/roles                   | organisation | members.manage       | 64 KiB
GET /v3/organisations/{organisationId}/roles/{roleId}           | organisation | -                    | -
PATCH /v3/organisations/{organisationId}/roles/{roleId}         | organisation | members.manage       | 64 KiB
DELETE /v3/organisations/{organisationId}/roles/{roleId}        | organisation | members.manage       | 8 KiB
DELETE /v3/organisations/{organisationId}/members/{userId}      | organisation | -                    | 8 KiB
GET /v3/organisations/{organisationId}/members/{userId}         | organisation | -                    | -
PATCH /v3/organisations/{organisationId}/members/{userId}       | organisation | members.manage       | 8 KiB
POST /v3/organisations/{organisationId}/members/{userId}/password| organisation | members.manage       | 8 KiB
DELETE /v3/organisations/{organisationId}/members/{userId}/sessions| organisation | members.manage       | 8 KiB
GET /v3/organisations/{organisationId}/members/{userId}/sessions| organisation | members.manage       | -
DELETE /v3/organisations/{organisationId}/members/{userId}/sessions/{browserSessionId}| organisation | members.manage       | 8 KiB
GET /v3/organisations/{organisationId}/projects                 | organisation | -                    | -
POST /v3/organisations/{organisationId}/projects                | organisation | projects.manage      | 64 KiB
GET /v3/projects                                                | user         | -                    | -
DELETE /v3/projects/{projectId}                                 | project      | projects.manage      | 8 KiB
GET /v3/projects/{projectId}                                    | project      | -                    | -
PATCH /v3/projects/{projectId}                                  | project      | projects.manage      | 64 KiB
GET /v3/projects/{projectId}/credentials                        | project      | projects.manage      | -
POST /v3/projects/{projectId}/credentials                       | project      | projects.manage      | 64 KiB
DELETE /v3/projects/{projectId}/credentials/{credentialId}      | project      | projects.manage      | 8 KiB
GET /v3/projects/{projectId}/credentials/{credentialId}         | project      | projects.manage      | -
PATCH /v3/projects/{projectId}/credentials/{credentialId}       | project      | projects.manage      | 64 KiB
POST /v3/projects/{projectId}/credentials/{credentialId}/rotate | project      | projects.manage      | 8 KiB
GET /v3/projects/{projectId}/health                             | project      | conversations.read   | -
GET /v3/projects/{projectId}/keys                               | project      | projects.manage      | -
POST /v3/projects/{projectId}/keys                              | project      | projects.manage      | 8 KiB
POST /v3/projects/{projectId}/keys/{keyId}/revoke               | project      | projects.manage      | 8 KiB
GET /v3/bulk-jobs                                               | dashboard    | conversations.read   | -
POST /v3/bulk-jobs                                              | dashboard    | conversations.read   | 512 KiB
GET /v3/bulk-jobs/{bulkJobId}                                   | dashboard    | conversations.read   | -
POST /v3/bulk-jobs/{bulkJobId}/cancel                           | dashboard    | conversations.read   | 8 KiB
POST /v3/bulk-jobs/{bulkJobId}/undo                             | dashboard    | conversations.read   | 8 KiB
GET /v3/channels                                                | either       | projects.manage      | -
POST /v3/channels                                               | either       | projects.manage      | body_limit_bytes
DELETE /v3/channels/{channelId}                                 | either       | projects.manage      | 8 KiB
GET /v3/channels/{channelId}                                    | either       | projects.manage      | -
PATCH /v3/channels/{channelId}                                  | either       | projects.manage      | body_limit_bytes
POST /v3/channels/{channelId}/check                             | either       | projects.manage      | 64 KiB
POST /v3/channels/{channelId}/rotate-secret                     | either       | projects.manage      | 8 KiB
GET /v3/customer/channels/{channelId}                           | none         | -                    | -
GET /widget/{channelId}                                         | none         | -                    | -
GET /widget/{channelId}/demo                                    | none         | -                    | -
GET /widget/host.js                                             | none         | -                    | -
GET /widget/customer.js                                         | none         | -                    | -
GET /widget/files/{tree}/{file}                                 | none         | -                    | -
GET /v3/reports/backlog                                         | either       | conversations.read   | -
GET /v3/reports/backlog.csv                                     | either       | conversations.read   | -
GET /v3/reports/csat                                            | either       | conversations.read   | -
GET /v3/reports/csat.csv                                        | either       | conversations.read   | -
GET /v3/reports/first-response                                  | either       | conversations.read   | -
GET /v3/reports/first-response.csv                              | either       | conversations.read   | -
GET /v3/reports/time-to-close                                   | either       | conversations.read   | -
GET /v3/reports/time-to-close.csv                               | either       | conversations.read   | -
GET /v3/reports/volume                                          | either       | conversations.read   | -
GET /v3/reports/volume.csv                                      | either       | conversations.read   | -
GET /v3/s2s/contacts                                            | server_key   | contacts.read        | -
DELETE /v3/s2s/contacts/{userId}                                | server_key   | contacts.manage      | 8 KiB
GET /v3/s2s/contacts/{userId}                                   | server_key   | contacts.read        | -
PATCH /v3/s2s/contacts/{userId}                                 | server_key   | contacts.manage      | 512 KiB
PUT /v3/s2s/contacts/{userId}                                   | server_key   | contacts.manage      | 64 KiB
GET /v3/s2s/contacts/{userId}/conversations                     | server_key   | conversations.read   | -
GET /v3/s2s/contacts/{userId}/export                            | server_key   | contacts.manage      | -
GET /v3/s2s/contacts/{userId}/sessions                          | server_key   | contacts.read        | -
DELETE /v3/s2s/contacts/{userId}/sessions/{customerSessionId}   | server_key   | contacts.manage      | 8 KiB
POST /v3/s2s/contacts/{userId}/merge                            | server_key   | contacts.manage      | 64 KiB
POST /v3/s2s/contacts/{userId}/block                            | server_key   | contacts.manage      | 64 KiB
POST /v3/s2s/contacts/{userId}/unblock                          | server_key   | contacts.manage      | 8 KiB
GET /v3/customer/conversations                                  | customer     | -                    | -
POST /v3/customer/conversations                                 | customer     | -                    | 512 KiB
GET /v3/customer/conversations/{conversationId}                 | customer     | -                    | -
GET /v3/customer/conversations/{conversationId}/messages        | customer     | -                    | -
POST /v3/customer/conversations/{conversationId}/messages       | customer     | -                    | 512 KiB
PUT /v3/customer/conversations/{conversationId}/network-logs    | customer     | -                    | network_logs_limit_bytes
POST /v3/customer/conversations/{conversationId}/rating         | customer     | -                    | 64 KiB
POST /v3/customer/conversations/{conversationId}/read           | customer     | -                    | 8 KiB
POST /v3/customer/conversations/{conversationId}/typing         | customer     | -                    | 8 KiB
GET /v3/customer/conversations/{conversationId}/workflow        | customer     | -                    | -
POST /v3/customer/conversations/{conversationId}/workflow/reply | customer     | -                    | 512 KiB
GET /v3/customer/surveys/{surveyId}                             | customer     | -                    | -
POST /v3/customer/surveys/{surveyId}/responses                  | customer     | -                    | 512 KiB
POST /v3/customer/uploads                                       | customer     | -                    | upload_body_bytes
GET /v3/s2s/conversations                                       | server_key   | conversations.read   | -
POST /v3/s2s/conversations                                      | server_key   | conversations.reply  | 512 KiB
DELETE /v3/s2s/conversations/{conversationId}                   | server_key   | conversations.delete | 8 KiB
GET /v3/s2s/conversations/{conversationId}                      | server_key   | conversations.read   | -
PATCH /v3/s2s/conversations/{conversationId}                    | server_key   | conversations.manage | 512 KiB
POST /v3/s2s/conversations/{conversationId}/assign              | server_key   | conversations.manage | 8 KiB
POST /v3/s2s/conversations/{conversationId}/close               | server_key   | conversations.manage | 8 KiB
GET /v3/s2s/conversations/{conversationId}/events               | server_key   | conversations.read   | -
GET /v3/s2s/conversations/{conversationId}/messages             | server_key   | conversations.read   | -
POST /v3/s2s/conversations/{conversationId}/messages            | server_key   | conversations.reply  | 512 KiB
DELETE /v3/s2s/conversations/{conversationId}/messages/{messageId} | server_key   | conversations.delete | 8 KiB
POST /v3/s2s/conversations/{conversationId}/messages/{messageId}/redact | server_key   | conversations.manage | 64 KiB
PUT /v3/s2s/conversations/{conversationId}/network-logs         | server_key   | conversations.manage | network_logs_limit_bytes
POST /v3/s2s/conversations/{conversationId}/rating              | server_key   | conversations.reply  | 64 KiB
POST /v3/s2s/conversations/{conversationId}/read                | server_key   | conversations.manage | 8 KiB
POST /v3/s2s/conversations/{conversationId}/reopen              | server_key   | conversations.manage | 8 KiB
GET /v3/s2s/conversations/{conversationId}/tags                 | server_key   | conversations.read   | -
PUT /v3/s2s/conversations/{conversationId}/tags                 | server_key   | conversations.manage | 64 KiB
POST /v3/s2s/conversations/{conversationId}/typing              | server_key   | conversations.reply  | 8 KiB
GET /v3/s2s/conversations/{conversationId}/workflow             | server_key   | conversations.read   | -
POST /v3/s2s/conversations/{conversationId}/workflow/reply      | server_key   | conversations.reply  | 512 KiB
POST /v3/s2s/conversations/{conversationId}/workflow/start      | server_key   | conversations.manage | 8 KiB
GET /v3/s2s/deliveries/{deliveryId}                             | server_key   | webhooks.manage      | -
POST /v3/s2s/deliveries/{deliveryId}/redeliver                  | server_key   | webhooks.manage      | 8 KiB
GET /v3/s2s/events                                              | server_key   | conversations.read   | -
GET /v3/s2s/export/conversations                                | server_key   | conversations.read   | -
GET /v3/s2s/export/messages                                     | server_key   | conversations.read   | -
GET /v3/s2s/export/survey-responses                             | server_key   | surveys.read         | -
GET /v3/s2s/export/tickets                                      | server_key   | tickets.read         | -
POST /v3/s2s/import                                             | server_key   | projects.manage      | none
GET /v3/s2s/import/conversation                                 | server_key   | projects.manage      | -
GET /v3/s2s/project                                             | server_key   | -                    | -
POST /v3/s2s/stream/auth                                        | server_key   | conversations.read   | 8 KiB
GET /v3/s2s/stream/consumers                                    | server_key   | conversations.read   | -
DELETE /v3/s2s/stream/consumers/{consumerId}                    | server_key   | webhooks.manage      | 8 KiB
GET /v3/s2s/surveys/{surveyId}                                  | server_key   | surveys.read         | -
POST /v3/s2s/surveys/{surveyId}/responses                       | server_key   | surveys.manage       | 512 KiB
GET /v3/s2s/tags                                                | server_key   | conversations.read   | -
GET /v3/s2s/webhooks                                            | server_key   | webhooks.manage      | -
POST /v3/s2s/webhooks                                           | server_key   | webhooks.manage      | 64 KiB
DELETE /v3/s2s/webhooks/{endpointId}                            | server_key   | webhooks.manage      | 8 KiB
GET /v3/s2s/webhooks/{endpointId}                               | server_key   | webhooks.manage      | -
PATCH /v3/s2s/webhooks/{endpointId}                             | server_key   | webhooks.manage      | 64 KiB
GET /v3/s2s/webhooks/{endpointId}/deliveries                    | server_key   | webhooks.manage      | -
GET /v3/s2s/webhooks/{endpointId}/figures                       | server_key   | webhooks.manage      | -
POST /v3/s2s/webhooks/{endpointId}/recover                      | server_key   | webhooks.manage      | 8 KiB
POST /v3/s2s/webhooks/{endpointId}/replay                       | server_key   | webhooks.manage      | 8 KiB
POST /v3/s2s/webhooks/{endpointId}/rotate-secret                | server_key   | webhooks.manage      | 8 KiB
POST /v3/s2s/webhooks/{endpointId}/test                         | server_key   | webhooks.manage      | 8 KiB
GET /v3/search                                                  | dashboard    | conversations.read   | -
DELETE /v3/sessions/{sessionId}/memory                          | dashboard    | memory.manage        | 8 KiB
GET /v3/sessions/{sessionId}/memory                             | dashboard    | memory.read          | -
POST /v3/sessions/{sessionId}/memory                            | dashboard    | memory.manage        | 512 KiB
DELETE /v3/sessions/{sessionId}/memory/{entryName}              | dashboard    | memory.manage        | 8 KiB
GET /v3/sessions/{sessionId}/memory/{entryName}                 | dashboard    | memory.read          | -
PATCH /v3/sessions/{sessionId}/memory/{entryName}               | dashboard    | memory.manage        | 512 KiB
GET /v3/setup                                                   | dashboard    | conversations.read   | -
PUT /v3/setup                                                   | dashboard    | projects.manage      | 8 KiB
GET /v3/snippets                                                | dashboard    | conversations.read   | -
POST /v3/snippets                                               | dashboard    | snippets.manage      | 512 KiB
DELETE /v3/snippets/{snippetId}                                 | dashboard    | snippets.manage      | 8 KiB
GET /v3/snippets/{snippetId}                                    | dashboard    | conversations.read   | -
PATCH /v3/snippets/{snippetId}                                  | dashboard    | snippets.manage      | 512 KiB
GET /v3/stream                                                  | dashboard    | conversations.read   | -
GET /v3/stream/consumers                                        | dashboard    | webhooks.manage      | -
DELETE /v3/stream/consumers/{consumerId}                        | dashboard    | webhooks.manage      | 8 KiB
PUT /v3/stream/{streamId}/view                                  | dashboard    | conversations.read   | 16 KiB
GET /v3/tags                                                    | dashboard    | conversations.read   | -
GET /v3/tags                                                    | dashboard    | conversations.read   | -
GET /v3/teams                                                   | dashboard    | tickets.read         | -
POST /v3/teams                                                  | dashboard    | members.manage       | 512 KiB
DELETE /v3/teams/{teamId}                                       | dashboard    | members.manage       | 8 KiB
GET /v3/teams/{teamId}                                          | dashboard    | tickets.read         | -
PATCH /v3/teams/{teamId}                                        | dashboard    | members.manage       | 512 KiB
GET /v3/tickets                                                 | dashboard    | tickets.read         | -
POST /v3/tickets                                                | dashboard    | tickets.manage       | 512 KiB
PUT /v3/tickets/bulk                                            | dashboard    | tickets.manage       | 512 KiB
DELETE /v3/tickets/{ticketId}                                   | dashboard    | tickets.manage       | 8 KiB
GET /v3/tickets/{ticketId}                                      | dashboard    | tickets.read         | -
PATCH /v3/tickets/{ticketId}                                    | dashboard    | tickets.manage       | 512 KiB
GET /v3/tickets/{ticketId}/activity                             | dashboard    | tickets.read         | -
POST /v3/tickets/{ticketId}/voice-reply                         | dashboard    | tickets.manage       | 64 KiB
GET /v3/translations/entries                                    | dashboard    | translations.read    | -
DELETE /v3/translations/entries/{entryId}                       | dashboard    | translations.manage  | 8 KiB
GET /v3/translations/entries/{entryId}                          | dashboard    | translations.read    | -
PUT /v3/translations/entries/{entryId}                          | dashboard    | translations.manage  | body_limit_bytes
GET /v3/translations/missing                                    | dashboard    | translations.read    | -
POST /v3/uploads                                                | either       | conversations.reply  | upload_body_bytes
DELETE /v3/uploads/{uploadId}                                   | either       | conversations.reply  | 8 KiB
GET /v3/uploads/{uploadId}                                      | either       | conversations.read   | -
GET /v3/uploads/{uploadId}/{name}                               | none         | -                    | -
DELETE /v3/users/me                                             | user         | -                    | 8 KiB
GET /v3/users/me                                                | user         | -                    | -
PATCH /v3/users/me                                              | user         | -                    | 8 KiB
POST /v3/users/me/password                                      | user         | -                    | 8 KiB
GET /v3/users/me/permissions                                    | user         | -                    | -
GET /v3/users/me/notifications                                  | user         | -                    | -
PUT /v3/users/me/notifications                                  | user         | -                    | 8 KiB
GET /v3/users/me/push-subscription                              | user         | -                    | -
PUT /v3/users/me/push-subscription                              | user         | -                    | 64 KiB
DELETE /v3/users/me/push-subscription                           | user         | -                    | 8 KiB
GET /v3/users/me/pushes                                         | user         | -                    | -
GET /v3/users/me/identities                                     | user         | -                    | -
DELETE /v3/users/me/identities/{identityId}                     | user         | -                    | 8 KiB
DELETE /v3/users/me/sessions                                    | user         | -                    | 8 KiB
GET /v3/users/me/sessions                                       | user         | -                    | -
DELETE /v3/users/me/sessions/{browserSessionId}                 | user         | -                    | 8 KiB
GET /v3/views                                                   | dashboard    | conversations.read   | -
POST /v3/views                                                  | dashboard    | conversations.read   | 512 KiB
DELETE /v3/views/{viewId}                                       | dashboard    | conversations.read   | 8 KiB
GET /v3/views/{viewId}                                          | dashboard    | conversations.read   | -
PATCH /v3/views/{viewId}                                        | dashboard    | conversations.read   | 512 KiB
GET /v3/webhooks                                                | dashboard    | webhooks.manage      | -
POST /v3/webhooks                                               | dashboard    | webhooks.manage      | 64 KiB
DELETE /v3/webhooks/{endpointId}                                | dashboard    | webhooks.manage      | 8 KiB
GET /v3/webhooks/{endpointId}                                   | dashboard    | webhooks.manage      | -
PATCH /v3/webhooks/{endpointId}                                 | dashboard    | webhooks.manage      | 64 KiB
GET /v3/webhooks/{endpointId}/deliveries                        | dashboard    | webhooks.manage      | -
GET /v3/webhooks/{endpointId}/figures                           | dashboard    | webhooks.manage      | -
POST /v3/webhooks/{endpointId}/recover                          | dashboard    | webhooks.manage      | 8 KiB
POST /v3/webhooks/{endpointId}/replay                           | dashboard    | webhooks.manage      | 8 KiB
POST /v3/webhooks/{endpointId}/rotate-secret                    | dashboard    | webhooks.manage      | 8 KiB
POST /v3/webhooks/{endpointId}/test                             | dashboard    | webhooks.manage      | 8 KiB
GET /v3/workflows                                               | dashboard    | conversations.read   | -
POST /v3/workflows                                              | dashboard    | projects.manage      | body_limit_bytes
POST /v3/workflows/simulate                                     | dashboard    | conversations.read   | body_limit_bytes
POST /v3/workflows/validate                                     | dashboard    | conversations.read   | body_limit_bytes
DELETE /v3/workflows/{workflowId}                               | dashboard    | projects.manage      | 8 KiB
GET /v3/workflows/{workflowId}                                  | dashboard    | conversations.read   | -
PATCH /v3/workflows/{workflowId}                                | dashboard    | projects.manage      | body_limit_bytes
GET /v3/workflows/{workflowId}/figures                          | dashboard    | conversations.read   | -
GET /v3/workflows/{workflowId}/runs                             | dashboard    | conversations.read   | -
GET /v3/workflows/{workflowId}/versions                         | dashboard    | conversations.read   | -
GET /v3/workflows/{workflowId}/versions/{version}               | dashboard    | conversations.read   | -
GET /web/{tree}/{file}                                          | none         | -                    | -
"""


def guards() -> Mapping[str, Guard]:
    """Return the table, by method and path."""
    rows = ([cell.strip() for cell in line.split("|")] for line in _TABLE.strip().splitlines())
    return {call: Guard(*cells) for call, *cells in rows}
