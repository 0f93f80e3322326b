"""Receivers that answer an event with `Retry-After`: a pause that costs no attempt, with a bound and words."""

from __future__ import annotations

import ssl

import pytest
import trio

from deskwire.commands.listen.feed import FeedEvent
from deskwire.commands.listen.forward import FREE_PAUSES, FREE_PAUSES_MAX, Forwarder, ForwardResult
from deskwire.commands.listen.window import SequenceTable, Window, WindowEvent
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.webhooks.http.address import AddressPolicy, SystemResolver
from deskwire.engine.webhooks.http.client import Client
from deskwire.engine.webhooks.http.connectors import DirectConnector
from tests.commands.listen.conftest import SECRET, Shown, receiving
from tests.support.sockets.receivers import Receiver, Request, answering

TAKEN = answering("204 No Content")


def held(window: Window, number: int) -> WindowEvent:
    """Add an event of a conversation of its own to the window, and take it."""
    window.add(FeedEvent(f"evt_{number}", "message.created", f"cnv_{number}", 1, str(number).encode()))
    taken = window.take(False)
    assert taken is not None
    return taken


def client_of(receiver: Receiver) -> Client:
    return Client(
        receiver.url,
        DirectConnector(AddressPolicy(allow_private=True), SystemResolver()),
        ssl_context=ssl.create_default_context(),
        timeout_s=5.0,
        clock=wall_clock,
    )


def retry_after(value: str) -> bytes:
    return f"Retry-After: {value}\r\n".encode()


@pytest.mark.parametrize(("others", "attempts"), [(False, FREE_PAUSES_MAX + 3), (True, FREE_PAUSES + 3)])
@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
async def test_an_event_that_is_always_refused_is_given_up_in_words(
    others: bool, attempts: int, status: str
) -> None:
    async def refuse_one(stream: trio.abc.Stream, request: Request) -> None:
        refusing = answering(status, extra=retry_after("60"))
        await (refusing if request.body == b"1" else TAKEN)(stream, request)

    shown, window = Shown(), Window(None, SequenceTable({}, False))
    async with receiving(refuse_one) as receiver:
        client = client_of(receiver)
        forwarder = Forwarder(client, SECRET, shown.step, shown.note)
        refused, results = held(window, 1), list[ForwardResult]()
        while not results or results[-1].state == "retrying":
            results.append(await forwarder.attempt(refused))
            assert len(results) <= attempts
            if others:
                assert (await forwarder.attempt(held(window, 2 + len(results)))).state == "delivered"
        await client.aclose()
    assert (len(results), results[-1].state) == (attempts, "failed")
    mine = [each.headers["Service-Attempt"] for each in receiver.requests if each.body == b"1"]
    assert mine[-4:] == ["1", "2", "3", "4"]
    first, last = shown.notes
    assert first == f"The receiver asks for a pause for message.created of cnv_1 (status {status[:3]})."
    assert last.startswith("message.created of cnv_1 is given up: the receiver asked for a pause")
    assert last.endswith(f"{attempts} times in a row (status {status[:3]}).")


async def test_a_pause_that_ends_costs_no_attempt() -> None:
    shown, window = Shown(), Window(None, SequenceTable({}, False))
    async with receiving(answering("429 Too Many Requests", extra=retry_after("1"))) as receiver:
        client = client_of(receiver)
        forwarder = Forwarder(client, SECRET, shown.step, shown.note)
        event = held(window, 1)
        for _ in range(FREE_PAUSES_MAX - 1):
            assert (await forwarder.attempt(event)).state == "retrying"
        receiver.behaviour = TAKEN
        assert (await forwarder.attempt(event)).state == "delivered"
        await client.aclose()
    assert {each.headers["Service-Attempt"] for each in receiver.requests} == {"1"}
