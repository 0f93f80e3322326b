"""`deskwire import` against the real service."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import trio
from click.testing import CliRunner

from deskwire.cli import cli
from deskwire.commands.import_.run import Totals
from deskwire.commands.import_.show import progress_line, refused_line
from tests.support.api.import_lines import conversation, counts, found, message, messages_of, ndjson, threads
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.server_process import environment


@dataclass
class Outcome:
    status: int
    printed: str
    said: str


async def deskwire(service: Service, *arguments: str, given: bytes = b"", key: str = "") -> Outcome:
    """Run `deskwire import` as an operator does."""
    variables = {"DESKWIRE_URL": service.url, "DESKWIRE_KEY": key or service.demo["serverKey"]}
    with trio.fail_after(HANG_TIMEOUT_S):
        done = await trio.run_process(
            [sys.executable, "-m", "deskwire", "import", *arguments],
            env={**environment(), **variables},
            stdin=given,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


async def test_file_is_imported_whole_and_again_without_effect(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "history.ndjson"
    file.write_bytes(ndjson(threads(3, 400)))
    first = await deskwire(service, str(file))
    assert first.status == 0, first.said
    assert "imported: 3 conversations, 1,200 messages\n" in first.printed
    again = await deskwire(service, str(file), "--json")
    assert again.status == 0, again.said
    said = json.loads(again.printed)
    assert (said["lines"], said["imported"], said["existing"]) == (1_203, counts(0, 0), counts(3, 1_200))
    state = await found(service.http, "old-2")
    assert [each["index"] for each in await messages_of(service.http, state["id"])] == list(range(400))
    assert await service.events() == []


async def test_refused_lines_are_shown_with_their_numbers_and_written_to_another_file(
    service: Service, tmp_path: Path
) -> None:
    records = [*threads(1, 1_500), message("nowhere", 0), conversation("\x1b[2Jodd", status="GONE")]
    path = tmp_path / "refused.ndjson"
    done = await deskwire(service, "-", "--events", "--refused", str(path), given=ndjson(records))
    assert done.status == 1
    assert "line 1,502 (nowhere-0): /conversation: No conversation" in done.said
    assert "line 1,503 (\\x1b[2Jodd): /status: " in done.said
    assert "refused: 2 of 1,503 lines" in done.printed
    written = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(each["line"], each["externalId"]) for each in written] == [
        (1_502, "nowhere-0"),
        (1_503, "\x1b[2Jodd"),
    ]
    assert len(await service.events()) == 200  # a page of them


async def test_unavailable_or_refusing_service_is_reported_with_the_acknowledged_lines(
    tmp_path: Path,
) -> None:
    async with running(tmp_path / "one") as service:
        wrong = await deskwire(service, "-", given=b"{}\n", key="sk_wrong")
    assert wrong.status == 1
    assert "The server key is not accepted" in wrong.said
    assert "The first 0 lines are acknowledged" in wrong.said
    away = await deskwire(service, "-", "--patience", "0.6", given=b"{}\n")
    assert away.status == 1
    assert "retrying in 0.5 s." in away.said
    assert "can't be reached" in away.said


def test_missing_file_is_reported(tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["import", str(tmp_path / "none")])
    assert done.exit_code == 2
    assert "does not exist" in done.output


def test_progress_and_refusals_are_one_line_each() -> None:
    totals = Totals(lines=2_000, bytes=500, refused=1)
    assert progress_line(totals, 1_000).startswith(" 50%  2,000 lines, 1 refused, ")
    assert progress_line(totals, None).startswith("2,000 lines, 1 refused, ")
    errors = [{"pointer": "", "message": "Not\nJSON."}, {"pointer": "/a", "message": "Bad."}]
    told = refused_line({"line": 7, "externalId": None, "errors": errors})
    assert told == "line 7: Not\\nJSON.; /a: Bad."
