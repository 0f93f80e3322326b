"""An agent at the desk: holds and schedules messages, withdraws some, and sends some early."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson
import trio

from deskwire.engine.accounts.credentials import Tokens
from deskwire.engine.core.clock import iso
from deskwire.engine.core.secret import Secrets
from deskwire.engine.ports import Transaction
from tests.simulation.held import HELD
from tests.simulation.server import SECRET, Asked
from tests.support.streaming import NOON, PROJECT_ID, trio_ms

if TYPE_CHECKING:
    from tests.simulation.world import World

_ID: Final = "usr_01M3250V00AAAAAAAAAAAAAAAA"  # the same in every process that runs tests
_YEAR_S: Final = 366 * 86_400
_HOLDS_S: Final = (1, 5, 20, 60)
_NEWEST: Final = 6
"""The number of newest messages that the agent may withdraw or send."""


def found_agent(tx: Transaction, organisation: int) -> None:
    """Create the agent's user as a member of the organisation."""
    user = tx.insert_user(_ID, "agent@shop.test", "Agent", None, NOON)
    tx.insert_membership(organisation, user.rowid, "agent", NOON)


class Agent:
    """The agent's page: its calls fail as a client's do, and are not repeated."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._dice = world.dice
        self._made = 0
        self._held: list[str] = []
        """Ids of the messages that were acknowledged as held."""
        token = Tokens(Secrets(SECRET)).issue(_ID, NOON, 99 * _YEAR_S)
        self._headers = {"Authorization": f"Bearer {token}", "project": PROJECT_ID}

    async def do_something(self) -> None:
        """Hold a message, or withdraw or send one of the newest; sometimes two calls run at the same time."""
        dice = self._dice
        if not self._world.client.conversations:
            return
        if not self._held or dice.random() < 0.6:
            await self._hold(dice.choice(self._world.client.conversations[-12:]))
            return
        message_id = dice.choice(self._held[-_NEWEST:])
        async with trio.open_nursery() as nursery:
            for _ in range(dice.choice((1, 1, 2))):
                nursery.start_soon(dice.choice((self._take_back, self._send)), message_id)

    async def _hold(self, conversation: str) -> None:
        seconds = self._dice.choice(_HOLDS_S)
        when = {"sendAt": iso(trio_ms() + seconds * 1000)} if self._made % 2 else {"holdSeconds": seconds}
        body = {"text": HELD.format(self._made), **when}
        self._made += 1
        asked = await self._call("POST", f"/conversations/{conversation}/messages", body)
        if (shown := _shown(asked)) is not None:
            self._held.append(shown["id"])
            self._world.held.held(shown["id"], conversation)

    async def _take_back(self, message_id: str) -> None:
        asked = await self._call("DELETE", f"/held-messages/{message_id}", {})
        if (shown := _shown(asked)) is not None:
            self._world.held.taken_back(message_id, shown["draft"]["text"])
        elif asked is not None and asked.body is not None and b'"already_sent"' in asked.body:
            self._world.held.said_sent(message_id)

    async def _send(self, message_id: str) -> None:
        self._world.held.hurried(message_id)
        asked = await self._call("POST", f"/held-messages/{message_id}/send", {})
        if _shown(asked) is not None:
            self._world.held.said_sent(message_id)

    async def _call(self, method: str, path: str, body: dict[str, Any]) -> Asked | None:
        asked = await self._world.client.call(method, path, body, self._headers)
        status = None if asked is None else asked.status
        self._world.judge.note(f"the agent's {method} {path} is answered {status}")
        if status is not None and status >= 500 and status != 503:
            self._world.judge.wrong(f"the agent's {method} {path} is answered {status}")
        return asked


def _shown(asked: Asked | None) -> dict[str, Any] | None:
    """Return the body of an answer with status 200."""
    if asked is None or asked.status != 200 or asked.body is None:
        return None
    shown: dict[str, Any] = orjson.loads(asked.body)
    return shown
