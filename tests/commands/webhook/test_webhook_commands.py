"""`deskwire webhook` against the real service and a real receiver."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.commands.api_client.acting import deskwire
from tests.commands.listen.conftest import receiving
from tests.support.api.service import Service, running
from tests.support.sockets.receivers import Receiver, answering

NOBODY = "whk_01KZ0000000000000000000000"


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Run a service on an empty directory."""
    async with running(tmp_path) as started:
        yield started


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    """Run a receiver that accepts everything."""
    async with receiving(answering("200 OK", b"thanks")) as started:
        yield started


async def created(service: Service, receiver: Receiver, *options: str) -> str:
    """Return the id of a new endpoint."""
    made = await deskwire(service, "webhook", "create", receiver.url, *options, "--json")
    identifier: str = made.document["id"]
    return identifier


async def test_a_new_endpoints_secret_is_printed_once_and_masked_ever_after(
    service: Service, receiver: Receiver
) -> None:
    made = await deskwire(
        service, "webhook", "create", receiver.url, "--event", "message.created", "--description", "CRM"
    )
    secret = made.printed.strip()
    assert (made.status, re.fullmatch(r"whsec_\w+", secret) is not None) == (0, True), made.said
    assert "shown only this once" in made.said
    (listed,) = (await deskwire(service, "webhook", "list", "--json")).document
    assert (listed["events"], listed["description"]) == (["message.created"], "CRM")
    assert listed["secret"] == f"whsec_…{secret[-4:]}"
    table = await deskwire(service, "webhook", "list")
    assert listed["id"] in table.printed
    assert secret not in table.printed


async def test_problems_of_an_endpoint_are_named_by_their_options(service: Service) -> None:
    refused = await deskwire(
        service, "webhook", "create", "ftp://x", "--event", "message.created", "--event", "nonsense"
    )
    assert (refused.status, refused.printed) == (1, "")
    assert "URL: " in refused.said
    assert "--event (number 2): There is no event type 'nonsense'." in refused.said
    assert "/url" not in refused.said


async def test_a_test_event_reaches_the_receiver_and_its_answer_is_shown(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await created(service, receiver)
    tested = await deskwire(service, "webhook", "test", endpoint)
    assert tested.status == 0, tested.said
    assert "webhook.test" in tested.printed
    assert re.search(r"Attempt 1, .* ms: 200\n", tested.printed)


async def test_webhook_test_ends_with_status_1_if_the_receiver_refuses_it(service: Service) -> None:
    async with receiving(answering("500 Oops")) as refusing:
        endpoint = await created(service, refusing)
        tested = await deskwire(service, "webhook", "test", endpoint, "--json")
    assert tested.status == 1
    assert '"status": "pending"' in tested.printed


async def test_rotated_secret_is_printed_with_the_old_ones_expiry(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await created(service, receiver)
    rotated = await deskwire(service, "webhook", "rotate", endpoint)
    (listed,) = (await deskwire(service, "webhook", "list", "--json")).document
    assert listed["secret"] == f"whsec_…{rotated.printed.strip()[-4:]}"
    assert listed["oldSecretUntil"] in rotated.said


async def test_missed_events_of_a_disabled_endpoint_are_counted_and_recovered(
    service: Service, receiver: Receiver
) -> None:
    endpoint = await created(service, receiver, "--event", "conversation.created")
    disabled = await deskwire(service, "webhook", "disable", endpoint, "--json")
    assert disabled.document["status"] == "disabled"
    await service.create("u1")
    enabled = await deskwire(service, "webhook", "enable", endpoint)
    assert "enabled" in enabled.printed
    missed = await deskwire(service, "webhook", "recover", endpoint, "--since", "1h", "--dry-run")
    done = await deskwire(service, "webhook", "recover", endpoint, "--since", "1h", "--json")
    words = f"{done.document['count']} deliver"
    assert missed.printed.startswith(words)
    assert "would be sent again" in missed.printed


async def test_an_endpoint_is_deleted_only_if_that_is_meant(service: Service, receiver: Receiver) -> None:
    endpoint = await created(service, receiver)
    unasked = await deskwire(service, "webhook", "delete", endpoint)
    assert (unasked.status, "--yes" in unasked.said) == (2, True)
    assert receiver.url in unasked.said
    gone = await deskwire(service, "webhook", "delete", endpoint, "--yes")
    assert (gone.status, gone.printed) == (0, f"{endpoint}\n")
    assert (await deskwire(service, "webhook", "list", "--json")).document == []
    again = await deskwire(service, "webhook", "delete", endpoint, "--yes")
    assert (again.status, "webhook_not_found" in again.said) == (1, True)


@pytest.mark.parametrize("command", ["test", "rotate", "enable", "disable", "delete"])
async def test_malformed_id_is_a_usage_error_and_an_unknown_one_a_refusal(
    service: Service, command: str
) -> None:
    wrong = await deskwire(service, "webhook", command, "whk_1")
    assert (wrong.status, "whk_ and 26 characters" in wrong.said) == (2, True)
    unknown = await deskwire(service, "webhook", command, NOBODY)
    assert (unknown.status, "webhook_not_found" in unknown.said) == (1, True)


async def test_rejected_key_is_reported_as_rejected(service: Service) -> None:
    refused = await deskwire(service, "webhook", "list", key="sk_" + "x" * 43)
    assert (refused.status, refused.printed) == (1, "")
    assert "The server key is not accepted" in refused.said
