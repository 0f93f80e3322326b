"""Keys that are kept fresh: a file that changes, a URL that is fetched, fails, and comes back."""

from __future__ import annotations

import gzip
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.accounts.identity import provider_keys
from deskwire.engine.accounts.identity.provider_keys import (
    FETCH_INTERVAL_MIN_S,
    FETCH_TIMEOUT_S,
    JWKS_BYTES_MAX,
    BadKeys,
    FileKeys,
    UrlKeys,
    parse_jwks,
)
from deskwire.engine.core.errors import Unavailable
from tests.support.sockets.identity_provider import Signer, jwks

OLD, NEW = Signer("ES256", "old"), Signer("ES256", "new")
URL = "https://provider.test/jwks.json"


class Provider(httpx.AsyncBaseTransport):
    """An identity provider in memory; `answer` is its document, None for no answer at all."""

    def __init__(
        self, answer: bytes | None, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        self.answer = answer
        self.status = status
        self.headers = headers
        self.asked: list[float] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if self.answer is None:
            await trio.sleep_forever()
        assert request.headers["Accept-Encoding"] == "identity"
        stream = httpx.ByteStream(self.answer)
        return httpx.Response(self.status, headers=self.headers, stream=stream)


@asynccontextmanager
async def fetched(provider: Provider, *, keep_s: float = 3_600) -> AsyncIterator[UrlKeys]:
    """Keys from the provider, which are fetched once already if it answers."""
    keys = UrlKeys(
        URL, refresh_s=600, keep_s=keep_s, client=httpx.AsyncClient(transport=provider, timeout=None)
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(keys.run)
        await trio.testing.wait_all_tasks_blocked()
        yield keys
        nursery.cancel_scope.cancel()


async def test_keys_are_fetched_at_the_start_and_again_when_they_are_old(autojump_clock: MockClock) -> None:
    provider = Provider(jwks(OLD))
    async with fetched(provider) as keys:
        assert await keys.find("old", "ES256") is not None
        provider.answer = jwks(NEW)
        await trio.sleep(599)  # virtual time: the mock clock jumps
        assert len(provider.asked) == 1
        await trio.sleep(2)  # virtual time: the mock clock jumps
        assert len(provider.asked) == 2
        assert await keys.find("new", "ES256") is not None
        assert await keys.find("old", "ES256") is None


async def test_rotated_key_is_fetched_when_a_token_names_it(autojump_clock: MockClock) -> None:
    provider = Provider(jwks(OLD))
    async with fetched(provider) as keys:
        await trio.sleep(FETCH_INTERVAL_MIN_S)  # virtual time: the mock clock jumps
        provider.answer = jwks(OLD, NEW)
        assert await keys.find("new", "ES256") is not None
        assert len(provider.asked) == 2


async def test_unknown_key_ids_cost_the_provider_one_fetch_in_half_a_minute(
    autojump_clock: MockClock,
) -> None:
    provider = Provider(jwks(OLD))
    async with fetched(provider) as keys:
        for number in range(120):
            assert await keys.find(f"made up {number}", "ES256") is None
            await trio.sleep(1)  # virtual time: the mock clock jumps
        assert len(provider.asked) <= 120 / FETCH_INTERVAL_MIN_S + 1
        pauses = [after - before for before, after in zip(provider.asked, provider.asked[1:], strict=False)]
        assert min(pauses) >= FETCH_INTERVAL_MIN_S


async def test_key_replaced_under_its_id_is_fetched_at_most_every_half_minute(
    autojump_clock: MockClock,
) -> None:
    provider = Provider(jwks(OLD))
    replaced = Signer("ES256", "old")
    async with fetched(provider) as keys:
        known = await keys.find("old", "ES256")
        assert known is not None
        for _ in range(60):
            assert await keys.find_replaced(known) is None
            await trio.sleep(1)  # virtual time: the mock clock jumps
        assert len(provider.asked) <= 60 / FETCH_INTERVAL_MIN_S + 1
        provider.answer = jwks(replaced)
        await trio.sleep(FETCH_INTERVAL_MIN_S)  # virtual time: the mock clock jumps
        found = await keys.find_replaced(known)
        assert found is not None
        assert found.key == replaced.key.public_key()


async def test_last_good_keys_serve_for_the_set_time_of_an_outage(
    autojump_clock: MockClock,
) -> None:
    provider = Provider(jwks(OLD))
    async with fetched(provider, keep_s=3_600) as keys:
        for answer, status in (
            (b"gone", 500),
            (b"<html>", 200),
            (b'{"keys": []}', 200),
            (b" " * (JWKS_BYTES_MAX + 1), 200),
        ):
            provider.answer, provider.status = answer, status
            await trio.sleep(700)  # virtual time: the mock clock jumps
            assert await keys.find("old", "ES256") is not None
        await trio.sleep(900)  # virtual time: the mock clock jumps
        with pytest.raises(Unavailable) as refused:
            await keys.find("old", "ES256")
        assert refused.value.reason == "signing_keys_unavailable"
        provider.answer, provider.status = jwks(NEW), 200
        await trio.sleep(FETCH_INTERVAL_MIN_S + 1)  # virtual time: the mock clock jumps
        assert await keys.find("new", "ES256") is not None


async def test_provider_that_never_answers_delays_callers_only_briefly(autojump_clock: MockClock) -> None:
    provider = Provider(None)
    async with fetched(provider) as keys:
        before = trio.current_time()
        with pytest.raises(Unavailable):
            await keys.find("old", "ES256")
        assert trio.current_time() - before <= FETCH_TIMEOUT_S
        provider.answer = jwks(OLD)
        await trio.sleep(FETCH_TIMEOUT_S + FETCH_INTERVAL_MIN_S + 1)  # virtual time: the mock clock jumps
        assert await keys.find("old", "ES256") is not None


async def test_a_redirect_is_not_followed(autojump_clock: MockClock) -> None:
    provider = Provider(jwks(OLD), status=302)
    async with fetched(provider) as keys:
        with pytest.raises(Unavailable):
            await keys.find("old", "ES256")


async def test_an_answer_that_grows_when_it_is_unpacked_is_not_unpacked(autojump_clock: MockClock) -> None:
    packed = gzip.compress(jwks(OLD) + b" " * (64 << 20))
    assert len(packed) < JWKS_BYTES_MAX
    async with fetched(Provider(packed, headers={"Content-Encoding": "gzip"})) as keys:
        with pytest.raises(Unavailable):
            await keys.find("old", "ES256")


def replace(path: Path, content: bytes) -> None:
    """Write a file as careful programs do."""
    scratch = path.with_suffix(".new")
    scratch.write_bytes(content)
    os.replace(scratch, path)


async def test_file_is_read_again_when_it_changes_and_a_broken_one_ignored(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    path = tmp_path / "jwks.json"
    path.write_bytes(jwks(OLD))
    keys = FileKeys(path, parse_jwks)
    assert await keys.find("old", "ES256") is not None
    for broken in (b"half a fi", b" " * (JWKS_BYTES_MAX + 1)):
        replace(path, broken)
        await trio.sleep(2)  # virtual time: the mock clock jumps
        assert await keys.find("old", "ES256") is not None
    path.unlink()
    await trio.sleep(2)  # virtual time: the mock clock jumps
    assert await keys.find("old", "ES256") is not None
    replace(path, jwks(NEW))
    await trio.sleep(2)  # virtual time: the mock clock jumps
    assert await keys.find("new", "ES256") is not None
    assert await keys.find("old", "ES256") is None


async def test_missing_file_or_invalid_key_set_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(BadKeys, match="can't be read"):
        FileKeys(tmp_path / "missing", parse_jwks)
    (tmp_path / "wrong").write_text("no keys")
    with pytest.raises(BadKeys, match="no JWK Set"):
        FileKeys(tmp_path / "wrong", parse_jwks)


def test_bounds_equal_those_in_the_guide() -> None:
    assert (provider_keys.FETCH_INTERVAL_MIN_S, provider_keys.FETCH_TIMEOUT_S) == (30.0, 5.0)
