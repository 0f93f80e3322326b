"""The registry of error codes, as data. A test compares it with the sources.

Only the generators of the API reference import this module (`program/reference.py`), so it may import limits from anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from deskwire.engine.accounts.access_tokens import ENDED_MAX
from deskwire.engine.accounts.custom_roles import ROLES_MAX
from deskwire.engine.accounts.invitations import INVITATIONS_MAX
from deskwire.engine.accounts.machines import MACHINES_MAX
from deskwire.engine.accounts.projects import PROJECTS_MAX, SERVER_KEYS_MAX
from deskwire.engine.agents.streams import MAX_STREAMS_PER_USER as STREAMS_MAX
from deskwire.engine.channels.channel import CHANNELS_MAX
from deskwire.engine.conversations.bulk_jobs import RUNNING_MAX
from deskwire.engine.conversations.drafts import DRAFT_CHARACTERS_MAX, DRAFTS_MAX
from deskwire.engine.conversations.held_messages import HELD_MAX
from deskwire.engine.conversations.merge_decisions import SOURCES_MAX
from deskwire.engine.conversations.merge_records import UNDO_DAYS
from deskwire.engine.conversations.saved_view import OWN_VIEWS_MAX, SHARED_VIEWS_MAX
from deskwire.engine.conversations.split_decisions import SPLITS_MAX
from deskwire.engine.snippets.snippet import SNIPPETS_MAX
from deskwire.engine.webhooks.endpoint import ENDPOINTS_MAX
from deskwire.engine.workflows.runs import VERSIONS_KEPT
from deskwire.engine.workflows.workflow import WORKFLOWS_MAX
from deskwire.http.resources.conversations.inbox import SINCE_MAX
from deskwire.http.resources.surveys.surveys import VERSIONS_MAX


class Code(Struct, frozen=True):
    """A stable code of a problem document, with its status and its meaning."""

    status: int
    code: str
    meaning: str


CODES: Final = (
    Code(
        400,
        "chunks_too_small",
        "The body came in more than 512 chunks of less than 64 bytes; send larger ones.",
    ),
    Code(400, "bad_idempotency_key", "An `Idempotency-Key` must have 1 to 255 printable ASCII characters."),
    Code(400, "bad_path", "The path is not percent-encoded UTF-8; `detail` has the reason."),
    Code(
        400,
        "bad_query",
        "Query parameters are unknown, invalid, or given twice; `errors` names each of them.",
    ),
    Code(400, "bad_request", "The request can't be parsed."),
    Code(400, "body_timeout", "The body did not arrive in time (`DESKWIRE_BODY_TIMEOUT_S`)."),
    Code(
        400,
        "invalid_logout_token",
        "The logout token of the identity provider is not valid here, or was used before; `detail` has the reason.",
    ),
    Code(
        400,
        "malformed_body",
        "The body has the wrong format: an upload takes a multipart form, a stream authorization a JSON object or a form.",
    ),
    Code(
        400,
        "malformed_json",
        "The body is not JSON, is nested too deeply, or has a number that no double can hold; `detail` has the reason and the place.",
    ),
    Code(
        400,
        "bad_entry_id",
        "The entry id in the path is not of the form `<type>:<id>`; `detail` has the reason.",
    ),
    Code(400, "nul_character", "An identifier in the path has U+0000."),
    Code(400, "missing_project", "The call needs the header `project`."),
    Code(400, "repeated_header", "A header that may come once was given more than once; `errors` names it."),
    Code(400, "tls_required", "A plain HTTP request was sent to a TLS port; use `https://`."),
    Code(401, "bad_credential", "The header `Authorization` is not of the form `Bearer …`."),
    Code(401, "bad_session_cookie", "The session's cookie is malformed, or there are two that differ."),
    Code(401, "expired_machine_credential", "The machine credential has expired."),
    Code(
        401,
        "identity_expired",
        "The customer's signed identity has expired (`exp`); the site's backend must sign another one.",
    ),
    Code(
        401,
        "identity_invalid",
        "The customer's signed identity is not valid in this channel; `detail` names the claim, the header or the signature that is wrong.",
    ),
    Code(
        401,
        "identity_required",
        "The channel is for signed-in customers only: the call needs an `identity` that the site's backend has signed.",
    ),
    Code(401, "invalid_login", "The e-mail address or the password is wrong."),
    Code(
        401,
        "challenge_ended",
        "The challenge is unknown, was used, has expired, or has seen 5 wrong codes; sign in again.",
    ),
    Code(401, "invalid_code", "The code is wrong, has expired, or was used before."),
    Code(401, "invalid_passkey", "The answer of the passkey is not valid for this challenge and address."),
    Code(
        401,
        "second_factor_required",
        "The account has a second factor; send a code of the authenticator app, or a recovery code where the call takes one.",
    ),
    Code(401, "invalid_machine_credential", "The machine credential does not exist."),
    Code(401, "invalid_metrics_token", "The token is not the one of `DESKWIRE_METRICS_TOKEN`."),
    Code(401, "invalid_server_key", "The server key does not exist."),
    Code(
        401,
        "invalid_token",
        "The access token is not valid here: altered, incomplete, for another audience, or of an unknown user. `detail` and the log have the reason.",
    ),
    Code(401, "key_expired", "The server key has expired. Create another one."),
    Code(401, "missing_credential", "The header `Authorization` is missing."),
    Code(401, "revoked_machine_credential", "The machine credential has been revoked."),
    Code(401, "revoked_server_key", "The server key has been revoked."),
    Code(
        401,
        "rotated_machine_credential",
        "The machine credential has a new secret since a rotation, and the overlap has ended.",
    ),
    Code(
        401,
        "session_ended",
        "The session of the browser or customer has ended, or its token is not of this service; sign in, or start a session, again.",
    ),
    Code(401, "token_ended", "The access token was ended before it expired; sign in again."),
    Code(401, "token_expired", "The access token has expired; sign in again."),
    Code(
        401,
        "wrong_credential_kind",
        "This call does not accept this kind of credential; `detail` names the given kind and the required one.",
    ),
    Code(
        403,
        "cross_site_request",
        "A changing call with a session cookie came from a page of another origin, or without an origin.",
    ),
    Code(
        403,
        "fresh_proof_required",
        "The session's last proof of who uses it is older than 15 minutes; prove it by one of `methods` (`POST /v3/auth/session/proof`), and repeat the call.",
    ),
    Code(
        403,
        "metrics_local_only",
        "Without `DESKWIRE_METRICS_TOKEN`, the metrics can be read only from the machine of the service.",
    ),
    Code(
        403,
        "link_expired",
        "The signed URL has expired; fetch the object that it came from to get a new one.",
    ),
    Code(403, "link_invalid", "The URL was not signed by this service."),
    Code(
        403,
        "origin_not_allowed",
        "The page that calls is not on one of the channel's `origins`, or the call has no `Origin` and the channel is not `native`.",
    ),
    Code(
        403,
        "session_required",
        "An access token was shown; changes of the own second factors need a browser session with a recent proof (`POST /v3/auth/session`).",
    ),
    Code(
        403,
        "signed_field",
        "The customer's field comes from the site's backend, which has signed it or stored it; `detail` names it.",
    ),
    Code(
        403,
        "contact_blocked",
        "The contact is blocked: it can read, and its messages, files, ratings and new conversations are refused.",
    ),
    Code(
        403,
        "message_required",
        "A visitor can send files and answer surveys after the first message; send that before.",
    ),
    Code(
        403,
        "permission_denied",
        "The role of the user, or the machine credential, lacks the permission that `detail` names.",
    ),
    Code(
        403,
        "permission_not_held",
        "The user lacks permissions that it wants to give, or that the member or role has on which it wants to act; `detail` names them.",
    ),
    Code(403, "person_required", "Only people may make this call, but it had a machine credential."),
    Code(
        403,
        "own_password",
        "Your own password is changed with `POST /v3/users/me/password`, which needs the current one.",
    ),
    Code(403, "own_factors", "Another manager of members, or the operator, resets one's own second factors."),
    Code(
        403,
        "second_factor_required_here",
        "The organisation requires a second factor of its members, and the user has none (`POST /v3/users/me/factors/totp`).",
    ),
    Code(403, "owner_protected", "Only an owner can grant or withdraw the role of owner."),
    Code(
        403,
        "password_change_required",
        "The password is a one-time password; sign in with it and a `newPassword`.",
    ),
    Code(
        403,
        "one_time_password_ended",
        "The one-time password was not replaced within `DESKWIRE_ONE_TIME_PASSWORD_S` (72 hours) and has ended; ask for another one.",
    ),
    Code(
        403,
        "inviter_not_permitted",
        "The member who created or renewed the invitation may no longer give its role; ask for another one.",
    ),
    Code(
        403,
        "mail_disabled",
        "The installation has no mail settings (`DESKWIRE_SMTP_HOST`); ask a manager of members for a link.",
    ),
    Code(403, "sign_in_disabled", "Users of this installation sign in with an identity provider."),
    Code(403, "unknown_channel", "The project has no stream channel of this name."),
    Code(404, "factor_not_found", "You have no such second factor."),
    Code(
        404, "customer_session_not_found", "The contact has no such session in a channel; it may have ended."
    ),
    Code(404, "consumer_not_found", "The consumer is on no channel, or not on the channel given."),
    Code(404, "contact_merged", "The contact was merged into another one, which `mergedInto` names."),
    Code(404, "contact_not_found", "There is no such contact in this project."),
    Code(404, "conversation_not_found", "There is no such conversation; remove it from every mirror."),
    Code(404, "delivery_not_found", "There is no such delivery, or it is older than the delivery log."),
    Code(404, "entry_not_found", "There is no such translatable entry."),
    Code(404, "event_not_found", "The event id is newer than the newest event of the feed."),
    Code(404, "credential_not_found", "The project has no such machine credential."),
    Code(
        404, "invitation_not_found", "There is no such invitation; it was accepted, revoked or has expired."
    ),
    Code(404, "identity_not_found", "The user has no such identity at an identity provider."),
    Code(404, "key_not_found", "The project has no such server key."),
    Code(404, "member_not_found", "The organisation has no such member."),
    Code(404, "memory_entry_not_found", "The contact has no memory entry of this name."),
    Code(
        404,
        "draft_not_found",
        "A conversation has only two drafts of yours, `reply` and `note`.",
    ),
    Code(
        404,
        "held_message_not_found",
        "You have no such held message: it was taken back, belongs to another user, or never existed.",
    ),
    Code(404, "message_not_found", "The conversation has no such message."),
    Code(404, "not_found", "There is no such path. Send a slash within an id as `%2F`."),
    Code(404, "organisation_not_found", "There is no such organisation, or the user is not a member of it."),
    Code(
        404, "project_not_found", "There is no such project, or the user is not a member of its organisation."
    ),
    Code(
        404,
        "channel_not_found",
        "There is no such channel in this project; it may have been deleted.",
    ),
    Code(404, "view_not_found", "There is no such saved view that you see."),
    Code(
        404,
        "bulk_job_not_found",
        "You have no such bulk job in this project, or it ended more than 30 days ago.",
    ),
    Code(404, "snippet_not_found", "There is no such snippet in this project."),
    Code(404, "team_not_found", "There is no such team."),
    Code(404, "push_not_found", "The audit trail of the organisation is not pushed."),
    Code(404, "token_not_found", "The user has no such access token in force."),
    Code(404, "ticket_not_found", "There is no such ticket."),
    Code(404, "refresh_not_found", "The insights of the survey have never been refreshed."),
    Code(404, "response_not_found", "The survey has no such response."),
    Code(
        404,
        "stream_not_found",
        "The user has no such open stream in this project; a stream ends with its connection.",
    ),
    Code(404, "survey_not_found", "There is no such survey in this project."),
    Code(
        404, "survey_version_not_found", "The survey has no such version; `detail` lists the versions it has."
    ),
    Code(
        404,
        "workflow_version_not_found",
        f"The workflow has no such version, or the version is no longer stored: the newest {VERSIONS_KEPT} are.",
    ),
    Code(
        404,
        "role_not_found",
        "The organisation has no such role, or the user whose permissions were asked for is not a member of any organisation.",
    ),
    Code(404, "browser_session_not_found", "The user has no such session of a browser; it may have ended."),
    Code(404, "session_not_found", "There is no such session; a session is the id of a contact."),
    Code(
        404,
        "translation_not_found",
        "The entry is not translated into this language; `detail` lists the languages it has.",
    ),
    Code(
        404,
        "upload_not_found",
        "There is no such file, or it was deleted with the last message that referred to it.",
    ),
    Code(404, "workflow_not_found", "There is no such workflow in this project."),
    Code(404, "webhook_not_found", "There is no such webhook endpoint."),
    Code(
        405,
        "method_not_allowed",
        "The path does not support this method; the header `Allow` lists those it supports.",
    ),
    Code(
        409, "no_access_token", "The call was made with a browser session, which has no access token to end."
    ),
    Code(
        409,
        "last_factor_required",
        "The last second factor stays while an organisation of the user requires one.",
    ),
    Code(409, "no_factor", "The user has no second factor."),
    Code(409, "no_pending_totp", "No authenticator app was begun in the last 10 minutes; begin again."),
    Code(
        409,
        "no_owner_with_factor",
        "First an owner, and you, add a second factor; else the organisation would be locked.",
    ),
    Code(409, "passkey_known", "The passkey is registered already."),
    Code(
        409,
        "passkeys_unavailable",
        "Browsers allow passkeys at an https address with a domain name, or at localhost.",
    ),
    Code(409, "too_many_passkeys", "The user has 20 passkeys, the maximum."),
    Code(409, "no_session", "The call was made with an access token; only a browser session is proved."),
    Code(409, "channel_disabled", "The channel is disabled; customers can use it again once it is enabled."),
    Code(
        409,
        "no_contact_yet",
        "Nothing is stored of a visitor before the first message; send these fields with it.",
    ),
    Code(409, "already_member", "The user is already a member."),
    Code(
        409,
        "conversation_closed",
        "A closed conversation can't be snoozed or marked as needing no answer, its status can't be changed, and no workflow "
        "can be started in it; reopen it first.",
    ),
    Code(
        409,
        "conversation_moved_on",
        "A message was added, or the conversation closed, after the `ifSequence` of the reply; "
        f"`sequence` is the current one, and `since` has the newer messages, at most {SINCE_MAX}.",
    ),
    Code(
        409,
        "conversation_merged",
        "The conversation is merged into `mergedInto`, which shows its messages; make the change there.",
    ),
    Code(
        409,
        "conversation_has_merged",
        "Other conversations are merged into this one; merge in the other direction, or undo those merges first.",
    ),
    Code(409, "different_contacts", "The conversations are of different contacts; merge the contacts first."),
    Code(409, "merge_limit_reached", f"{SOURCES_MAX} conversations are merged into that one, the maximum."),
    Code(
        409,
        "message_split",
        "A conversation was started with a message before, `splitInto`; merge that one into this one first.",
    ),
    Code(
        409,
        "split_limit_reached",
        f"{SPLITS_MAX} conversations were started with messages of this one, the maximum.",
    ),
    Code(409, "merge_is_final", f"The merge is more than {UNDO_DAYS} days old and can no longer be undone."),
    Code(
        409,
        "newer_message",
        "A conversation can't be marked as needing no answer while it has a newer message than the one of `index`; read it first.",
    ),
    Code(409, "already_sent", "The message was sent before you took it back; the customer has it."),
    Code(409, "attachment_gone", "A file attached to the held message was removed in the meantime."),
    Code(
        409,
        "draft_limit_reached",
        f"You have {DRAFTS_MAX:,} drafts in the project, or {DRAFT_CHARACTERS_MAX:,} characters in all of them; send or empty some first.",
    ),
    Code(
        409,
        "draft_too_long",
        "A newer version of the draft is stored, and both together exceed the maximum length. Nothing was changed.",
    ),
    Code(
        409,
        "held_message_limit_reached",
        f"You have {HELD_MAX} held messages, or {HELD_MAX} scheduled ones, in the project; take back or send some.",
    ),
    Code(409, "conversation_hidden", "The customer can't see the conversation; make it visible first."),
    Code(409, "conversation_linked", "The conversation is linked to another ticket; remove that link first."),
    Code(
        409,
        "delivery_pending",
        "The delivery is still being attempted; only a delivery that has ended can be sent again.",
    ),
    Code(409, "channel_limit_reached", f"The project has reached its limit of {CHANNELS_MAX} channels."),
    Code(
        409,
        "view_limit_reached",
        f"A user has at most {OWN_VIEWS_MAX} saved views alone in a project, and a project {SHARED_VIEWS_MAX} shared ones.",
    ),
    Code(
        409,
        "bulk_job_running",
        "The bulk job, or another one of yours, is in progress; wait for its end, or cancel it.",
    ),
    Code(
        409, "bulk_job_ended", "The bulk job has ended, so it can't be cancelled, or it was undone already."
    ),
    Code(
        409,
        "bulk_job_limit_reached",
        f"A project has at most {RUNNING_MAX} bulk jobs in progress; wait until one has ended.",
    ),
    Code(409, "snippet_limit_reached", f"The project has reached its limit of {SNIPPETS_MAX:,} snippets."),
    Code(409, "snippet_shortcut_taken", "Another snippet of the project has this shortcut."),
    Code(409, "step_not_pending", "The workflow step does not wait for an answer, or no longer does."),
    Code(
        409,
        "team_name_taken",
        "Another team of the project has this name; upper and lower case count as the same.",
    ),
    Code(
        409,
        "ticket_changed",
        "The link of the ticket to a conversation was changed in the meantime; fetch the ticket again.",
    ),
    Code(409, "survey_closed", "The survey is closed and accepts no responses."),
    Code(
        409, "survey_version_limit_reached", f"The survey has reached its limit of {VERSIONS_MAX} versions."
    ),
    Code(
        409,
        "member_elsewhere",
        "The account also belongs to another organisation, so only the operator can set a new password.",
    ),
    Code(
        409,
        "invitation_exists",
        "The address is invited to the organisation already; renew or revoke that invitation.",
    ),
    Code(
        409,
        "invitation_limit_reached",
        f"An organisation has at most {INVITATIONS_MAX:,} open invitations; revoke one first.",
    ),
    Code(409, "email_in_use", "The address has an account that only the operator can add as a member."),
    Code(
        409, "idempotency_in_progress", "The first request with this `Idempotency-Key` is still in progress."
    ),
    Code(
        409,
        "credential_limit_reached",
        f"The project has reached its limit of {MACHINES_MAX} machine credentials in force; revoke one first.",
    ),
    Code(409, "credential_revoked", "The machine credential has been revoked; create another one."),
    Code(
        409,
        "key_limit_reached",
        f"The project has reached its limit of {SERVER_KEYS_MAX} server keys; revoke one first.",
    ),
    Code(409, "role_built_in", "The built-in roles can't be changed or deleted."),
    Code(409, "role_in_use", "Members have the role; give them another one before you delete it."),
    Code(
        409,
        "role_limit_reached",
        f"The organisation has reached its limit of {ROLES_MAX} roles of its own; delete one first.",
    ),
    Code(
        409,
        "role_name_taken",
        "Another role of the organisation has this name; upper and lower case count as the same.",
    ),
    Code(409, "last_owner", "The organisation would be left without an owner."),
    Code(409, "password_changed", "Another call has just changed the password."),
    Code(
        409, "project_limit_reached", f"The organisation has reached its limit of {PROJECTS_MAX:,} projects."
    ),
    Code(409, "project_not_empty", "The project holds data, so it can't be deleted."),
    Code(409, "memory_limit_reached", "The contact has reached its limit of memory entries."),
    Code(
        409,
        "upload_attached",
        "A message refers to the upload; it is deleted with the last conversation that refers to it.",
    ),
    Code(409, "upload_quota_exceeded", "The project's uploads have used up its quota."),
    Code(409, "webhook_disabled", "The endpoint is disabled; enable it first."),
    Code(409, "webhook_limit_reached", f"The project has reached its limit of {ENDPOINTS_MAX} endpoints."),
    Code(409, "workflow_limit_reached", f"The project has reached its limit of {WORKFLOWS_MAX} workflows."),
    Code(
        409,
        "workflow_not_manual",
        "The workflow starts automatically in new conversations, and can't be started by a call.",
    ),
    Code(409, "workflow_running", "A workflow is already running in the conversation."),
    Code(
        410,
        "link_ended",
        "The one-time link was used, replaced or revoked, has expired, or never existed; ask for a new one.",
    ),
    Code(410, "event_not_stored", "The event is no longer stored, so it can't be sent again."),
    Code(
        410,
        "idempotency_answer_erased",
        "The request with this `Idempotency-Key` or `clientId` was carried out, but the object that it created has been deleted since.",
    ),
    Code(410, "window_passed", "The requested events are no longer stored; fetch the conversations again."),
    Code(
        412,
        "changed_meanwhile",
        "The object does not match the `ETag` of `If-Match`, because it was changed. Or it exists, contrary to "
        "`If-None-Match`. Nothing was changed; read it again.",
    ),
    Code(413, "body_too_large", "The body is larger than the limit of this call."),
    Code(
        415,
        "unsupported_media_type",
        "The body must be `application/json`, `multipart/form-data` for an upload, or NDJSON for an import. It must not be "
        "compressed (`Content-Encoding`).",
    ),
    Code(416, "range_not_satisfiable", "The header `Range` matches no part of the file."),
    Code(
        422, "idempotency_mismatch", "The `Idempotency-Key` or `clientId` was used before with another body."
    ),
    Code(
        422, "invalid_input", "The body is JSON, but not valid for this call; `errors` lists every problem."
    ),
    Code(
        422,
        "reserved_user_id",
        "Ids of the form `visitor-<ULID>` are given to visitors of channels; a backend can't create a contact with one.",
    ),
    Code(426, "upgrade_required", "A path under `/app/` was called without a websocket handshake."),
    Code(
        429,
        "rate_limited",
        "The project, the user, the customer's session or its network makes too many calls; wait for the time in `Retry-After`.",
    ),
    Code(
        429,
        "too_many_at_once",
        "The project, user or address has too many requests in progress at once. Wait for the time in `Retry-After`.",
    ),
    Code(
        429,
        "too_many_failures",
        "Too many calls from this address had no valid credential; wait for the time in `Retry-After`.",
    ),
    Code(
        429,
        "too_many_sign_ins",
        "Too many attempts to sign in have failed; wait for the time in `Retry-After`.",
    ),
    Code(
        429,
        "too_many_ended_tokens",
        f"{ENDED_MAX:,} access tokens of the user were ended before they expired; a new password ends all of them.",
    ),
    Code(
        429,
        "too_many_members",
        "The organisation has added `DESKWIRE_MEMBERS_PER_HOUR` members within an hour; wait for the time in `Retry-After`.",
    ),
    Code(
        429,
        "too_many_streams",
        f"The user has {STREAMS_MAX} streams open, the organisation has its share of `DESKWIRE_AGENT_STREAMS`, or all of them are open; wait for the time in `Retry-After`.",
    ),
    Code(
        429,
        "visitor_limit",
        "Many conversations of visitors come from this network, or to this channel. Send the request again with a `proof` for the `challenge`, or wait for the time in `Retry-After`.",
    ),
    Code(431, "header_too_large", "The request line and the headers have more than 16 KiB."),
    Code(
        500,
        "internal_error",
        "An internal error. The log of the service has the details under the `requestId`.",
    ),
    Code(501, "unsupported_transfer_encoding", "The transfer encoding of the body is not `chunked`."),
    Code(
        502,
        "model_failed",
        "The language model failed, was too slow, or returned an unusable answer. The call is not repeated.",
    ),
    Code(503, "conversation_busy", "Too many commands are waiting for this conversation."),
    Code(
        503,
        "erasure_under_way",
        "The contact can no longer be found; the rest of its erasure takes longer and continues in the background.",
    ),
    Code(
        503,
        "merge_under_way",
        "A merge of contacts takes longer and continues in the background. Repeat the request to check whether it has finished.",
    ),
    Code(
        503, "model_not_configured", "The operator has configured no language model (`DESKWIRE_MODEL_URL`)."
    ),
    Code(
        503,
        "not_confirmed",
        "The change is stored, but not all nodes confirmed the revocation in time. Repeat the request to be sure.",
    ),
    Code(
        503,
        "out_of_touch",
        "The node was stopped, or could not reach the database, and has not caught up with the others. Send the request again.",
    ),
    Code(503, "not_ready", "The service is starting or stopping."),
    Code(
        503,
        "overloaded",
        "The service is overloaded with requests, large bodies, waiting feed calls, changes, or conversations.",
    ),
    Code(
        503,
        "provider_unreachable",
        "The identity provider can't be reached at the moment, so its token can't be checked.",
    ),
    Code(503, "refresh_busy", "Too many insights are being refreshed at once."),
    Code(503, "shutting_down", "The service is stopping; the command was not carried out."),
    Code(503, "sign_in_busy", "Too many users are signing in at once."),
    Code(
        503, "signing_keys_unavailable", "The keys of the identity provider can't be fetched at the moment."
    ),
    Code(
        503,
        "storage_failed",
        "The disk failed; nothing of the call was stored. For `/readyz`: the disk accepts no writes.",
    ),
    Code(
        503,
        "wrong_database",
        "The database is not the one that the installation used before: the file was replaced, or the PostgreSQL server is another one or "
        "an old primary. The service stores nothing in it; the operator has to act.",
    ),
    Code(
        503,
        "channel_not_released",
        "Another node holds the channel and did not release it within 10 s. Nothing has changed; send the request again.",
    ),
    Code(
        503,
        "outcome_unknown",
        "With PostgreSQL: the connection was lost during the commit, so it is unknown whether the change is stored. Send the "
        "request again with the same `Idempotency-Key`: it is carried out once. The shipped balancers respond with 502 and 504.",
    ),
    Code(
        503,
        "read_timeout",
        "The database did not respond within `DESKWIRE_READ_TIMEOUT_S`; request less data.",
    ),
    Code(503, "uploads_busy", "Too many uploads are in progress at once."),
    Code(503, "voice_busy", "`DESKWIRE_VOICE_AT_ONCE` voice replies are already in progress."),
    Code(505, "http_version_not_supported", "The request is not HTTP/1.1; for HTTP/2, put a proxy in front."),
)
"""All codes of HTTP responses, by status."""

INTERNAL: Final[Mapping[str, str]] = {
    "already_answered": "not a refusal: the earlier response is repeated",
    "conversation_exists": "not a refusal: the call answers with the stored conversation",
    "conversation_changed": "not a response: the message is sent to the conversation again",
    "tag_limit_reached": "not a response: a reason in a bulk job",
    "changed_since": "not a response: a reason in a bulk job",
    "unchanged": "not a response: a reason in a bulk job",
    "no_contact_message": "not a response: a reason in a bulk job",
    "permission_lost": "not a response: a reason in a bulk job",
    "bulk_item_taken": "not a response: the conversation of a bulk job was changed already",
    "conflict": "class default: every conflict has a code of its own",
    "ambiguous": "on the command line only",
    "secret_in_settings": "on the command line only",
    "secret_unusable": "on the command line only",
    "organisation_not_empty": "on the command line only",
    "other_home": "on the command line only",
    "already_set_up": "on the command line only",
    "mail_failed": "on the command line only",
    "no_account": "in the address of the desk's page after a sign-in at a provider",
    "account_elsewhere": "in the address of the desk's page after a sign-in at a provider",
    "no_role": "in the address of the desk's page after a sign-in at a provider",
    "address_not_verified": "in the address of the desk's page after a sign-in at a provider",
    "refused": "base class, never raised",
    "too_many_requests": "class default: every such refusal has a code of its own",
    "user_not_found": "on the command line only",
    "unauthenticated": "class default: every such refusal has a code of its own",
    "bad_gateway": "class default: every such refusal has a code of its own",
    "unavailable": "class default: every such refusal has a code of its own",
    "consumer_superseded": "on the stream: `subscription_error` of status 409",
    "too_many_takeovers": "on the stream: `subscription_error` of status 429",
    "too_many_channels": "on the stream: `subscription_error` of status 403",
    "wrong_channel": "on the stream: `subscription_error` of status 401",
    "wrong_project": "on the stream: `subscription_error` of status 401",
    "wrong_socket": "on the stream: `subscription_error` of status 401",
}
"""Codes in the sources that no HTTP response has, with the reason."""

PROBLEMS: Final[Mapping[str, str]] = {
    "blank": "The text has only blanks.",
    "bad_answer": "The answer is not valid for its question; `message` has the reason.",
    "audio_format": "The recording is neither WAV nor MP3.",
    "audio_too_long": "The recording is too long, in seconds or in bytes.",
    "audio_unreadable": "The file can't be read as a recording.",
    "bad_cursor": "The cursor is not from this list.",
    "bad_event_id": "An event id is `evt_` and 26 characters.",
    "bad_project_id": "A project id is `prj_` and 26 characters.",
    "conflict": "The object with this id was imported before with other content.",
    "contradiction": "The setting contradicts another one; the message names it.",
    "duplicate": "An item is in the list more than once.",
    "duplicate_id": "An earlier item of the list has the same id.",
    "invalid": "The value has the wrong type or format; `message` has the reason.",
    "invalid_format": "The value has the wrong format.",
    "invalid_type": "The value has the wrong type.",
    "invalid_value": "The value is not allowed for this field.",
    "in_the_future": "The time is ahead of the service's clock.",
    "mismatch": "The linked conversation belongs to another contact.",
    "no_public_message": "A conversation can't be started with notes and deleted messages alone.",
    "needs_internal": "The event type carries internal notes of agents: the endpoint must have `internal`.",
    "not_ahead": "The time is in the past.",
    "not_allowed": "The value is not one of those allowed, or the field is not allowed here.",
    "not_asked": "With the other answers, the logic of the survey skips this question.",
    "not_for_team": "Only a saved view with `visibility` `team` has a team.",
    "not_nullable": "This field can't be null.",
    "not_own": "Only the author of a saved view can keep it for themselves.",
    "malformed_json": "The line of an import is not JSON.",
    "nul_character": "The text or identifier contains U+0000.",
    "not_reversible": "A conversation that the customer has seen can't be hidden again.",
    "out_of_order": "The time is before that of the creation. The line is imported.",
    "out_of_range": "The time is before 1970, or in the future. In an import the line is imported without it.",
    "personal_data": "A saved view can't have a condition that names a customer.",
    "permission_denied": "The line needs a permission that the credential does not have.",
    "repeated": "The parameter or item is given more than once.",
    "required": "The field is missing.",
    "too_deep": "The value is nested too deeply.",
    "too_few": "The value has too few items or keys.",
    "too_guessable": "The password is easy to guess; `message` has the reason.",
    "too_large": "The number is above its maximum, or is an integer of more than 64 bits.",
    "too_long": "The value has too many characters.",
    "too_many": "The value has too many items or keys.",
    "too_short": "The value has too few characters.",
    "too_small": "The number is below its minimum.",
    "unchanged": "The new password equals the current one.",
    "merged": "The contact was already merged into another one.",
    "same": "A contact can't be merged into itself.",
    "no_access": "Neither the user nor a member of the team has a role with `conversations.read`, so notes can't mention them.",
    "viewer": "The user's role lacks `conversations.reply`, so conversations and tickets can't be assigned to the user.",
    "beyond_maker": "The credential that created this one lacks a permission that it would get.",
    "too_late": "The time is later than the operator allows.",
    "unknown": "The project has no object, or the organisation no user, with this id.",
    "unknown_api_version": "Events have no such version.",
    "unknown_event_type": "There is no such event type.",
    "unknown_field": "There is no such field.",
    "unknown_language": "The project, or the version of the survey, does not have this language.",
    "unknown_parameter": "There is no such query parameter.",
    "unknown_place": "The message was imported by an earlier version, which did not record its position.",
    "unknown_question": "The version of the survey has no question with this id.",
    "unknown_time_zone": "The IANA database has no time zone of this name.",
    "unknown_version": "The survey has no such version.",
    "url_address_refused": "The URL's host resolves to an address that is not public.",
    "url_characters": "The URL contains whitespace or control characters.",
    "url_fragment": "The URL has a fragment (`#`).",
    "url_host_invalid": "The URL's host is not a valid name or address.",
    "url_host_unknown": "The URL's host can't be resolved.",
    "url_malformed": "The URL can't be parsed.",
    "url_no_host": "The URL has no host.",
    "url_not_https": "The URL does not begin with `https://`.",
    "url_not_signed": "The URL was not signed by this service for an upload of this project, or is no longer valid.",
    "url_port": "The port is neither 443 nor between 1024 and 65535.",
    "url_too_long": "The URL is too long.",
    "url_user_info": "The URL contains a user name or password.",
}
"""All codes in `errors`, the list of problems with an input."""
