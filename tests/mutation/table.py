"""What is mutated, and which tests have to notice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Mutated:
    """One module.

    Args:
        path: the module, from the root of the repository.
        tests: files of tests, or single ones, that hold what it does.
        only: what of it is mutated, by the name at the module's top; all if empty.
    """

    path: str
    tests: tuple[str, ...]
    only: tuple[str, ...] = ()


TABLE: Final = (
    Mutated(
        "engine/deskwire/engine/webhooks/signature.py", ("tests/engine/webhooks/policy/test_signature.py",)
    ),
    Mutated(
        "engine/deskwire/engine/webhooks/http/retry_after.py",
        ("tests/engine/webhooks/policy/test_retry_after.py",),
    ),
    Mutated(
        "engine/deskwire/engine/core/http1.py",
        ("tests/engine/webhooks/client/test_response_head.py",),
        ("plain_response",),
    ),
    Mutated(
        "engine/deskwire/engine/webhooks/retry/schedule.py",
        ("tests/engine/webhooks/policy/test_schedule.py",),
    ),
    Mutated(
        "engine/deskwire/engine/webhooks/retry/circuit.py", ("tests/engine/webhooks/policy/test_circuit.py",)
    ),
    Mutated(
        "engine/deskwire/engine/webhooks/retry/breaker.py",
        (
            "tests/engine/webhooks/policy/test_breaker.py",
            "tests/engine/webhooks/policy/test_verdict.py",
        ),
    ),
    Mutated("engine/deskwire/commands/demo/clients/signature.py", ("tests/commands/demo/test_signature.py",)),
    Mutated("engine/deskwire/engine/core/limits/rate_limit.py", ("tests/engine/core/test_rate_limit.py",)),
    Mutated("engine/deskwire/engine/idempotency/once.py", ("tests/engine/idempotency/test_once.py",)),
    Mutated(
        "engine/deskwire/engine/conversations/decide.py",
        (
            "tests/engine/conversations/test_conversation.py",
            "tests/engine/conversations/test_evolve.py",
            "tests/engine/conversations/test_retention_rule.py",
            "tests/engine/conversations/test_conversation_model.py",
        ),
    ),
    Mutated("engine/deskwire/engine/stream/token.py", ("tests/engine/stream/test_token.py",)),
    Mutated(
        "http/deskwire/http/api/pagination.py",
        ("tests/http/api/test_cursor.py",),
        ("encode_cursor", "decode_cursor", "bad_cursor"),
    ),
    Mutated(
        "engine/deskwire/engine/stream/lease.py",
        (
            "tests/engine/stream/test_lease.py",
            "tests/engine/stream/test_takeover.py",
        ),
    ),
    Mutated("engine/deskwire/engine/stream/resume.py", ("tests/engine/stream/test_resume.py",)),
    Mutated(
        "engine/deskwire/engine/stream/subscription.py",
        (
            "tests/engine/stream/test_channel.py",
            "tests/engine/stream/test_resume.py",
            "tests/engine/stream/test_takeover.py",
        ),
    ),
    Mutated(
        "engine/deskwire/engine/stream/hub.py",
        (
            "tests/engine/stream/test_takeover.py",
            "tests/engine/stream/test_channel.py",
            "tests/engine/stream/test_resume.py",
            "tests/engine/stream/test_lag.py",
        ),
    ),
)
