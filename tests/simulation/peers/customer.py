"""A customer's browser: its outbox, its sessions, and its stream, over lost answers, sign-ins and restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import jwt
import orjson
import trio

from deskwire.engine.accounts.people import Project
from deskwire.engine.channels.channel import Channel, Look
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.secret import Secrets
from deskwire.engine.ports import Transaction
from tests.simulation.customers import SAID, Draft, Watch
from tests.simulation.server import SECRET, Asked
from tests.support.streaming import NOON, trio_ms

if TYPE_CHECKING:
    from tests.simulation.world import World

_SITE: Final = "https://shop.example"
_CHANNEL_ID: Final = "chn_01M3250V00CCCCCCCCCCCCCCCC"  # the same in every process that runs tests
_CHANNEL_SECRET: Final = "chs_" + "c" * 43
_HOUR_S: Final = 3_600
_TRIES: Final = 3
_AGAIN_S: Final = 4.0
_RETURN_S: Final = 3.0
_STREAM_S: Final = 60.0
_DEAF_S: Final = 2.0
_WAIT_S: Final = 5
_USERS: Final = ("ada", "bob")
_DRAINED: Final = 40


def found_channel(tx: Transaction, project: Project) -> None:
    """Create the channel of the customers' website."""
    tx.insert_channel(
        Channel(
            0,
            _CHANNEL_ID,
            project.rowid,
            "widget",
            "Shop",
            enabled=True,
            origins=(_SITE,),
            identity_mode="optional",
            public_keys=(),
            visitors_allowed=True,
            visitors_ask=(),
            look=Look(),
            starts_workflow=None,
            survey=None,
            native=False,
            sealed_secret=Encryption(Secrets(SECRET)).seal(_CHANNEL_SECRET),
            secret_tail=_CHANNEL_SECRET[-4:],
            created_at=NOON,
            updated_at=NOON,
        )
    )


class Customer:
    """A browser, which one person after the other uses; it keeps its outbox through the server's crashes."""

    def __init__(self, world: World, number: int) -> None:
        self._world = world
        self._judge = world.customer_judge
        self._dice = world.dice
        self._address = f"198.51.100.{number + 1}"
        self._number = number
        self._made = 0
        self._token: str | None = None
        self._identity: str | None = None
        self._outbox: list[Draft] = []
        self._threads: list[str] = []
        self._spent: list[tuple[str, str]] = []
        """Tokens of sessions that have ended, each with the session's id."""
        self._page: trio.CancelScope | None = None
        self.watch: Watch | None = None

    async def do_something(self) -> None:
        """Write, read, sign in or out, and retry what waits."""
        if self._token is None and not await self._start():
            return
        chance = self._dice.random()
        if chance < 0.08:
            await self._sign_in()
        elif chance < 0.12:
            await self._sign_out()
        elif chance < 0.2:
            await self._poll()
        elif chance < 0.25:
            await self._mark()
        elif chance < 0.3 and self._spent:
            await self._haunt()
        else:
            self._write()
        await self.send()

    def open(self) -> None:
        """Open the panel: follow the events until it is closed."""
        if self._page is None:
            self._page = trio.CancelScope()
            self._world.later(self._follow, self._page)

    def close(self) -> None:
        """Close the panel."""
        page, self._page = self._page, None
        if page is not None:
            page.cancel()

    async def drain(self) -> None:
        """Send everything that waits, once nothing fails."""
        for _ in range(_DRAINED):
            if not self._outbox:
                break
            if self._token is not None or await self._start():
                await self.send()
            await trio.sleep(20)  # virtual time: the mock clock jumps; longer than limits on messages last
        await self._haunt()

    # Sessions

    async def _start(self) -> bool:
        """Start or continue the session; return whether there is one."""
        body = {"channelId": _CHANNEL_ID, "identity": self._signed(), "session": self._token}
        given = {name: value for name, value in body.items() if value is not None}
        for _ in range(_TRIES):
            asked = await self._call("POST", "/session", given, signed=False)
            if asked is not None and asked.status == 200:
                self._learn(orjson.loads(asked.body or b""))
                return True
            if asked is not None and asked.status == 401:
                self._lose()
                return False
            await self._pause()
        return False

    def _learn(self, started: dict[str, Any]) -> None:
        """Continue with the token of an answer. An outbox moves with a visitor that becomes signed in."""
        token, user_id = started["token"], started["contact"]["userId"]
        if token == self._token:
            return
        if self._token is not None and self.watch is not None:
            self._spent.append((self._token, self.watch.session))
            self._judge.upgrades += 1
        self._token = token
        session = self._world.session_of(token) or f"cse_{user_id.removeprefix('visitor-')}"
        cursor = started["cursor"]
        self.watch = Watch(user_id, session, cursor, self._judge.position(cursor))
        self._reload()
        if self._identity is None and self._dice.random() < 0.2:
            self._world.client.guests.append(user_id)  # a backend may merge this visitor

    def _signed(self) -> str | None:
        if self._identity is None:
            return None
        exp = trio_ms() // 1000 + _HOUR_S
        claims = {"sub": self._identity, "aud": _CHANNEL_ID, "exp": exp, "name": self._identity.title()}
        return jwt.encode(claims, _CHANNEL_SECRET, algorithm="HS256")

    async def _sign_in(self) -> None:
        """Sign in; the messages of a visitor become the contact's."""
        if self._identity is None:
            self._identity = self._dice.choice(_USERS)
        await self._start()

    async def _sign_out(self) -> None:
        """Sign out; the outbox of this person is given up."""
        for _ in range(_TRIES):
            asked = await self._call("DELETE", "/me", {})
            if asked is not None and asked.status in (200, 401):
                if asked.status == 200:
                    self._world.check_ended(self._token or "")
                break
            await self._pause()
        else:
            return
        self._lose()

    def _lose(self) -> None:
        """Forget the session, and give up what was not sent."""
        if self._token is not None and self.watch is not None:
            self._spent.append((self._token, self.watch.session))
        for draft in self._outbox:
            draft.given_up = True
        self._token = self._identity = self.watch = None
        self._outbox, self._threads = [], []
        self._reload()

    async def _haunt(self) -> None:
        """Call with the token of an ended session, which no longer does anything."""
        for token, session in self._spent[-3:]:
            began_at = trio.current_time()
            body = {"clientId": f"ghost-{began_at}", "message": {"text": "Boo!", "clientId": "boo"}}
            headers = {"Authorization": f"Bearer {token}", "Origin": _SITE}
            if session not in self._judge.ended:
                continue  # nothing was stored of it
            asked = await self._world.client.call(
                "POST", "/customer/conversations", body, headers, address=self._address
            )
            if asked is not None:
                self._judge.answered(session, began_at, asked.status, "POST conversation")

    # Messages

    def _write(self) -> None:
        """Keep a message, which from now on is sent until the service stores or refuses it."""
        self._made += 1
        name = f"{self._number}-{self._made}"
        starts = not self._threads or self._dice.random() < 0.1
        if starts:
            self._threads.append(f"thread-{name}")
        thread = self._threads[-1] if starts else self._dice.choice(self._threads[-3:])
        text = SAID.format(self._number * 100_000 + self._made) + "y" * self._dice.randrange(200)
        draft = Draft(text, f"draft-{name}", thread, starts)
        self._outbox.append(draft)
        self._judge.kept(draft)

    async def send(self) -> None:
        """Send what waits, in order, until something fails; sometimes from two tabs at the same time."""
        if self._dice.random() < 0.1:
            async with trio.open_nursery() as tabs:
                tabs.start_soon(self._send)
                tabs.start_soon(self._send)
        else:
            await self._send()

    async def _send(self) -> None:
        while self._outbox and self._token is not None:
            draft = self._outbox[0]
            if not await self._sent(draft):
                await self._pause()
                return
            if self._outbox and self._outbox[0] is draft:
                self._outbox.pop(0)

    async def _sent(self, draft: Draft) -> bool:
        """Send a draft; return whether its outcome is final."""
        message = {"text": draft.text, "clientId": draft.client_id}
        if draft.starts:
            asked = await self._call("POST", "/conversations", {"clientId": draft.thread, "message": message})
        else:
            asked = await self._call("POST", f"/conversations/client:{draft.thread}/messages", message)
        if asked is None or asked.body is None:
            return False
        if asked.status == 200:
            shown = orjson.loads(asked.body)
            self._judge.stored(draft, shown["lastMessage"] if draft.starts else shown)
            if draft.starts and shown["id"] not in self._world.client.conversations:
                self._world.client.conversations.append(shown["id"])
            return True
        if asked.status == 404:
            self._refused(draft)
        elif asked.status == 410:
            draft.given_up = True
        elif asked.status in (400, 403, 409, 422):
            self._world.judge.wrong(f"{draft.client_id} is answered {asked.status}: {asked.body!r}")
        return draft.given_up

    def _refused(self, draft: Draft) -> None:
        """Give a draft up whose conversation is not found: it was deleted, or its first message never arrived."""
        draft.given_up = True
        if draft.thread in self._threads:
            self._threads.remove(draft.thread)
        if self.watch is not None and self._world.has_thread(self.watch.user_id, draft.thread):
            self._world.judge.wrong(f"{draft.thread} is not found, and is a conversation of the customer")

    async def _mark(self) -> None:
        """Report everything as read."""
        if self._threads:
            await self._call("POST", f"/conversations/client:{self._dice.choice(self._threads)}/read", {})

    # Events

    async def _poll(self) -> None:
        """Fetch the events by a long poll, with the panel closed in the meantime."""
        watch, was_open = self.watch, self._page is not None
        if watch is None:
            return
        self.close()
        watch.asked = watch.cursor
        asked = await self._call(
            "GET", f"/events?wait={self._dice.randrange(_WAIT_S)}&after={watch.cursor}", {}
        )
        if asked is not None and asked.status == 200 and watch is self.watch:
            found = orjson.loads(asked.body or b"")
            if found["gap"]:
                self._judge.greeted(watch, {"resumedAfter": None, "gap": True, "at": found["cursor"]})
            else:
                for event in found["events"]:
                    self._judge.received(watch, event["id"], event)
        if was_open:
            self.open()

    def _reload(self) -> None:
        if self._page is not None:
            self.close()
            self.open()

    async def _follow(self, page: trio.CancelScope) -> None:
        """Follow the stream until the page is closed; connections break at any time."""
        with page:
            while True:
                watch, server = self.watch, self._world.server
                if watch is not None and server is not None and server.up and self._token is not None:
                    await self._connection(server, watch)
                await trio.sleep(self._dice.random() * _RETURN_S)  # virtual time: the mock clock jumps

    async def _connection(self, server: Any, watch: Watch) -> None:
        tab = _Tab(self._judge, watch)
        path = f"/v3/customer/stream?after={watch.cursor}" if watch.cursor else "/v3/customer/stream"
        watch.asked = watch.cursor
        token = self._token
        asked = server.ask("GET", path, self._headers(), b"", heard=tab.heard, address=self._address)
        lasts_s = self._dice.random() * _STREAM_S if self._world.flaky else _STREAM_S * 60
        try:
            with trio.move_on_after(lasts_s):
                await asked.over.wait()
                if asked.status == 401 and token == self._token:
                    self._lose()
                return
            tab.deaf = True  # the last events are lost with the connection
            await trio.sleep(self._dice.random() * _DEAF_S)  # virtual time: the mock clock jumps
        finally:
            tab.deaf = True
            asked.gone.set()

    # Calls

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}", "Origin": _SITE}

    async def _call(
        self, method: str, path: str, body: dict[str, Any], *, signed: bool = True
    ) -> Asked | None:
        world, watch, began_at = self._world, self.watch, trio.current_time()
        token = self._token
        headers = self._headers() if signed else {"Origin": _SITE}
        asked = await world.client.call(method, f"/customer{path}", body, headers, address=self._address)
        status = None if asked is None else asked.status
        world.judge.note(f"browser {self._number}: {method} {path} is answered {status}")
        if status is not None and status >= 500 and status != 503:
            world.judge.wrong(f"browser {self._number}: {method} {path} is answered {status}")
        if status is not None and signed and watch is not None:
            self._judge.answered(watch.session, began_at, status, f"{method} {path}")
        if status == 401 and signed and token == self._token and token is not None:
            self._lose()
        return asked

    async def _pause(self) -> None:
        await trio.sleep(self._dice.random() * _AGAIN_S)  # virtual time: the mock clock jumps


class _Tab:
    """Reads the events of one connection; `deaf` once it is lost."""

    def __init__(self, judge: Any, watch: Watch) -> None:
        self.deaf = False
        self._judge = judge
        self._watch = watch
        self._rest = b""

    def heard(self, data: bytes) -> None:
        if self.deaf:
            return
        *whole, self._rest = (self._rest + data).split(b"\n\n")
        for block in whole:
            lines = [line.partition(b": ")[::2] for line in block.split(b"\n")]
            self._take({name: value for name, value in lines if name})

    def _take(self, fields: dict[bytes, bytes]) -> None:
        data = orjson.loads(fields[b"data"]) if b"data" in fields else None
        if b"id" in fields:
            self._judge.received(self._watch, fields[b"id"].decode(), data)
        elif fields.get(b"event") == b"hello":
            self._judge.greeted(self._watch, data)
