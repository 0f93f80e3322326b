"""Bugs of the stream and its positions."""

from __future__ import annotations

from typing import Any

from deskwire.engine.stream.lease import ChannelLease
from deskwire.engine.stream.subscription import Subscription
from deskwire.http.stream.heartbeat import ConnectionTimeouts
from tests.plants.registry import Patch, plant


@plant("simulation")
def drop_the_fence(patch: Patch) -> None:
    """A superseded consumer may return immediately."""
    patch.setattr(ChannelLease, "fenced", lambda *_: False)


@plant("simulation", "crash", thorough=("crash",))
def lose_an_event_of_the_stream(patch: Patch) -> None:
    """Every tenth batch of a subscription skips its first event."""
    take = Subscription._take
    count = [0]

    def passing_over(self: Any, events: Any, newest: int) -> Any:
        count[0] += bool(events)
        return take(self, events[1:] if events and count[0] % 10 == 0 else events, newest)

    patch.setattr(Subscription, "_take", passing_over)


@plant("simulation")
def write_to_who_lost_the_channel(patch: Patch) -> None:
    """A superseded consumer stays current, and does not learn that it lost the channel."""
    take = ChannelLease.take

    def taken(self: Any, *values: Any) -> Any:
        previous = take(self, *values)
        if previous is not None:
            previous.current, previous.lost = True, lambda _: None
        return previous

    patch.setattr(ChannelLease, "take", taken)


@plant("simulation", "crash")
def confirm_a_position_at_sending(patch: Patch) -> None:
    """A position is confirmed when the ping after its events is written, instead of by its pong."""
    next_ping = ConnectionTimeouts._next_ping

    def confirming(self: ConnectionTimeouts) -> bytes:
        ping = next_ping(self)
        self.confirm_all()
        return ping

    patch.setattr(ConnectionTimeouts, "_next_ping", confirming)
