"""The desk in a real browser: Debian's Chromium, driven by Playwright, against a running service.

`make web` and `make web-all` install Playwright and fail where there is no Chromium; all other commands skip these tests.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.description.browser import CHROMIUM

_DRIVER = importlib.util.find_spec("playwright") is not None
if os.environ.get("WEB") == "required" and not (_DRIVER and CHROMIUM):
    raise pytest.UsageError("The desk can't be tried: Chromium (of the system) or Playwright is missing.")

# Folders are ignored as well, because their conftest.py imports Playwright.
collect_ignore_glob = [] if _DRIVER and CHROMIUM else ["*"]

if TYPE_CHECKING or _DRIVER:
    from playwright.sync_api import Browser, Playwright, sync_playwright

    from tests.web.harness.desk import Desk, opened
    from tests.web.harness.stage import Stage, staged

_HERE = Path(__file__).parent

OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--force-color-profile=srgb")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, so that `make test` skips them."""
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker("web")


@pytest.fixture(scope="session")
def driver() -> Iterator[Playwright]:
    """The driver of all browsers: a thread can have one."""
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="session")
def browser(driver: Playwright) -> Iterator[Browser]:
    """A browser shared by all tests; each opens its own windows."""
    browser = driver.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
    yield browser
    browser.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A service for one test."""
    with staged(tmp_path) as stage:
        yield stage


@pytest.fixture(scope="module")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A service shared by the tests of a module; each has its own contacts."""
    with staged(tmp_path_factory.mktemp("shared")) as stage:
        yield stage


@pytest.fixture
def window(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Callable[..., Desk]]:
    """Opens windows: `window(stage, color_scheme="dark")`."""
    if "stage" in request.fixturenames:
        request.getfixturevalue("stage")  # a window reports errors if its service ends first
    with ExitStack() as stack:

        def open_one(stage: Stage, **options: Any) -> Desk:
            entered: AbstractContextManager[Desk] = opened(browser, stage, **options)
            return stack.enter_context(entered)

        yield open_one


@pytest.fixture
def desk(window: Callable[..., Desk], stage: Stage) -> Desk:
    """A window and a service for one test."""
    return window(stage)
