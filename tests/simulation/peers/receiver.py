"""A webhook receiver, with its answers and failures."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, Literal

import h11
import trio

from tests.simulation.network import Link

Manner = Literal[
    "well",
    "failing",
    "silent",
    "slow",
    "forgetful",
    "redirecting",
    "busy",
    "limiting",
    "gone",
    "endless",
    "garbled",
    "refusing",
    "unreachable",
    "unknown",
]
"""`limiting` accepts ten requests a second, and asks the others to come a second later; `forgetful` accepts a delivery and closes before the answer; `endless` answers with a body that has no end."""

MANNERS: Final[tuple[Manner, ...]] = (
    *("well", "well", "well", "failing", "silent", "slow", "forgetful", "redirecting", "busy", "endless"),
    *("garbled", "refusing", "unreachable", "unknown"),
)
"""The manners picked at random; a fault sets `gone`, which counts as a failure like others."""

Answer = Literal["taken", "refused", "wait"]
"""A 2xx; any other outcome without `Retry-After`, also none at all; a 429 with `Retry-After`."""

_STATUS: Final[dict[str, int]] = {
    "failing": 500,
    "redirecting": 302,
    "busy": 429,
    "limiting": 429,
    "gone": 410,
}
_LIMIT: Final = 10
_SLOW_S: Final = 9.0
_TRICKLE_S: Final = 0.3


class Receiver:
    """A server at `http://<host>/hook`.

    Args:
        refuses: a text; every request with it fails.
        delays: a text; every request with it is answered with a pause of a second.
        healthy: whether it and its network never fail.
        arrived: called with each request and its answer.
    """

    def __init__(
        self,
        host: str,
        dice: random.Random,
        arrived: Callable[[Receiver, dict[str, str], bytes, Answer], None],
    ) -> None:
        self.host = host
        self.url = f"http://{host}/hook"
        self.manner: Manner = "well"
        self.refuses = ""
        self.delays = ""
        self.healthy = False
        self._dice = dice
        self._arrived = arrived
        self._taken = (0, 0)

    def change(self) -> None:
        """Pick another manner, unless the receiver is always healthy."""
        if not self.healthy:
            self.manner = self._dice.choice(MANNERS)

    async def take(self, link: Link) -> None:
        """Serve a connection until it ends."""
        wire = h11.Connection(h11.SERVER)
        try:
            while await self._one(link, wire) and wire.our_state is h11.DONE is wire.their_state:
                wire.start_next_cycle()
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):
            pass
        finally:
            link.server.close()

    async def _one(self, link: Link, wire: h11.Connection) -> bool:
        """Read one request and answer it; return whether another one may follow."""
        headers, body = {}, b""
        while not isinstance(event := wire.next_event(), h11.EndOfMessage):
            match event:
                case h11.NEED_DATA:
                    data = await link.server.receive_some(65_536)
                    wire.receive_data(data)
                    if not data:
                        return False
                case h11.Request():
                    headers = {name.decode(): value.decode() for name, value in event.headers}
                case h11.Data():
                    body += event.data
                case _:
                    return False
        return await self._answer(link, wire, headers, body)

    async def _answer(self, link: Link, wire: h11.Connection, headers: dict[str, str], body: bytes) -> bool:
        manner, dice = self._manner_now(body), self._dice
        if not self.healthy:
            await trio.sleep(dice.random() * (_SLOW_S if manner == "slow" else 0.1))  # virtual time
        status = _STATUS.get(manner, dice.choice((200, 202, 204)))
        answers = manner not in ("silent", "forgetful", "garbled")
        self._arrived(self, headers, body, _answer_of(status) if answers else "refused")
        if manner == "silent":
            await trio.sleep_forever()
        if manner == "garbled":
            await link.server.send_all(b"what is this?\r\n\r\n")
        if not answers:
            return False
        await self._send(link, wire, status, manner)
        return True

    def _asks_to_wait(self, body: bytes) -> bool:
        """Return whether this request alone is asked to come again later."""
        return bool(self.delays) and self.manner == "well" and self.delays.encode() in body

    def _manner_now(self, body: bytes) -> Manner:
        """Return the manner for a request that has just come."""
        if self.refuses and self.refuses.encode() in body:
            return "failing"
        if self._asks_to_wait(body):
            return "limiting"
        if self.manner != "limiting":
            return self.manner
        second = int(trio.current_time())
        self._taken = (second, self._taken[1] + 1 if self._taken[0] == second else 1)
        return "well" if self._taken[1] <= _LIMIT else "limiting"

    async def _send(self, link: Link, wire: h11.Connection, status: int, manner: Manner) -> None:
        text = b"" if status == 204 else b"x" * self._dice.choice((0, 10, 3_000))
        headers = [("Content-Length", str(len(text)))]
        if manner == "endless":
            headers = [("Transfer-Encoding", "chunked")] if status != 204 else headers
        if manner == "busy":
            headers.append(("Retry-After", str(self._dice.choice((1, 30, 600, 100_000)))))
        if manner == "limiting":
            headers.append(("Retry-After", "1"))
        if manner == "redirecting":
            headers.append(("Location", "http://elsewhere.test/"))
        head = wire.send(h11.Response(status_code=status, headers=headers)) or b""
        await link.server.send_all(head)
        while manner == "endless" and status != 204:
            await link.server.send_all(wire.send(h11.Data(data=b"x" * 100)) or b"")
            await trio.sleep(_TRICKLE_S)  # virtual time: the mock clock jumps
        if text:
            await link.server.send_all(wire.send(h11.Data(data=text)) or b"")
        wire.send(h11.EndOfMessage())


def _answer_of(status: int) -> Answer:
    if status < 300:
        return "taken"
    return "wait" if status == 429 else "refused"
