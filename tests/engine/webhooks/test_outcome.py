"""Outcomes of deliveries as agents see them."""

from __future__ import annotations

from typing import Any

import pytest

from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.endpoint import Endpoint, disabled_reason
from deskwire.engine.webhooks.outcome import NOT_STORED, Outcome, endpoint_name, outcome_view
from deskwire.engine.webhooks.retry.circuit_breaker import Circuit
from tests.support.builders import NOON

CRM = Endpoint(
    1, "whk_1", 1, "https://u:p@crm.example.org:8443/hook?key=s3cret", frozenset(), b"", "tail", 0, 0
)
EVENT = "evt_01KZ00000000000000000000E1"


def told(endpoint: Endpoint = CRM, **fields: Any) -> dict[str, Any]:
    """Return the outcome of a delivery with these fields, as agents see it."""
    known: dict[str, Any] = {
        "position": 1,
        "endpoint": 1,
        "sequence": 7,
        "event_id": EVENT,
        "made_at": NOON,
        "status": "pending",
        "reason": None,
        "attempts": 0,
        "last_status": None,
        "last_error": None,
        "due_at": NOON,
        "ended_at": None,
        "missed": None,
    }
    return outcome_view(Outcome(**{**known, **fields}), endpoint, NOON + 50)


def test_an_endpoint_is_called_by_its_description_or_its_host() -> None:
    assert endpoint_name(replace(CRM, description="The CRM")) == "The CRM"
    assert endpoint_name(CRM) == "crm.example.org"


def test_an_arrived_event_shows_its_time_and_delay() -> None:
    shown = told(status="delivered", attempts=2, last_status=204, ended_at=NOON + 85)
    assert (shown["afterMs"], shown["lastStatus"], shown["attempts"]) == (85, 204, 2)
    assert shown["deliveredAt"].endswith(".085Z")
    assert shown["reason"] is shown["reasonCode"] is shown["nextAttemptAt"] is None


def test_event_that_is_no_longer_stored_has_the_age_of_its_id() -> None:
    assert told(status="delivered", made_at=None, ended_at=NOON)["afterMs"] > 0


@pytest.mark.parametrize(
    ("fields", "code", "reason"),
    [
        ({}, "on_its_way", "It is on its way to crm.example.org."),
        (
            {"attempts": 1, "last_status": 503, "last_error": "status 503"},
            "retrying",
            "It is retried because an attempt failed: it answered 503.",
        ),
        (
            {"attempts": 4, "last_error": "timeout: no answer within 5 s", "status": "dropped"},
            "failed",
            "It did not arrive because 4 attempts failed; the last time it did not answer in time.",
        ),
        (
            {"attempts": 4, "last_error": "connection refused", "status": "dropped", "missed": 1},
            "failed",
            (
                "It did not arrive because 4 attempts failed; the last time it could not be reached. "
                "It is sent again when crm.example.org has recovered."
            ),
        ),
        (
            {"status": "skipped", "reason": disabled_reason("by the API")},
            "endpoint_disabled",
            "It was not sent because crm.example.org was switched off.",
        ),
        (
            {"status": "skipped", "reason": "it was still pending 86400 s after it was made"},
            "waited_too_long",
            "It was not sent because it had waited for crm.example.org too long.",
        ),
        (
            {"status": "dropped", "reason": NOT_STORED},
            "not_stored",
            "It was not sent because it had waited for crm.example.org for longer than events are kept.",
        ),
    ],
)
def test_an_undelivered_event_shows_its_reason(fields: dict[str, Any], code: str, reason: str) -> None:
    shown = told(**fields)
    assert (shown["reasonCode"], shown["reason"]) == (code, reason)
    assert shown["deliveredAt"] is shown["afterMs"] is None
    assert (shown["nextAttemptAt"] is None) == (fields.get("status", "pending") != "pending")


def test_a_held_event_shows_the_time_of_the_next_probe() -> None:
    away = replace(CRM, circuit=Circuit(20, NOON - 90_000, 0, NOON + 10_000, "why"))
    shown = told(away, attempts=0, last_error="connection refused")
    assert shown["reasonCode"] == "held"
    assert shown["reason"] == "It is held until crm.example.org has recovered, and sent then."
    assert shown["nextAttemptAt"] == told(due_at=NOON + 10_000)["nextAttemptAt"]


def test_a_requested_pause_is_shown_until_its_end() -> None:
    paused = replace(CRM, circuit=Circuit(paused_until=NOON + 5_000))
    assert told(paused)["reasonCode"] == "paused"
    assert told(replace(CRM, circuit=Circuit(paused_until=NOON)))["reasonCode"] == "on_its_way"


@pytest.mark.parametrize(
    "error",
    [
        "address refused: crm.internal resolves to 10.0.0.7",
        "proxy: squid.internal said s3cret",
        "host not found: crm.internal",
        "TLS: certificate verify failed: crm.internal",
        "malformed answer: s3cret",
        "connection closed before the answer",
        "something else: crm.internal s3cret",
    ],
)
def test_a_failure_shows_neither_address_nor_response(error: str) -> None:
    words = told(status="dropped", attempts=4, last_error=error)["reason"]
    assert "internal" not in words
    assert "s3cret" not in str(told(status="dropped", attempts=4, last_error=error))
    assert words.startswith("It did not arrive because 4 attempts failed; the last time ")
