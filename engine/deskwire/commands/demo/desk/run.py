"""A demo's inbox while it is there: filled, with two receivers of its webhooks, one that is well and one that is not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import orjson
import trio

from deskwire.commands.demo.checks.journal import Journal
from deskwire.commands.demo.clients.person import Person
from deskwire.commands.demo.clients.receiver import Receiver
from deskwire.commands.demo.desk.fill import Filled, Place, fill, is_filled
from deskwire.commands.demo.desk.people import COLLEAGUES
from deskwire.commands.demo.errors import DemoError

WELL: Final = "The CRM"
BROKEN: Final = "Search index"
_CLEAN_UP_S: Final = 10.0
_BROKEN_STATUS: Final = 503


def place_of(data: Path) -> Place:
    """Return the place that a service's `demo.json` names. Raises DemoError."""
    path = data / "demo.json"
    try:
        said = orjson.loads(path.read_bytes())
        user = said["user"]
        return Place(
            said["baseUrl"],
            said["serverKey"],
            said["token"],
            said["projectId"],
            user["email"],
            user["password"],
        )
    except FileNotFoundError:
        raise DemoError(f"{path} does not exist: start the service with `deskwire serve`.") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DemoError(f"{path} can't be used ({type(error).__name__}).") from error


async def run_desk(place: Place, say: Callable[[str], None]) -> None:
    """Fill the inbox, unless it is, and have its webhooks received, until cancelled. Raises DemoError."""
    async with trio.open_nursery() as nursery, _receivers(nursery, place, say):
        if await is_filled(place):
            say("The inbox was filled before.")
            filled = None
        else:
            say("Filling the inbox …")
            filled = await fill(place)
        say(where_to_look(place, filled))
        await trio.sleep_forever()


def where_to_look(place: Place, filled: Filled | None) -> str:
    """Return the text that says where the inbox is, and who may see it."""
    lines = [f"The desk is at {place.base_url}/desk", ""]
    lines.append(f"  {place.email:<22} {place.password:<20} owner")
    for each in COLLEAGUES:
        password = "as printed before" if filled is None else filled.passwords[each.email]
        lines.append(f"  {each.email:<22} {password:<20} agent, {each.team}")
    if filled is not None:
        lines.append("")
        lines.append(
            f"  {filled.contacts} contacts, {filled.conversations} conversations, {filled.messages} messages. "
            f"“{WELL}” takes every event, “{BROKEN}” refuses them all."
        )
    return "\n".join([*lines, "", "Stop it with Ctrl-C."])


@asynccontextmanager
async def _receivers(nursery: trio.Nursery, place: Place, say: Callable[[str], None]) -> AsyncIterator[None]:
    """Receive the project's webhooks in the block; afterwards nothing is sent any more, but its log stays."""
    receivers = {WELL: Receiver(Journal()), BROKEN: Receiver(Journal(), lambda _: _BROKEN_STATUS)}
    async with Person(place.base_url, place.key) as backend:
        known = {each["description"]: each["id"] for each in (await backend.get("/s2s/webhooks"))["items"]}
        ids: list[str] = []
        try:
            for name, receiver in receivers.items():
                await nursery.start(receiver.run)
                ids.append(await _register(backend, name, receiver.url, known.get(name)))
        except DemoError as refusal:
            say(f"Without webhooks, as the service refuses them (serve --allow-private-webhooks): {refusal}")
        try:
            yield
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + _CLEAN_UP_S):
                for endpoint in ids:
                    await _switch_off(backend, endpoint)
            nursery.cancel_scope.cancel()


async def _register(backend: Person, name: str, url: str, known: str | None) -> str:
    if known is None:
        body: dict[str, Any] = {"url": url, "events": [], "description": name}
        return str((await backend.post("/s2s/webhooks", body))["id"])
    await backend.patch(f"/s2s/webhooks/{known}", {"url": url, "status": "enabled"})
    return known


async def _switch_off(backend: Person, endpoint: str) -> None:
    try:
        await backend.patch(f"/s2s/webhooks/{endpoint}", {"status": "disabled"})
    except DemoError:
        return  # the service may be gone already
