"""`deskwire contact` against the real service."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from deskwire.commands.api_client.service import CallRefused, ServiceError, ServiceUnavailable
from deskwire.commands.contact.privacy import erase_contact
from deskwire.engine.core.values import no_progress
from tests.commands.api_client.acting import deskwire
from tests.support.api.service import Service, running

ODD = "u/1 ü?"
"""A user id that has to be escaped in a path."""


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Run a service on an empty directory, with a contact."""
    async with running(tmp_path / "data") as started:
        await started.create(ODD, message={"text": "Hello"})
        yield started


def names(directory: Path) -> list[str]:
    """Return the names of the files in a directory."""
    return sorted(path.name for path in directory.iterdir())


async def test_export_goes_to_stdout_or_a_file_as_the_apis_document(service: Service, tmp_path: Path) -> None:
    printed = (await deskwire(service, "contact", "export", ODD)).document
    assert printed["contact"]["userId"] == ODD
    assert printed["complete"] is True
    file = tmp_path / "export.json"
    written = await deskwire(service, "contact", "export", ODD, "-o", str(file))
    assert (written.status, written.printed) == (0, ""), written.said
    document = json.loads(file.read_text())
    assert {**document, "exportedAt": ""} == {**printed, "exportedAt": ""}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = await deskwire(service, "contact", "export", ODD, "-o", str(file))
    assert (again.status, "--force" in again.said) == (2, True)
    assert (await deskwire(service, "contact", "export", ODD, "-o", str(file), "--force")).status == 0
    assert names(tmp_path) == ["data", "export.json"]


async def test_export_of_an_unknown_contact_leaves_no_file(service: Service, tmp_path: Path) -> None:
    refused = await deskwire(service, "contact", "export", "nobody", "-o", str(tmp_path / "export.json"))
    assert (refused.status, "contact_not_found" in refused.said) == (1, True)
    assert names(tmp_path) == ["data"]


async def test_contact_is_erased_only_after_a_confirmation(service: Service) -> None:
    unasked = await deskwire(service, "contact", "erase", ODD)
    assert (unasked.status, "--yes" in unasked.said) == (2, True)
    assert (await service.http.get("/s2s/conversations")).json()["items"] != []
    gone = await deskwire(service, "contact", "erase", ODD, "--yes", "--json")
    assert gone.document["deleted"] is True
    assert (await service.http.get("/s2s/conversations")).json()["items"] == []
    again = await deskwire(service, "contact", "erase", ODD, "--yes")
    assert (again.status, "contact_not_found" in again.said) == (1, True)


class Busy:
    """A service whose erasures take long; a call for the path of one gets the rest of `answers`."""

    def __init__(self, *answers: ServiceError) -> None:
        self.answers = list(answers)

    async def delete(self, path: str, wait_s: float = 0) -> Any:
        """Refuse as the service does while it erases, and when nothing is left."""
        raise self.answers.pop(0)


async def test_long_erasure_is_followed_to_its_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    under_way = ("The erasure continues in the background.", 10.0, "erasure_under_way")
    busy = Busy(
        ServiceUnavailable(*under_way),
        ServiceUnavailable(*under_way),
        CallRefused(404, "contact_not_found", "There is no such contact."),
    )
    began = trio.current_time()
    gone = await erase_contact(busy, "/s2s/contacts/u1", no_progress)  # type: ignore[arg-type]  # what it asks of a service
    assert (gone["deleted"], busy.answers, trio.current_time() - began) == (True, [], 20)


async def test_unknown_contact_is_not_reported_as_erased() -> None:
    busy = Busy(CallRefused(404, "contact_not_found", "There is no such contact."))
    with pytest.raises(CallRefused):
        await erase_contact(busy, "/s2s/contacts/u1", no_progress)  # type: ignore[arg-type]
