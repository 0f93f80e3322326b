"""Windows of a host's site for the tests of the widget, and pages of a website for those of `customer.js`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.web.harness.customer_page import CustomerPage, Site, Tab, opened_page, opened_site
from tests.web.harness.host_site import HostSite, hosting
from tests.web.harness.stage import Stage
from tests.web.harness.widget import HostWindow, visiting


@pytest.fixture
def host() -> Iterator[HostSite]:
    """A host's site."""
    with hosting() as host:
        yield host


@pytest.fixture
def visit(browser: Browser, shared_stage: Stage, host: HostSite) -> Iterator[Callable[..., HostWindow]]:
    """Opens windows of the site: `visit(color_scheme="dark")`. The tests of a module share a service."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(visiting(browser, shared_stage, host, **options))


@pytest.fixture
def window(visit: Callable[..., HostWindow]) -> HostWindow:
    """One window of the site."""
    return visit()


@pytest.fixture
def site(stage: Stage) -> Iterator[Site]:
    with opened_site(stage) as site:
        yield site


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser profile, with its own storage."""
    context = browser.new_context()
    yield context
    context.close()


@pytest.fixture
def tab(site: Site, context: BrowserContext) -> Iterator[Tab]:
    """Opens tabs of one profile; a test fails on an exception in one of them."""
    tabs: list[CustomerPage] = []

    def open_one() -> CustomerPage:
        tabs.append(opened_page(site, context))
        return tabs[-1]

    yield open_one
    assert [error for each in tabs for error in each.errors] == []
