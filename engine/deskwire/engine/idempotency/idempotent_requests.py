"""Idempotent requests: a repeated request gets the stored response (ADR 24).

The response is stored in the commit that executes the request. The commit has a hook that first looks for a
stored response, and finally stores its own. If the process or the request ends at any moment, there is either
no effect and no response, or both. Only memory knows that the same request is already running, which merely
decides how early the second request is refused.

The setting `idempotency_s` says how long a response is stored.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from types import TracebackType
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

import orjson
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC
from msgspec import Struct

from deskwire.engine.core.clock import Clock
from deskwire.engine.core.commits import with_hook
from deskwire.engine.core.encryption import DecryptionFailed, Encryption
from deskwire.engine.core.errors import AlreadyAnswered, AnswerErased, Conflict, IdempotencyMismatch
from deskwire.engine.core.secret import Secrets, derived_key

Subject: TypeAlias = str | Callable[[Mapping[str, Any]], str]
"""The id of the object that a response shows, or a function of the response that returns it."""

OWN_ID: Final = itemgetter("id")


class StoredResponse(Struct, frozen=True):
    """The stored response to a request with an `Idempotency-Key`.

    Args:
        name: keyed hash of the caller, the request and its key.
        fingerprint: keyed hash of the body.
        subject: id of the object that the response shows; erasing the object erases the response.
        sealed: the encrypted response; None after its subject was erased.
        at: when the request came, in milliseconds.
        place: id of the object in the request's path; empty if there is none.
    """

    name: bytes
    fingerprint: bytes
    subject: str | None
    sealed: bytes | None
    at: int
    place: str = ""


class StoredResponseReader(Protocol):
    """Queries on stored responses."""

    def stored_response(self, name: bytes, place: str) -> StoredResponse | None:
        """Return the newest response with this name, however old.

        Args:
            place: `StoredResponse.place` of the request, which decides where the response is stored.
        """


class StoredResponseTransaction(StoredResponseReader, Protocol):
    """Changes of stored responses."""

    def store_response(self, answer: StoredResponse) -> None:
        """Store a response, replacing an expired one with the same name."""

    def responses_about(self, subject: str) -> Sequence[StoredResponse]:
        """Return the responses that show this subject, without erased ones.

        `place` is where each is stored.
        """

    def erase_response(self, answer: StoredResponse) -> None:
        """Erase the content of a response. It stays known that the request was executed."""

    def prune_responses(self, older_than: int, limit: int) -> int:
        """Delete up to `limit` responses to requests before `older_than` (ms).

        Returns their number.
        """


T = TypeVar("T")
W = TypeVar("W", bound=StoredResponseTransaction)

_LABEL: Final = "idempotency"


class IdempotencyCounters(Struct):
    """Counts of requests with an `Idempotency-Key` by result, since the start.

    Args:
        carried_out: executed as the first of their kind.
        replayed: answered with a stored response.
        in_progress: refused because the first request was still running.
        mismatch: refused because the body was different.
        erased: refused because the stored response was erased.
    """

    carried_out: int = 0
    replayed: int = 0
    in_progress: int = 0
    mismatch: int = 0
    erased: int = 0


class InProgress(Conflict):
    """The first request with the same key is still running, here or on another node."""

    code = "idempotency_in_progress"

    def __init__(self) -> None:
        super().__init__("The first request with this Idempotency-Key is still under way.", retry_after_s=1)


class StoredResponses:
    """The installation's stored responses, encrypted and named by keyed hashes.

    A name is looked up under every known secret, so that a rotation does not execute a request again.

    Args:
        secrets: the installation's secrets; responses under other secrets are not found.
        window_s: how long a response is stored, in seconds.
        several: whether nodes share the store, in which case a commit can be read and still be lost.
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
        self._sealing = Encryption(secrets, _LABEL)
        self._under_way: set[tuple[str, ...]] = set()
        self._known: tuple[str, ...] = ()
        self._hmacs: Sequence[HMAC] = ()

    def in_flight(self, *name: str, place: str = "") -> InFlightRequest:
        """Return a context that reserves a request's name while the request runs.

        Entering the context returns the request. It raises Conflict (`idempotency_in_progress`) if the name
        is reserved.

        Args:
            name: the caller, the request and its key.
            place: id of the object in the request's path; empty if there is none.
        """
        return InFlightRequest(self, name, place)

    def begin(self, name: tuple[str, ...], place: str) -> IdempotentRequest:
        """Reserve a name until `end` and return the request. Raises as `in_flight`."""
        if name in self._under_way:
            self.counters.in_progress += 1
            raise InProgress
        self._under_way.add(name)
        keys, framed = self._keys(), _length_prefixed(*map(str.encode, name))
        return IdempotentRequest(self, keys, [_digest(key, framed) for key in keys], place, self._clock())

    def end(self, name: tuple[str, ...]) -> None:
        """Release a request's name."""
        self._under_way.discard(name)

    def _keys(self) -> Sequence[HMAC]:
        """Return the keyed hash function of each known secret, the current one first."""
        known = self._secrets.known
        if known is not self._known:
            self._known, self._hmacs = known, [new_hmac(derived_key(secret, _LABEL)) for secret in known]
        return self._hmacs

    def replay_or_refuse(self, kept: StoredResponse, fingerprint: bytes, at: int) -> None:
        """Raise the stored response or a refusal, unless the response has expired.

        Raises AlreadyAnswered with the stored response, IdempotencyMismatch, or AnswerErased.

        Args:
            at: when the request came (ms).
        """
        if kept.at <= at - self._window_ms:
            return
        if not hmac.compare_digest(kept.fingerprint, fingerprint):
            raise IdempotencyMismatch
        if kept.sealed is None:
            raise AnswerErased("The request was carried out before; its result has been removed since.")
        raise AlreadyAnswered(self._sealing.open_bytes(kept.sealed))

    def erase_mentions(self, tx: StoredResponseTransaction, subject: str, identifier: str) -> None:
        """Erase the stored responses about a subject that mention an id.

        The caller has redacted a part of the object with this id.
        """
        for kept in tx.responses_about(subject):
            if self._mentions(kept, identifier):
                tx.erase_response(kept)

    def _mentions(self, kept: StoredResponse, identifier: str) -> bool:
        """Return whether a response mentions an id; True if it can't be opened."""
        assert kept.sealed is not None, "no erased one is asked for"
        try:
            return identifier in self._sealing.open(kept.sealed)
        except DecryptionFailed:
            return True

    def seal(self, answer: bytes) -> bytes:
        """Return the encrypted response. It can contain a secret that is shown only once."""
        return self._sealing.seal_bytes(answer)


class InFlightRequest:
    """See `StoredResponses.in_flight`."""

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
    """One request with an `Idempotency-Key`; made by `StoredResponses.in_flight`.

    Args:
        keys: keyed hash functions for names and fingerprints, the current one first.
        names: its name under each key.
        place: see `StoredResponses.in_flight`.
        at: when it came, in milliseconds.
        fingerprints: keyed hashes of its body, after `with_body`.
    """

    answers: StoredResponses
    keys: Sequence[HMAC]
    names: Sequence[bytes]
    place: str
    at: int
    fingerprints: Sequence[bytes] = ()

    def with_body(self, *parts: bytes) -> IdempotentRequest:
        """Return the request with the fingerprints of its body, given in parts."""
        framed = _length_prefixed(*parts)
        fingerprints = [_digest(key, framed) for key in self.keys]
        return IdempotentRequest(self.answers, self.keys, self.names, self.place, self.at, fingerprints)

    def check(self, reader: StoredResponseReader) -> None:
        """Raise the stored response or a refusal if the request was executed before.

        See `StoredResponses.replay_or_refuse`.
        """
        for name, fingerprint in zip(self.names, self.fingerprints, strict=True):
            kept = reader.stored_response(name, self.place)
            if kept is not None:
                self.answers.replay_or_refuse(kept, fingerprint, self.at)

    def around(
        self,
        job: Callable[[W], T],
        shown: Callable[[T], Mapping[str, Any]],
        subject: Subject = OWN_ID,
    ) -> Callable[[W], T]:
        """Return the job wrapped in its `ResponseHook`."""
        return with_hook(job, ResponseHook(self, shown, subject))


class ResponseHook(Struct, Generic[T], frozen=True):
    """A commit hook (`CommitHook`) that replays or stores a response.

    Args:
        shown: makes the response from the job's result alone.
        subject: see `Subject`.
    """

    once: IdempotentRequest
    shown: Callable[[T], Mapping[str, Any]]
    subject: Subject = OWN_ID

    def before(self, tx: StoredResponseTransaction) -> None:
        """Raise the stored response or a refusal, see `IdempotentRequest.check`."""
        self.once.check(tx)

    def after(self, tx: StoredResponseTransaction, result: T) -> None:
        """Store the response."""
        once, answer = self.once, self.shown(result)
        sealed = once.answers.seal(orjson.dumps(answer))
        subject = self.subject if isinstance(self.subject, str) else self.subject(answer)
        tx.store_response(
            StoredResponse(once.names[0], once.fingerprints[0], subject, sealed, once.at, once.place)
        )


def new_hmac(key: bytes) -> HMAC:
    """Return a keyed hash function (HMAC-SHA256, RFC 2104)."""
    return HMAC(key, SHA256())


def _length_prefixed(*parts: bytes) -> bytes:
    """Return the concatenated parts, each after its length.

    The result for `a`, `bc` differs from that for `ab`, `c`.
    """
    framed = b""
    for part in parts:
        framed += len(part).to_bytes(8) + part
    return framed


def _digest(key: HMAC, framed: bytes) -> bytes:
    digest = key.copy()
    digest.update(framed)
    return digest.finalize()
