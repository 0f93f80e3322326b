"""`deskwire convert` as an operator runs it, and its lines in the real service."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.commands.converting.converted import converted
from tests.commands.converting.shapes import (
    ZENDESK_USERS,
    chatwoot_rows,
    intercom_conversation,
    zendesk_comment,
    zendesk_ticket,
)
from tests.support.api.import_lines import NDJSON, counts, found, messages_of
from tests.support.api.service import Service
from tests.support.sockets.server_process import environment


@dataclass
class Outcome:
    status: int
    printed: bytes
    said: str


async def deskwire(*arguments: str | Path, given: bytes = b"", **variables: str) -> Outcome:
    """Run `deskwire convert`."""
    with trio.fail_after(300):
        done = await trio.run_process(
            [sys.executable, "-m", "deskwire", "convert", *map(str, arguments)],
            env={**environment(), **variables},
            stdin=given,
            capture_stdout=True,
            capture_stderr=True,
            check=False,
        )
    return Outcome(done.returncode, done.stdout, done.stderr.decode())


def written(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return path


async def brought(service: Service, lines: bytes) -> dict[str, Any]:
    answer = await service.http.post("/s2s/import", content=lines, headers=NDJSON)
    assert answer.status_code == 200, answer.text
    report: dict[str, Any] = answer.json()
    return report


SOURCES = {
    "zendesk": ([zendesk_ticket(), *ZENDESK_USERS], "zendesk-35436", 2),
    "intercom": ([intercom_conversation()], "intercom-471", 3),
    "chatwoot": (chatwoot_rows(), "chatwoot-7", 2),
}


@pytest.mark.parametrize("source", SOURCES)
async def test_repeated_imports_of_a_conversion_add_each_record_once(
    service: Service, tmp_path: Path, source: str
) -> None:
    records, name, shown = SOURCES[source]
    done = await deskwire(source, written(tmp_path / "export.json", *records))
    assert done.status == 0, done.said
    deletions = done.printed.count(b'"deletion"')
    lines = done.printed.count(b"\n") - deletions
    told = f", {deletions} deletions" if deletions else ""
    assert done.said.startswith(f"written: 1 conversations, {lines - 1} messages{told}\n")
    first = await brought(service, done.printed)
    assert (first["refused"], first["imported"]) == (0, counts(1, lines - 1))
    assert first["existing"] == counts(0, deletions)
    again = await deskwire(source, "-", given=(tmp_path / "export.json").read_bytes())
    assert again.printed == done.printed
    assert (await brought(service, again.printed))["existing"] == counts(1, lines - 1 + deletions)
    state = await found(service.http, name)
    assert (state["status"], state["closed"], state["contact"]["userId"]) == ("CLOSED", True, "u1")
    assert len(await messages_of(service.http, state["id"])) == shown  # the note is for agents alone
    thread = await service.dashboard.get(f"/conversations/{state['id']}/messages")
    assert [each["text"] for each in thread.json()["items"] if each["index"] is None] == [
        {"zendesk": "I look it up."}.get(source, "It is in Leipzig.")
    ]


async def test_later_export_brings_only_new_records(service: Service) -> None:
    before = converted("zendesk", zendesk_ticket(status="open", updated_at=None), *ZENDESK_USERS)
    await brought(service, before.output)
    comments = [*zendesk_ticket()["comments"], zendesk_comment(4, 20978392, "<p>Thanks!</p>", 30)]
    after = converted(
        "zendesk", zendesk_ticket(status="open", updated_at=None, comments=comments), *ZENDESK_USERS
    )
    report = await brought(service, after.output)
    assert (report["imported"], report["existing"]) == (counts(0, 1), counts(1, 3))


async def test_long_texts_and_odd_fields_and_characters_are_imported_too(service: Service) -> None:
    long = "word " * 9_000
    comments = [
        zendesk_comment(1, 20978392, f"<p>{long}</p>", 0),
        zendesk_comment(2, 20978392, "<p>nul \0 and half \ud800 of a pair</p>", 1),
    ]
    user = {**ZENDESK_USERS[0], "name": "A" * 300, "email": "x" * 400, "phone": "1" * 90}
    fields = [{"id": number, "value": "v" * 300} for number in range(150)]
    done = converted(
        "zendesk", zendesk_ticket(comments=comments, custom_fields=fields, subject="T" * 900), user
    )
    report = await brought(service, done.output)
    assert (report["refused"], report["imported"]) == (0, counts(1, 4))
    assert done.notes == {"field_dropped": 2, "split": 1, "unread_contact": 1}
    shown = [
        each["text"]
        for each in await messages_of(service.http, (await found(service.http, "zendesk-35436"))["id"])
    ]
    assert " ".join(shown[:3]) == long.strip()
    assert shown[3] == "nul and half \ufffd of a pair"


def test_unimportable_record_is_reported_and_makes_the_status_1() -> None:
    done = converted("zendesk", {**zendesk_ticket(), "id": "x" * 300}, *ZENDESK_USERS)
    assert done.records == []
    assert done.notes == {"refused": 1}
    assert done.told[0]["about"] == f"{'x' * 300}: /externalId"


async def test_faults_are_reported_with_their_places_and_listed_in_the_report(tmp_path: Path) -> None:
    export = written(tmp_path / "export.json", zendesk_ticket(), *ZENDESK_USERS)
    export.write_text(export.read_text() + '{"id": \n')
    report, output = tmp_path / "report.ndjson", tmp_path / "history.ndjson"
    done = await deskwire("zendesk", export, "--report", report, "-o", output)
    assert (done.status, done.printed) == (1, b"")
    assert "left out: 1 not valid JSON\n" in done.said
    assert output.read_bytes().count(b"\n") == 4
    [line] = report.read_text().splitlines()
    assert json.loads(line)["about"].startswith(f"{export}, line 5: ")


async def test_a_file_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    export = tmp_path / "export.json"
    export.write_bytes(b'{"id": "\xff"}')
    done = await deskwire("intercom", export)
    assert done.status == 1
    assert f"{export} can't be read: byte 9 is not UTF-8." in done.said


def many(count: int) -> Iterator[str]:
    """Yield the lines of an export with that many tickets, their comments, and the users at the end."""
    for number in range(count):
        comments = [
            zendesk_comment(
                each, 20978392 if each % 2 else 235323, f"<p>{'words ' * 100}{each}</p>", each % 60
            )
            for each in range(number * 5, number * 5 + 5)
        ]
        yield json.dumps(zendesk_ticket(number + 1, comments=comments)) + "\n"
    for user in ZENDESK_USERS:
        yield json.dumps(user) + "\n"


async def _peak_kib(tmp_path: Path, count: int) -> tuple[int, int]:
    """Return the peak memory of a conversion of that many tickets, and the size of the export in bytes."""
    export, output = tmp_path / f"{count}.json", tmp_path / f"{count}.ndjson"
    with export.open("w") as file:
        file.writelines(many(count))
    measured = (
        "import resource, subprocess, sys\n"
        "status = subprocess.call([sys.executable, '-m', 'deskwire', 'convert', *sys.argv[1:]])\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
        "sys.exit(status)"
    )
    command = [sys.executable, "-c", measured, "zendesk", str(export), "-o", str(output)]
    done = await trio.run_process(command, env=dict(environment()), capture_stdout=True, capture_stderr=True)
    assert f"written: {count:,} conversations, {count * 5:,} messages" in done.stderr.decode()
    return int(done.stdout), export.stat().st_size


@pytest.mark.long
async def test_twenty_thousand_conversations_take_little_more_memory_than_a_thousand(tmp_path: Path) -> None:
    small, _ = await _peak_kib(tmp_path, 1_000)
    large, size = await _peak_kib(tmp_path, 20_000)
    assert size > 100_000_000
    assert large < small + 48 * 1024  # the spool's cache is 32 MiB of it
