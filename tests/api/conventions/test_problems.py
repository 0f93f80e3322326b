"""Every refusal has a status, its subclasses included (decisions 1)."""

from __future__ import annotations

import pytest

from deskwire.engine.core import errors
from deskwire.engine.stream.hub import ConsumerSuperseded
from deskwire.engine.stream.token import TokenRefused
from deskwire.http.api.problems import refusal as refused


@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        (errors.Conflict("x"), 409, "conflict"),
        (ConsumerSuperseded("x"), 409, "consumer_superseded"),
        (TokenRefused("x"), 401, "invalid_token"),
        (errors.Unavailable("x", code="overloaded", retry_after_s=3), 503, "overloaded"),
    ],
)
def test_a_refusal_is_answered_with_its_status_and_code(
    refusal: errors.DomainError, status: int, code: str
) -> None:
    document, headers = refused(refusal, "req_1")
    assert (document["status"], document["code"], document["requestId"]) == (status, code, "req_1")
    assert ("WWW-Authenticate" in headers) == (status == 401)
    assert headers.get("Retry-After") == ("3" if status == 503 else None)
