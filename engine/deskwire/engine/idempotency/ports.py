"""The queries and changes of a store that idempotency needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class KeptAnswer(Struct, frozen=True):
    """The kept answer to a request with an `Idempotency-Key`.

    Args:
        name: keyed hash of who asked for what under which key.
        fingerprint: keyed hash of the body.
        subject: id of what the answer shows, with which it is erased.
        sealed: the answer, encrypted; None once its subject was erased.
        at: when it was asked for, in milliseconds.
        place: id of the object in the request's path; empty if it names none.
    """

    name: bytes
    fingerprint: bytes
    subject: str | None
    sealed: bytes | None
    at: int
    place: str = ""


class AnswerReader(Protocol):
    """Queries on kept answers."""

    def kept_answer(self, name: bytes, place: str) -> KeptAnswer | None:
        """Return the newest answer of that name, however old.

        Args:
            place: as of the request that it answers; where it may be stored.
        """


class AnswerTransaction(AnswerReader, Protocol):
    """Changes of kept answers. One is emptied when what it shows is removed."""

    def keep_answer(self, answer: KeptAnswer) -> None:
        """Store an answer, in place of one of the same name whose time is over."""

    def answers_about(self, subject: str) -> Sequence[KeptAnswer]:
        """Return the answers that show this subject, none that was erased; `place` is where each is stored."""

    def empty_answer(self, answer: KeptAnswer) -> None:
        """Erase what an answer shows; that the request was carried out stays known."""

    def prune_answers(self, older_than: int, limit: int) -> int:
        """Remove up to `limit` answers to requests from before `older_than` (ms); return their number."""
