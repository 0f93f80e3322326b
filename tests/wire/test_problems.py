"""Every refusal has a status, its subclasses included (decisions 1)."""

from __future__ import annotations

import json

import pytest

from deskwire.engine import errors
from deskwire.engine.stream.hub import ConsumerSuperseded
from deskwire.engine.stream.token import TokenRefused
from deskwire.http.problems import problem_of


@pytest.mark.parametrize(
    ("refusal", "status", "code"),
    [
        (errors.Conflict("x"), 409, "conflict"),
        (ConsumerSuperseded("x"), 409, "consumer_superseded"),
        (TokenRefused("x"), 401, "invalid_token"),
        (errors.Unavailable("x", code="overloaded", retry_after_s=3), 503, "overloaded"),
    ],
)
async def test_a_refusal_is_answered_with_its_status_and_code(
    refusal: errors.DomainError, status: int, code: str
) -> None:
    response = problem_of(refusal, "req_1")
    document = json.loads(bytes(await response.get_data(as_text=False)))
    assert (response.status_code, document["status"], document["code"]) == (status, status, code)
    assert ("WWW-Authenticate" in response.headers) == (status == 401)
    assert response.headers.get("Retry-After") == ("3" if status == 503 else None)
