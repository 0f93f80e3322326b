"""A customer with a marker in every place that a text can reach, and a search of all bytes of the data directory."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import trio

from deskwire.engine.events.types import LISTABLE
from deskwire.storage.sqlite.directory import FILE_NAME
from tests.api.events.test_channels_agree import consuming, receiving, register
from tests.api.operating.test_metrics import scrape
from tests.engine.workflows.building import FORM, buttons, workflow
from tests.support.api.service import Service
from tests.support.api.surveys import refreshed, respond, survey
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Request
from tests.support.sockets.server_process import LOOK_S
from tests.support.stores import chosen, stored

CONVERSATION: Final = (
    "oldtitle", "title", "oldattribute", "attribute", "key", "message", "longmessage", "note", "botname", "botmessage",
    "oldlogs", "logs", "filename", "filebytes", "answer", "formanswer", "draft", "heldmessage",
)  # fmt: skip
"""Places that belong to a conversation."""

CUSTOMER: Final = (
    "oldname", "name", "email", "phone", "avatar", "contactanswer", "memoryname", "memorycontent", "memorydescription",
    "oldticket", "ticket", "ticketdescription", "tickettype", "oldtag", "tag", "response", "channel",
    "oldprofile", "profile", "profilekey", "profiletag",
    "ticketanswer", "responseanswer",
)  # fmt: skip
"""Places that belong to the customer, apart from the user id, which the deletions' events name."""


_ANSWERS: Final = {
    "contact.updated": "contactanswer",
    "contact.changed": "contactanswer",
    "contact.merged": "contactanswer",
    "ticket.created": "ticketanswer",
    "ticket.changed": "ticketanswer",
    "survey.response.created": "responseanswer",
    **dict.fromkeys(("conversation.deleted", "ticket.deleted", "survey.response.deleted", "survey.deleted")),
}
"""The markers in a receiver's answers by event type; no marker for events that outlive their subject."""

OTHER: Final = "other"
"""The owner of a bystander's markers."""


def mark(place: str, whose: str = "") -> str:
    """Return a unique text, a single lower-case word, which a search index keeps unchanged."""
    if place == "phone":  # a telephone number has no letters
        return f"49157712345{len(whose):02}"
    return f"mk{whose}{place}km"


def files_below(directory: Path) -> Iterator[Path]:
    """Yield the files in a folder and in those below it.

    Not by `rglob`: it fails if a folder is removed during the search, as those of erased uploads are.
    """
    entries = (Path(folder, each) for folder, _, names in os.walk(directory) for each in names)
    return (each for each in sorted(entries) if each.is_file())


def holding(directory: Path, *markers: bytes) -> list[tuple[bytes, str]]:
    """Return the lower-case markers that files contain in any case, with the files' names."""
    found = []
    for path in files_below(directory):
        with suppress(FileNotFoundError):  # a file that is just being removed
            content = path.read_bytes().lower()
            found += [(marker, path.name) for marker in markers if marker in content]
    if chosen() == "postgres":
        content = stored(directory).lower()
        found += [(marker, FILE_NAME) for marker in markers if marker in content]
    return found


def left(directory: Path, places: tuple[str, ...], whose: str = "") -> list[tuple[str, str]]:
    """Return the places whose markers are still in the data directory, with the files."""
    marks = {mark(place, whose).encode(): place for place in places}
    return [(marks[marker], name) for marker, name in holding(directory, *marks)]


async def overwritten(service: Service) -> None:
    """Return once the service reports no erased text left to overwrite, and all erased files are gone."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while (await scrape(service))("storage_scrub_pending"):  # noqa: ASYNC110  # only polling shows it
            await trio.sleep(LOOK_S)  # poll: there is no notification
    await vanished(service.directory / "uploads", "filebytes")


async def vanished(directory: Path, *places: str) -> None:
    """Return once none of these places is in any file."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while left(directory, places):  # noqa: ASYNC110  # files can only be polled
            await trio.sleep(LOOK_S)  # poll: there is no notification


@dataclass
class Planted:
    """The planted data: the customer, its conversation, and the objects that belong to them."""

    user: str
    contact: str
    conversation: dict[str, Any]
    ticket: str
    upload: dict[str, Any]


@asynccontextmanager
async def listening(service: Service) -> AsyncIterator[str]:
    """Register a receiver for all events that answers with markers; yield the endpoint's path."""

    async def repeat(stream: trio.abc.Stream, request: Request) -> None:
        whose = OTHER if OTHER.encode() in request.body else ""
        said = _ANSWERS.get(request.headers["Service-Event"], "answer")
        said = mark(said, whose) if said else "so be it"
        body = ("so be it" if b'"name":null' in request.body else said).encode()
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

    async with receiving() as receiver:
        receiver.behaviour = repeat
        endpoint = await register(service, receiver.url, events=[*LISTABLE], internal=True)
        yield f"/s2s/webhooks/{endpoint['id']}/deliveries"


async def plant(service: Service, log: str | None = None, whose: str = "") -> Planted:
    """Write a marker into every place; return once everything is stored, the receiver's answers included.

    Args:
        log: path of the delivery log of a receiver that answers with markers.
    """

    def m(place: str) -> str:
        return mark(place, whose)

    user = m("userid")
    identity = {
        "name": m("oldname"),
        "email": f"{m('email')}@example.org",
        "phone": m("phone"),
        "avatar": f"https://pictures.example/{m('avatar')}",
    }
    put = await service.http.put(f"/s2s/contacts/{user}", json={})
    for known in (identity, {**identity, "name": m("name")}):  # each is in an event of its own
        await service.http.put(f"/s2s/contacts/{user}", json=known)
    for value in ("oldprofile", "profile"):
        fields = {"attributes": {"k": m(value), m("profilekey"): 1}, "tags": [m("profiletag")]}
        assert (await service.http.patch(f"/s2s/contacts/{user}", json=fields)).status_code == 200
    conversation = await service.create(user, title=m("oldtitle"), attributes={"k": m("oldattribute")})
    upload = await _talk(service, conversation, m)
    await _be_asked(service, conversation, m)
    contact = put.json()["id"]
    await _remember(service, contact, m)
    ticket = await _track(service, conversation, m)
    made = await survey(service)
    text = f"{m('response')} was slow and never called me back"
    await respond(service, made, user, answers={"score": 2, "why": text})
    assert (await refreshed(service, made))["status"] == "done"
    async with consuming(service) as consumer:
        await consumer.subscribe(m("channel"), f"private-contact-{user}")
        await consumer.subscribe("c", f"private-conversation-{conversation['id']}")
    if log is not None:
        await _answered(service, log)
    return Planted(user, contact, conversation, ticket, upload)


async def _talk(service: Service, conversation: dict[str, Any], m: Any) -> dict[str, Any]:
    path = f"/conversations/{conversation['id']}"
    changed = {"title": m("title"), "attributes": {"k": m("attribute"), m("key"): 1}}
    assert (await service.http.patch(f"/s2s{path}", json=changed)).status_code == 200
    file = (f"{m('filename')}.txt", m("filebytes").encode() * 2_000, "text/plain")
    upload: dict[str, Any] = (await service.http.post("/uploads", files={"file": file})).json()
    await service.say(conversation, m("message"), attachments=[upload["id"]])
    await service.say(conversation, m("longmessage") * 500)
    await service.say(conversation, m("botmessage"), author={"type": "bot", "name": m("botname")})
    note = {"text": m("note"), "internal": True}
    assert (await service.dashboard.post(f"{path}/messages", json=note)).status_code == 200
    draft = {"text": m("draft"), "version": 0, "attachments": [upload["id"]]}
    assert (await service.dashboard.put(f"{path}/drafts/note", json=draft)).status_code == 200
    waiting, key = {"text": m("heldmessage"), "holdSeconds": 60}, {"Idempotency-Key": m("key")}
    held = await service.dashboard.post(f"{path}/messages", json=waiting, headers=key)
    assert held.status_code == 200
    for text in (m("oldlogs") * 2_000, m("logs")):
        logs = {"requests": [{"url": "https://shop.test/", "response": text}]}
        assert (await service.http.put(f"/s2s{path}/network-logs", json=logs)).status_code == 204
    return upload


async def _be_asked(service: Service, conversation: dict[str, Any], m: Any) -> None:
    """Run a workflow that has received one answer and waits for another."""
    asking = workflow([FORM, buttons(20, None, None)])
    made = (await service.dashboard.post("/workflows", json=asking)).json()
    path = f"/s2s/conversations/{conversation['id']}/workflow"
    assert (await service.http.post(f"{path}/start", json={"workflowId": made["id"]})).status_code == 200
    given = {"actionId": FORM["id"], "value": {"number": m("formanswer")}}
    assert (await service.http.post(f"{path}/reply", json=given)).status_code == 200
    assert (await service.http.get(path)).json()["step"]["actionId"] == 20


async def _remember(service: Service, contact: str, m: Any) -> None:
    entry = {"name": m("memoryname"), "content": m("memorycontent"), "description": m("memorydescription")}
    assert (await service.dashboard.post(f"/sessions/{contact}/memory", json=entry)).status_code == 200


async def _track(service: Service, conversation: dict[str, Any], m: Any) -> str:
    """Create and change a ticket that is linked to the conversation; return its id."""
    fields = {"title": m("oldticket"), "tags": [m("oldtag")], "conversationId": conversation["id"]}
    made = await service.dashboard.post("/tickets", json=fields)
    ticket: str = made.json()["id"]
    changes = {
        "title": m("ticket"),
        "description": m("ticketdescription"),
        "type": m("tickettype"),
        "tags": [m("tag")],
    }
    assert (await service.dashboard.patch(f"/tickets/{ticket}", json=changes)).status_code == 200
    return ticket


async def _answered(service: Service, log: str) -> None:
    """Return once no delivery is pending."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            page = await service.http.get(log, params={"limit": "200"})
            items = page.json()["items"]
            if items and all(each["status"] == "delivered" for each in items):
                return
            await trio.sleep(LOOK_S)  # poll: there is no notification
