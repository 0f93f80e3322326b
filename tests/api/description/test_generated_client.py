"""A client made from the description by a published generator, and ten calls with it."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.api.openapi_check import described
from tests.support.api.service import Service

pytestmark = pytest.mark.long

PACKAGE = "deskwire_generated"
Api = Callable[[str], Any]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The generated package's modules, by their names in it."""
    directory = tmp_path_factory.mktemp("generated")
    (directory / "openapi.json").write_text(json.dumps(described()))
    (directory / "config.yml").write_text("post_hooks: []\nliteral_enums: true\n")  # it need not be pretty
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"]
    command += ["--path", "openapi.json", "--config", "config.yml", "--output-path", PACKAGE]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    left_out = [line for line in done.stdout.splitlines() if line.startswith(("WARNING", "ERROR"))]
    # Files of any type, and NDJSON: the generator has no words for such bodies.
    others = ("GET /v3/uploads/", "GET /docs/", "POST /v3/s2s/import")
    assert [line for line in left_out if not any(each in line for each in others)] == []
    sys.path.insert(0, str(directory))
    yield lambda name: importlib.import_module(f"{PACKAGE}.{name}")
    sys.path.remove(str(directory))


async def test_ten_calls_with_a_generated_client(api: Api, service: Service) -> None:
    models = api("models")
    connected = api("client").AuthenticatedClient
    key = connected(base_url=service.url, token=service.demo["serverKey"])
    user = connected(base_url=service.url, token=service.demo["token"])
    project = service.demo["projectId"]
    async with key, user:

        async def call(name: str, *path: str, client: Any = key, **given: Any) -> Any:
            return await api(f"api.{name}").asyncio(*path, client=client, **given)

        contact = models.ContactInput(user_id="u1", name="Ada")
        made = await call(
            "conversations.create_conversation",
            body=models.CreateConversationRequest(contact=contact, title="Order"),
        )
        assert isinstance(made, models.Conversation)
        said = await call("conversations.post_message", made.id, body=models.PostMessageRequest(text="Hello"))
        assert (said.text, said.author.type_) == ("Hello", "contact")
        listed = await call("conversations.list_messages", made.id)
        assert [each.id for each in listed.items] == [said.id]
        patch = models.ChangeConversationRequest(title="Parcel")
        assert (await call("conversations.change_conversation", made.id, body=patch)).title == "Parcel"
        closed = await call(
            "conversations.close_conversation", made.id, body=models.CloseConversationRequest(closed_by="bot")
        )
        assert (closed.closed, closed.closed_by) == (True, "bot")
        feed = await call("events.list_events", limit=10)
        assert [each.type_ for each in feed.items] == [
            "conversation.created",
            "message.created",
            "conversation.updated",
            "conversation.closed",
        ]
        written = models.MessageCreatedEvent.from_dict(feed.items[1].to_dict())
        assert written.data.message.text == "Hello"
        body = models.CreateTicketRequest(title="Lost", conversation_id=made.id)
        ticket = await call("tickets.create_ticket", client=user, body=body, project=project)
        assert ticket.conversation_id == made.id
        tickets = await call("tickets.list_tickets", client=user, project=project, priority="MEDIUM")
        assert [each.id for each in tickets.items] == [ticket.id]
        assert (await call("conversations.delete_conversation", made.id)).deleted is True
        gone = await call("conversations.get_conversation", made.id)
        assert isinstance(gone, models.ProblemDocument)
        assert gone.code == "conversation_not_found"
