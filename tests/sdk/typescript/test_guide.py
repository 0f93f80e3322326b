"""Every example of the guide runs, and prints what the guide shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
import pytest

from tests.api.description.browser import browsing
from tests.clients.generating import BINARIES, succeed
from tests.docs.pages import blocks
from tests.sdk.typescript.conftest import COMPILER_OPTIONS
from tests.sdk.typescript.jobs_run import Jobs, credentials
from tests.sdk.typescript.page_server import backend
from tests.support.api.service import Service, running
from tests.support.root import ROOT
from tests.support.sockets.server_process import Server, free_port

GUIDE = ROOT / "docs/guide/sdk-typescript.md"
PORT = free_port()
SERVERS = ("receiver", "mirror", "stream")
SESSION = 'const signedIn = async (request: Request) => request.headers.get("customer");\n'
TRY_BACKEND = """
for (const channel of ["private-contact-ada", "private-contact-bob"]) {
  const body = JSON.stringify({ socket_id: "1.2", channel_name: channel, consumerId: "c1" });
  const request = new Request("http://shop.example.com/", { method: "POST", headers: { customer: "ada" }, body });
  const response = await authorize(request);
  console.log(response.status, (await response.text()).includes('"auth"'));
}
"""


def shown(*words: str) -> list[str]:
    """Return the blocks with these words."""
    return [each.text for each in blocks(GUIDE) if each.words == words]


@pytest.fixture(scope="session")
def examples(installed: Path) -> Jobs:
    """The compiled examples."""
    folder = installed / "guide"
    folder.mkdir()
    first, *_ = runs = shown("ts", "run")
    (backend_part,) = shown("ts", "backend")
    programs = {"run": "".join(runs), "backend": first + SESSION + backend_part + TRY_BACKEND}
    programs |= {
        name: first + text.replace("9000", str(PORT))
        for name, text in zip(SERVERS, shown("ts", "serve"), strict=True)
    }
    for name, text in programs.items():
        (folder / f"{name}.ts").write_text(text)
    options = {**COMPILER_OPTIONS, "rootDir": "guide", "outDir": "guide-built"}
    (installed / "tsconfig.guide.json").write_text(
        json.dumps({"compilerOptions": options, "include": ["guide"]})
    )
    succeed([BINARIES / "tsc", "-p", "tsconfig.guide.json"], installed)
    return Jobs(installed / "guide-built")


def environ(server: Server) -> dict[str, str]:
    return {"BASE": server.url, "KEY": server.demo()["serverKey"]}


async def test_the_examples_print_what_the_guide_shows(examples: Jobs, service: Service) -> None:
    printed = await examples.text("run", credentials(service))
    pattern = re.escape("".join(shown("text", "out"))).replace("…", ".*")
    assert re.fullmatch(pattern, printed), printed


async def test_the_receiver_of_the_guide_verifies_a_delivery(
    examples: Jobs, server: Server, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    async with examples.following("receiver", environ(server), tmp_path) as receiver:
        await receiver.until(1, "ready")
        await api.post("/s2s/conversations", json={"contact": {"userId": "u2"}, "message": {"text": "Hi"}})
        await receiver.until(1, "verified message.created 2")
        async with httpx.AsyncClient(trust_env=False) as stranger:
            assert (await stranger.post(f"http://127.0.0.1:{PORT}/", content=b"{}")).status_code == 400


async def test_the_mirror_of_the_guide_follows(
    examples: Jobs, server: Server, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    async with examples.following("mirror", environ(server), tmp_path) as mirror:
        await mirror.until(1, "ready")
        made = (await api.get("/s2s/conversations")).json()["items"][0]
        await api.post(f"/s2s/conversations/{made['id']}/messages", json={"text": "Hi"})
        await mirror.until(1, "mirrored message.created 2")


async def test_the_stream_of_the_guide_prints_messages(
    examples: Jobs, server: Server, api: httpx.AsyncClient, tmp_path: Path
) -> None:
    async with examples.following("stream", environ(server), tmp_path) as stream:
        await stream.until(1, "subscribed")
        await api.post("/s2s/conversations", json={"contact": {"userId": "u2"}, "message": {"text": "Hi"}})
        await stream.until(1, "Hi")


async def test_the_backend_of_the_guide_authorizes_its_customer_alone(
    examples: Jobs, service: Service
) -> None:
    await service.create("ada")
    printed = await examples.text("backend", credentials(service))
    assert printed.splitlines()[-2:] == ["200 true", "403 false"]


async def test_the_page_of_the_guide_shows_messages(installed: Path, tmp_path: Path) -> None:
    for name in ("service", "page", "browser"):
        (tmp_path / name).mkdir()
    page = tmp_path / "page"
    async with running(tmp_path / "service") as service, backend(page) as shop:
        made = await service.create("ada")
        project = (await service.http.get("/s2s/project")).json()
        shop.api, shop.channel = service.http, "private-contact-ada"
        (page / "node_modules").symlink_to(installed / "node_modules")
        (page / "settings.json").write_text(
            json.dumps({"service": service.url, "streamKey": project["streamKey"]})
        )
        (script,) = shown("js", "page")
        html = f'<!doctype html><link rel="icon" href="data:,"><body><script type="module">{script}</script>'
        (page / "page.html").write_text(html)
        async with browsing(tmp_path / "browser") as tab:
            await tab.open(f"{shop.url}/page.html")
            await tab.until("document.title === 'subscribed'")
            await service.say(made, "Hello, Ada")
            await tab.until("document.body.innerText.includes('Hello, Ada')")
            assert tab.complaints == []
