"""Idempotent requests: an answer is kept in the very commit that carries the request out (ADR 24).

The commit has a wrapper that first looks for a kept answer, and at the end keeps its own. So whatever ends the
process, or the request, there is either no effect and no answer, or both. That the same request is under way
already is known in memory alone: this only decides how soon the second one is refused.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Generic, Protocol, TypeVar

import orjson
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from msgspec import Struct

from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import AlreadyAnswered, AnswerErased, Conflict, IdempotencyMismatch
from deskwire.engine.core.sealing import SealBroken, Sealing
from deskwire.engine.core.secret import Secrets, derived_key
from deskwire.engine.core.wrapper import wrapped


class StoredResponse(Struct, frozen=True):
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


class StoredResponseReader(Protocol):
    """Queries on kept answers."""

    def stored_response(self, name: bytes, place: str) -> StoredResponse | None:
        """Return the newest answer of that name, however old.

        Args:
            place: as of the request that it answers; where it may be stored.
        """


class StoredResponseTransaction(StoredResponseReader, Protocol):
    """Changes of kept answers. One is emptied when what it shows is removed."""

    def store_response(self, answer: StoredResponse) -> None:
        """Store an answer, in place of one of the same name whose time is over."""

    def responses_about(self, subject: str) -> Sequence[StoredResponse]:
        """Return the answers that show this subject, none that was erased; `place` is where each is stored."""

    def erase_response(self, answer: StoredResponse) -> None:
        """Erase what an answer shows; that the request was carried out stays known."""

    def prune_responses(self, older_than: int, limit: int) -> int:
        """Remove up to `limit` answers to requests from before `older_than` (ms); return their number."""


T = TypeVar("T")
W = TypeVar("W", bound=StoredResponseTransaction)

_LABEL: Final = "idempotency"


class IdempotencyCounters(Struct):
    """Counters of how requests with an `Idempotency-Key` have ended since the start.

    Args:
        carried_out: the first of their kind.
        replayed: answered with a kept answer.
        in_progress: refused, as the first was still under way.
        mismatch: refused, as the body was another one.
        erased: refused, as the kept answer showed what was erased since.
    """

    carried_out: int = 0
    replayed: int = 0
    in_progress: int = 0
    mismatch: int = 0
    erased: int = 0


class InProgress(Conflict):
    """The refusal of a request while the first one of its kind is under way, here or on another node."""

    code = "idempotency_in_progress"

    def __init__(self) -> None:
        super().__init__("The first request with this Idempotency-Key is still under way.", retry_after_s=1)


class StoredResponses:
    """The installation's kept answers, encrypted and named by keyed hashes.

    A name is looked up under every known secret: what was carried out before a rotation is not carried out again.

    Args:
        secrets: those of the installation; under others no answer is found.
        window_s: seconds that an answer is kept.
        several: whether the store is a database of several nodes, in which a commit may be read and yet be lost.
    """

    def __init__(
        self,
        secrets: Secrets,
        clock: Clock,
        window_s: float,
        *,
        several: bool = False,
    ) -> None:
        self.counters: Final = IdempotencyCounters()
        self.several: Final = several
        self._clock = clock
        self._window_ms = int(window_s * 1000)
        self._secrets = secrets
        self._sealing = Sealing(secrets, _LABEL)
        self._under_way: set[tuple[str, ...]] = set()
        self._known: tuple[str, ...] = ()
        self._hmacs: Sequence[HMAC] = ()

    def in_flight(self, *name: str, place: str = "") -> InFlightRequest:
        """Return a context in which a request's name is held while it is worked on; it gives the request.

        Args:
            name: the caller, the request and its key.
            place: id of the object in the request's path; empty if it names none.

        Entering it raises Conflict (`idempotency_in_progress`) if the same one is being worked on.
        """
        return InFlightRequest(self, name, place)

    def begin(self, name: tuple[str, ...], place: str) -> IdempotentRequest:
        """Return the request, whose name is held until `end`. Raises as `under_way`."""
        if name in self._under_way:
            self.counters.in_progress += 1
            raise InProgress
        self._under_way.add(name)
        keys, framed = self._keys(), _length_prefixed(*map(str.encode, name))
        return IdempotentRequest(self, keys, [_digest(key, framed) for key in keys], place, self._clock())

    def end(self, name: tuple[str, ...]) -> None:
        """Let go of a request's name."""
        self._under_way.discard(name)

    def _keys(self) -> Sequence[HMAC]:
        """Return what makes names under each known secret, the current one's first."""
        known = self._secrets.known
        if known is not self._known:
            self._known, self._hmacs = known, [new_hmac(derived_key(secret, _LABEL)) for secret in known]
        return self._hmacs

    def replay_or_refuse(self, kept: StoredResponse, fingerprint: bytes, at: int) -> None:
        """Raise the kept answer or the refusal if that is of the window before `at` (ms).

        Raises AlreadyAnswered with the kept answer, IdempotencyMismatch, or AnswerErased.
        """
        if kept.at <= at - self._window_ms:
            return
        if not hmac.compare_digest(kept.fingerprint, fingerprint):
            raise IdempotencyMismatch
        if kept.sealed is None:
            raise AnswerErased("The request was carried out before; what it made has been removed since.")
        raise AlreadyAnswered(self._sealing.open_bytes(kept.sealed))

    def erase_mentions(self, tx: StoredResponseTransaction, subject: str, identifier: str) -> None:
        """Erase the kept answers about a subject that name an id, as of what has this id something was redacted."""
        for kept in tx.responses_about(subject):
            if self._names(kept, identifier):
                tx.erase_response(kept)

    def _names(self, kept: StoredResponse, identifier: str) -> bool:
        """Tell whether an answer names an id; of one that can't be opened that is taken for granted."""
        assert kept.sealed is not None, "no erased one is asked for"
        try:
            return identifier in self._sealing.open(kept.sealed)
        except SealBroken:
            return True

    def seal(self, answer: bytes) -> bytes:
        """Return the answer as it is stored: encrypted, as it may hold secrets that are shown once."""
        return self._sealing.seal_bytes(answer)


class InFlightRequest:
    """See `StoredResponses.under_way`."""

    __slots__ = ("_answers", "_name", "_place")

    def __init__(self, answers: StoredResponses, name: tuple[str, ...], place: str) -> None:
        self._answers = answers
        self._name = name
        self._place = place

    def __enter__(self) -> IdempotentRequest:
        return self._answers.begin(self._name, self._place)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._answers.end(self._name)


class IdempotentRequest(Struct, frozen=True):
    """One request with an `Idempotency-Key`; made by `StoredResponses.under_way`.

    Args:
        keys: those that names and fingerprints are made with, the current one first.
        names: its keyed hashes.
        place: see `StoredResponses.under_way`.
        at: when it came, in milliseconds.
        fingerprints: keyed hashes of its body, once that is known.
    """

    answers: StoredResponses
    keys: Sequence[HMAC]
    names: Sequence[bytes]
    place: str
    at: int
    fingerprints: Sequence[bytes] = ()

    def with_body(self, *parts: bytes) -> IdempotentRequest:
        """Return the request with the fingerprints of its body, which is known by these parts."""
        framed = _length_prefixed(*parts)
        fingerprints = [_digest(key, framed) for key in self.keys]
        return IdempotentRequest(self.answers, self.keys, self.names, self.place, self.at, fingerprints)

    def check(self, reader: StoredResponseReader) -> None:
        """Raise the kept answer or the refusal if the request was carried out before: see `StoredResponses.refuse`."""
        for name, fingerprint in zip(self.names, self.fingerprints, strict=True):
            kept = reader.stored_response(name, self.place)
            if kept is not None:
                self.answers.replay_or_refuse(kept, fingerprint, self.at)

    def around(
        self,
        job: Callable[[W], T],
        shown: Callable[[T], Mapping[str, Any]],
        subject: str | None = None,
    ) -> Callable[[W], T]:
        """Return the job with its `ResponseHook` around it."""
        return wrapped(job, ResponseHook(self, shown, subject))


class ResponseHook(Struct, Generic[T], frozen=True):
    """A `Wrapper` that has a request carried out unless an answer is kept, and then keeps the answer.

    Args:
        shown: the answer, made of the job's result alone.
        subject: id of what the answer shows; by default it is the answer's own.
    """

    once: IdempotentRequest
    shown: Callable[[T], Mapping[str, Any]]
    subject: str | None = None

    def before(self, tx: StoredResponseTransaction) -> None:
        """Raise the kept answer or the refusal if the request was carried out before: see `IdempotentRequest.check`."""
        self.once.check(tx)

    def after(self, tx: StoredResponseTransaction, result: T) -> None:
        """Keep the answer."""
        once, answer = self.once, self.shown(result)
        sealed = once.answers.seal(orjson.dumps(answer))
        subject = answer["id"] if self.subject is None else self.subject
        tx.store_response(
            StoredResponse(once.names[0], once.fingerprints[0], subject, sealed, once.at, once.place)
        )


def new_hmac(key: bytes) -> HMAC:
    """Return what makes keyed hashes under a key (HMAC-SHA256, RFC 2104)."""
    return HMAC(key, SHA256())


def keyed_hash(key: HMAC, *parts: bytes) -> bytes:
    """Return a keyed hash of the parts, each by itself: `a`, `bc` has another one than `ab`, `c`."""
    return _digest(key, _length_prefixed(*parts))


def _length_prefixed(*parts: bytes) -> bytes:
    """Return the parts in one, each behind its length."""
    framed = b""
    for part in parts:
        framed += len(part).to_bytes(8) + part
    return framed


def _digest(key: HMAC, framed: bytes) -> bytes:
    digest = key.copy()
    digest.update(framed)
    return digest.finalize()
