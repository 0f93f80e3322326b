"""The tutorial, walked as printed: its files are saved from the page, its commands run, and two browsers chat."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.docs.pages import blocks
from tests.interop.conftest import node
from tests.support.root import ROOT
from tests.support.sockets.server_process import environment, free_port
from tests.web.harness.desk import Desk
from tests.web.harness.stage import Stage

__all__ = ["node"]

TUTORIAL: Final = ROOT / "docs/tutorial.md"
PUSHER: Final = ROOT / "tests/interop/node_modules/pusher-js"
QUESTION: Final = "Where is my order?"
ANSWER: Final = "It left us today."


@dataclass(frozen=True, slots=True)
class Chat:
    """The running chat of the tutorial: its address, its folder, and a way to open browsers."""

    url: str
    browser: Browser
    stack: ExitStack

    def visit(self) -> Page:
        """Open the page in a browser of its own that has no cookies."""
        context = self.browser.new_context()
        self.stack.callback(context.close)
        page = context.new_page()
        page.goto(self.url)
        return page


def folder(parent: Path, stage: Stage) -> Path:
    """Return the tutorial's empty folder, beside a checkout in which the service was started."""
    checkout = parent / "deskwire"
    checkout.mkdir()
    (checkout / "data").symlink_to(stage.server.directory / "data")
    return parent


def script(port: int) -> str:
    """Return the tutorial's commands after `make run`, with another port.

    npm installs the version that this repository has locked, from the copy on this machine.
    """
    _, *commands = [block.text for block in blocks(TUTORIAL) if block.words == ("sh",)]
    text = "set -euo pipefail\n" + "".join(commands).replace("9000", str(port))
    locked = f"mkdir node_modules && cp -r {PUSHER} node_modules/"
    text, count = re.subn(r"^npm install .* pusher-js@8$", locked, text, flags=re.MULTILINE)
    assert count == 1
    return text.replace("python3 chat.py", "cp ../saved/* . && exec python3 chat.py")


def save_files(parent: Path) -> None:
    """Save each file that the tutorial prints, under the name that its text gives."""
    saved = parent / "saved"
    saved.mkdir()
    text = TUTORIAL.read_text()
    for words in (block for block in blocks(TUTORIAL) if len(block.words) == 2):
        name = Path(words.words[1]).name
        assert re.search(rf"[Ss]ave this as `{name}`|this as `{name}`", text), name
        (saved / name).write_text(words.text)


@contextmanager
def chatting(stage: Stage, parent: Path, browser: Browser) -> Iterator[Chat]:
    """Follow the tutorial up to its running backend."""
    port = free_port()
    save_files(parent)
    process = subprocess.Popen(
        ["bash", "-c", script(port)],
        cwd=folder(parent, stage),
        env={**environment(), "NO_PROXY": "*", "no_proxy": "*"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert "the chat is on" in process.stdout.readline()
        with ExitStack() as stack:
            yield Chat(f"http://127.0.0.1:{port}/", browser, stack)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def chat(node: None, stage: Stage, tmp_path: Path, browser: Browser) -> Iterator[Chat]:
    """The tutorial's backend beside a service."""
    parent = tmp_path / "work"
    parent.mkdir()
    with chatting(stage, parent, browser) as chat:
        yield chat


def write(page: Page, text: str) -> None:
    """Send a message on the customer's page."""
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_role("button", name="Send").click()


@pytest.mark.journey
def test_customer_and_agent_chat_as_the_tutorial_says(chat: Chat, desk: Desk) -> None:
    page = chat.visit()
    write(page, QUESTION)
    log = page.get_by_role("log")
    expect(log).to_contain_text(QUESTION)
    desk.sign_in()
    desk.converse("Visitor")
    expect(desk.said(QUESTION)).to_be_visible()
    desk.box.press_sequentially("It left")
    expect(page.get_by_role("status")).to_contain_text("is typing")
    desk.reply(ANSWER)
    expect(log.get_by_role("listitem").last).to_contain_text(ANSWER)
    write(page, "Thank you! <b>Ada</b>")
    expect(desk.said("Thank you! <b>Ada</b>")).to_be_visible()
    page.reload()
    expect(log.get_by_role("listitem")).to_have_count(3)
    expect(log.get_by_role("listitem").last).to_have_text("Thank you! <b>Ada</b>")


def test_message_written_during_a_break_is_shown_after_it(chat: Chat, stage: Stage) -> None:
    page = chat.visit()
    write(page, QUESTION)
    expect(page.get_by_role("listitem")).to_have_count(1)
    (conversation,) = stage.s2s.get("/s2s/conversations").json()["items"]
    stage.kill()
    stage.start()
    path = f"/s2s/conversations/{conversation['id']}/messages"
    stage.s2s.post(path, json={"text": ANSWER, "author": {"type": "bot"}}).raise_for_status()
    expect(page.get_by_role("listitem").last).to_contain_text(ANSWER, timeout=60_000)


def test_newer_window_takes_over_and_the_older_one_says_so(chat: Chat) -> None:
    page = chat.visit()
    write(page, QUESTION)
    expect(page.get_by_role("listitem")).to_have_count(1)
    page.wait_for_timeout(500)  # the first subscription; a later one takes over from it
    second = page.context.new_page()
    second.goto(chat.url)
    expect(second.get_by_role("listitem")).to_have_count(1)
    expect(page.get_by_role("status")).to_contain_text("open in another window")


def client(chat: Chat) -> httpx.Client:
    """Return a visitor without a browser, with the cookie of the first visit."""
    visitor = chat.stack.enter_context(httpx.Client(base_url=chat.url, trust_env=False))
    assert visitor.get("/").status_code == 200
    return visitor


def test_visitor_reaches_only_the_own_conversation(chat: Chat, stage: Stage) -> None:
    ada, eve = client(chat), client(chat)
    message = {"id": "first", "text": QUESTION}
    assert ada.post("/messages", json=message).status_code == 204
    shown = ada.get("/chat").json()
    channel = f"private-conversation-{shown['conversation']}"
    form = {"socket_id": "1.2", "channel_name": channel, "consumerId": "c"}
    assert eve.get("/chat").json()["messages"] == []
    assert eve.post("/auth", data=form).status_code == 403
    for other in (f"private-project-{stage.demo['projectId']}", "private-conversation-None"):
        assert ada.post("/auth", data={**form, "channel_name": other}).status_code == 403
        assert eve.post("/auth", data={**form, "channel_name": other}).status_code in (403, 404)
    cookie = ada.cookies["chat"]
    forged = eve.cookies["chat"].partition(".")[0] + "." + cookie.partition(".")[2]
    for value in ("", "x", ".", cookie[:-1], forged):
        refused = httpx.get(f"{chat.url}chat", headers={"Cookie": f"chat={value}"}, trust_env=False)
        assert refused.status_code == 403
    assert stage.demo["serverKey"] not in "".join(
        ada.get(path).text for path in ("/", "/chat", "/chat.js", "/pusher.js")
    )


def test_repeated_message_counts_once_and_bad_requests_are_refused(chat: Chat) -> None:
    ada = client(chat)
    for _ in range(2):
        assert ada.post("/messages", json={"id": "first", "text": QUESTION}).status_code == 204
    for _ in range(2):
        assert ada.post("/messages", json={"id": "second", "text": "Hello?"}).status_code == 204
    assert [each["text"] for each in ada.get("/chat").json()["messages"]] == [QUESTION, "Hello?"]
    assert ada.post("/messages", data={"text": "from a form"}).status_code == 415
    json_type = {"Content-Type": "application/json"}
    for body in ("", "[]", "{}", '{"id": "x"}', "\0", "7"):
        assert ada.post("/messages", content=body, headers=json_type).status_code == 400, body
    assert ada.post("/messages", json={"id": "x", "text": ""}).status_code == 422
    assert ada.post("/messages", json={"id": "x", "text": "y" * 70_000}).status_code == 400
    assert ada.get("/../chat.py").status_code == 404
    assert ada.post("/auth", data={"channel_name": ""}).status_code in (400, 403)
