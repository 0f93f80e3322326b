"""Requests of every kind race with an erasure: each was before it or finds nothing, and nothing comes back (decisions 4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import trio

from tests.support.api.planted_texts import left, mark, overwritten, vanished
from tests.support.api.service import Service
from tests.support.api.surveys import respond, survey
from tests.support.deadlines import HANG_TIMEOUT_S

Attempt = Callable[[int], Awaitable[httpx.Response]]

PLACES = ("racemessage", "racenote", "racetitle", "racelogs", "racefile", "racememory", "filebytes")
_BEFORE = 3
"""How often each request is made before the erasure begins."""


def marked(place: str, number: int) -> str:
    """Return a text with a marker, which is new each time."""
    return f"{mark(place)} {number}"


def attempts_on(service: Service, conversation: dict[str, Any]) -> dict[str, Attempt]:
    """Return a request of each kind for the conversation; the number makes them new each time."""
    ours, agents = service.http, service.dashboard
    s2s, desk = f"/s2s/conversations/{conversation['id']}", f"/conversations/{conversation['id']}"

    def message(n: int) -> Awaitable[httpx.Response]:
        return ours.post(f"{s2s}/messages", json={"text": marked("racemessage", n)})

    def note(n: int) -> Awaitable[httpx.Response]:
        return agents.post(f"{desk}/messages", json={"text": marked("racenote", n), "internal": True})

    async def file(n: int) -> httpx.Response:
        content = (marked("racefile", n) + mark("filebytes")).encode()
        sent = await ours.post("/uploads", files={"file": (f"{n}.txt", content, "text/plain")})
        attachments = [sent.json()["id"]]
        return await ours.post(f"{s2s}/messages", json={"attachments": attachments})

    def logs(n: int) -> Awaitable[httpx.Response]:
        request = {"url": "https://shop.test/", "response": marked("racelogs", n)}
        return ours.put(f"{s2s}/network-logs", json={"requests": [request]})

    return {
        "message": message,
        "note": note,
        "file": file,
        "logs": logs,
        "patch": lambda n: ours.patch(s2s, json={"title": marked("racetitle", n)}),
        "close": lambda n: ours.post(f"{s2s}/{'close' if n % 2 else 'reopen'}", json={}),
        "rating": lambda n: ours.post(f"{s2s}/rating", json={"rating": n % 11}),
        "typing": lambda n: agents.post(f"{desk}/typing", json={"typing": bool(n % 2)}),
        "get": lambda _: ours.get(s2s),
        "messages": lambda _: agents.get(f"{desk}/messages"),
        "events": lambda _: ours.get(f"{s2s}/events"),
    }


class Race:
    """Makes each request again and again until it is answered with 404."""

    def __init__(self, attempts: dict[str, Attempt]) -> None:
        self._attempts = attempts
        self._running = len(attempts)
        self._under_way = trio.Event()
        self.answers: dict[str, list[int]] = {name: [] for name in attempts}

    async def against(self, erase: Callable[[], Awaitable[httpx.Response]]) -> httpx.Response:
        """Return the response of `erase`, called when all attempts run; wait until each has got a 404."""
        with trio.fail_after(HANG_TIMEOUT_S):
            async with trio.open_nursery() as nursery:
                for name, attempt in self._attempts.items():
                    nursery.start_soon(self._run, name, attempt)
                await self._under_way.wait()
                erased = await erase()
        return erased

    async def _run(self, name: str, attempt: Attempt) -> None:
        answers = self.answers[name]
        while not answers or answers[-1] != 404:
            answers.append((await attempt(len(answers))).status_code)
            if len(answers) == _BEFORE:
                self._running -= 1
                if not self._running:
                    self._under_way.set()


async def test_every_request_was_before_the_deletion_or_finds_no_conversation(service: Service) -> None:
    conversation = await service.create()
    race = Race(attempts_on(service, conversation))
    path = f"/s2s/conversations/{conversation['id']}"
    answer = await race.against(lambda: service.http.delete(path))
    assert answer.status_code == 200
    for name, answers in race.answers.items():
        assert set(answers[:-1]) <= {200, 204}, (name, answers)
    await service.create("somebody-else")
    events = [
        e
        for e in await service.events()
        if (e["data"].get("conversation") or {}).get("id") == conversation["id"]
    ]
    assert [event["type"] for event in events] == ["conversation.deleted"]
    assert (await service.http.delete(path)).status_code == 404


async def test_nothing_that_was_written_during_an_erasure_is_left(service: Service) -> None:
    first, second = await service.create("racer"), await service.create("racer")
    contact = first["contact"]["id"]
    memory = f"/sessions/{contact}/memory"

    def remember(n: int) -> Awaitable[httpx.Response]:
        entry = {"name": f"n{n % 50}", "content": marked("racememory", n)}
        return service.dashboard.post(memory, json=entry)

    race = Race(
        {
            **{f"{name} 1": attempt for name, attempt in attempts_on(service, first).items()},
            **{f"{name} 2": attempt for name, attempt in attempts_on(service, second).items()},
            "remember": remember,
            "memory": lambda _: service.dashboard.get(memory),
            "contact": lambda _: service.http.get("/s2s/contacts/racer"),
        }
    )
    answer = await race.against(lambda: service.http.delete("/s2s/contacts/racer"))
    assert answer.json() == {"id": contact, "deleted": True}
    for name, answers in race.answers.items():
        assert set(answers[:-1]) <= {200, 204}, (name, answers)
    # A file that came too late belongs to no message: it is deleted after a day like any other unattached file.
    late = tuple(place for place in PLACES if place not in ("racefile", "filebytes"))
    await vanished(service.directory, *late)


async def test_contact_created_after_an_erasure_has_nothing_of_the_old_one(
    service: Service,
) -> None:
    """Send a survey response, a conversation and an identity during the erasure; they make a new contact."""
    old = await service.create("racer", title=mark("racetitle"))
    made = await survey(service)
    begun, erased = trio.Event(), trio.Event()

    async def come() -> None:
        await service.create("racer")
        await respond(service, made, "racer", answers={"score": 2})
        await service.http.put("/s2s/contacts/racer", json={"name": "New"})

    async def keep_coming() -> None:
        while not erased.is_set():
            await come()
            begun.set()
        await come()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_coming)
        await begun.wait()
        answer = await service.http.delete("/s2s/contacts/racer")
        erased.set()
    assert answer.json()["id"] == old["contact"]["id"]
    contact = (await service.http.get("/s2s/contacts/racer")).json()
    assert contact["id"] != old["contact"]["id"]
    listed = (await service.http.get("/s2s/contacts/racer/conversations")).json()["items"]
    assert {item["contact"]["id"] for item in listed} <= {contact["id"]}
    assert (await service.http.get(f"/s2s/conversations/{old['id']}")).status_code == 404
    await overwritten(service)
    assert left(service.directory, ("racetitle",)) == []


async def test_simultaneous_erasures_of_a_contact_give_the_same_response_or_404(service: Service) -> None:
    contact = (await service.create("racer"))["contact"]["id"]
    for _ in range(20):
        await service.create("racer")
    answers: list[httpx.Response] = []

    async def erase() -> None:
        answers.append(await service.http.delete("/s2s/contacts/racer"))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(erase)
    good = [answer.json() for answer in answers if answer.status_code == 200]
    assert good == [{"id": contact, "deleted": True}] * len(good) != []
    assert {answer.status_code for answer in answers} <= {200, 404}
    assert (await service.http.delete("/s2s/contacts/racer")).status_code == 404
