"""Failures that pass are repeated, under one key; the others are raised at once. On real sockets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from deskwire_sdk import (
    APIError,
    AsyncDeskwire,
    ConnectionFailed,
    Deskwire,
    DeskwireError,
    InvalidResponse,
    ServerError,
    ServiceUnavailable,
    Timeout,
    _retries,
)
from deskwire_sdk._requests import Request as SdkRequest
from deskwire_sdk._retries import retry_delay
from deskwire_sdk.errors import error_of
from tests.support.sockets.receivers import Behaviour, Receiver, Request, answering

from .conftest import in_thread, serving

MESSAGE: Final[Any] = {"id": "msg_1", "text": "Hello"}
OK: Final = answering("200 OK", json.dumps(MESSAGE).encode())


def problem(status: str, code: str, *headers: str) -> Behaviour:
    """Return a behaviour that refuses."""
    body = json.dumps({"status": int(status[:3]), "code": code, "detail": "Later.", "requestId": "req_1"})
    return answering(status, body.encode(), "".join(f"{each}\r\n" for each in headers).encode())


async def hang_up(stream: trio.abc.Stream, _: Request) -> None:
    """Close the connection without a response."""
    await stream.aclose()


async def half_an_answer(stream: trio.abc.Stream, _: Request) -> None:
    """Close the connection within the response."""
    await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    await stream.aclose()


def one_after_the_other(*behaviours: Behaviour) -> Behaviour:
    """Return a behaviour that uses the next of these for each request, and the last one for all further ones."""
    ahead: Iterator[Behaviour] = iter(behaviours)
    current = [next(ahead)]

    async def behave(stream: trio.abc.Stream, request: Request) -> None:
        behaviour = current[0]
        current[0] = next(ahead, behaviour)
        await behaviour(stream, request)

    return behave


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_retries, "_FIRST_RETRY_DELAY_S", 0.001)


def client_of(server: Receiver, **options: Any) -> AsyncDeskwire:
    return AsyncDeskwire("sk_1", base_url=f"http://127.0.0.1:{server.port}", **options)


@pytest.fixture
def sent() -> Callable[..., Any]:
    """Return a function that posts a message to a server with these behaviours, and returns server and result."""

    async def send(*behaviours: Behaviour, **keywords: Any) -> tuple[Receiver, Any]:
        async with (
            serving(one_after_the_other(*behaviours)) as server,
            client_of(server, **keywords.pop("options", {})) as client,
        ):
            try:
                return server, await client.messages.create("cnv_1", text="Hello", **keywords)
            except Exception as error:  # noqa: BLE001  # the test looks at it
                return server, error

    return send


PASSING: Final = {
    "429": problem("429 Too Many Requests", "rate_limited", "Retry-After: 0"),
    "503": problem("503 Service Unavailable", "overloaded", "Retry-After: 0"),
    "503 after a commit": problem("503 Service Unavailable", "outcome_unknown"),
    "500": problem("500 Internal Server Error", "internal_error"),
    "502 of a proxy": answering("502 Bad Gateway", b"<html>"),
    "504 of a proxy": answering("504 Gateway Timeout"),
    "409 in progress": problem("409 Conflict", "idempotency_in_progress", "Retry-After: 0"),
    "no response": hang_up,
    "half a response": half_an_answer,
}


@pytest.mark.parametrize("failure", PASSING.values(), ids=PASSING)
async def test_a_failure_that_passes_is_repeated_under_the_same_key(
    failure: Behaviour, sent: Callable[..., Any]
) -> None:
    server, result = await sent(failure, failure, OK)
    assert result == MESSAGE
    keys = {each.headers["Idempotency-Key"] for each in server.requests}
    assert len(server.requests) == 3
    assert len(keys) == 1
    assert {each.body for each in server.requests} == {b'{"text":"Hello"}'}


async def test_a_key_of_the_caller_is_kept(sent: Callable[..., Any]) -> None:
    server, _ = await sent(hang_up, OK, idempotency_key="order-1001")
    assert [each.headers["Idempotency-Key"] for each in server.requests] == ["order-1001"] * 2


async def test_two_calls_have_two_keys(sent: Callable[..., Any]) -> None:
    keys = {(await sent(OK))[0].requests[0].headers["Idempotency-Key"] for _ in range(2)}
    assert len(keys) == 2


LASTING: Final = {
    "400": problem("400 Bad Request", "malformed_json"),
    "401": problem("401 Unauthorized", "invalid_credential"),
    "409": problem("409 Conflict", "conversation_closed"),
    "422": problem("422 Unprocessable Content", "validation_failed"),
    "a long pause": problem("429 Too Many Requests", "rate_limited", "Retry-After: 3600"),
}


@pytest.mark.parametrize("failure", LASTING.values(), ids=LASTING)
async def test_a_failure_that_lasts_is_raised_at_once(failure: Behaviour, sent: Callable[..., Any]) -> None:
    server, result = await sent(failure, OK)
    assert isinstance(result, APIError)
    assert result.request_id == "req_1"
    assert len(server.requests) == 1


async def test_the_last_failure_is_raised_after_all_retries(sent: Callable[..., Any]) -> None:
    server, result = await sent(PASSING["503"], options={"max_retries": 2})
    assert isinstance(result, ServiceUnavailable)
    assert result.retry_after == 0
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (hang_up, ConnectionFailed),
        (PASSING["502 of a proxy"], ServerError),
        (PASSING["503 after a commit"], ServerError),
    ],
)
async def test_a_post_without_a_key_is_not_repeated_if_it_may_have_been_carried_out(
    failure: Behaviour, kind: type[Exception]
) -> None:
    async with serving(failure) as server, client_of(server) as client:
        with pytest.raises(kind):
            await client.webhooks.test("whk_1")
    assert len(server.requests) == 1


async def test_a_post_without_a_key_is_repeated_if_it_was_refused_for_now() -> None:
    behaviour = one_after_the_other(PASSING["429"], PASSING["503"], OK)
    async with serving(behaviour) as server, client_of(server) as client:
        assert await client.webhooks.test("whk_1") == MESSAGE
    assert len(server.requests) == 3
    assert "Idempotency-Key" not in server.requests[0].headers


async def test_a_service_that_is_away_was_not_reached() -> None:
    async with serving(OK) as server:
        pass
    async with client_of(server, max_retries=1) as client:
        with pytest.raises(ConnectionFailed) as failed:
            await client.webhooks.test("whk_1")
    assert not failed.value.sent


async def test_a_response_that_does_not_come_is_a_timeout() -> None:
    async def wait(_stream: trio.abc.Stream, _request: Request) -> None:
        await trio.sleep_forever()

    async with serving(wait) as server, client_of(server, timeout=0.2, max_retries=0) as client:
        with pytest.raises(Timeout) as failed:
            await client.messages.create("cnv_1", text="Hello")
    assert failed.value.sent


async def test_a_header_that_http_does_not_allow_is_refused_once(sent: Callable[..., Any]) -> None:
    server, result = await sent(OK, idempotency_key="a\nb")
    assert type(result) is DeskwireError
    assert "does not allow" in str(result)
    assert "sk_1" not in str(result)
    assert server.requests == []


async def test_an_open_file_is_sent_whole_on_each_attempt(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"content of the file")
    async with (
        serving(one_after_the_other(hang_up, PASSING["503"], OK)) as server,
        client_of(server) as client,
    ):
        with (tmp_path / "a.txt").open("rb") as file:
            await client.uploads.create(file=file)
    assert [b"content of the file" in each.body for each in server.requests] == [True] * 3


async def test_the_synchronous_client_repeats_as_well() -> None:
    async with serving(one_after_the_other(hang_up, PASSING["503"], OK)) as server:
        with Deskwire("sk_1", base_url=f"http://127.0.0.1:{server.port}") as client:
            assert await in_thread(lambda: client.messages.create("cnv_1", text="Hello")) == MESSAGE
    assert len({each.headers["Idempotency-Key"] for each in server.requests}) == 1


async def test_the_page_of_a_proxy_is_no_response(sent: Callable[..., Any]) -> None:
    _, result = await sent(answering("200 OK", b"<html>Sign in</html>"))
    assert isinstance(result, InvalidResponse)
    assert "Sign in" in str(result)


async def test_unknown_fields_and_values_are_handed_on(sent: Callable[..., Any]) -> None:
    newer = {**MESSAGE, "mood": {"value": 7}, "author": {"type": "oracle", "id": None, "name": None}}
    _, result = await sent(answering("200 OK", json.dumps(newer).encode()))
    assert result == newer
    assert json.loads(json.dumps(result)) == result


@pytest.mark.parametrize("attempt", range(6))
def test_the_delay_grows_to_a_limit_with_jitter(attempt: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_retries, "_FIRST_RETRY_DELAY_S", 0.5)
    longest = min(8, 0.5 * 2**attempt)
    delays = {retry_delay(SdkRequest("GET", "/"), ConnectionFailed("x"), attempt, 9) for _ in range(50)}
    assert all(longest / 2 <= each <= longest for each in delays if each is not None)
    assert len(delays) > 40


def test_the_delay_is_at_least_the_one_that_the_service_asks_for() -> None:
    refused = error_of(429, {"Retry-After": "7"}, b"")
    delay = retry_delay(SdkRequest("POST", "/"), refused, 0, 1)
    assert delay is not None
    assert 7 <= delay < 9


def test_lines_that_can_be_read_once_are_not_sent_again() -> None:
    refused = error_of(429, {"Retry-After": "0"}, b"")
    lines = [b"{}"]
    assert retry_delay(SdkRequest("POST", "/", lines=lines), refused, 0, 1) is not None
    assert retry_delay(SdkRequest("POST", "/", lines=iter(lines)), refused, 0, 1) is None
