"""The mutated modules, with the tests that have to notice their mutants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Left:
    """A mutant that no test can notice, or that needs no test.

    Args:
        within: a piece of the line that is mutated.
        was, became: the change, as `make mutate` prints it.
        why: the reason, for tests/mutation/results.md.
    """

    within: str
    was: str
    became: str
    why: str


@dataclass(frozen=True, slots=True)
class Mutated:
    """A module to mutate.

    Args:
        path: the module, from the root of the repository.
        tests: test files, or single tests, that cover its behaviour.
        only: names of the top-level definitions to mutate; all if empty.
        left: the mutants that may go unnoticed.
    """

    path: str
    tests: tuple[str, ...]
    only: tuple[str, ...] = ()
    left: tuple[Left, ...] = ()

    def explains(self, line: str, was: str, became: str) -> bool:
        """Return whether this mutant of a source line may go unnoticed."""
        return any(each.within in line and (each.was, each.became) == (was, became) for each in self.left)


def _off_by_one(within: str, number: int, why: str) -> tuple[Left, Left]:
    """Return the mutants that increase and decrease a number by one."""
    more, less = (Left(within, str(number), str(number + step), why) for step in (1, -1))
    return more, less


_BOUND: Final = "the exact number does not matter for this bound on memory; the tests set their own"
_DIGITS: Final = "a bound that any number keeps between the digits of now and those of a float"
_EPOCH: Final = "an unknown bucket was full at the epoch, or a nanosecond beside it"
_ROOM: Final = "more room than an endpoint has places for"

TABLE: Final = (
    Mutated(
        "engine/deskwire/engine/webhooks/signature.py",
        ("tests/engine/webhooks/policy/test_signature.py",),
        left=(
            Left(
                "_SECRET_BYTES: Final", "32", "33", "as many digits are kept of them, and no chance is lost"
            ),
        ),
    ),
    Mutated(
        "engine/deskwire/engine/webhooks/http/retry_after.py",
        ("tests/engine/webhooks/policy/test_retry_after.py",),
        left=(Left("text[:8]", "8", "9", "more than 10,000,000 s is cut down to that either way"),),
    ),
    Mutated(
        "engine/deskwire/engine/core/http1.py",
        ("tests/engine/webhooks/client/test_response_head.py",),
        ("plain_response",),
        left=(Left("fullmatch(data, 0, end)", "0", "-1", "nothing is before the start"),),
    ),
    Mutated(
        "engine/deskwire/engine/webhooks/retry/schedule.py",
        ("tests/engine/webhooks/policy/test_schedule.py",),
        left=(
            *_off_by_one("attempt.wait_ms or 0", 0, "the schedule's own least pause is the longer one"),
            Left("asked_ms = 0 if", "0", "-1", "no attempt begins before the one before it has ended"),
        ),
    ),
    Mutated(
        "engine/deskwire/engine/webhooks/retry/circuit_breaker.py",
        (
            "tests/engine/webhooks/policy/test_circuit.py",
            "tests/engine/webhooks/policy/test_circuit_breaker.py",
            "tests/engine/webhooks/policy/test_verdict.py",
        ),
        left=(
            Left("_PROBE_PAUSES_S[0]", "0", "1", "the first pauses are as long as each other"),
            Left("probe_pause_ms(0)", "0", "1", "the first pauses are as long as each other"),
            *_off_by_one("self.succeeded_at or 0", 0, "an attempt begins later than that"),
            *_off_by_one("_ROOM_MAX: Final", 1_000, _ROOM),
            Left("self.room < _ROOM_MAX", "self.room < _ROOM_MAX", "self.room <= _ROOM_MAX", _ROOM),
        ),
    ),
    Mutated(
        "engine/deskwire/engine/webhooks/retry/verdict.py",
        (
            "tests/engine/webhooks/policy/test_circuit_breaker.py",
            "tests/engine/webhooks/policy/test_verdict.py",
        ),
    ),
    Mutated(
        "engine/deskwire/engine/core/limits/rate_limit.py",
        ("tests/engine/core/test_rate_limit.py",),
        left=(
            *_off_by_one("BUCKETS_MAX: Final", 20_000, _BOUND),
            Left("compare=False", "False", "True", "the step follows from the fields that are compared"),
            Left("if nodes == 1", "1", "0", "the part of one node is the whole rate"),
            Left(
                "missing_ns, step_ns = max(0", "0", "-1", "rounded up to whole seconds it is 0 all the same"
            ),
            Left("wait_ns = 0 if", "0", "-1", "rounded up to whole seconds it is 0 all the same"),
            *_off_by_one("_full_at.get(who, 0)", 0, _EPOCH),
            Left("self._nodes == 1 or", "1", "0", "the quota of one node is the whole one"),
            Left(
                "self._nodes == 1 or",
                "self._nodes == 1 or self._whole is None",
                "self._nodes == 1 and self._whole is None",
                "the quota of one node is the whole one",
            ),
        ),
    ),
    Mutated(
        "engine/deskwire/engine/idempotency/idempotent_requests.py",
        ("tests/engine/idempotency/test_idempotent_requests.py",),
    ),
    Mutated(
        "engine/deskwire/engine/conversations/decide.py",
        (
            "tests/engine/conversations/test_conversation.py",
            "tests/engine/conversations/test_decide.py",
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
        ("LeaseRules", "ChannelLease"),
        left=(
            Left("return False", "return False", "return None", "both are no"),
            Left(
                "or row.position > self.confirmed",
                "row.position > self.confirmed",
                "row.position >= self.confirmed",
                "an equal position stays as it is",
            ),
        ),
    ),
    Mutated(
        "engine/deskwire/engine/stream/subscription.py",
        (
            "tests/engine/stream/test_channel.py",
            "tests/engine/stream/test_resume.py",
            "tests/engine/stream/test_takeover.py",
        ),
        left=(
            Left("self.written = -1", "1", "2", "both stand for nothing"),
            Left("confirmed, 1)", "1", "2", "the first one alone is looked at"),
            Left("missed[0].id", "0", "-1", "one event is read, so the first is the last"),
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
        left=_off_by_one("_LEASES_MAX: Final", 10_000, _BOUND),
    ),
)
