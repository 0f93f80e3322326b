"""Headless Chromium, driven by its DevTools protocol without a driver or another package."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import trio
from trio_websocket import WebSocketConnection, open_websocket_url

CHROMIUM: Final = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
_OPTIONS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
    "--window-size=1200,1000",
)
_MESSAGE_BYTES: Final = 64 << 20  # a screenshot, or the explorer's script, in one message
_LISTENING: Final = re.compile(rb"DevTools listening on ws://[^:]+:([0-9]+)/")
WAIT_S: Final = 150.0
"""Timeout of each browser operation; seconds are usual, but a test machine may be busy."""


class Tab:
    """A page. `requested` has the URLs that it requested, `complaints` its console messages and errors."""

    def __init__(self, connection: WebSocketConnection) -> None:
        self._connection = connection
        self._last = 0
        self.requested: list[str] = []
        self.complaints: list[str] = []

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol; record the events that arrive before its answer."""
        self._last += 1
        await self._connection.send_message(
            json.dumps({"id": self._last, "method": method, "params": params})
        )
        while True:
            message: dict[str, Any] = json.loads(await self._connection.get_message())
            if message.get("id") == self._last:
                assert "error" not in message, (method, message)
                found: dict[str, Any] = message["result"]
                return found
            self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        match message:
            case {"method": "Network.requestWillBeSent", "params": {"request": {"url": str(url)}}}:
                self.requested.append(url)
            case {"method": "Log.entryAdded", "params": {"entry": {"level": "error", "text": str(text)}}}:
                self.complaints.append(text)
            case {"method": "Runtime.exceptionThrown", "params": {"exceptionDetails": details}}:
                self.complaints.append(json.dumps(details)[:1000])

    async def open(self, url: str) -> None:
        """Go to a page."""
        for domain in ("Network", "Log", "Runtime", "Page"):
            await self.call(f"{domain}.enable")
        await self.call("Page.navigate", url=url)

    async def until(self, script: str) -> Any:
        """Wait until an expression has a value, and return the value."""
        look = f"const look = () => {{ const found = ({script}); found ? done(found) : setTimeout(look, 50); }}; look();"
        with trio.fail_after(WAIT_S):
            answer = await self.call(
                "Runtime.evaluate",
                expression=f"new Promise(done => {{ {look} }})",
                awaitPromise=True,
                returnByValue=True,
            )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def click(self, selector: str) -> None:
        """Click an element once it exists."""
        name = json.dumps(selector)
        await self.until(
            f"!!document.querySelector({name}) && (document.querySelector({name}).click(), true)"
        )

    async def type(self, selector: str, text: str) -> None:
        """Write into a field once it exists."""
        name = json.dumps(selector)
        await self.until(
            f"!!document.querySelector({name}) && (document.querySelector({name}).focus(), true)"
        )
        await self.call("Input.insertText", text=text)

    async def screenshot(self) -> bytes:
        """Return a picture of the page, as PNG."""
        answer = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(answer["data"])


@asynccontextmanager
async def browsing(directory: Path) -> AsyncIterator[Tab]:
    """Yield a tab of a new browser with an empty profile in this directory."""
    assert CHROMIUM is not None
    command = [CHROMIUM, *_OPTIONS, f"--user-data-dir={directory}", "about:blank"]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        async with trio.open_nursery() as nursery:
            with trio.fail_after(WAIT_S):
                port = await _port(process.stderr)
            nursery.start_soon(_drain, process.stderr)
            async with httpx.AsyncClient(trust_env=False, timeout=WAIT_S) as http:
                targets = (await http.get(f"http://127.0.0.1:{port}/json")).json()
            page = next(each for each in targets if each["type"] == "page")
            url = page["webSocketDebuggerUrl"]
            async with open_websocket_url(url, max_message_size=_MESSAGE_BYTES) as connection:
                yield Tab(connection)
            nursery.cancel_scope.cancel()
    finally:
        process.kill()
        with trio.CancelScope(shield=True, deadline=trio.current_time() + WAIT_S):
            await process.wait()


async def _port(output: trio.abc.ReceiveStream) -> str:
    """Return the port of the DevTools protocol, which the browser prints when it starts."""
    said = b""
    async for data in output:
        said += data
        if found := _LISTENING.search(said):
            return found[1].decode()
    raise AssertionError(said.decode())


async def _drain(output: trio.abc.ReceiveStream) -> None:
    async for _ in output:
        pass
