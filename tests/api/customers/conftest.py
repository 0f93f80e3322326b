"""Browsers of customers, which are closed after each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from tests.api.customers.browsing import Visit
from tests.support.api.customers import Browser, make_channel
from tests.support.api.service import Service


@pytest.fixture
async def visit(service: Service) -> AsyncIterator[Visit]:
    """Yield a function that returns the browser of a visitor with a session, in a new channel or in a given one."""
    async with AsyncExitStack() as stack:

        async def opened(known: dict[str, object] | None = None, **channel: object) -> Browser:
            used = known or await make_channel(service, **channel)
            browser = await stack.enter_async_context(Browser(service, used))
            answer = await browser.start()
            assert answer.status_code == 200, answer.text
            return browser

        yield opened
