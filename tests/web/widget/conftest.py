"""Windows of a host's site for the tests of the widget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser

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
