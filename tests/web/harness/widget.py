"""A window of a host's site with the widget, which records errors and the origins of all requests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, FrameLocator, Locator, Page, expect

from tests.web.harness.host_site import HostSite
from tests.web.harness.stage import Stage

CHANNEL: dict[str, Any] = {
    "type": "widget",
    "name": "Shop",
    "origins": ["http://localhost"],
    "look": {
        "colour": "#1f5eff",
        "position": "right",
        "texts": {
            "en": {"title": "Shop support", "greeting": "Hello! See https://shop.example/help."},
            "de": {"title": "Hilfe vom Shop", "greeting": "Hallo!"},
            "ar": {"title": "دعم المتجر", "greeting": "مرحبًا!"},
        },
    },
}
"""A channel that the pages of `HostSite` may show."""
PROOF_DEMANDED = "429 (Too Many Requests)"
"""Chromium's error for a conversation that needs a proof of work: the visitors of all tests come from one network."""
expect.set_options(timeout=20_000)


def make_channel(stage: Stage, **changes: Any) -> str:
    """Create a channel and return its id."""
    made = stage.s2s.post("/channels", json={**CHANNEL, **changes}).raise_for_status().json()
    return str(made["id"])


def conversation_of(stage: Stage, text: str) -> dict[str, Any]:
    """Return the stored conversation with this message."""
    for found in stage.owner.get("/conversations").raise_for_status().json()["items"]:
        messages = stage.messages(found)
        if text in messages:
            return dict(found)
    raise AssertionError(f"no conversation has {text!r}")


@dataclass
class HostWindow:
    """A window with a page of a host.

    Args:
        complaints: errors of the console and exceptions, of the page and of its frames.
        tolerated: parts of errors that the test provokes.
        requested: the addresses of all requests.
    """

    stage: Stage
    site: HostSite
    page: Page
    complaints: list[str] = field(default_factory=list)
    tolerated: list[str] = field(default_factory=lambda: [PROOF_DEMANDED])
    requested: list[str] = field(default_factory=list)

    def open(self, channel: str, query: str = "") -> None:
        """Go to the host's page with the loader of this channel."""
        self.site.loader = f"{self.stage.url}/widget/{channel}.js{query}"
        self.page.goto(self.site.url)

    @property
    def button(self) -> Locator:
        """The widget's button on the host's page."""
        return self.page.locator("deskwire-widget button")

    @property
    def frame(self) -> Locator:
        """The frame of the panel on the host's page."""
        return self.page.locator("deskwire-widget iframe")

    @property
    def panel(self) -> FrameLocator:
        """The content of the panel."""
        return self.page.frame_locator("deskwire-widget iframe")

    @property
    def box(self) -> Locator:
        """The text field of the panel."""
        return self.panel.locator("textarea")

    def say(self, text: str) -> None:
        """Write a message in the panel and send it."""
        self.box.fill(text)
        self.box.press("Enter")

    def log(self) -> Locator:
        """The messages of the open conversation."""
        return self.panel.get_by_role("log")

    def calls(self, source: str, value: object = None) -> Any:
        """Evaluate an expression in the host's page, or call a function with a value."""
        return self.page.evaluate(source, value)

    def note_console(self, message: ConsoleMessage) -> None:
        """Record an error or warning."""
        if message.type in ("error", "warning", "assert"):
            self.complaints.append(f"{message.text} [{message.location.get('url', '')}]")

    def remaining(self) -> list[str]:
        """Return the complaints that the test did not provoke, and requests to a third origin."""
        own = (self.stage.url, self.site.url, "data:", "blob:")
        foreign = [f"request to {each}" for each in self.requested if not each.startswith(own)]
        found = [each for each in self.complaints if not any(part in each for part in self.tolerated)]
        return found + foreign


@contextmanager
def visiting(browser: Browser, stage: Stage, site: HostSite, **options: Any) -> Iterator[HostWindow]:
    """Open a window; fail at the end if it has recorded errors or requests to a third origin.

    Args:
        options: of Playwright's `new_context`, such as `color_scheme`.
    """
    context = browser.new_context(
        **{"viewport": {"width": 1200, "height": 800}, "locale": "en-GB", **options}
    )
    try:
        window = HostWindow(stage, site, context.new_page())
        window.page.on("console", window.note_console)
        window.page.on("pageerror", lambda error: window.complaints.append(f"exception: {error}"))
        window.page.on("request", lambda request: window.requested.append(request.url))
        yield window
        complaints = window.remaining()
        assert complaints == [], complaints
    finally:
        context.close()
