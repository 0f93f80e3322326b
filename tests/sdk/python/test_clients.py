"""The calls that integrations make, in all three ways, against a real service."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trio

from deskwire_sdk import (
    AsyncDeskwire,
    Conflict,
    Deskwire,
    DeskwireError,
    NotFound,
    PermissionDenied,
    Unauthenticated,
    ValidationFailed,
    types,
)
from tests.support.api.service import Service

from .conftest import in_thread, under_asyncio


async def life(client: AsyncDeskwire) -> list[str]:
    """Create, change, list and delete; return the texts of the conversation."""
    made = await client.conversations.create(
        contact={"userId": "team/7", "name": "Ada"}, title="Order", attributes={"order": "A-1001"}
    )
    for number in range(5):
        await client.messages.create(
            made["id"],
            text=f"m{number}",
            author={"type": "bot", "name": "Robin"} if number else {"type": "contact"},
        )
    changed = await client.conversations.update(made["id"], title=None)
    assert changed["title"] is None
    assert changed["attributes"] == {"order": "A-1001"}  # an omitted field is not sent as null
    assert (await client.contacts.get("team/7"))["name"] == "Ada"
    texts = [each["text"] async for each in client.messages.list(made["id"], limit=2)]
    since = datetime.now(UTC) - timedelta(hours=1)
    assert [each["id"] async for each in client.conversations.list(updated_since=since)] == [made["id"]]
    assert await client.conversations.delete(made["id"]) == {"id": made["id"], "deleted": True}
    with pytest.raises(NotFound) as refused:
        await client.conversations.get(made["id"])
    assert refused.value.code == "conversation_not_found"
    return texts


async def test_a_conversation_lives_under_trio(client: AsyncDeskwire) -> None:
    assert await life(client) == [f"m{number}" for number in range(5)]


async def test_a_conversation_lives_under_asyncio(service: Service) -> None:
    async def main() -> list[str]:
        async with AsyncDeskwire(service.demo["serverKey"], base_url=service.url) as client:
            return await life(client)

    assert await under_asyncio(main) == [f"m{number}" for number in range(5)]


async def test_a_conversation_lives_in_a_thread(sync_client: Deskwire) -> None:
    def main() -> None:
        made = sync_client.conversations.create(contact={"userId": "u1"}, message={"text": "m0"})
        for number in range(1, 5):
            sync_client.messages.create(made["id"], text=f"m{number}")
        page = sync_client.messages.list(made["id"], limit=2)
        assert [each["text"] for each in page.items] == ["m0", "m1"]
        assert page.next_cursor is not None
        assert [each["text"] for each in page] == [f"m{number}" for number in range(5)]
        assert [len(each.items) for each in page.pages()] == [2, 2, 1]
        assert sync_client.conversations.close(made["id"])["status"] == "CLOSED"
        assert sync_client.conversations.list().as_of is not None

    await in_thread(main)


async def test_the_feed_continues_from_page_to_page_after_an_event(client: AsyncDeskwire) -> None:
    made = await client.conversations.create(contact={"userId": "u1"})
    for number in range(4):
        await client.messages.create(made["id"], text=f"m{number}")
    first = (await client.events.list(limit=1)).items[0]
    events = [each async for each in client.events.list(after=first["id"], limit=1)]
    assert [each["sequence"] for each in events] == [2, 3, 4, 5]


async def test_a_call_that_waits_for_events_may_take_longer_than_the_timeout(client: AsyncDeskwire) -> None:
    await client.conversations.create(contact={"userId": "u1"})
    last = [each async for each in client.events.list()][-1]
    hasty = client.with_options(timeout=0.3, max_retries=0)
    with trio.fail_after(20):
        page = await hasty.events.list(after=last["id"], wait=1)
    assert page.items == []


async def test_a_narrowed_event_has_the_data_of_its_type(client: AsyncDeskwire) -> None:
    made = await client.conversations.create(contact={"userId": "u1"}, message={"text": "Hello"})
    texts = []
    async for event in client.events.list():
        if event["type"] == "message.created":
            message: types.Message = event["data"]["message"]
            texts.append((message["conversationId"], message["text"]))
    assert texts == [(made["id"], "Hello")]


async def test_invalid_input_names_each_place(client: AsyncDeskwire) -> None:
    with pytest.raises(ValidationFailed) as refused:
        await client.conversations.create(contact={"userId": ""}, title="x" * 501)
    error = refused.value
    assert (error.status, error.code) == (422, "invalid_input")
    assert {each["pointer"] for each in error.errors} == {"/contact/userId", "/title"}
    assert error.request_id is not None
    assert error.request_id.startswith("req_")
    assert "/title" in str(error)
    assert error.type is not None
    assert error.type.endswith("invalid_input")


async def test_a_wrong_credential_has_a_class_of_its_own(service: Service, client: AsyncDeskwire) -> None:
    with pytest.raises(Unauthenticated):
        await client.with_options(api_key="sk_wrong").project.get()
    agent = client.with_options(api_key=service.demo["token"], project="prj_01KZ000000000000000000SH0P")
    with pytest.raises((PermissionDenied, NotFound)):
        await agent.dashboard.conversations.list()


async def test_a_user_calls_the_dashboard_with_a_project(service: Service) -> None:
    await service.create(message={"text": "Hello"})
    async with AsyncDeskwire(
        service.demo["token"], base_url=service.url, project=service.demo["projectId"]
    ) as agent:
        page = await agent.dashboard.conversations.list()
        made = await agent.tickets.create(title="T")
        assert [each["title"] async for each in agent.tickets.list()] == ["T"]
        with pytest.raises(DeskwireError):
            await agent.tickets.update(made["id"], title="U", if_match='"0"')
    assert len(page.items) == 1


async def test_a_conflict_is_not_repeated(client: AsyncDeskwire) -> None:
    for number in range(5):
        await client.webhooks.create(url=f"http://127.0.0.1:9000/{number}")
    with pytest.raises(Conflict), trio.fail_after(10):
        await client.webhooks.create(url="http://127.0.0.1:9000/6")


async def test_a_file_goes_up_and_comes_down(client: AsyncDeskwire, tmp_path: Path) -> None:
    sent = tmp_path / "größe.txt"
    sent.write_bytes("Grüße".encode())
    with sent.open("rb") as opened:
        for file in (sent, str(sent), ("größe.txt", sent.read_bytes()), opened):
            upload = await client.uploads.create(file=file)
            assert upload["name"] == "größe.txt"
    assert await client.download(upload["url"]).read() == sent.read_bytes()
    saved = await client.download(upload["url"]).save(tmp_path / "copy.txt")
    assert saved.read_bytes() == sent.read_bytes()
    with pytest.raises(PermissionDenied, match="link_invalid"):
        await client.download(f"{upload['url']}x").save(tmp_path / "no.txt")
    assert sorted(each.name for each in (tmp_path.glob("*.txt*"))) == ["copy.txt", "größe.txt"]  # noqa: ASYNC240  # short


async def test_a_table_is_read_as_text(client: AsyncDeskwire) -> None:
    text = await client.reports.volume_csv().text()
    assert text.startswith("conversationsCreated,")


async def test_history_is_imported_from_dicts(client: AsyncDeskwire) -> None:
    report = await client.imports.create(
        lines=[
            {
                "type": "conversation",
                "externalId": "old-1",
                "contact": {"userId": "u1"},
                "createdAt": datetime(2024, 3, 1, tzinfo=UTC),
            },
            {
                "type": "message",
                "externalId": "old-2",
                "conversation": "old-1",
                "author": {"type": "contact"},
                "text": "Hello",
                "createdAt": "2024-03-01T09:00:00Z",
            },
        ]
    )
    assert report["imported"] == {"conversations": 1, "messages": 1}


async def test_a_call_that_the_sdk_has_no_method_for_is_possible(client: AsyncDeskwire) -> None:
    found = await client.request("get", "/v3/s2s/project")
    assert found == await client.project.get()


async def test_a_call_without_a_credential_needs_none(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DESKWIRE_API_KEY", raising=False)
    monkeypatch.setenv("DESKWIRE_URL", service.url)
    async with AsyncDeskwire() as client:
        assert (await client.service.readiness())["status"] == "ready"
        with pytest.raises(DeskwireError, match="DESKWIRE_API_KEY"):
            await client.project.get()


def test_a_credential_from_a_file_is_stripped_and_never_shown() -> None:
    client = Deskwire("sk_1\n", base_url="http://x")
    assert client._transport.settings.api_key == "sk_1"
    assert "sk_1" not in repr(client._transport.settings)
    with pytest.raises(DeskwireError) as refused:
        Deskwire("sk_gehëim", base_url="http://x")
    assert "sk_" not in str(refused.value)


def test_an_address_is_needed_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DESKWIRE_URL", raising=False)
    with pytest.raises(DeskwireError, match="DESKWIRE_URL"):
        Deskwire("sk_1")
    with pytest.raises(DeskwireError, match="must begin with http"):
        Deskwire("sk_1", base_url="support.example.com")
