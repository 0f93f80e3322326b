"""Bodies that several calls of customers share."""

from __future__ import annotations

from typing import Annotated, Any, Final

import orjson
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from deskwire.engine.customers.proof_of_work import NONCE_MAX, Proof
from deskwire.http.api.input.validation import NOT_BLANK, Body
from deskwire.http.resources.conversations.requests import EmailAddress, TelephoneNumber
from deskwire.http.resources.fields import Attributes, Name

CONTEXT_BYTES_MAX: Final = 4 * 1024
_URL_MAX: Final = 2_048

_PageUrl = Annotated[str, Field(min_length=1, max_length=_URL_MAX), NOT_BLANK]


class CustomerContext(Body):
    """The customer's current page, reported by the page itself. All fields together have at most 4 KiB as JSON."""

    url: _PageUrl | None = None
    title: Annotated[str, Field(max_length=500)] | None = None
    referrer: Annotated[str, Field(max_length=_URL_MAX)] | None = None
    language: Annotated[str, Field(min_length=1, max_length=35), NOT_BLANK] | None = None
    timezone: Annotated[str, Field(min_length=1, max_length=64), NOT_BLANK] | None = None
    custom: Attributes | None = None

    @model_validator(mode="after")
    def _is_small(self) -> CustomerContext:
        size = len(orjson.dumps(context_view(self)))
        if size > CONTEXT_BYTES_MAX:
            raise PydanticCustomError(
                "too_long",
                f"The context has {size:,} bytes as JSON; at most {CONTEXT_BYTES_MAX:,} are allowed.",
            )
        return self


def context_view(context: CustomerContext) -> dict[str, Any]:
    """Return the given fields of a context in their stored form."""
    return context.model_dump(by_alias=True, exclude_none=True)


class VisitorProfile(Body):
    """The fields that a visitor has filled in. Nothing of it is verified."""

    name: Name | None = None
    email: EmailAddress | None = None
    phone: TelephoneNumber | None = None


class ProofInput(Body):
    """A solved challenge: `nonce` is a number in decimal digits for which SHA-256 over `<challenge>.<nonce>` begins with
    `difficulty` zero bits."""

    challenge: Annotated[str, Field(min_length=1, max_length=200)]
    nonce: Annotated[str, Field(min_length=1, max_length=NONCE_MAX)]

    @property
    def proof(self) -> Proof:
        """The proof as the limits take it."""
        return Proof(self.challenge, self.nonce)
