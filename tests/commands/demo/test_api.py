"""The client: the calls that it repeats, those that it does not, and its messages about both."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import pytest
import trio

from tests.support.replay import api as module
from tests.support.replay.api import Api

OK = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"id": "x"}'
LATER = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n"
PROBLEM = (
    b'{"status":422,"code":"invalid_input","detail":"1 problem",'
    b'"errors":[{"pointer":"/text","code":"too_short","message":"Say something."}]}'
)
REFUSED = b"HTTP/1.1 422 Unprocessable\r\nContent-Length: %d\r\n\r\n%s" % (len(PROBLEM), PROBLEM)
LOST = b""


class Scripted:
    """A server with one answer for each request, in turn; an empty one closes the connection instead."""

    def __init__(self, answers: Sequence[bytes]) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []

    async def serve(self, stream: trio.SocketStream) -> None:
        request = b""
        with suppress(trio.BrokenResourceError):  # the client is done
            async with stream:
                async for data in stream:
                    request += data
                    if not request.endswith(b"}"):  # every request here has an object as its body
                        continue
                    self.requests.append(request)
                    request, answer = b"", self.answers.pop(0)
                    if not answer:
                        return
                    await stream.send_all(answer)


async def call(
    nursery: trio.Nursery, answers: Sequence[bytes], repeatable: bool = False
) -> tuple[module.Result, Api, Scripted]:
    server = Scripted(answers)
    listeners = await nursery.start(partial(trio.serve_tcp, server.serve, 0, host="127.0.0.1"))
    api = Api(f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}", "sk_1", connections=1)
    try:
        reply = await api.call("POST", "/s2s/conversations", {"a": 1}, repeatable=repeatable)
    finally:
        await api.aclose()
    return reply, api, server


async def test_answer_is_returned_with_its_bytes(nursery: trio.Nursery) -> None:
    reply, api, server = await call(nursery, [OK])
    assert (reply.outcome, reply.status, reply.body, reply.raw) == (
        "acknowledged",
        200,
        {"id": "x"},
        b'{"id": "x"}',
    )
    assert api.put_off == 0
    (request,) = server.requests
    assert request.startswith(b"POST /v3/s2s/conversations HTTP/1.1\r\n")
    assert b"Authorization: Bearer sk_1\r\n" in request
    assert request.endswith(b'{"a":1}')


async def test_postponed_request_is_sent_again_and_counted(nursery: trio.Nursery) -> None:
    reply, api, server = await call(nursery, [LATER, LATER, OK])
    assert (reply.outcome, api.put_off, len(server.requests)) == ("acknowledged", 2, 3)


async def test_a_service_that_always_puts_off_is_given_up(
    nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TRIES_MAX", 2)
    reply, _, server = await call(nursery, [LATER] * 3)
    assert (reply.outcome, reply.status, len(server.requests)) == ("refused", 503, 2)


async def test_lost_answer_is_not_requested_again_automatically(nursery: trio.Nursery) -> None:
    reply, _, server = await call(nursery, [LOST, OK])
    assert (reply.outcome, reply.status, len(server.requests)) == ("unacknowledged", None, 1)
    assert reply.detail


async def test_lost_answer_of_a_safe_request_is_requested_again(nursery: trio.Nursery) -> None:
    reply, _, server = await call(nursery, [LOST, OK], repeatable=True)
    assert (reply.outcome, len(server.requests)) == ("acknowledged", 2)


async def test_refusal_has_the_text_of_the_problem_document(nursery: trio.Nursery) -> None:
    reply, _, _ = await call(nursery, [REFUSED])
    assert (reply.outcome, reply.detail) == ("refused", "HTTP 422 invalid_input: /text: Say something.")


async def test_service_that_comes_back_gets_the_requests_that_it_missed(nursery: trio.Nursery) -> None:
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    api, server = Api(f"http://127.0.0.1:{port}", "sk_1", connections=1), Scripted([OK])

    async def come_back() -> None:
        await trio.sleep(0.1)  # so that the first try finds the port closed
        await trio.serve_tcp(server.serve, port, host="127.0.0.1")

    nursery.start_soon(come_back)
    reply = await api.call("POST", "/s2s/conversations", {})
    await api.aclose()
    assert reply.outcome == "acknowledged"


async def test_a_service_that_stays_away_is_given_up_as_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AWAY_S", 0.0)
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    api = Api(f"http://127.0.0.1:{port}", "sk_1", connections=1)
    reply = await api.call("POST", "/s2s/conversations", {})
    await api.aclose()
    assert (reply.outcome, reply.status) == ("refused", None)
    assert reply.detail.startswith("ConnectError")


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [("3", 3), ("0", 0.2), ("900", 10), ("", 1), ("soon", 1), ("nan", 1), ("-5", 0.2)],
)
def test_pause_is_the_requested_one_within_bounds(retry_after: str, seconds: float) -> None:
    assert module._pause_s(retry_after) == seconds
