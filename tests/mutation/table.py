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


_ENGINE: Final = "engine/deskwire/engine"
_TESTS: Final = "tests/engine"

TABLE: Final = (
    Mutated(f"{_ENGINE}/delivery/signature.py", (f"{_TESTS}/delivery/test_signature.py",)),
    Mutated(f"{_ENGINE}/delivery/retry_after.py", (f"{_TESTS}/delivery/test_retry_after.py",)),
    Mutated(f"{_ENGINE}/delivery/answer.py", (f"{_TESTS}/delivery/test_answer.py",)),
    Mutated(f"{_ENGINE}/delivery/schedule.py", (f"{_TESTS}/delivery/test_schedule.py",)),
    Mutated(f"{_ENGINE}/delivery/circuit.py", (f"{_TESTS}/delivery/test_circuit.py",)),
    Mutated(f"{_ENGINE}/delivery/breaker.py", (f"{_TESTS}/delivery/test_breaker.py",)),
    Mutated("engine/deskwire/demo/signature.py", ("tests/demo/test_demo_signature.py",)),
    Mutated(f"{_ENGINE}/rate.py", (f"{_TESTS}/test_rate.py",)),
    Mutated(f"{_ENGINE}/idempotency/once.py", (f"{_TESTS}/idempotency/test_once.py",)),
    Mutated(
        f"{_ENGINE}/decide.py",
        (
            f"{_TESTS}/test_conversation.py",
            f"{_TESTS}/test_evolve.py",
            f"{_TESTS}/test_expiry.py",
            f"{_TESTS}/test_conversation_model.py",
        ),
    ),
    Mutated(f"{_ENGINE}/stream/token.py", (f"{_TESTS}/stream/test_token.py",)),
    Mutated(
        "http/deskwire/http/validation.py",
        ("tests/http/test_cursor.py",),
        ("encode_cursor", "decode_cursor", "bad_cursor"),
    ),
    Mutated(
        f"{_ENGINE}/stream/seat.py",
        (
            f"{_TESTS}/stream/test_seat.py",
            f"{_TESTS}/stream/test_takeover.py",
        ),
    ),
    Mutated(f"{_ENGINE}/stream/resume.py", (f"{_TESTS}/stream/test_resume.py",)),
    Mutated(
        f"{_ENGINE}/stream/subscription.py",
        (
            f"{_TESTS}/stream/test_channel.py",
            f"{_TESTS}/stream/test_resume.py",
            f"{_TESTS}/stream/test_takeover.py",
        ),
    ),
    Mutated(
        f"{_ENGINE}/stream/hub.py",
        (
            f"{_TESTS}/stream/test_takeover.py",
            f"{_TESTS}/stream/test_channel.py",
            f"{_TESTS}/stream/test_resume.py",
            f"{_TESTS}/stream/test_lag.py",
        ),
    ),
)
