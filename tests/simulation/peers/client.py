"""A backend that calls the API: its operations, the failures of its calls, and its retries."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import orjson
import trio

from tests.simulation.ledger import MARK, UNDER_WAY_S, Wish
from tests.simulation.server import ADDRESS, Asked
from tests.support.streaming import SERVER_KEY

if TYPE_CHECKING:
    from tests.simulation.world import World

PATIENCE_S: Final = 30.0
"""The timeout after which a client closes its connection."""

_TRIES: Final = 8
_AGAIN_S: Final = 4.0
_LATENCY_S: Final = 0.1
_LATER_S: Final = 100_000.0
"""More than a day: a key is used again within its window, and after it."""

_FINAL: Final = frozenset({200, 204, 400, 404, 409, 410, 422})
_TYPES: Final[tuple[list[str], ...]] = (
    [],
    [],
    ["message.created"],
    ["conversation.created", "conversation.closed", "conversation.deleted"],
    ["conversation.updated", "message.created", "contact.updated"],
)


class Client:
    """All backends of a project."""

    def __init__(self, world: World) -> None:
        self.requests = 0
        self.conversations: list[str] = []
        self.endpoints: list[str] = []
        self.redacts = True
        self.merges = True
        self.guests: list[str] = []
        """Contacts that are to be merged into others, and may come back after that."""
        self.messages: list[tuple[str, str]] = []
        """The path of each acknowledged message, with its mark."""
        self._said: dict[str, Wish] = {}
        self._world = world
        self._dice: random.Random = world.dice
        self._made = 0

    async def do_something(self) -> None:
        """Begin an operation, and call until its outcome is known, or a retry is not allowed."""
        wish = self._wish()
        dice = self._dice
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.carry_out, wish)
            if wish.key is not None and dice.random() < 0.1:
                nursery.start_soon(self.carry_out, wish)  # the same wish, at the same time
        if wish.key is not None and dice.random() < 0.1:
            self._world.later(self._once_more, wish, dice.random() ** 4 * _LATER_S)
        if wish.key is not None and dice.random() < 0.05:
            await self._with_another_body(wish)
        if wish.takes_away and wish.answers:
            self._world.later(self._once_more, self._said[wish.takes_away], UNDER_WAY_S + dice.random())

    async def carry_out(self, wish: Wish) -> int:
        """Call, and retry while the outcome is unknown and the wish has a key; return the last status, 0 for none."""
        status = 0
        for _ in range(_TRIES):
            asked = await self._call(wish.method, wish.path, wish.body, wish.key)
            if asked is not None:
                status = asked.status
                self._heard(wish, asked)
            if wish.key is None or (asked is not None and status in _FINAL and not _in_progress(asked)):
                break
            await trio.sleep(self._dice.random() * _AGAIN_S)  # virtual time: the mock clock jumps
        if status == 200 and wish.path.startswith("/s2s/webhooks"):
            await self._learn_secret(orjson.loads(wish.answers[-1])["id"])
        return status

    async def _learn_secret(self, endpoint: str) -> None:
        """Rotate the endpoint's secret if the answer that showed the first one never came."""
        if endpoint not in self._world.mail.secrets:
            await self.carry_out(self._new("POST", f"/s2s/webhooks/{endpoint}/rotate-secret", {}, keyed=True))

    async def register(self, url: str, events: list[str]) -> None:
        """Create an endpoint, while only the network fails."""
        wish = self._new("POST", "/s2s/webhooks", {"url": url, "events": events}, keyed=True)
        assert await self.carry_out(wish) == 200, "it can be made"

    def _heard(self, wish: Wish, asked: Asked) -> None:
        world = self._world
        world.judge.note(f"{wish.method} {wish.path} {wish.mark or wish.key} is answered {asked.status}")
        if asked.status >= 500 and asked.status != 503:
            world.judge.wrong(f"{wish.method} {wish.path} is answered {asked.status}: {asked.body!r}")
        if asked.status != 200 or asked.body is None:
            return
        world.ledger.answered(wish, asked.body, replayed=asked.replayed)
        shown = orjson.loads(asked.body)
        if wish.path == "/s2s/conversations" and shown["id"] not in self.conversations:
            self.conversations.append(shown["id"])
        if wish.mark and wish.path.endswith("/messages") and not asked.replayed:
            self.messages.append((f"{wish.path}/{shown['id']}", wish.mark))
            self._said[wish.mark] = wish
        if wish.path == "/s2s/webhooks" and shown["id"] not in self.endpoints:
            self.endpoints.append(shown["id"])
        if "secret" in shown and "…" not in shown["secret"]:
            world.mail.secrets[shown["id"]] = shown["secret"]
            if wish.path.endswith("/rotate-secret"):
                world.mail.rotated[shown["id"]] = trio.current_time()

    async def _once_more(self, wish: Wish, after_s: float) -> None:
        await trio.sleep(after_s)  # virtual time: the mock clock jumps
        if not wish.mark or self._world.ledger.still_kept(wish):  # an effect without a mark may be repeated
            await self.carry_out(wish)

    async def _with_another_body(self, wish: Wish) -> None:
        """Send another body under the same key: once the first was carried out, this must be refused."""
        if not wish.answers:
            return
        asked = await self._call(wish.method, wish.path, wish.body | {"nonsense": 1}, wish.key)
        if asked is not None and asked.status == 200:
            self._world.judge.wrong(f"{wish.key} is answered 200 for another body")

    # One call

    async def _call(self, method: str, path: str, body: dict[str, Any], key: str | None) -> Asked | None:
        headers = {"Authorization": f"Bearer {SERVER_KEY}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        return await self.call(method, path, body, headers)

    async def call(
        self, method: str, path: str, body: dict[str, Any], headers: dict[str, str], address: str = ADDRESS
    ) -> Asked | None:
        """Return the outcome of one call; None if it is unknown, because the request or its answer got lost."""
        dice, world = self._dice, self._world
        await trio.sleep(dice.random() * _LATENCY_S)  # virtual time: the mock clock jumps
        chance = dice.random() if world.flaky else 1.0
        if world.server is None or not world.server.up or chance < 0.05:
            return None
        self.requests += 1
        headers = {**headers, "Content-Type": "application/json"}
        asked = world.server.ask(
            method, f"/v3{path}", headers, orjson.dumps(body) if body else b"", address=address
        )
        with trio.move_on_after(dice.random() * _LATENCY_S if chance < 0.12 else PATIENCE_S):
            await asked.over.wait()
        asked.gone.set()
        lost = chance < 0.17 or asked.body is None
        await trio.sleep(dice.random() * _LATENCY_S)  # virtual time: the mock clock jumps
        return None if lost else asked

    # Operations

    def _wish(self) -> Wish:
        dice, chance = self._dice, self._dice.random()
        if not self.conversations or chance < 0.1:
            return self._create()
        conversation = dice.choice(self.conversations[-12:])
        if chance < 0.16:
            return self._about_endpoints()
        if chance < 0.18:
            contact = dice.choice(self._world.contacts)
            if dice.random() < 0.3:
                return self._new("DELETE", f"/s2s/contacts/{contact}", {})
            return self._new("PUT", f"/s2s/contacts/{contact}", {"name": f"Ada {dice.randrange(9)}"})
        if self.redacts and self.messages and chance < 0.22:
            return self._take_away()
        if self.guests and chance < 0.25:
            return self._merge()
        if chance < 0.45:
            return self._change(conversation)
        body = {"author": {"type": dice.choice(("contact", "contact", "bot", "system", "agent"))}}
        return self._marked(f"/s2s/conversations/{conversation}/messages", body, conversation)

    def _create(self) -> Wish:
        wish = self._marked("/s2s/conversations", {"contact": {"userId": self._someone()}})
        wish.body["attributes"] = {"mark": wish.mark}
        del wish.body["text"]
        return wish

    def _someone(self) -> str:
        """Return the backend's id of a contact, sometimes of a guest, new or known."""
        dice = self._dice
        if not self.merges or dice.random() < 0.6:
            return dice.choice(self._world.contacts)
        if not self.guests or dice.random() < 0.5:
            self.guests.append(f"guest-{len(self.guests)}")
        return dice.choice(self.guests[-4:])

    def _merge(self) -> Wish:
        """Merge a guest into a contact, or into another guest, which may be merged as well."""
        guest = self._dice.choice(self.guests[-4:])
        into = self._dice.choice([*self._world.contacts, *self.guests[-2:]])
        return self._new("POST", f"/s2s/contacts/{into}/merge", {"from": guest})

    def _change(self, conversation: str) -> Wish:
        dice, at = self._dice, f"/s2s/conversations/{conversation}"
        match dice.randrange(12):
            case 0 | 1 | 2:
                return self._new("POST", f"{at}/close", {"closedBy": "agent"}, conversation=conversation)
            case 3 | 4:
                return self._new("POST", f"{at}/reopen", {}, conversation=conversation)
            case 5 | 6:
                return self._new("POST", f"{at}/read", {}, conversation=conversation)
            case 7:
                return self._new("POST", f"{at}/rating", {"rating": dice.randrange(11)})
            case 8:
                return self._new("PATCH", at, {"archived": dice.random() < 0.5}, conversation=conversation)
            case 9:
                self.conversations.remove(conversation)
                return self._new("DELETE", at, {}, conversation=conversation)
            case _:
                return self._new(
                    "PATCH", at, {"title": f"title {dice.randrange(5)}"}, conversation=conversation
                )

    def _take_away(self) -> Wish:
        """Redact or delete one of the newest messages, so that its mark disappears."""
        path, mark = self._dice.choice(self.messages[-12:])
        conversation = path.split("/")[3]
        if self._dice.random() < 0.3:
            return self._new("DELETE", path, {}, conversation=conversation, takes_away=mark)
        body = {"text": True}
        return self._new(
            "POST", f"{path}/redact", body, conversation=conversation, keyed=True, takes_away=mark
        )

    def _about_endpoints(self) -> Wish:
        dice, world = self._dice, self._world
        spare = self.endpoints[1:]  # the first one stays as it is
        if not spare or dice.random() < 0.3:
            body = {"url": dice.choice(world.internet.receivers[1:]).url, "events": dice.choice(_TYPES)}
            return self._new("POST", "/s2s/webhooks", body, keyed=True)
        at = f"/s2s/webhooks/{dice.choice(spare)}"
        match dice.randrange(6):
            case 0:
                return self._new("DELETE", at, {})
            case 1:
                return self._new("PATCH", at, {"url": dice.choice(world.internet.receivers[1:]).url})
            case 2:
                return self._new("PATCH", at, {"events": dice.choice(_TYPES)})
            case 3:
                return self._new("PATCH", at, {"status": "disabled"})
            case _:
                return self._new("PATCH", at, {"status": "enabled"})

    def _marked(self, path: str, body: dict[str, Any], conversation: str | None = None) -> Wish:
        text = MARK.format(self._made) + "x" * self._dice.randrange(0, 2_000)
        return self._new(
            "POST", path, {**body, "text": text}, conversation=conversation, keyed=True, marked=True
        )

    def _new(
        self,
        method: str,
        path: str,
        body: dict[str, Any],
        *,
        conversation: str | None = None,
        keyed: bool = False,
        marked: bool = False,
        takes_away: str = "",
    ) -> Wish:
        mark = MARK.format(self._made) if marked else ""
        key = f"key-{self._made}" if keyed else None
        self._made += 1
        wish = Wish(method, path, body, key, mark, conversation, takes_away)
        self._world.ledger.made(wish)
        return wish


def _in_progress(asked: Asked) -> bool:
    return asked.status == 409 and b"idempotency_in_progress" in (asked.body or b"")
