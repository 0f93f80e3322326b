"""Tabs of one browser with the panel, each on a page of a host or on the service's own page."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import jwt
from playwright.sync_api import Browser, BrowserContext, Frame, FrameLocator, Locator, Page, expect

from tests.web.harness.host_site import HostSite
from tests.web.harness.stage import Stage
from tests.web.harness.widget import CHANNEL

DAY_MS: Final = 86_400_000
PLACES: Final = ("another site", "same site", "own page")
"""Where the panel is: in a frame of a host on another site, where it has no storage; on the same site; on the service's page."""
_SHIFT: Final = """(() => {
  const real = Date;
  const now = () => real.now() + (SHIFT);
  globalThis.Date = new Proxy(real, {
    construct: (target, given) => (given.length ? new target(...given) : new target(now())),
    get: (target, name) => (name === "now" ? now : target[name]),
  });
})();"""
_STORED: Final = """async () => {
  const found = [];
  for (const place of ["localStorage", "sessionStorage"]) try { found.push(...Object.entries(globalThis[place])); } catch {}
  let databases = [];
  try { databases = await indexedDB.databases(); } catch {}
  for (const { name } of databases) {
    const database = await new Promise((done) => (indexedDB.open(name).onsuccess = ({ target }) => done(target.result)));
    for (const store of database.objectStoreNames) found.push(...await new Promise((done) => (database.transaction(store).objectStore(store).getAll().onsuccess = ({ target }) => done(target.result))));
    database.close();
  }
  return JSON.stringify(found);
}"""
"""Returns all that the origin of a page or frame has stored, as a text."""


@dataclass
class Computer:
    """A browser profile of customers, and a channel that its pages show.

    Args:
        place: one of `PLACES`.
        shift_ms: how far the computer's clock is ahead.
        errors: exceptions of all pages and frames.
    """

    stage: Stage
    context: BrowserContext
    site: HostSite
    channel: dict[str, Any]
    place: str
    shift_ms: int = 0
    errors: list[str] = field(default_factory=list)

    def tab(self, path: str = "") -> PanelTab:
        """Open a tab with the panel."""
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        tab = PanelTab(self, page)
        tab.visit(path)
        return tab

    def identity(self, user_id: str) -> str:
        """Return a signed identity of a customer."""
        now = int(time.time())
        claims = {"sub": user_id, "aud": self.channel["id"], "iat": now, "exp": now + 3600}
        return jwt.encode(claims, self.channel["identity"]["secret"], algorithm="HS256")

    def conversations(self) -> list[dict[str, Any]]:
        """Return the conversations of the channel by the desk's API, oldest first."""
        found = self.stage.owner.get("/conversations", params={"limit": "100"}).raise_for_status().json()
        mine = [each for each in found["items"] if each.get("channelId") == self.channel["id"]]
        return sorted(mine, key=lambda each: str(each["id"]))

    def thread(self) -> list[str]:
        """Return the texts of the only conversation by the desk's API, oldest first."""
        (conversation,) = self.conversations()
        return self.stage.messages(conversation)

    def feed(self) -> list[str]:
        """Return the texts of the channel's messages by the feed of events, oldest first."""
        ids = {each["id"] for each in self.conversations()}
        texts: list[str] = []
        params: dict[str, str] = {"types": "message.created", "limit": "200"}
        while True:
            page = self.stage.s2s.get("/s2s/events", params=params).raise_for_status().json()
            data = [each["data"] for each in page["items"]]
            texts += [each["message"]["text"] for each in data if each["conversation"]["id"] in ids]
            if page["nextCursor"] is None:
                return texts
            params["cursor"] = page["nextCursor"]


@dataclass
class PanelTab:
    """A tab with the panel."""

    computer: Computer
    page: Page

    @property
    def view(self) -> FrameLocator | Page:
        """The content of the panel."""
        if self.computer.place == "own page":
            return self.page
        return self.page.frame_locator("deskwire-widget iframe")

    @property
    def frame(self) -> Frame:
        """The frame of the panel."""
        (found,) = [each for each in self.page.frames if f"/widget/{self.computer.channel['id']}" in each.url]
        return found

    @property
    def box(self) -> Locator:
        """The text field."""
        return self.view.locator("textarea").last

    @property
    def log(self) -> Locator:
        """The messages of the open conversation."""
        return self.view.get_by_role("log")

    def visit(self, path: str = "") -> None:
        """Load the page and open the panel, and in it the newest conversation, if there is one."""
        stage, site, computer = self.computer.stage, self.computer.site, self.computer
        address = f"{stage.url}/widget/{computer.channel['id']}"
        if computer.place == "own page":
            self.page.goto(address)
        else:
            site.loader = f"{address}.js"
            host = (
                site.url if computer.place == "another site" else site.url.replace("localhost", "127.0.0.1")
            )
            self.page.goto(f"{host}/{path}")
            self.page.locator("deskwire-widget button").click()
        row = self.view.get_by_role("listitem").first
        expect(row.or_(self.box).first).to_be_visible()
        if row.is_visible():
            # Not by the mouse: of a tab in the background, the browser does not always pass clicks on to a new frame of another site.
            row.get_by_role("button").dispatch_event("click")
        expect(self.box).to_be_visible()

    def say(self, text: str) -> None:
        """Write a message, and send it; return once the panel shows it as kept, because the field is empty."""
        self.box.fill(text)
        self.box.press("Enter")
        expect(self.box).to_have_value("")

    def shown(self) -> list[str]:
        """Return the texts of the whole conversation, oldest first."""
        earlier = self.view.get_by_role("button", name="Show earlier messages")
        while earlier.is_visible():
            count = self.log.locator("article").count()
            earlier.click()
            for _ in range(100):
                if self.log.locator("article").count() > count or not earlier.is_visible():
                    break
                self.page.wait_for_timeout(50)
        texts: list[str] = self.log.locator("article .text").all_inner_texts()
        return texts

    def stored(self) -> str:
        """Return all that the panel's and the page's origins have stored."""
        return str(self.frame.evaluate(_STORED)) + str(self.page.evaluate(_STORED))


@contextmanager
def computer(
    browser: Browser, stage: Stage, site: HostSite, place: str, *, shift_ms: int = 0, **channel: Any
) -> Iterator[Computer]:
    """Open a browser profile, with a channel of its own. Fails at the end if a page had an exception."""
    body = {**CHANNEL, "origins": ["http://localhost", "http://127.0.0.1"], "identity": {"mode": "optional"}}
    made = stage.s2s.post("/channels", json={**body, **channel}).raise_for_status().json()
    context = browser.new_context(viewport={"width": 1000, "height": 700}, locale="en-GB")
    if shift_ms:
        context.add_init_script(_SHIFT.replace("SHIFT", str(shift_ms)))
    try:
        one = Computer(stage, context, site, made, place, shift_ms)
        yield one
        assert one.errors == []
    finally:
        context.close()
