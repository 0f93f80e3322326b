"""The registry of error codes, and their page. A test holds it against the sources, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from deskwire.commands.reference.tables import markdown_table
from deskwire.http.stream import pusher


@dataclass(frozen=True, slots=True)
class Code:
    """A stable code of a problem document, the status it comes with, and what it tells the caller."""

    status: int
    code: str
    meaning: str


CODES: Final = (
    Code(400, "bad_idempotency_key", "An `Idempotency-Key` has 1 to 255 printable ASCII characters."),
    Code(400, "bad_path", "The path is not percent-encoded UTF-8; `detail` says what is wrong."),
    Code(400, "bad_query", "Query parameters are unknown, bad, or given twice; `errors` names each."),
    Code(400, "bad_request", "The request can't be read."),
    Code(400, "body_timeout", "The body did not arrive in time (`DESKWIRE_BODY_TIMEOUT_S`)."),
    Code(
        400,
        "malformed_body",
        "The body is not of the form that the call takes: an upload's multipart form, a stream authorization's object or form.",
    ),
    Code(
        400,
        "malformed_json",
        "The body is not JSON, or nested too deeply, or has a number that no double holds; `detail` says what and where.",
    ),
    Code(
        400, "bad_entry_id", "The path's entry id does not read `<type>:<id>`; `detail` says what is wrong."
    ),
    Code(400, "missing_project", "A dashboard call lacks the header `project`."),
    Code(400, "tls_required", "The request came as plain HTTP to a port that speaks TLS: use `https://`."),
    Code(401, "bad_credential", "The header `Authorization` does not read `Bearer …`."),
    Code(401, "invalid_login", "E-mail address or password are wrong; it is not said which."),
    Code(401, "invalid_metrics_token", "This is not the token of `DESKWIRE_METRICS_TOKEN`."),
    Code(401, "invalid_server_key", "There is no such server key."),
    Code(401, "invalid_token", "The access token is altered, incomplete, or of somebody unknown."),
    Code(401, "missing_credential", "There is no header `Authorization`."),
    Code(401, "revoked_server_key", "The server key has been revoked."),
    Code(401, "token_expired", "The access token has expired; sign in again."),
    Code(
        403,
        "metrics_local_only",
        "Without `DESKWIRE_METRICS_TOKEN` only the service's own machine may read the metrics.",
    ),
    Code(403, "link_expired", "The signed URL has expired; fetch the object it is from for a new one."),
    Code(403, "link_invalid", "The URL is not one that this service has signed."),
    Code(403, "permission_denied", "The user's role lacks the permission that `detail` names."),
    Code(403, "owner_protected", "Only an owner makes owners, and only an owner ends being one."),
    Code(403, "password_change_required", "A one-time password: sign in with a `newPassword` beside it."),
    Code(403, "sign_in_disabled", "Users of this installation sign in elsewhere."),
    Code(403, "unknown_channel", "The project has no stream channel of this name."),
    Code(404, "consumer_not_found", "No channel has this consumer, or none that the call names."),
    Code(404, "contact_not_found", "There is no such contact in this project."),
    Code(404, "conversation_not_found", "There is no such conversation: remove it from every mirror."),
    Code(404, "delivery_not_found", "There is no such delivery, or it is older than the delivery log."),
    Code(404, "entry_not_found", "There is no such translatable entry."),
    Code(404, "event_not_found", "The feed has not got as far as this event id."),
    Code(404, "key_not_found", "The project has no such server key."),
    Code(404, "member_not_found", "The organisation has no such member."),
    Code(404, "memory_entry_not_found", "The contact has no memory entry of this name."),
    Code(404, "message_not_found", "The conversation has no such message."),
    Code(404, "not_found", "There is no such path. A slash within an id is sent as `%2F`."),
    Code(404, "organisation_not_found", "There is no such organisation, or the user is no member of it."),
    Code(404, "project_not_found", "There is no such project, or the user is no member of its organisation."),
    Code(404, "team_not_found", "There is no such team."),
    Code(404, "ticket_not_found", "There is no such ticket."),
    Code(404, "refresh_not_found", "The survey's insights were never refreshed."),
    Code(404, "response_not_found", "The survey has no such response."),
    Code(404, "survey_not_found", "There is no such survey in this project."),
    Code(404, "survey_version_not_found", "The survey has no such version; `detail` names those it has."),
    Code(404, "role_not_found", "The user is no member of any organisation."),
    Code(404, "session_not_found", "There is no such session; it is the id of a contact."),
    Code(
        404, "translation_not_found", "The entry is not there in this language; `detail` names those it has."
    ),
    Code(
        404,
        "upload_not_found",
        "There is no such file, or it was removed, with all messages that referred to it.",
    ),
    Code(404, "workflow_not_found", "There is no such workflow in this project."),
    Code(404, "webhook_not_found", "There is no such webhook endpoint."),
    Code(405, "method_not_allowed", "The path exists; the header `Allow` says how it may be called."),
    Code(409, "already_member", "The user is a member already."),
    Code(
        409,
        "conversation_closed",
        "A closed conversation takes no other status, and starts no workflow; reopen it.",
    ),
    Code(409, "conversation_hidden", "The customer can't see the conversation; make it visible first."),
    Code(409, "conversation_linked", "The conversation is linked to another ticket; cut that link first."),
    Code(
        409,
        "delivery_pending",
        "The delivery is still being tried; only one that has ended can be sent again.",
    ),
    Code(409, "step_not_pending", "This workflow step does not wait for an answer, or not any more."),
    Code(409, "team_name_taken", "Another team of the project has this name, perhaps in another case."),
    Code(409, "ticket_changed", "The ticket's link to a conversation has changed meanwhile; look again."),
    Code(409, "survey_closed", "The survey is closed and takes no responses."),
    Code(409, "survey_version_limit_reached", "The survey has its 100 versions."),
    Code(409, "email_in_use", "The address has an account that the operator alone can add."),
    Code(409, "idempotency_in_progress", "The first request with this `Idempotency-Key` is still under way."),
    Code(409, "key_limit_reached", "The project has its 100 server keys; revoke one first."),
    Code(409, "last_owner", "The organisation would be left without an owner."),
    Code(409, "password_changed", "Another call has just changed the password."),
    Code(409, "project_limit_reached", "The organisation has its 1,000 projects."),
    Code(409, "project_not_empty", "The project holds data, so it can't be removed."),
    Code(409, "memory_limit_reached", "The contact has as many memory entries as it may have."),
    Code(409, "upload_attached", "A message has the upload; it goes with the last conversation that does."),
    Code(409, "upload_quota_exceeded", "The project's uploads have used up its quota."),
    Code(409, "webhook_disabled", "The endpoint is disabled; enable it first."),
    Code(409, "webhook_limit_reached", "The project has its five endpoints."),
    Code(409, "workflow_limit_reached", "The project has its 200 workflows."),
    Code(409, "workflow_not_manual", "The workflow starts by itself in new conversations."),
    Code(409, "workflow_running", "A workflow runs in the conversation already."),
    Code(410, "event_not_stored", "The event has left its window, so it can't be sent again."),
    Code(
        410,
        "idempotency_answer_erased",
        "The request with this `Idempotency-Key` was carried out, and what it made has been removed since.",
    ),
    Code(410, "window_passed", "The events asked for are no longer stored; fetch the conversations anew."),
    Code(413, "body_too_large", "The body is larger than this call takes."),
    Code(
        415,
        "unsupported_media_type",
        "The body must be `application/json`, that of an upload `multipart/form-data`.",
    ),
    Code(416, "range_not_satisfiable", "The header `Range` asks for no part of the file."),
    Code(422, "idempotency_mismatch", "This `Idempotency-Key` was used with another body."),
    Code(422, "invalid_input", "The body is JSON but does not fit; `errors` names every problem."),
    Code(426, "upgrade_required", "A path under `/app/` was called without a websocket handshake."),
    Code(429, "rate_limited", "The project calls too often; wait as `Retry-After` says."),
    Code(
        429,
        "too_many_at_once",
        "The project, user or address has its share of what may be under way at once; others still have theirs. Wait as "
        "`Retry-After` says.",
    ),
    Code(429, "too_many_failures", "Too many calls from this address came without a valid credential; wait."),
    Code(429, "too_many_sign_ins", "Too many attempts to sign in have failed; wait as `Retry-After` says."),
    Code(431, "header_too_large", "The request's line and headers have more than 16 KiB."),
    Code(500, "internal_error", "A bug. The log has the details under the `requestId`."),
    Code(501, "unsupported_transfer_encoding", "A body came in another transfer encoding than `chunked`."),
    Code(
        502,
        "model_failed",
        "The language model failed, was too slow, or answered something else; it was asked once.",
    ),
    Code(503, "conversation_busy", "Too many commands wait for this conversation."),
    Code(
        503,
        "erasure_under_way",
        "The contact is not found any more; the rest of its erasure takes longer and goes on by itself.",
    ),
    Code(
        503, "model_not_configured", "The operator has configured no language model (`DESKWIRE_MODEL_URL`)."
    ),
    Code(503, "not_ready", "The service is starting or stopping."),
    Code(
        503,
        "overloaded",
        "Too much is under way at once: requests, large bodies, waiting calls of the feed, changes, or conversations.",
    ),
    Code(503, "refresh_busy", "Too many insights are being refreshed at once."),
    Code(503, "shutting_down", "The service is stopping; the command was not carried out."),
    Code(503, "sign_in_busy", "Too many are signing in at once."),
    Code(503, "signing_keys_unavailable", "The identity provider's keys can't be fetched at the moment."),
    Code(
        503,
        "storage_failed",
        "The disk refused; nothing of the command is stored. Of `/readyz`: it refuses whatever is written.",
    ),
    Code(
        503,
        "read_timeout",
        "The database did not answer within `DESKWIRE_READ_TIMEOUT_S`; ask for less at a time.",
    ),
    Code(503, "uploads_busy", "Too many uploads are under way at once."),
    Code(503, "voice_busy", "Too many voice replies are under way at once."),
    Code(505, "http_version_not_supported", "The request is not HTTP/1.1: HTTP/2 is for a proxy in front."),
)
"""Every code that an HTTP answer may have, by status."""

INTERNAL: Final[Mapping[str, str]] = {
    "already_answered": "not a refusal: the answer that was given before is given again",
    "conflict": "class default: every conflict has a code of its own",
    "ambiguous": "on the command line only",
    "secret_in_settings": "on the command line only",
    "secret_unusable": "on the command line only",
    "other_home": "on the command line only",
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
"""Codes in the sources that no HTTP answer has, and why."""

PROBLEMS: Final[Mapping[str, str]] = {
    "bad_answer": "An answer does not fit its question; `message` says what it must be.",
    "audio_format": "The recording is neither WAV nor MP3.",
    "audio_too_long": "The recording is too long, in seconds or bytes.",
    "audio_unreadable": "The file can't be read as a recording.",
    "bad_cursor": "This list has never given such a cursor.",
    "bad_event_id": "An event id is `evt_` and 26 characters.",
    "conflict": "What has this id was imported before with other content.",
    "duplicate": "Something is given more than once in a list.",
    "duplicate_id": "An earlier item of the list has the same id.",
    "invalid": "Of another type or form than the field; `message` says which.",
    "invalid_format": "Not of the form that the field has.",
    "invalid_type": "Of another type than the field.",
    "invalid_value": "Not a value that the field may have.",
    "mismatch": "The linked conversation is another contact's.",
    "not_ahead": "The time has passed already.",
    "not_allowed": "Not one of the values, or not in this place.",
    "not_asked": "With the other answers the survey's logic skips this question.",
    "not_nullable": "This field can't be null.",
    "malformed_json": "A line of an import is not JSON.",
    "not_reversible": "What the customer has seen can't be hidden again.",
    "out_of_range": "A time before 1970, or in the future.",
    "repeated": "The parameter or item is given more than once.",
    "required": "Missing.",
    "too_deep": "Nested too deeply.",
    "too_few": "Too few items or keys.",
    "too_guessable": "The password is one of those that guessers try first; `message` says why.",
    "too_large": "The number is above its maximum, or an integer is of more than 64 bits.",
    "too_long": "Too many characters.",
    "too_many": "Too many items or keys.",
    "too_short": "Too few characters.",
    "too_small": "The number is below its minimum.",
    "unchanged": "The new password is the present one.",
    "unknown": "The project has none with this id, or the organisation no such user.",
    "unknown_event_type": "There is no such event type.",
    "unknown_field": "There is no such field.",
    "unknown_language": "The project, or the survey's version, does not have this language.",
    "unknown_parameter": "There is no such query parameter.",
    "unknown_question": "The survey's version has no question with this id.",
    "unknown_version": "The survey has no such version.",
    "url_address_refused": "The URL's host resolves to an address that is not public.",
    "url_characters": "The URL contains whitespace or control characters.",
    "url_fragment": "The URL has a fragment (`#`).",
    "url_host_invalid": "The URL's host is no valid name or address.",
    "url_host_unknown": "The URL's host can't be resolved.",
    "url_malformed": "The URL can't be read.",
    "url_no_host": "The URL has no host.",
    "url_not_https": "The URL does not begin with `https://`.",
    "url_not_signed": "Not a valid URL that this service has signed for an upload of this project.",
    "url_port": "The port is neither 443 nor between 1024 and 65535.",
    "url_too_long": "The URL is too long.",
    "url_user_info": "The URL contains a user name or password.",
}
"""Every code in `errors`, the list of what is wrong with an input."""

INTRODUCTION: Final = """\
# Errors

<!-- Written by `make docs` from the registry of codes; do not edit. -->

A refusal is a problem document (RFC 9457), `application/problem+json`:

```json
{
  "type": "about:blank",
  "title": "Unprocessable Entity",
  "status": 422,
  "detail": "1 problem found in the request body.",
  "code": "invalid_input",
  "requestId": "req_01KZ0000000000000000000000",
  "errors": [{"pointer": "/text", "code": "required", "message": "Field required"}]
}
```

`code` is stable: act on it. `detail` and `message` are for people and may change. `errors` is there for 400 and 422
only, and names every problem found; `pointer` is a JSON pointer into the body, `?name` for a query parameter, or `header:Name`. 401
comes with `WWW-Authenticate`, 405 with `Allow`, 429 and 503 with `Retry-After`.

## Codes
"""

_PROBLEMS_HEAD: Final = """\
## Codes of single problems

What stands in `errors[].code`. Below `/definition` it is a rule of [survey definitions](surveys.md),
below `/flows` one of [workflows](../guide/workflows.md).
"""

_STREAM_HEAD: Final = """\
## Ends of a stream connection

The server sends `pusher:error` with the code, and then closes with the same code. Pusher clients stay away after 4000 to
4099, wait a moment before they come back after 4100 to 4199, and come back at once after 4200 to 4299.
"""

_SUBSCRIPTION: Final = """\
## Refused subscriptions

`pusher:subscription_error` leaves the connection open. Its data is `{"type", "error", "status"}`. After 409 and 429 the
connection is closed with 4100 once the consumer may have the channel, so that its client comes back.

"""

_SUBSCRIPTION_ROWS: Final = (
    (
        "`AuthError`",
        "401",
        "`auth` is not valid, has expired, is for another socket or channel, or its server key was revoked.",
    ),
    ("`AuthError`", "403", "The project has no such channel, or the connection holds 100 already."),
    ("`ConsumerSuperseded`", "409", "Another consumer has taken the channel over and still holds it."),
    ("`TooManyTakeovers`", "429", "Ten consumers took the channel from each other within a minute."),
)


def markdown() -> str:
    """Give the page."""
    return "\n".join(
        (
            INTRODUCTION,
            markdown_table(("Status", "Code", "Meaning"), map(_row, CODES)),
            _PROBLEMS_HEAD,
            markdown_table(("Code", "Meaning"), ((f"`{code}`", text) for code, text in PROBLEMS.items())),
            _STREAM_HEAD,
            markdown_table(("Code", "Message"), _stream_rows()),
            f"{_SUBSCRIPTION}{markdown_table(('Type', 'Status', 'When'), _SUBSCRIPTION_ROWS)}",
        )
    )


def _row(each: Code) -> tuple[str, str, str]:
    return f"{each.status} {_title(each.status)}", f"`{each.code}`", each.meaning


def _title(status: int) -> str:
    return HTTPStatus(status).phrase


def _stream_rows() -> list[tuple[str, str]]:
    ends = {value for value in vars(pusher).values() if isinstance(value, pusher.Close)}
    return [(str(end.code), end.message) for end in sorted(ends, key=lambda end: (end.code, end.message))]
