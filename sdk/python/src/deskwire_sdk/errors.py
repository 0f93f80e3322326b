"""Errors of the SDK. All of them are a `DeskwireError`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final


class DeskwireError(Exception):
    """The base of all errors of the SDK."""


class ConnectionFailed(DeskwireError):
    """Raised if no response arrived.

    Attributes:
        sent: False if the request certainly did not reach the service. If it is True, the service may have carried
            out the request.
    """

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class Timeout(ConnectionFailed):
    """Raised if connecting, sending or the response took longer than `timeout`."""


class InvalidResponse(DeskwireError):
    """Raised if a response is not one of the service, for example the page of a proxy."""


class ExportCut(DeskwireError):
    """Raised if an export ends before its last line; repeat it with the same `cursor`."""


class WebhookVerificationError(DeskwireError):
    """Raised if a webhook request is not authentic or too old; the text says why."""


class StreamEnded(DeskwireError):
    """Raised if the service ended the stream for good: `code` is the close code, or the status of a refusal."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Superseded(StreamEnded):
    """Raised if another consumer has taken over the channel, or its credential or consumer was ended (4009)."""


class APIError(DeskwireError):
    """A response that is not a success.

    Attributes:
        status: the HTTP status.
        code: the stable code of the problem, such as `conversation_not_found`; None if a proxy responded.
        detail: a sentence for people.
        errors: the invalid inputs, each with `in`, `pointer` or `name`, `code` and `message`.
        request_id: the id of the request in the log of the service, or None.
        type: the address of the page about this code, or None.
        retry_after: the seconds to wait before repeating the request, or None.
        problem: the whole problem document; empty if a proxy responded.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        code: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        problem: Mapping[str, Any] | None = None,
    ) -> None:
        self.status = status
        self.detail = detail
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after
        self.problem: Mapping[str, Any] = problem or {}
        self.errors: list[dict[str, Any]] = list(self.problem.get("errors") or ())
        self.type: str | None = self.problem.get("type")
        super().__init__(str(self))

    def __str__(self) -> str:
        """Return status, code, detail, the invalid inputs and the request's id in one line."""
        places = "; ".join(f"{_place(each)}: {each.get('message')}" for each in self.errors)
        parts = [f"{self.status} {self.code or 'without a code'}: {self.detail}"]
        parts += [f"({places})"] if places else []
        parts += [f"[request {self.request_id}]"] if self.request_id else []
        return " ".join(parts)


class NotModified(APIError):
    """304: the copy that `if_none_match` names is current."""


class BadRequest(APIError):
    """400: the request cannot be read."""


class Unauthenticated(APIError):
    """401: the credential is missing, wrong, revoked or expired."""


class PermissionDenied(APIError):
    """403: the credential does not allow this call."""


class NotFound(APIError):
    """404: the object does not exist, or no longer."""


class Conflict(APIError):
    """409: the present state does not allow the call."""


class Gone(APIError):
    """410: it existed, for example an event that is no longer stored (`window_passed`)."""


class PreconditionFailed(APIError):
    """412: the object has changed since the version that `if_match` names."""


class TooLarge(APIError):
    """413: the body is larger than the call accepts."""


class ValidationFailed(APIError):
    """422: fields are invalid; `errors` has each."""


class RateLimited(APIError):
    """429: too many calls; `retry_after` says when to continue."""


class ServerError(APIError):
    """5xx: the service could not respond properly."""


class ServiceUnavailable(ServerError):
    """503: the service cannot carry this out now."""


_CLASSES: Final[Mapping[int, type[APIError]]] = {
    304: NotModified,
    400: BadRequest,
    401: Unauthenticated,
    403: PermissionDenied,
    404: NotFound,
    409: Conflict,
    410: Gone,
    412: PreconditionFailed,
    413: TooLarge,
    422: ValidationFailed,
    429: RateLimited,
    503: ServiceUnavailable,
}
_EXCERPT_MAX: Final = 200


def error_of(status: int, headers: Mapping[str, str], content: bytes) -> APIError:
    """Return the error for a response that is not a success."""
    kind = _CLASSES.get(status, ServerError if status >= 500 else APIError)
    problem = _problem(content)
    code, detail = problem.get("code"), problem.get("detail") or problem.get("title")
    if not isinstance(code, str):
        code = None
    if not isinstance(detail, str):
        detail = content[:_EXCERPT_MAX].decode("utf-8", "replace") or "The response is empty."
    request_id = problem.get("requestId") or headers.get("X-Request-Id")
    return kind(
        status,
        detail,
        code=code,
        request_id=request_id if isinstance(request_id, str) else None,
        retry_after=_seconds(headers.get("Retry-After", "")),
        problem=problem,
    )


def _problem(content: bytes) -> dict[str, Any]:
    """Return the problem document; an empty one if the content is something else."""
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _seconds(text: str) -> float | None:
    """Return the value of `Retry-After` in seconds; the service sends no dates."""
    return float(text) if text.isascii() and text.isdigit() else None


def _place(error: Mapping[str, Any]) -> str:
    return str(error.get("pointer") or error.get("name") or error.get("in") or "?")
