"""Calls of a command: an answer, or words that say why there is none."""

from __future__ import annotations

import json

import pytest
import trio

from deskwire.commands.api_client.access import ServiceAccess
from deskwire.commands.api_client.service import CallRefused, Service, ServiceUnavailable
from deskwire.commands.listen.feed import RetryingService
from tests.commands.listen.conftest import receiving
from tests.support.sockets.receivers import Behaviour, Receiver, Request, answering
from tests.support.sockets.server_process import free_port

KEY = "sk_1234567890"
OK = answering("200 OK", b'{"id":"prj_1"}')


def problem(status: str, code: str, *, extra: bytes = b"", **more: object) -> Behaviour:
    """Respond with a problem document."""
    return answering(status, json.dumps({"code": code, "detail": "Why.", **more}).encode(), extra)


def service(receiver: Receiver) -> Service:
    return Service(ServiceAccess(f"http://127.0.0.1:{receiver.port}", KEY))


async def test_call_has_the_v3_path_the_key_and_its_parameters() -> None:
    async with receiving(OK) as receiver, service(receiver) as called:
        assert await called.fetch("/s2s/project", {"after": "a b"}) == {"id": "prj_1"}
        assert await called.post("/s2s/x", {"since": "ü"}) == {"id": "prj_1"}
        assert await called.post("/s2s/y") == {"id": "prj_1"}
    get, post, empty = receiver.requests
    assert (get.method, get.path) == ("GET", "/v3/s2s/project?after=a+b")
    assert get.headers["Authorization"] == f"Bearer {KEY}"
    assert (post.method, post.path, json.loads(post.body)) == ("POST", "/v3/s2s/x", {"since": "ü"})
    assert (empty.headers["Content-Length"], empty.body) == ("0", b"")


async def test_refusal_has_the_text_of_the_problem_document() -> None:
    flaws = [{"pointer": "/type", "code": "x", "message": "There is no such type."}]
    async with (
        receiving(problem("400 Bad Request", "bad_query", errors=flaws)) as receiver,
        service(receiver) as called,
    ):
        with pytest.raises(CallRefused) as caught:
            await called.get("/s2s/x")
    assert (caught.value.status, caught.value.code) == (400, "bad_query")
    assert str(caught.value) == "HTTP 400 bad_query: /type: There is no such type."


async def test_rejected_key_is_reported_with_its_source_and_not_shown() -> None:
    async with (
        receiving(problem("401 Unauthorized", "invalid_server_key")) as receiver,
        service(receiver) as called,
    ):
        with pytest.raises(CallRefused, match="check --key, DESKWIRE_KEY or demo") as caught:
            await called.get("/s2s/x")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("status", ["429 Slow", "500 Oops", "502 Bad", "503 Busy", "504 Late"])
async def test_temporary_refusal_is_unavailability_with_its_retry_after(status: str) -> None:
    async with (
        receiving(problem(status, "x", extra=b"Retry-After: 7\r\n")) as receiver,
        service(receiver) as called,
    ):
        with pytest.raises(ServiceUnavailable, match="Why") as caught:
            await called.get("/s2s/x")
    assert caught.value.retry_after_s == 7


@pytest.mark.parametrize("header", ["", "Retry-After: soon\r\n", "Retry-After: inf\r\n"])
async def test_retry_after_without_a_number_of_seconds_is_ignored(header: str) -> None:
    async with (
        receiving(answering("503 Busy", b"<html>", header.encode())) as receiver,
        service(receiver) as called,
    ):
        with pytest.raises(ServiceUnavailable, match="HTTP 503") as caught:
            await called.get("/s2s/x")
    assert caught.value.retry_after_s is None


async def test_refused_and_broken_connections_count_as_unavailability() -> None:
    async def hang_up(stream: trio.abc.Stream, _: Request) -> None:
        await stream.aclose()

    async with Service(ServiceAccess(f"http://127.0.0.1:{free_port()}", KEY)) as nobody:
        with pytest.raises(ServiceUnavailable, match="can't be reached: ConnectError"):
            await nobody.get("/s2s/x")
    async with receiving(hang_up) as receiver, service(receiver) as called:
        with pytest.raises(ServiceUnavailable, match="can't be reached"):
            await called.get("/s2s/x")


async def test_an_answer_that_is_not_json_is_away_with_a_hint() -> None:
    async with receiving(answering("200 OK", b"<html>")) as receiver, service(receiver) as called:
        with pytest.raises(ServiceUnavailable, match="is this a Deskwire service"):
            await called.fetch("/s2s/x")


async def test_retrying_caller_reports_the_outage_once_and_the_recovery_once() -> None:
    notes: list[str] = []
    answers = [problem("503 Busy", "not_ready"), answering("500 Oops"), OK]

    async def one_after_the_other(stream: trio.abc.Stream, request: Request) -> None:
        await answers.pop(0)(stream, request)

    async with receiving(one_after_the_other) as receiver, service(receiver) as called:
        patient = RetryingService(called, True, notes.append)
        assert await patient.get("/s2s/project") == b'{"id":"prj_1"}'
    assert len(notes) == 2
    assert notes[0].endswith("HTTP 503 not_ready: Why.; retrying until it is back.")
    assert notes[1] == "The service is back."
