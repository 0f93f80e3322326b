"""A browser window with the desk, which records the errors of its page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Request, expect

from tests.web.harness.stage import Stage

NETWORK: Final = "Failed to load resource"
"""Chromium's errors for failed or refused calls, for `Desk.tolerated`."""
expect.set_options(timeout=20_000)


@dataclass
class Desk:
    """A window with its own cookies and storage.

    Args:
        tolerated: prefixes of errors that the test provokes.
        complaints: errors and warnings of the console, exceptions, and requests to other origins.
    """

    stage: Stage
    context: BrowserContext
    page: Page
    tolerated: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Record the errors of another page of the context."""
        page.on("console", self._note_console)
        page.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        page.on("request", self._note_request)

    def open(self, path: str = "/desk") -> None:
        """Go to a page of the desk."""
        self.page.goto(self.stage.url + path)

    def sign_in(self, email: str | None = None, password: str | None = None) -> None:
        """Sign in, by default as the demo's owner, open the desk, and wait for the list."""
        self.start_session(email, password)
        self.open()
        expect(self.page.get_by_role("region", name="Conversations")).to_be_visible()

    def start_session(self, email: str | None = None, password: str | None = None) -> None:
        """Start a session as the page for it does, which has its own tests."""
        user = self.stage.demo["user"]
        proof = {"email": email or user["email"], "password": password or user["password"]}
        here = {"Sec-Fetch-Site": "same-origin"}
        answer = self.context.request.post(f"{self.stage.url}/v3/auth/session", data=proof, headers=here)
        assert answer.ok, answer.text()

    def view(self, name: str = "All") -> None:
        """Select a view."""
        self.page.get_by_role("navigation", name="Views").get_by_role(
            "link", name=re.compile(rf"^{name}\b")
        ).click()

    def row(self, text: str) -> Locator:
        """Return the row of the list that has this text."""
        return self.page.get_by_role("option").filter(has_text=text)

    def converse(self, text: str) -> None:
        """Open the conversation whose row has this text, among all."""
        self.view()
        self.row(text).click()
        expect(self.box).to_be_visible()

    def rows(self) -> list[str]:
        """Return the text of the rows, line by line, without relative times."""
        fresh = self.page.get_by_role("button", name=re.compile(r"^\d+ new"))
        if fresh.count():
            fresh.first.click()
        texts = self.page.locator("[role=option] .line").all_inner_texts()
        return [re.sub(r"\s+", " ", re.sub(r"\b(now|\d+ (m|h|d|s))\b", "", text)).strip() for text in texts]

    @property
    def log(self) -> Locator:
        """The messages of the open conversation."""
        return self.page.get_by_role("log")

    @property
    def box(self) -> Locator:
        """The text field of the editor."""
        return self.page.locator(".composer textarea")

    def said(self, text: str) -> Locator:
        """Return the messages of the thread with this text."""
        return self.log.locator(".message").filter(has_text=text)

    def reply(self, text: str) -> None:
        """Write a reply and send it."""
        self.box.fill(text)
        self.box.press("Control+Enter")

    def run_command(self, command: str, typed: str = "") -> None:
        """Carry out a command of the palette, by its name or the text that finds it."""
        self.page.keyboard.press("Control+k")
        self.page.keyboard.type(typed or command)
        option = self.page.get_by_role("option", name=command).first
        expect(option).to_have_attribute("aria-selected", "true")  # until then Enter does nothing
        self.page.keyboard.press("Enter")

    def eventually(self, look: Callable[[], object], value: object) -> None:
        """Poll the service until it returns this value, because the desk sends asynchronously."""
        for _ in range(200):
            seen = look()
            if seen == value:
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(f"{seen!r} is not {value!r}")

    def remaining(self) -> list[str]:
        """Return the complaints that the test did not provoke."""
        return [each for each in self.complaints if not each.startswith(tuple(self.tolerated) or ("\0",))]

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            place = message.location.get("url", "").removeprefix(self.stage.url)
            self.complaints.append(f"{message.text} [{place}]" if place else message.text)

    def _note_request(self, request: Request) -> None:
        if not request.url.startswith((self.stage.url, "data:", "blob:")):
            self.complaints.append(f"request to another origin: {request.url}")


_UNDO_SEND: Final = """try { localStorage["deskwire.undoSend"] ??= JSON.stringify("%s") } catch {}"""
"""Sets *Undo send*, unless the test has set it. A page without an address has no storage."""


@contextmanager
def opened(browser: Browser, stage: Stage, *, hold_s: int | None = 0, **options: Any) -> Iterator[Desk]:
    """Open a window; fail at the end if the page has recorded errors.

    Args:
        hold_s: how long a reply is held before it is sent; None for the desk's default.
        options: of Playwright's `new_context`, such as `color_scheme`.
    """
    context = browser.new_context(
        **{"viewport": {"width": 1440, "height": 900}, "locale": "en-GB", **options}
    )
    try:
        if hold_s is not None:
            context.add_init_script(_UNDO_SEND % hold_s)
        desk = Desk(stage, context, context.new_page())
        desk.watch(desk.page)
        yield desk
        complaints = desk.remaining()
        assert complaints == [], complaints
    finally:
        context.close()
