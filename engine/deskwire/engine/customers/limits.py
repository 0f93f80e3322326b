"""Limits on customers: on messages and conversations of a session, and on visitors of a network and of a channel.

Above the limits of networks and channels a visitor's browser has to prove work. A flood from many networks therefore costs its
sender processor time for each conversation, and signed-in customers are not affected. Buckets are in memory: each node of an
installation grants its share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

import trio
from msgspec import Struct, field

from deskwire.engine.core.errors import TooManyRequests
from deskwire.engine.core.limits.network import network_of, remote_network
from deskwire.engine.core.limits.rate_limit import Buckets, Quota, RateLimit
from deskwire.engine.core.limits.sketch import Sketch
from deskwire.engine.customers.proof_of_work import Proof, ProofsOfWork, ProofSubject, VisitorLimitReached
from deskwire.engine.customers.session import CustomerSession

MESSAGES_PER_MINUTE: Final = 30  # of a session
CONVERSATIONS_PER_HOUR: Final = 5  # of a session
UPLOADS_PER_HOUR: Final = 20  # of a session
NETWORK_UPLOADS_PER_HOUR: Final = 100  # of visitors of a network
CALLS_PER_MINUTE: Final = 300  # of a session; a panel makes a handful
NETWORK_CONVERSATIONS: Final = 10  # of visitors of a network in ten minutes, without a proof of work
NETWORK_PROVEN_CONVERSATIONS: Final = 100  # of visitors of a network in ten minutes, each with one
CHANNEL_CONVERSATIONS: Final = 300  # of visitors of a channel in ten minutes, without a proof of work
NETWORK_SESSIONS_PER_MINUTE: Final = 600  # started sessions; each may cost the check of a signature
_WINDOW_MINUTES: Final = 10


class CustomerLimits(Struct, frozen=True):
    """The limits on customers.

    Args:
        proofs: makes challenges and checks proofs.
        projects: calls of the signed-in customers of a project, and apart from them those of its visitors: anyone can be a
            visitor, so that their calls must not use up those of others.
        clock: Trio's.
    """

    proofs: ProofsOfWork
    projects: Buckets
    clock: Callable[[], float] = trio.current_time
    calls: Buckets = field(default_factory=lambda: Buckets(RateLimit(CALLS_PER_MINUTE, CALLS_PER_MINUTE)))
    messages: Buckets = field(
        default_factory=lambda: Buckets(RateLimit(MESSAGES_PER_MINUTE, MESSAGES_PER_MINUTE))
    )
    conversations: Buckets = field(
        default_factory=lambda: Buckets(RateLimit(CONVERSATIONS_PER_HOUR, CONVERSATIONS_PER_HOUR, minutes=60))
    )
    uploads: Buckets = field(
        default_factory=lambda: Buckets(RateLimit(UPLOADS_PER_HOUR, UPLOADS_PER_HOUR, minutes=60))
    )
    network_uploads: Sketch = field(
        default_factory=lambda: Sketch(
            RateLimit(NETWORK_UPLOADS_PER_HOUR, NETWORK_UPLOADS_PER_HOUR, minutes=60)
        )
    )
    sessions: Sketch = field(
        default_factory=lambda: Sketch(RateLimit(NETWORK_SESSIONS_PER_MINUTE, NETWORK_SESSIONS_PER_MINUTE))
    )
    networks: Sketch = field(default_factory=lambda: Sketch(_in_window(NETWORK_CONVERSATIONS)))
    proven: Sketch = field(default_factory=lambda: Sketch(_in_window(NETWORK_PROVEN_CONVERSATIONS)))
    channels: Buckets = field(default_factory=lambda: Buckets(_in_window(CHANNEL_CONVERSATIONS)))

    def share(self, nodes: int) -> None:
        """Limit this node to its part, one of `nodes`, from now on."""
        for each in (
            self.projects,
            self.calls,
            self.messages,
            self.conversations,
            self.uploads,
            self.network_uploads,
            self.sessions,
            self.networks,
            self.proven,
            self.channels,
        ):
            each.share(nodes)

    def take_call(self, session: CustomerSession) -> Quota:
        """Count a call of a session and return its remaining quota. `retry_after_s` is set if it was exceeded."""
        now = self.clock()
        quota = self.calls.take(session.id, now)  # first: a refused call uses up nothing of the project
        assert quota is not None, "sessions have a limit"
        if quota.retry_after_s:
            return quota
        project = self.projects.take((session.project.rowid, session.verified), now)
        return project if project is not None and project.retry_after_s else quota

    def start_session(self, address: str | None) -> None:
        """Count the start of a session. Raises TooManyRequests if its network starts too many."""
        network = remote_network(address)
        left = None if network is None else self.sessions.take(network, self.clock())
        _require_left(left, "This network starts sessions too often.")

    def take_message(self, session: CustomerSession) -> None:
        """Count a message of a session. Raises TooManyRequests."""
        left = self.messages.take(session.id, self.clock())
        _require_left(left, "This session sends messages too often.")

    def give_back_message(self, session: CustomerSession) -> None:
        """Return a message that was stored by an earlier call."""
        self.messages.give_back(session.id)

    def take_upload(self, session: CustomerSession, address: str | None) -> None:
        """Count an upload of a session, and of its network for a visitor. Raises TooManyRequests."""
        left = self.uploads.take(session.id, self.clock())
        _require_left(left, "This session sends files too often.")
        if not session.verified:
            left = self.network_uploads.take(network_of(address), self.clock())
            _require_left(left, "Visitors of this network send files too often.")

    @contextmanager
    def starting_conversation(
        self, session: CustomerSession, address: str | None, proof: Proof | None, now: int
    ) -> Iterator[None]:
        """Count a conversation that is started within the context, unless the context raises.

        Args:
            address: the client's.
            proof: the solved challenge of an earlier refusal, if there was one.
            now: in milliseconds.

        Raises TooManyRequests: `rate_limited` for the session, `visitor_limit` with a challenge for visitors of a network or
        channel.
        """
        left = self.conversations.take(session.id, self.clock())
        _require_left(left, "This session starts conversations too often.")
        with ExitStack() as undo:
            undo.callback(self.conversations.give_back, session.id)
            spent = (
                None if session.verified else self._admit_visitor(session, network_of(address), proof, now)
            )
            if spent is not None:
                undo.callback(self.proofs.give_back, spent)
            yield
            undo.pop_all()  # the conversation was started, so it counts

    def _admit_visitor(
        self, session: CustomerSession, network: str, proof: Proof | None, now: int
    ) -> Proof | None:
        """Count a visitor's conversation and return the proof that it took, if any. Raises TooManyRequests."""
        clock, subject = self.clock(), ProofSubject(session.id, network, session.channel.id)
        if proof is not None and self.proofs.accepts(proof, subject, now):
            left = self.proven.take(network, clock)
            _require_left(left, "Too many conversations of visitors come from this network.")
            self.proofs.spend(proof)
            return proof
        for found in (self.networks.peek(network, clock), self.channels.peek(session.channel.rowid, clock)):
            if found is not None and found.retry_after_s:
                raise VisitorLimitReached(self.proofs.challenge(subject, now), found.retry_after_s)
        self.networks.take(network, clock)
        self.channels.take(session.channel.rowid, clock)
        return None


def _in_window(count: int) -> RateLimit:
    return RateLimit(count, count, minutes=_WINDOW_MINUTES)


def _require_left(left: Quota | None, detail: str) -> None:
    """Raise TooManyRequests (`rate_limited`) if a quota was exceeded."""
    if left is not None and left.retry_after_s:
        raise TooManyRequests(detail, code="rate_limited", retry_after_s=left.retry_after_s)
