"""Errors that a caller can act on: one class per kind, one stable code per reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, Self

from msgspec import Struct

PROBLEMS_MAX: Final = 50
"""The number of problems of one input that a response lists. An input with more is not what its sender meant (ADR 41)."""


HEADER: Final = "header:"
"""Prefix of the pointer of a problem with a header."""


class Problem(Struct, frozen=True):
    """One problem of an input.

    `pointer` is a JSON pointer (RFC 6901) into the body, `?name` for a query parameter, or `header:Name`.
    """

    pointer: str
    code: str
    message: str


class RefusedCredential(Struct, frozen=True):
    """A known credential that was refused, for the audit trail.

    Args:
        type, id: type and id of its actor (`core.actor`).
        project: storage key of the project of a server key or machine credential.
        account: storage key of the user of an access token or session.
    """

    type: Literal["user", "server_key", "machine"]
    id: str
    project: int | None = None
    account: int | None = None


class DomainError(Exception):
    """Base of all refusals.

    `code` is stable snake_case, `detail` is text for people (decisions 1).

    `credential` is set if a call is refused during authentication although its credential is known.
    """

    code: ClassVar[str] = "refused"
    credential: RefusedCredential | None = None

    def __init__(self, detail: str, *, code: str | None = None, retry_after_s: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.reason = code or self.code
        self.retry_after_s = retry_after_s

    def of(self, credential: RefusedCredential) -> Self:
        """Set the refused credential. Return the error itself."""
        self.credential = credential
        return self


class BadRequest(DomainError):
    """A malformed request: bad JSON, query or headers.

    Problems beyond PROBLEMS_MAX are only counted in `unnamed`.
    """

    code = "bad_request"

    def __init__(
        self, detail: str, *, code: str | None = None, problems: tuple[Problem, ...] = (), unnamed: int = 0
    ) -> None:
        super().__init__(detail, code=code)
        self.problems = problems
        self.unnamed = unnamed


class Unauthenticated(DomainError):
    """The credential is missing, wrong, expired or revoked."""

    code = "unauthenticated"


class Forbidden(DomainError):
    """The credential is valid but lacks a permission.

    `shown` holds further fields of the problem document.
    """

    code = "permission_denied"

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        retry_after_s: int | None = None,
        shown: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail, code=code, retry_after_s=retry_after_s)
        self.shown = shown or {}


class PersonRequired(Forbidden):
    """The caller is a machine credential, but the call needs a signed-in user."""

    code = "person_required"

    def __init__(self, what: str = "this call") -> None:
        super().__init__(
            f"A machine credential was shown, and {what} is for people: it needs the access token or session of a user."
        )


class NotFound(DomainError):
    """The object does not exist, or belongs to another project.

    `shown` holds further fields of the problem document.
    """

    code = "not_found"

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        retry_after_s: int | None = None,
        shown: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail, code=code, retry_after_s=retry_after_s)
        self.shown = shown or {}


class Conflict(DomainError):
    """The current state of the object, or a limit, does not allow the change.

    `shown` holds further fields of the problem document.
    """

    code = "conflict"

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        retry_after_s: int | None = None,
        shown: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail, code=code, retry_after_s=retry_after_s)
        self.shown = shown or {}


class PreconditionFailed(DomainError):
    """The object differs from the one that the caller has seen (`values.Precondition`).

    `tag` is its current tag, None if the object does not exist.
    """

    code = "changed_meanwhile"

    def __init__(
        self,
        tag: str | None,
        detail: str = "It was changed since you read it, so nothing is changed now. Read it again, and decide what to keep.",
    ) -> None:
        super().__init__(detail)
        self.tag = tag


class Gone(DomainError):
    """The data is no longer available: its retention period or window has passed."""

    code = "window_passed"


class TooLarge(DomainError):
    """The body is larger than the endpoint accepts."""

    code = "body_too_large"


class UnsupportedMediaType(DomainError):
    """The endpoint does not accept the content type of the body."""

    code = "unsupported_media_type"


class RangeNotSatisfiable(DomainError):
    """The requested range lies outside the file. `size` is its size in bytes."""

    code = "range_not_satisfiable"

    def __init__(self, size: int) -> None:
        super().__init__(f"The header Range asks for no part of this file; it has {size:,} bytes.")
        self.size = size


class Invalid(DomainError):
    """Well-formed but invalid input.

    Problems beyond PROBLEMS_MAX are only counted in `unnamed`.
    """

    code = "invalid_input"

    def __init__(self, *problems: Problem, detail: str | None = None, unnamed: int = 0) -> None:
        count = len(problems) + unnamed
        super().__init__(detail or f"{count:,} problem{'' if count == 1 else 's'} found in the request body.")
        self.problems = problems
        self.unnamed = unnamed


class AlreadyAnswered(Conflict):
    """A request with this `Idempotency-Key` already succeeded.

    `body` is its response, which is sent again.
    """

    code = "already_answered"

    def __init__(self, body: bytes) -> None:
        super().__init__("This request was carried out before.")
        self.body = body


class AnswerErased(Gone):
    """A request with this `Idempotency-Key` already succeeded, but its response has been erased."""

    code = "idempotency_answer_erased"


class IdempotencyMismatch(Invalid):
    """The `Idempotency-Key` or `clientId` was used before, with another body."""

    code = "idempotency_mismatch"

    def __init__(self, detail: str = "This Idempotency-Key was used before, with another body.") -> None:
        super().__init__(detail=detail)


class TooManyRequests(DomainError):
    """A rate limit is exceeded. The same request may succeed after `retry_after_s`.

    `shown` holds further fields of the problem document.
    """

    code = "too_many_requests"

    def __init__(
        self,
        detail: str,
        *,
        code: str | None = None,
        retry_after_s: int = 1,
        shown: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail, code=code, retry_after_s=retry_after_s)
        self.shown = shown or {}


class Unavailable(DomainError):
    """The service is overloaded or lacks a dependency.

    The same request may succeed after `retry_after_s`.
    """

    code = "unavailable"

    def __init__(self, detail: str, *, code: str | None = None, retry_after_s: int = 1) -> None:
        super().__init__(detail, code=code, retry_after_s=retry_after_s)


class BadGateway(DomainError):
    """A service that this one depends on has failed."""

    code = "bad_gateway"


class StaleState(Exception):
    """A commit found the conversation changed by another writer.

    The actor must reload its state.
    """
