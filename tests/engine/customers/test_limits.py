"""Limits on customers: by session, network and channel, with a proof of work beyond, and nothing taken for a failure."""

from __future__ import annotations

from itertools import count

import pytest

from deskwire.engine.channels.channel import Channel, Look
from deskwire.engine.core.errors import TooManyRequests
from deskwire.engine.core.limits.rate_limit import Buckets, RateLimit
from deskwire.engine.core.values import replace
from deskwire.engine.customers.limits import (
    CALLS_PER_MINUTE,
    CHANNEL_CONVERSATIONS,
    CONVERSATIONS_PER_HOUR,
    MESSAGES_PER_MINUTE,
    NETWORK_CONVERSATIONS,
    NETWORK_PROVEN_CONVERSATIONS,
    NETWORK_SESSIONS_PER_MINUTE,
    NETWORK_UPLOADS_PER_HOUR,
    CustomerLimits,
)
from deskwire.engine.customers.proof_of_work import Proof, ProofsOfWork, VisitorLimitReached, zero_bits
from deskwire.engine.customers.session import CustomerSession
from tests.support.builders import NOON, PROJECT

CHANNEL = Channel(
    1, "chn_1", PROJECT.rowid, "widget", "Shop", True, (), "optional", (), True, (), Look(), None, None, False, b"", "",
    0, 0,
)  # fmt: skip
BITS = 4


class Clock:
    """Trio's clock, set by hand."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def limits(clock: Clock | None = None, calls: RateLimit | None = None) -> CustomerLimits:
    """Return fresh limits with cheap proofs."""
    return CustomerLimits(ProofsOfWork(lambda: (b"k" * 32,), BITS), Buckets(calls), clock or Clock())


def session(number: int = 1, *, verified: bool = False) -> CustomerSession:
    """Return the session of a visitor, or of a signed-in customer."""
    return CustomerSession(
        None, f"cse_{number}", PROJECT, CHANNEL, None, f"u{number}", verified, frozenset(), NOON, NOON
    )


def start(
    on: CustomerLimits, who: CustomerSession, address: str = "192.0.2.1", proof: Proof | None = None
) -> None:
    """Start a conversation."""
    with on.starting_conversation(who, address, proof, NOON):
        pass


def solved(refused: VisitorLimitReached) -> Proof:
    """Solve the challenge of a refusal."""
    challenge = refused.shown["challenge"]["challenge"]
    return next(proof for n in count() if zero_bits(proof := Proof(challenge, str(n))) >= BITS)


def used_up(on: CustomerLimits, address: str = "192.0.2.1") -> VisitorLimitReached:
    """Use up the network's conversations; return the refusal of one more."""
    for number in range(NETWORK_CONVERSATIONS):
        start(on, session(number), address)
    with pytest.raises(VisitorLimitReached) as refused:
        start(on, session(99), address)
    return refused.value


def test_session_starts_few_conversations_and_sends_few_messages() -> None:
    on = limits()
    customer = session(verified=True)
    for _ in range(CONVERSATIONS_PER_HOUR):
        start(on, customer)
    with pytest.raises(TooManyRequests) as refused:
        start(on, customer)
    assert refused.value.reason == "rate_limited"
    for _ in range(MESSAGES_PER_MINUTE):
        on.take_message(customer)
    with pytest.raises(TooManyRequests):
        on.take_message(customer)
    on.take_message(session(2))


def test_network_of_visitors_needs_a_proof_beyond_its_limit() -> None:
    on = limits()
    refused = used_up(on)
    assert (refused.reason, refused.retry_after_s) == ("visitor_limit", 60)
    proof = solved(refused)
    start(on, session(99), proof=proof)
    for who in (session(99), session(98)):  # it is spent, and of another session
        with pytest.raises(VisitorLimitReached):
            start(on, who, proof=proof)


def test_signed_in_customers_and_other_networks_meet_no_visitor_limit() -> None:
    on = limits()
    used_up(on)
    start(on, session(99, verified=True))
    start(on, session(98), "192.0.2.2")
    start(on, session(97), "2001:db8:1:1::1")


def test_addresses_of_one_ipv6_network_share_its_limit() -> None:
    on = limits()
    for number in range(NETWORK_CONVERSATIONS):
        start(on, session(number), f"2001:db8:1:1::{number + 1:x}")
    with pytest.raises(VisitorLimitReached):
        start(on, session(99), "2001:db8:1:1:ffff::1")


def test_failed_conversation_takes_nothing_and_gives_the_proof_back() -> None:
    on = limits()
    proof = solved(used_up(on))
    for _ in range(CONVERSATIONS_PER_HOUR + 1):
        with pytest.raises(ValueError), on.starting_conversation(session(99), "192.0.2.1", proof, NOON):  # noqa: PT011
            raise ValueError
    start(on, session(99), proof=proof)


def test_refused_visitor_loses_no_conversation_of_the_session() -> None:
    on = limits()
    used_up(on)
    for _ in range(CONVERSATIONS_PER_HOUR + 1):
        with pytest.raises(VisitorLimitReached):
            start(on, session(99))


def test_flood_from_many_networks_needs_proofs_by_channel() -> None:
    on = limits()
    for number in range(CHANNEL_CONVERSATIONS):
        start(on, session(number), f"10.0.{number // 250}.{number % 250}")
    with pytest.raises(VisitorLimitReached) as refused:
        start(on, session(9_999), "192.0.2.1")
    start(on, session(9_999), "192.0.2.1", solved(refused.value))
    start(on, replace(session(9_998), channel=replace(CHANNEL, rowid=2, id="chn_2")), "192.0.2.1")


def test_proofs_do_not_lift_the_limit_of_a_network_for_good() -> None:
    on = limits()
    used_up(on)
    for number in range(NETWORK_PROVEN_CONVERSATIONS):
        who = session(1_000 + number)
        with pytest.raises(VisitorLimitReached) as refused:
            start(on, who)
        start(on, who, proof=solved(refused.value))
    with pytest.raises(VisitorLimitReached) as refused:
        start(on, session(99))
    with pytest.raises(TooManyRequests) as ended:
        start(on, session(99), proof=solved(refused.value))
    assert ended.value.reason == "rate_limited"


def test_limits_refill() -> None:
    clock = Clock()
    on = limits(clock)
    refused = used_up(on)
    clock.now += refused.retry_after_s or 0
    start(on, session(99))


def test_calls_count_by_session_and_by_project() -> None:
    on = limits(calls=RateLimit(CALLS_PER_MINUTE + 2, CALLS_PER_MINUTE + 2))
    quotas = [on.take_call(session(1)) for _ in range(CALLS_PER_MINUTE + 1)]
    assert [bool(quota.retry_after_s) for quota in quotas] == [False] * CALLS_PER_MINUTE + [True]
    assert [bool(on.take_call(session(2)).retry_after_s) for _ in range(3)] == [False, False, True]
    assert on.take_call(session(3)).retry_after_s  # the visitors of the project have used up their calls


def test_visitors_use_up_no_calls_of_signed_in_customers() -> None:
    on = limits(calls=RateLimit(1, 1))
    assert not on.take_call(session(1)).retry_after_s
    assert on.take_call(session(2)).retry_after_s
    assert not on.take_call(replace(session(3), verified=True)).retry_after_s


def test_visitors_of_a_network_send_a_limited_number_of_files() -> None:
    on = limits()
    for number in range(NETWORK_UPLOADS_PER_HOUR):
        on.take_upload(session(number), "2001:db8::1")
    with pytest.raises(TooManyRequests, match="network"):
        on.take_upload(session(1_000), "2001:db8::2")  # the same /64
    on.take_upload(session(1_001), "192.0.2.1")
    on.take_upload(session(1_002, verified=True), "2001:db8::1")


def test_network_starts_a_limited_number_of_sessions() -> None:
    on = limits()
    for _ in range(NETWORK_SESSIONS_PER_MINUTE):
        on.start_session("192.0.2.1")
    with pytest.raises(TooManyRequests):
        on.start_session("192.0.2.1")
    on.start_session("192.0.2.2")
    for _ in range(NETWORK_SESSIONS_PER_MINUTE + 1):
        on.start_session("127.0.0.1")  # a proxy or script on this machine, which may be anyone's


def test_nodes_share_the_limits() -> None:
    on = limits()
    on.share(2)
    for number in range(NETWORK_CONVERSATIONS // 2):
        start(on, session(number))
    with pytest.raises(VisitorLimitReached):
        start(on, session(99))
