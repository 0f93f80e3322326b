"""The pages for frameworks: their files are saved as printed and run against a real service.

FastAPI and Django run themselves. Next.js's route handlers run as functions, Go as a program. Of Rails and Laravel the
plain classes run, and the files that need the framework are checked for syntax.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import trio

from deskwire.engine.webhooks.signature import signature_header
from tests.clients.generating import go
from tests.docs.pages import blocks
from tests.examples.languages import _GO, EXAMPLES, GO_CACHE
from tests.examples.running import listening, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.root import ROOT
from tests.support.sockets.server_process import LOOK_S, Server, environment, free_port

pytestmark = pytest.mark.long

HOSTS: Final = Path(__file__).parent / "hosts"


def _module(*names: str) -> bool:
    return all(importlib.util.find_spec(name) is not None for name in names)


def _rows(table: str) -> Callable[[Path], int]:
    def count(folder: Path) -> int:
        with closing(sqlite3.connect(folder / "support.db", timeout=30)) as db:
            found: tuple[int] = db.execute(f"SELECT count(*) FROM {table}").fetchone()
        return found[0]

    return count


def _files(folder: Path) -> int:
    return len(list((folder / "deskwire-inbox").glob("evt_*.json")))


@dataclass(frozen=True)
class Framework:
    """How a page's files become a server.

    Args:
        at_hand: whether this machine can run it.
        copies: files that the page says to copy, and those of the host, by their place.
        command: the command of the server, with `{port}`.
        stored: the number of stored events.
        checked: the command that checks the syntax of files that only the framework can run.
    """

    at_hand: bool
    copies: dict[str, Path]
    command: tuple[str, ...]
    stored: Callable[[Path], int]
    checked: tuple[str, ...] = ()


FRAMEWORKS: Final = {
    "django": Framework(
        _module("django"),
        {"support/verify.py": EXAMPLES / "verify.py", "host.py": HOSTS / "django_host.py"},
        (sys.executable, "host.py", "{port}"),
        _rows("support_deskwireevent"),
    ),
    "fastapi": Framework(
        _module("fastapi", "uvicorn", "python_multipart"),
        {"verify.py": EXAMPLES / "verify.py", "host.py": HOSTS / "fastapi_host.py"},
        (sys.executable, "host.py", "{port}"),
        _rows("events"),
    ),
    "rails": Framework(
        shutil.which("ruby") is not None,
        {"lib/verify.rb": EXAMPLES / "verify.rb", "host.rb": HOSTS / "rails_host.rb"},
        ("ruby", "-w", "host.rb", "{port}"),
        _files,
        ("ruby", "-wc"),
    ),
    "laravel": Framework(
        shutil.which("php") is not None,
        {"verify.php": EXAMPLES / "verify.php", "host.php": HOSTS / "laravel_host.php"},
        ("php", "-S", "127.0.0.1:{port}", "host.php"),
        _files,
        ("php", "-l"),
    ),
    "nextjs": Framework(
        shutil.which("node") is not None,
        {
            "lib/verify.mjs": EXAMPLES / "verify.mjs",
            "lib/session.mjs": HOSTS / "session.mjs",
            "host.mjs": HOSTS / "nextjs_host.mjs",
        },
        ("node", "host.mjs", "{port}"),
        _files,
    ),
    "go": Framework(
        _module("go"),
        {"host.go": HOSTS / "host.go", "verify.go": EXAMPLES / "verify.go"},
        ("./program", "{port}"),
        _files,
    ),
}


def save(page: str, folder: Path) -> list[Path]:
    """Save the files of a page, and copy those that it names; return the page's own."""
    own = []
    for block in blocks(ROOT / f"docs/guide/{page}.md"):
        if block.words[1:2] == ("file",):
            path = folder / block.words[2]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
            own.append(path)
    for place, source in FRAMEWORKS[page].copies.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / place)
    return own


def check(framework: Framework, own: list[Path]) -> None:
    """Check the syntax of each file, where the framework itself does not run here."""
    for path in own if framework.checked else ():
        done = subprocess.run([*framework.checked, str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def build(folder: Path) -> None:
    """Compile a program of Go, whose `main` is the host's."""
    verify = folder / "verify.go"
    verify.write_text(verify.read_text().replace("func main() {", "func serve() {"))
    (folder / "go.mod").write_text("module example\n\ngo 1.21\n")
    environ = {**environment(), **_GO, "GOCACHE": str(GO_CACHE), "GOPATH": str(folder / "path")}
    for command in (["vet", "."], ["build", "-o", "program", "."]):
        done = subprocess.run(
            [str(go()), *command], cwd=folder, env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@dataclass
class Shop:
    """A running example, and its service.

    Args:
        secret: the signing secret of its endpoint.
    """

    framework: Framework
    folder: Path
    visitor: httpx.AsyncClient
    service: httpx.AsyncClient
    secret: str
    project: str

    async def post(self, path: str, user: str | None = "u1", **content: Any) -> httpx.Response:
        """Post to the example as this signed-in user."""
        return await self.visitor.post(
            f"/deskwire/{path}", headers={"X-User": user} if user else {}, **content
        )

    async def conversations(self) -> list[dict[str, Any]]:
        """Return the conversations of the service."""
        found: list[dict[str, Any]] = (await self.service.get("/s2s/conversations")).json()["items"]
        return found

    async def texts(self) -> list[tuple[str, str]]:
        """Return type and text of each message of the only conversation."""
        (conversation,) = await self.conversations()
        items = (await self.service.get(f"/s2s/conversations/{conversation['id']}/messages")).json()["items"]
        return [(each["author"]["type"], each["text"]) for each in items]


@asynccontextmanager
async def selling(page: str, folder: Path) -> AsyncIterator[Shop]:
    """Run the example of a page beside a service whose webhooks reach it."""
    framework, port = FRAMEWORKS[page], free_port()
    check(framework, save(page, folder))
    if page == "go":
        build(folder)
    server = Server(folder / "service", "--allow-private-webhooks")
    (folder / "service").mkdir()
    await server.start()
    try:
        key = server.demo()["serverKey"]
        headers = {"Authorization": f"Bearer {key}"}
        url = f"http://127.0.0.1:{port}"
        async with (
            httpx.AsyncClient(
                base_url=f"{server.url}/v3", headers=headers, trust_env=False, timeout=30
            ) as service,
            httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as visitor,
        ):
            endpoint = (await service.post("/s2s/webhooks", json={"url": f"{url}/deskwire/webhooks"})).json()
            environ = {"DESKWIRE_URL": server.url, "DESKWIRE_KEY": key, "WEBHOOK_SECRET": endpoint["secret"]}
            command = [part.format(port=port) for part in framework.command]
            async with running(command, folder, environ):
                await listening(port)
                yield Shop(
                    framework, folder, visitor, service, endpoint["secret"], server.demo()["projectId"]
                )
    finally:
        await server.stop()


@pytest.fixture(params=FRAMEWORKS)
async def shop(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Shop]:
    """The example of each page."""
    page = str(request.param)
    if not FRAMEWORKS[page].at_hand:
        if os.environ.get("CLIENTS") == "required":
            pytest.fail(f"The example for {page} can't be run")
        pytest.skip(
            f"{page}: its language or framework is not installed; `make clients` installs those of Python"
        )
    async with selling(page, tmp_path) as shop:
        yield shop


async def until_stored(shop: Shop, count: int) -> None:
    """Wait until this number of events is stored."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            if shop.framework.stored(shop.folder) == count:
                return
            await trio.sleep(LOOK_S)  # poll: another process writes them


async def test_page_receives_sends_and_authorizes(shop: Shop) -> None:
    """One test for each page, because its service and its program take seconds to start."""
    await sends_each_message_once(shop)
    await authorizes_only_the_own_conversation(shop)
    await stores_each_signed_event_once(shop)


async def sends_each_message_once(shop: Shop) -> None:
    """Repeat messages, leave out the sign-in, and send malformed ones."""
    for _ in range(2):
        assert (
            await shop.post("messages", json={"id": "m1", "text": "Where is my order?"})
        ).status_code == 204
    assert (await shop.post("messages", json={"id": "m2", "text": "Grüße <b>"})).status_code == 204
    assert await shop.texts() == [("contact", "Where is my order?"), ("contact", "Grüße <b>")]
    (conversation,) = await shop.conversations()
    assert conversation["contact"]["userId"] in ("u1", "1")  # Django numbers its users
    assert (await shop.post("messages", None, json={"id": "m3", "text": "x"})).status_code in (302, 401)
    headers = {"Content-Type": "application/json"}
    for body in ("", "{}", '{"id": "x"}'):
        answer = await shop.visitor.post(
            "/deskwire/messages", content=body, headers={**headers, "X-User": "u1"}
        )
        assert answer.status_code in (400, 422), body
    assert len(await shop.texts()) == 2


async def authorizes_only_the_own_conversation(shop: Shop) -> None:
    """Ask for the own channel, for others, as another user, and without a sign-in."""
    (conversation,) = await shop.conversations()
    form = {
        "socket_id": "1.2",
        "channel_name": f"private-conversation-{conversation['id']}",
        "consumerId": "c",
    }
    allowed = await shop.post("auth", data=form)
    assert allowed.status_code == 200
    assert set(allowed.json()) == {"auth"}
    assert (await shop.post("auth", "u2", data=form)).status_code == 403
    assert (await shop.post("auth", None, data=form)).status_code in (302, 401)
    for other in (f"private-project-{shop.project}", "private-contact-u1", "private-conversation-"):
        for user in ("u1", "u2"):
            assert (await shop.post("auth", user, data={**form, "channel_name": other})).status_code == 403


async def stores_each_signed_event_once(shop: Shop) -> None:
    """Wait for the deliveries of the messages, repeat one, and forge one."""
    await until_stored(shop, 3)  # the conversation, and two messages
    event = (await shop.service.get("/s2s/events?limit=1")).json()["items"][0]
    body = json.dumps(event).encode()
    now = int(time.time())
    signature = signature_header([shop.secret], now, body)
    for wanted, value in ((204, signature), (400, ""), (400, signature_header(["whsec_other"], now, body))):
        headers = {"Service-Signature": value, "Content-Type": "application/json"}
        answer = await shop.visitor.post("/deskwire/webhooks", content=body, headers=headers)
        assert answer.status_code == wanted
    assert shop.framework.stored(shop.folder) == 3
