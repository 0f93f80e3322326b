"""An oracle for HTTP/1.1: h11's reading of a connection's bytes, with which a service must agree."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import h11

_HEAD_MAX: Final = 1 << 20
_OWN: Final = frozenset({501, 505})
"""Refusals of HTTP features that the service does not support."""


@dataclass(frozen=True)
class Request:
    """One complete request."""

    method: str
    target: str
    body: bytes

    @property
    def user(self) -> str | None:
        """The user id of the conversation that it starts; None if it starts none."""
        if self.method != "POST":
            return None
        try:
            return str(json.loads(self.body)["contact"]["userId"])
        except (ValueError, KeyError, TypeError):
            return None


@dataclass(frozen=True)
class Judgement:
    """The complete requests in some bytes, and the state after them.

    Args:
        end: `closed`: nothing is read after the last request. `waiting`: a request may go on. `refused`: the next bytes
            are no request. `switched`: the client wants another protocol.
        opened: the method of the last request, if its head is complete and its body is not.
    """

    requests: tuple[Request, ...]
    end: Literal["closed", "waiting", "refused", "switched"]
    opened: str | None = None


def judge(data: bytes) -> Judgement:
    """Return the requests that h11 reads if each is answered as soon as it is complete."""
    server = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_MAX)
    server.receive_data(data)
    requests: list[Request] = []
    while True:
        head: h11.Request | None = None
        body = b""
        try:
            while not isinstance(event := server.next_event(), h11.EndOfMessage):
                if event is h11.PAUSED:
                    return Judgement(tuple(requests), "switched")
                if event is h11.NEED_DATA:
                    return Judgement(tuple(requests), "waiting", _method(head))
                if isinstance(event, h11.Request):
                    head = event
                elif isinstance(event, h11.Data):
                    body += event.data
        except h11.RemoteProtocolError:
            return Judgement(tuple(requests), "refused", _method(head))
        assert head is not None
        requests.append(Request(head.method.decode(), head.target.decode("latin-1"), body))
        server.send(
            h11.Response(status_code=404, headers=[("Content-Length", "0")])
        )  # 200 would accept a CONNECT
        server.send(h11.EndOfMessage())
        if server.our_state is not h11.DONE or server.their_state is not h11.DONE:
            return Judgement(tuple(requests), "closed" if server.our_state is h11.MUST_CLOSE else "switched")
        server.start_next_cycle()


def _method(head: h11.Request | None) -> str | None:
    return None if head is None else head.method.decode()


@dataclass(frozen=True)
class Answer:
    """One final answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def closes(self) -> bool:
        """True if it announces the end of the connection."""
        return self.headers.get("connection", "").lower() == "close"


def answers(data: bytes, methods: Sequence[str], ended: bool) -> list[Answer]:
    """Return the complete answers in some bytes, to requests with these methods. Raises RemoteProtocolError.

    Args:
        ended: whether the connection has ended after them; then no bytes may be left over.
    """
    found: list[Answer] = []
    asked = iter(methods)
    while data:
        client = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_MAX)
        method = next(asked, "GET")
        client.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
        client.send(h11.EndOfMessage())
        client.receive_data(data)
        if ended:
            client.receive_data(b"")
        events = [*_until_end(client)]
        if not events or not isinstance(events[-1], h11.EndOfMessage):
            assert not ended, f"half an answer: {data[:200]!r}"
            return found
        head = next(event for event in events if isinstance(event, h11.Response))
        body = b"".join(event.data for event in events if isinstance(event, h11.Data))
        headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
        found.append(Answer(head.status_code, headers, body))
        data = client.trailing_data[0]
    return found


def _until_end(client: h11.Connection) -> Iterator[h11.Event]:
    while True:
        event = client.next_event()
        if not isinstance(event, h11.Event):
            return
        yield event
        if isinstance(event, h11.EndOfMessage):
            return


def explain(judged: Judgement, found: Sequence[Answer], started: Sequence[str]) -> None:
    """Raise AssertionError unless these are answers of a service that reads as h11 does, or more strictly.

    Args:
        started: user ids of the conversations that were started, in order.
    """
    whole = len(judged.requests)
    for answer in found:
        assert answer.status < 500 or answer.status in _OWN, answer
    if judged.end == "refused":
        assert len(found) <= whole + 1
    elif judged.end == "closed":
        assert len(found) <= whole, "an answer to what was not asked"
    if len(found) > whole and (judged.opened is None or judged.opened == "POST"):
        assert found[whole].status >= 400, "a request that is not one was carried out"
    wanted = whole + (judged.end == "refused")
    if len(found) < wanted:
        assert found, "no answer"
        unread = found[-1].status < 400 and judged.requests[len(found) - 1].body and not started
        assert unread or found[-1].closes or found[-1].status >= 400, "the connection ended without a word"
    done = [
        request.user
        for request, answer in zip(judged.requests, found, strict=False)
        if request.user is not None and answer.status == 200
    ]
    assert done == list(started), f"{started} were carried out, {done} answered with 200"


def check_problem(answer: Answer) -> None:
    """Raise AssertionError unless a refusal is a well-formed problem document (decisions 1)."""
    assert answer.headers.get("content-type") == "application/problem+json", answer
    document = json.loads(answer.body)
    assert {"type", "title", "status", "detail", "code", "requestId"} <= set(document), document
    assert document["status"] == answer.status
    assert document["requestId"] == answer.headers["x-request-id"]
