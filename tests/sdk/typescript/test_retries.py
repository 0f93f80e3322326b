"""Retries of the TypeScript SDK, against a server that really fails."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sdk.typescript.failing_server import DROP, SILENT, FailingServer, Reply, failing
from tests.sdk.typescript.jobs_run import Jobs

AT_ONCE = (("Retry-After", "0"),)
PROBLEM = b'{"status": 409, "code": "idempotency_in_progress", "detail": "It is in progress."}'


async def ended(jobs: Jobs, call: str, *script: Reply | str) -> tuple[dict[str, Any], FailingServer]:
    """Make a call; return how it ended, and the server, whose whole script was used."""
    async with failing(script) as server:
        (seen,) = await jobs.run("retries", {"BASE": server.url, "CALL": call})
    assert server.script == []
    return seen, server


async def test_a_creation_is_retried_under_one_key_until_it_succeeds(jobs: Jobs) -> None:
    script: list[Reply | str] = [
        DROP,
        Reply(503, headers=AT_ONCE),
        Reply(429, headers=AT_ONCE),
        Reply(500),
        Reply(200),
    ]
    seen, server = await ended(jobs, "create", *script)
    assert seen == {"result": {}}
    assert len({each["idempotency-key"] for each in server.requests}) == 1
    assert len(server.requests[0]["idempotency-key"]) == 32


async def test_a_creation_that_is_in_progress_is_waited_for(jobs: Jobs) -> None:
    seen, _ = await ended(jobs, "create", Reply(409, PROBLEM, AT_ONCE), Reply(200))
    assert seen == {"result": {}}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 410, 422])
async def test_a_refusal_is_not_retried(jobs: Jobs, status: int) -> None:
    seen, _ = await ended(jobs, "create", Reply(status, b'{"code": "x", "detail": "No."}'))
    assert seen["message"] == f"{status} x: No."


async def test_a_broken_connection_without_retries_is_an_error(jobs: Jobs) -> None:
    seen, _ = await ended(jobs, "never", DROP)
    assert seen["kinds"] == ["ConnectionError"]


async def test_the_page_of_a_proxy_is_an_error_without_a_code(jobs: Jobs) -> None:
    seen, _ = await ended(jobs, "never", Reply(502, b"<h1>Bad Gateway</h1>"))
    assert (seen["name"], seen["message"]) == ("ServerError", "502: <h1>Bad Gateway</h1>")


async def test_a_long_pause_is_left_to_the_caller(jobs: Jobs) -> None:
    seen, _ = await ended(jobs, "read", Reply(429, headers=(("Retry-After", "3600"),)))
    assert (seen["name"], seen["retryAfterS"]) == ("RateLimitedError", 3600)


async def test_a_silent_server_is_given_up_after_the_timeout(jobs: Jobs) -> None:
    seen, _ = await ended(jobs, "slow", SILENT, SILENT)
    assert (seen["name"], seen["kinds"]) == ("TimeoutError", ["ConnectionError", "TimeoutError"])
    assert seen["message"] == "project.get: no response within 50 ms"


async def test_an_abort_ends_a_call_while_it_waits(jobs: Jobs) -> None:
    async with failing([SILENT]) as server:
        (seen,) = await jobs.run("retries", {"BASE": server.url, "CALL": "abort"})
    assert (seen["name"], seen["message"]) == ("Error", "no longer needed")


async def test_a_body_that_can_be_read_once_is_not_sent_again(jobs: Jobs) -> None:
    seen, _ = await ended(jobs, "once", DROP)
    assert seen["kinds"] == ["ConnectionError"]


@pytest.mark.parametrize("body", [b'{"id": "msg_1"}\n', b'{"id": "msg_1"}\n{"id": "ms', b""])
@pytest.mark.parametrize("cut", [True, False])
async def test_a_cut_export_is_an_error(jobs: Jobs, body: bytes, cut: bool) -> None:
    seen, _ = await ended(jobs, "export", Reply(200, body, cut=cut))
    assert seen["name"] == "ExportCutError"


async def test_node_18_has_its_cryptography_in_a_module(jobs: Jobs) -> None:
    async with failing([Reply(200)]) as server:
        options = ("--no-experimental-global-webcrypto",)
        environ = {"BASE": server.url, "CALL": "create"}
        assert await jobs.run("retries", environ, options=options) == [{"result": {}}]
    assert len(server.requests[0]["idempotency-key"]) == 32
