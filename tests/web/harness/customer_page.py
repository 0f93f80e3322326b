"""A website with a user interface of its own for customers: pages on another origin that run `customer.js`."""

from __future__ import annotations

import functools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import jwt
from playwright.sync_api import BrowserContext, Page, Request

from tests.support.root import ROOT
from tests.web.harness.stage import Stage

_PATIENCE_S: Final = 60.0
_MODULES: Final = ROOT / "http/deskwire/http/pages/widget"
_PAGE: Final = b"""<!doctype html><html lang="en"><title>Shop</title><link rel="icon" href="data:,"><script type="module">
import { createCustomer } from "/customer.js";
const identity = (jwt) => jwt === undefined ? null : async () => jwt;
window.create = (options, jwt) => {
  window.customer = createCustomer({ ...options, identity: identity(jwt) });
};
window.identify = (jwt) => customer.identify(identity(jwt));
</script>"""
# A page of the host with a frame of another site, and the port to the host's storage.
_HOST: Final = b"""<!doctype html><html lang="en"><title>Host</title><link rel="icon" href="data:,"><script type="module">
import { serveStorage } from "/host-storage.js";
const wanted = new URLSearchParams(location.search);
addEventListener("message", ({ data, ports }) => data === "storage" && serveStorage(ports[0], wanted.get("channel")));
const frame = document.createElement("iframe");
frame.src = wanted.get("frame");
document.body.append(frame);
</script><body>"""
_FIELDS: Final = """() => {
  const { me, connection, storage, problem, unread, open, conversations, messages, outbox, typing } = customer.state;
  return {
    me, connection, storage, problem, unread, open, conversations: [...conversations.values()],
    messages: Object.fromEntries([...messages].map(([id, all]) => [id, all.map(({ text }) => text)])),
    outbox: outbox.map(({ text, state, problem }) => ({ text, state, code: problem?.code ?? null })), typing: Object.fromEntries(typing),
  };
}"""


class _Handler(SimpleHTTPRequestHandler):
    pages: Mapping[str, bytes] = {}

    def do_GET(self) -> None:
        """Send a page or a module."""
        page = self.pages.get(self.path.partition("?")[0])
        if page is None:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)
        return None

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@dataclass
class Site:
    """A website, and a channel of the service for it.

    Args:
        port: of the website, which is reached as `127.0.0.1` and, as another site, as `localhost`.
        pages: the website's pages by path.
    """

    stage: Stage
    port: int
    channel: Mapping[str, Any]
    pages: dict[str, bytes]

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def identity(self, user_id: str, **claims: Any) -> str:
        """Return a signed identity of a customer, as the website's backend makes it."""
        now = int(time.time())
        known = {"sub": user_id, "aud": self.channel["id"], "exp": now + 3600, **claims}
        return jwt.encode(known, self.channel["identity"]["secret"], algorithm="HS256")

    def conversations(self) -> list[dict[str, Any]]:
        """Return the conversations of the channel, oldest first, as agents have them."""
        found = self.stage.owner.get("/conversations", params={"limit": "100"}).raise_for_status().json()
        mine = [each for each in found["items"] if each.get("channelId") == self.channel["id"]]
        return sorted(mine, key=lambda each: str(each["id"]))

    def threads(self) -> list[list[str]]:
        """Return the texts of each of these conversations."""
        return [self.stage.messages(each) for each in self.conversations()]

    def answer(self, conversation: Mapping[str, Any], text: str) -> dict[str, Any]:
        """Post a message of an agent, and return it."""
        path = f"/conversations/{conversation['id']}/messages"
        said: dict[str, Any] = self.stage.owner.post(path, json={"text": text}).raise_for_status().json()
        return said


@contextmanager
def opened_site(stage: Stage, **channel: Any) -> Iterator[Site]:
    """Serve a website, with a channel of its own."""
    pages = {"/page": _PAGE, "/host": _HOST}
    kind = type("Handler", (_Handler,), {"pages": pages})
    handler = functools.partial(kind, directory=str(_MODULES))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, name="a website")
    thread.start()
    try:
        origins = ["http://127.0.0.1", "http://localhost"]
        body = {"name": "Shop", "origins": origins, "identity": {"mode": "optional"}, **channel}
        made = stage.owner.post("/channels", json=body).raise_for_status().json()
        yield Site(stage, server.server_port, made, pages)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class CustomerPage:
    """A page of the website in a browser.

    Args:
        calls: the calls of the page, such as `GET stream`.
        errors: exceptions of the page.
    """

    site: Site
    page: Page
    calls: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._note)

    def load(self, identity: str | None = None, **options: Any) -> None:
        """Open the page without a call; `identity` is the token that its identity function returns, if it has one."""
        self.page.goto(f"{self.site.origin}/page")
        self.create(identity, **options)

    def create(self, identity: str | None = None, **options: Any) -> None:
        """Make the customer's side in the open page."""
        self.page.wait_for_function("() => window.create")
        given = {"baseUrl": self.site.stage.url, "channelId": self.site.channel["id"], **options}
        self.page.evaluate("([options, jwt]) => create(options, jwt ?? undefined)", [given, identity])

    def start(self, identity: str | None = None, *, passive: bool = False, **options: Any) -> None:
        """Open the page and start."""
        self.load(identity, **options)
        self.run("customer.start({ passive })", passive=passive)

    def run(self, expression: str, **values: Any) -> Any:
        """Evaluate an expression with these variables, and await its value."""
        return self.page.evaluate(f"async ({{ {', '.join(values)} }}) => await ({expression})", values)

    def send(self, text: str, conversation: str | None = None) -> dict[str, str]:
        """Send a message, and return its ids once it is kept."""
        kept: dict[str, str] = self.run(
            "customer.send({ conversation, text })", conversation=conversation, text=text
        )
        return kept

    @property
    def state(self) -> dict[str, Any]:
        """The state, with texts in place of messages."""
        found: dict[str, Any] = self.page.evaluate(_FIELDS)
        return found

    def wait_for(self, condition: str, **values: Any) -> None:
        """Wait until an expression of `state` and these variables is true."""
        names = ", ".join(["state", *values])
        script = f"(values) => {{ const {{ {names} }} = {{ ...values, state: customer.state }}; return {condition}; }}"
        self.page.wait_for_function(script, arg=values, timeout=60_000)

    def wait_until_sent(self) -> None:
        """Wait until the outbox is empty."""
        self.wait_for("state.outbox.length === 0 && state.me")

    def _note(self, request: Request) -> None:
        _, found, path = request.url.partition("/v3/customer/")
        if found:
            self.calls.append(f"{request.method} {path.partition('?')[0]}")


Tab = Callable[[], CustomerPage]
"""Opens a tab of one browser profile."""


def opened_page(site: Site, context: BrowserContext) -> CustomerPage:
    """Open a page of the website in a browser's context."""
    return CustomerPage(site, context.new_page())


def stored_records(page: Page) -> list[Any]:
    """Return the keys of everything that the page's origin has stored."""
    script = """async () => {
      const found = [];
      for (const { name } of await indexedDB.databases()) {
        const database = await new Promise((done) => (indexedDB.open(name).onsuccess = ({ target }) => done(target.result)));
        for (const store of database.objectStoreNames) found.push(...await new Promise((done) => (database.transaction(store).objectStore(store).getAllKeys().onsuccess = ({ target }) => done(target.result))));
        database.close();
      }
      return [...found, ...Object.keys(localStorage), ...Object.keys(sessionStorage)];
    }"""
    found: list[Any] = json.loads(json.dumps(page.evaluate(script)))
    return found


def eventually(page: CustomerPage, look: Callable[[], object], value: object) -> None:
    """Poll the service until it returns this value, because the page sends asynchronously and waits out the limit of messages."""
    give_up_at = time.monotonic() + _PATIENCE_S
    while (seen := look()) != value:
        if time.monotonic() > give_up_at:
            raise AssertionError(f"{seen!r} is not {value!r}")
        page.page.wait_for_timeout(50)
