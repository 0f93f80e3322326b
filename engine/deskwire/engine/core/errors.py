"""Every refusal a caller can act on: one class per kind, one stable code per reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, Self

from msgspec import Struct

PROBLEMS_MAX: Final = 50
"""Problems of an input that are named; whoever sends more has sent something else than was meant (ADR 41)."""


HEADER: Final = "header:"
"""The beginning of the pointer of a problem with a header."""


class Problem(Struct, frozen=True):
    """One thing wrong with an input.

    `pointer` is a JSON pointer (RFC 6901) into the body, `?name` for a query parameter, or `header:Name`.
    """

    pointer: str
    code: str
    message: str


class RefusedCredential(Struct, frozen=True):
    """A credential that is known, and was refused.

    Args:
        type, id: whose it is, as the audit trail names actors.
        project: storage key, of a server key or machine credential.
        account: storage key, of a user.
    """

    type: Literal["user", "server_key", "machine"]
    id: str
    project: int | None = None
    account: int | None = None


class DomainError(Exception):
    """Base of all refusals; `code` is stable snake_case, `detail` is for people (decisions 1).

    `credential` is the one that was shown, if the refusal comes before the caller is admitted and it is known all the same.
    """

    code: ClassVar[str] = "refused"
    credential: RefusedCredential | None = None

    def __init__(self, detail: str, *, code: str | None = None, retry_after_s: int | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.reason = code or self.code
        self.retry_after_s = retry_after_s

    def of(self, credential: RefusedCredential) -> Self:
        """Return the refusal with the credential that was shown."""
        self.credential = credential
        return self


class BadRequest(DomainError):
    """The request itself is malformed: JSON, query, a missing header. Further problems may be `unnamed`, but counted."""

    code = "bad_request"

    def __init__(
        self, detail: str, *, code: str | None = None, problems: tuple[Problem, ...] = (), unnamed: int = 0
    ) -> None:
        super().__init__(detail, code=code)
        self.problems = problems
        self.unnamed = unnamed


class Unauthenticated(DomainError):
    """No credential, or one that is wrong, expired or revoked."""

    code = "unauthenticated"


class Forbidden(DomainError):
    """The credential is fine but has no right to this."""

    code = "permission_denied"


class PersonRequired(Forbidden):
    """The caller is a machine, where somebody has to be signed in."""

    code = "person_required"

    def __init__(self, what: str = "this call") -> None:
        super().__init__(
            f"A machine credential was shown, and {what} is for people: it needs the access token or session of a user."
        )


class NotFound(DomainError):
    """The refusal for an object that this caller does not have; another project's object looks the same.

    `shown` are fields that its document has besides.
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
    """The object's present state, or a limit, does not allow it; `shown` are fields that its document has besides."""

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
    """The object is not what the author of the change has seen; see `precondition`. `tag` is the one it has, None if it is not there."""

    code = "changed_meanwhile"

    def __init__(
        self,
        tag: str | None,
        detail: str = "It was changed since you read it, so nothing is changed now. Read it again, and decide what to keep.",
    ) -> None:
        super().__init__(detail)
        self.tag = tag


class Gone(DomainError):
    """The refusal for something that has left its window."""

    code = "window_passed"


class TooLarge(DomainError):
    """The body is larger than this endpoint takes."""

    code = "body_too_large"


class UnsupportedMediaType(DomainError):
    """The body's content type is not one this endpoint reads."""

    code = "unsupported_media_type"


class RangeNotSatisfiable(DomainError):
    """The part that was asked for is none of this file, whose `size` is in bytes."""

    code = "range_not_satisfiable"

    def __init__(self, size: int) -> None:
        super().__init__(f"The header Range asks for no part of this file; it has {size:,} bytes.")
        self.size = size


class Invalid(DomainError):
    """Well-formed but invalid input; `problems` names what is wrong with it, and `unnamed` more are only counted."""

    code = "invalid_input"

    def __init__(self, *problems: Problem, detail: str | None = None, unnamed: int = 0) -> None:
        count = len(problems) + unnamed
        super().__init__(detail or f"{count:,} problem{'' if count == 1 else 's'} found in the request body.")
        self.problems = problems
        self.unnamed = unnamed


class AlreadyAnswered(Conflict):
    """The request was carried out before; `body` is what it was answered with, and is answered with again."""

    code = "already_answered"

    def __init__(self, body: bytes) -> None:
        super().__init__("This request was carried out before.")
        self.body = body


class AnswerErased(Gone):
    """The request was carried out before; what it was answered with has been erased since."""

    code = "idempotency_answer_erased"


class IdempotencyMismatch(Invalid):
    """The same `Idempotency-Key` came with another body before."""

    code = "idempotency_mismatch"

    def __init__(self) -> None:
        super().__init__(detail="This Idempotency-Key was used before, with another body.")


class TooManyRequests(DomainError):
    """More than is allowed in a time; the same request may be made again later."""

    code = "too_many_requests"

    def __init__(self, detail: str, *, code: str | None = None, retry_after_s: int = 1) -> None:
        super().__init__(detail, code=code, retry_after_s=retry_after_s)


class Unavailable(DomainError):
    """Overloaded, or something needed is missing; the same request may work later."""

    code = "unavailable"

    def __init__(self, detail: str, *, code: str | None = None, retry_after_s: int = 1) -> None:
        super().__init__(detail, code=code, retry_after_s=retry_after_s)


class BadGateway(DomainError):
    """The refusal when something that the service itself depends on has failed."""

    code = "bad_gateway"


class StaleState(Exception):
    """A commit found the conversation changed behind its actor: the actor must be loaded anew."""
