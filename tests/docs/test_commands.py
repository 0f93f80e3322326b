"""The commands in the documents, pasted into a shell beside a real service."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from tests.docs.pages import blocks, guides, name
from tests.support.api.machines import make
from tests.support.api.service import Service, running
from tests.support.api.surveys import refreshed, respond, survey
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.root import ROOT
from tests.support.sockets.server_process import environment

pytestmark = pytest.mark.long

PREAMBLE = "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"
PAGES = [page for page in guides() if any(block.words == ("sh", "run") for block in blocks(page))]
TOOLS = all(map(shutil.which, ("bash", "curl", "python3")))
needs_tools = pytest.mark.skipif(not TOOLS, reason="bash, curl or python3 is not installed")


_RUN: Final = re.compile(r"^```sh run\n(.*?)^```$(?:\n\n```text out\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)

NOT_RUN = {
    "README.md": "its targets are what the suite, the demo's tests and the developer run",
    "docs/quickstart.md": "starts the server that is there already; the stream's client is run by the interop tests",
    "docs/guide/single-sign-on.md": "needs an identity provider; tests/web/test_oidc.py has one",
    "docs/guide/second-factor.md": "needs a person with an authenticator app",
    "docs/tutorial.md": "chats in two browsers; tests/web/test_tutorial.py does that",
    "docs/guide/agents-stream.md": "follows events until it is cut off; the tests of the stream do that",
    "docs/guide/audit.md": "posts to a receiver on the internet; the tests of the audit trail push to one here",
    "docs/guide/backup.md": "needs a recipient of one's own, a systemd, a bucket, and a copy that an upgrade has left",
    "docs/guide/clients.md": "needs Java; `make clients` does that",
    "docs/guide/commands.md": "runs until it is stopped; the tests of `listen` do that",
    "docs/guide/deploy.md": "installs on a machine of its own, and needs an engine and a cluster; the tests of its files say what is tried",
    "docs/guide/examples.md": "runs until it is stopped; the tests of the examples do that",
    "docs/guide/helm.md": "needs a cluster; the tests of the chart lint and render it",
    "docs/guide/importing.md": "asks the services that one leaves, which have an account of one's own",
    "docs/guide/nodes.md": "needs a PostgreSQL of one's own; the tests of `copy`, of the commands and of several nodes have one",
    "docs/guide/operating.md": "installs from the network, and names ids that nobody has; the tests of `operate` make some",
    "docs/guide/retention.md": "starts another server, with settings to watch retention by",
    "docs/guide/sdk-python.md": "installs from a package index; the tests of the SDK run its examples",
    "docs/guide/uploads.md": "settings of the server, not a command",
    "docs/guide/widget-channels.md": "asks for a website of one's own; the tests of the check have one",
}
"""Pages whose commands are not run here, with the reason."""


def test_every_skipped_command_has_a_reason_and_is_valid_shell() -> None:
    shown = {name(page): [each.text for each in blocks(page) if each.words == ("sh",)] for page in guides()}
    assert {page for page, texts in shown.items() if texts} == NOT_RUN.keys()
    for text in (text for texts in shown.values() for text in texts):
        assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0, text


PORT: Final = "9000"
"""The port of the receivers in the documents."""

END: Final = "\x1e"
"""Printed after each block of commands."""


def commands(page: Path, port: int) -> str:
    """Return all commands of a page that are marked to run, with another port for receivers; a refused request fails."""
    shown = "".join(f"{each.commands}printf '\\036\\n'\n" for each in runs(page))
    return PREAMBLE + shown.replace("curl -s ", "curl -sS --fail-with-body ").replace(PORT, str(port))


@dataclass(frozen=True, slots=True)
class Run:
    """A block of commands, and their output on the page: the block right after it, or None."""

    commands: str
    output: str | None


def runs(page: Path) -> list[Run]:
    """Return the commands of a page that are run, in order, each with its output."""
    found = _RUN.findall(page.read_text())
    return [Run(commands, output or None) for commands, output in found]


def agrees(shown: str, printed: str) -> bool:
    """Return whether `printed` matches the shown output, in which `…` stands for anything; white space is ignored.

    After the shown items of a list, `, …]` stands for any number of further items, also none.
    """
    first, *others = ("".join(part.split()) for part in shown.replace(", …]", "…]").split("…"))
    text = "".join(printed.split())
    if not others:
        return text == first
    *middle, last = others
    if not text.startswith(first):
        return False
    at = len(first)
    for part in middle:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return text.endswith(last) and len(text) - len(last) >= at


@pytest.mark.parametrize(
    ("shown", "printed", "agreed"),
    [
        ('{"id": "cnv_…", …, "status": "OPEN", …}', '{"id":"cnv_1","a":1,"status":"OPEN","b":2}\n', True),
        ('{"id": "cnv_…", …, "status": "OPEN", …}', '{"id":"cnv_1","a":1,"status":"CLOSED","b":2}\n', False),
        ("aba…", "ab a ba", True),
        ("ab…ba", "aba", False),
        ("a…b…c", "a b", False),
        ("[]", "[]", True),
        ("[1, …]", "[1]", True),
        ("[1, …]", "[1,2]", True),
        ("[1, …]", "[2,1]", False),
        ("[]", "[] []", False),
    ],
)
def test_shown_output_matches_printed_output(shown: str, printed: str, agreed: bool) -> None:
    assert agrees(shown, printed) is agreed


def checkout(folder: Path, service: Service) -> Path:
    """Return a folder that looks like a checkout in which the service was started."""
    folder.mkdir()
    program = folder / ".venv" / "bin" / "deskwire"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m deskwire "$@"\n')
    program.chmod(0o755)
    (folder / "data").symlink_to(service.directory)
    (folder / "docs").symlink_to(ROOT / "docs")
    return folder


async def pasted(page: Path, folder: Path) -> str:
    """Run the commands of a page in a folder, and return their output."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    environ = {**environment(), "NO_PROXY": "*", "no_proxy": "*", "XDG_STATE_HOME": str(folder / "state")}
    with trio.fail_after(HANG_TIMEOUT_S):
        done = await trio.run_process(
            ["bash", "-c", commands(page, port)],
            cwd=folder,
            env=environ,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return done.stdout.decode().replace(str(port), PORT)


def disagreements(page: Path, output: str) -> list[str]:
    """Return each block of a page whose printed output is not the shown one, with both."""
    found = []
    for run, printed in zip(runs(page), output.split(END), strict=False):
        if (run.output is not None) is not bool(printed.strip()):
            found.append(f"{name(page)}\n{run.commands}\n{printed}")
        elif run.output is not None and not agrees(run.output, printed):
            found.append(f"{name(page)}\n{run.output}\n{printed}")
    return found


@needs_tools
@pytest.mark.parametrize("page", PAGES, ids=name)
async def test_the_commands_of_the_page_work_as_they_are(page: Path, tmp_path: Path) -> None:
    async with running(tmp_path / "service") as service:
        output = await pasted(page, checkout(tmp_path / "checkout", service))
    assert disagreements(page, output) == []
    if page.name == "quickstart.md":
        assert re.search(r"^verified conversation\.created 1 evt_\w+$", output, re.MULTILINE)
        assert re.search(r"^verified message\.created 2 evt_\w+$", output, re.MULTILINE)
    if page.name == "commands.md":
        assert re.search(r"^verified conversation\.created 1 evt_\w+$", output, re.MULTILINE)
        assert re.search(r"^message\.created +cnv_\w+ +2  204  \d+ ms$", output, re.MULTILINE)


@needs_tools
@pytest.mark.timeout(1200)
async def test_all_pages_work_on_one_server_twice_and_leave_no_endpoint(tmp_path: Path) -> None:
    """Paste all pages in order, then again from the last to the first, in one folder beside one server."""
    async with running(tmp_path / "service") as service:
        folder = checkout(tmp_path / "checkout", service)
        for page in [*PAGES, *reversed(PAGES)]:
            output = await pasted(page, folder)
            assert disagreements(page, output) == []
            endpoints = await service.http.get("/s2s/webhooks")
            assert endpoints.json()["items"] == [], f"{name(page)} leaves an endpoint behind"


def test_the_readme_and_the_quickstart_have_commands_to_run() -> None:
    assert {ROOT / "README.md", ROOT / "docs/quickstart.md"} <= set(PAGES)


def fields(page: str, head: str) -> set[str]:
    """Return the names in the first column of the table with this head."""
    table = (ROOT / "docs/guide" / page).read_text().partition(f"| {head} |")[2].partition("\n\n")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {field for cell in first for field in re.findall(r"`(\w+)`", cell)}


async def surveys(service: Service) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the objects for which the guide of surveys has tables."""
    made = await survey(service)
    path = f"/engagement/surveys/{made['id']}"
    return [
        ("surveys.md", "Survey field", made),
        ("surveys.md", "Version field", (await service.dashboard.get(f"{path}/versions/1")).json()),
        ("surveys.md", "Response field", await respond(service, made, answers={"score": 9})),
        ("surveys.md", "Insights field", (await service.dashboard.get(f"{path}/insights")).json()),
        ("surveys.md", "Refresh field", await refreshed(service, made)),
    ]


async def test_the_tables_of_fields_have_exactly_the_fields_that_are_answered(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        conversation = await service.create(message={"text": "Hello"})
        messages = await service.http.get(f"/s2s/conversations/{conversation['id']}/messages")
        contact = await service.http.get("/s2s/contacts/u1")
        endpoint = await service.http.post("/s2s/webhooks", json={"url": "http://127.0.0.1:9000/"})
        tested = await service.http.post(f"/s2s/webhooks/{endpoint.json()['id']}/test")
        ticket = await service.dashboard.post("/tickets", json={"title": "T"})
        activity = await service.dashboard.get(f"/tickets/{ticket.json()['id']}/activity")
        teams = await service.dashboard.get("/teams")
        project = await service.dashboard.get(f"/projects/{service.demo['projectId']}")
        (key,) = (await service.dashboard.get(f"/projects/{service.demo['projectId']}/keys")).json()["items"]
        session = f"/sessions/{contact.json()['id']}/memory"
        remembered = await service.dashboard.post(session, json={"name": "plan", "content": "gold"})
        translated = await service.dashboard.put(
            "/translations/entries/statictranslation:a", json={"language": "en", "fields": {"text": "A"}}
        )
        sent = await service.http.post("/uploads", files={"file": ("a.txt", b"a")})
        answered: list[tuple[str, str, dict[str, Any]]] = [
            ("api.md", "Conversation field", conversation),
            ("api.md", "Message field", messages.json()["items"][0]),
            ("contacts.md", "Contact field", contact.json()),
            ("people.md", "Key field", key),
            ("credentials.md", "Credential field", await make(service)),
            ("people.md", "Project field", project.json()),
            ("people.md", "Setting field", project.json()["settings"]),
            ("webhooks.md", "Endpoint field", endpoint.json()),
            ("webhooks.md", "Delivery field", tested.json()),
            ("uploads.md", "Upload field", sent.json()),
            ("tickets.md", "Ticket field", ticket.json()),
            ("tickets.md", "Activity field", activity.json()["items"][0]),
            ("tickets.md", "Team field", teams.json()["items"][0]),
            *await surveys(service),
            ("contacts.md", "Memory field", remembered.json()),
            ("translations.md", "Translation field", translated.json()),
        ]
        for page, head, document in answered:
            assert fields(page, head) == document.keys(), head
