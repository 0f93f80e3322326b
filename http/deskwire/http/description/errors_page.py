"""The reference page of error codes, in Markdown and as served."""

from __future__ import annotations

from typing import Final

from deskwire.engine.core.http1 import phrase
from deskwire.http.api.output.static import Static
from deskwire.http.api.problems import problem_type
from deskwire.http.description.error_codes import CODES, PROBLEMS, Code
from deskwire.http.description.tables import markdown_table
from deskwire.http.pages.errors import error_page
from deskwire.http.stream import pusher

INTRODUCTION: Final = f"""\
# Errors

<!-- Written by `make docs` from the registry of codes; do not edit. -->

An error is a problem document (RFC 9457), `application/problem+json`:

```json
{{
  "type": "{problem_type("invalid_input")}",
  "title": "Unprocessable Entity",
  "status": 422,
  "detail": "1 problem found in the request body.",
  "code": "invalid_input",
  "requestId": "req_01KZ0000000000000000000000",
  "errors": [{{"in": "body", "pointer": "/text", "code": "required", "message": "This field is required."}}]
}}
```

`code` is stable: use it in programs. `type` is relative to the request's URL and leads to the code's entry on a page
of the service, `/docs/errors`. `detail` and `message` are for people and may change. Only 400 and 422 have `errors`, which
names every problem found; `in` is `body`, `query` or `header`, and `pointer` a JSON pointer (RFC 6901) into the body, or `/`
and the name of the parameter or header.
401 comes with `WWW-Authenticate`, 405 with `Allow`, 429 and 503 with `Retry-After`.

## Codes
"""

_PROBLEMS_HEAD: Final = """\
## Codes of single problems

The values of `errors[].code`. Below `/definition`, the code is a rule of [survey definitions](surveys.md); below
`/flows`, one of [workflows](../guide/workflows.md).
"""

_STREAM_HEAD: Final = """\
## Ends of a stream connection

The server sends `pusher:error` with the code, and closes the connection with the same code. Pusher clients do not
reconnect after 4000 to 4099, reconnect after a pause after 4100 to 4199, and reconnect at once after 4200 to 4299.
"""

_SUBSCRIPTION: Final = """\
## Refused subscriptions

`pusher:subscription_error` leaves the connection open. Its data is `{"type", "error", "status"}`. After 409 and 429, the
connection is closed with 4100 once the consumer may take the channel, so that its client reconnects.

"""

_SUBSCRIPTION_ROWS: Final = (
    (
        "`AuthError`",
        "401",
        "`auth` is not valid, has expired, is for another socket or channel, or its server key was revoked.",
    ),
    ("`AuthError`", "403", "The project has no such channel, or the connection already has 100 channels."),
    ("`ConsumerSuperseded`", "409", "Another consumer has taken over the channel and still holds it."),
    ("`TooManyTakeovers`", "429", "The channel was taken over ten times within a minute."),
)


def markdown() -> str:
    """Return the page."""
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


def page() -> Static:
    """Return the page as served."""
    return error_page(
        ((f"{each.status} {_title(each.status)}", each.code, each.meaning) for each in CODES), PROBLEMS
    )


def _row(each: Code) -> tuple[str, str, str]:
    return f"{each.status} {_title(each.status)}", f"`{each.code}`", each.meaning


def _title(status: int) -> str:
    return phrase(status)


def _stream_rows() -> list[tuple[str, str]]:
    ends = {value for value in vars(pusher).values() if isinstance(value, pusher.StreamClose)}
    return [(str(end.code), end.message) for end in sorted(ends, key=lambda end: (end.code, end.message))]
