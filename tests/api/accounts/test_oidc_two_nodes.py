"""Sign-in at the published `oidc-provider` of npm with two nodes on one database: its logout counts on both."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.support.api.agent_stream import Page
from tests.support.api.openid import CLIENT_ID, SECRET, Browser, browsing, provider
from tests.support.api.openid_npm import NpmProvider, ProviderPages, npm_provider, provider_pages
from tests.support.api.service import Service, running
from tests.support.deadlines import fail_after_idle
from tests.support.sockets.server_process import free_port


@dataclass
class Nodes:
    """Two nodes, and the provider, which reports logouts to the first."""

    provider: NpmProvider
    first: Service
    second: Service


@dataclass
class Agent:
    """A person who is signed in at one node, with an open stream there."""

    browser: Browser
    pages: ProviderPages
    stream: Page


@asynccontextmanager
async def serving(folder: Path, url: str, *, sid: bool) -> AsyncIterator[Nodes]:
    """Run both nodes and the provider."""
    ports = (free_port(), free_port())
    with npm_provider(CLIENT_ID, SECRET, [f"http://127.0.0.1:{port}" for port in ports], sid=sid) as idp:
        settings: dict[str, Any] = {
            "database_url": url,
            "files": "database",
            "oidc_named": (provider(folder / "secrets", idp.issuer),),
        }
        for name in ("a", "b"):
            (folder / name).mkdir()
        async with running(folder / "a", node="a", port=ports[0], **settings) as a:
            for name in ("secret", "demo.json"):
                shutil.copy(folder / "a" / name, folder / "b" / name)
            async with running(folder / "b", node="b", port=ports[1], **settings) as b:
                yield Nodes(idp, a, b)


async def signed_in(stack: AsyncExitStack, at: Nodes, node: Service) -> Agent:
    """Sign in the demo's owner at a node, in a new browser, and open the stream."""
    browser = await stack.enter_async_context(browsing(node))
    pages = await stack.enter_async_context(provider_pages(at.provider))
    await browser.come_back(await pages.sign_in(await browser.start(), "olga"))
    cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    headers = {"Cookie": cookies, "Sec-Fetch-Site": "same-origin", "project": node.demo["projectId"]}
    wire = await trio.open_tcp_stream("127.0.0.1", int(node.url.rpartition(":")[2]))
    stream = Page(await stack.enter_async_context(wire))
    await stream.open("/v3/stream", headers)
    await stream.next("hello")
    return Agent(browser, pages, stream)


@pytest.mark.parametrize("sid", [True, False])
async def test_logout_that_is_reported_to_one_node_ends_the_session_at_the_other(
    tmp_path: Path, postgres_url: str, sid: bool
) -> None:
    async with serving(tmp_path, postgres_url, sid=sid) as at, AsyncExitStack() as stack:
        at.provider.person("olga", email=at.first.demo["user"]["email"], email_verified=True)
        here, there = await signed_in(stack, at, at.first), await signed_in(stack, at, at.second)
        await there.pages.sign_out()
        assert at.provider.output() == "reported"
        with fail_after_idle(1):
            assert await there.stream.bye() == "session_ended"
        assert (await there.browser.session())["user"] is None
        if not sid:  # the report names the person alone
            with fail_after_idle(1):
                assert await here.stream.bye() == "session_ended"
        assert ((await here.browser.session())["user"] is None) is not sid
