"""The inbox of `deskwire demo --desk`: filled through the API, with two webhook receivers, one of them broken."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import orjson
import trio
from msgspec import Struct

from deskwire.commands.demo.channels import DemoChannel, WebhookReceiver
from deskwire.commands.demo.chats import bundled
from deskwire.commands.demo.client import ApiClient, DemoError
from deskwire.commands.demo.stories import (
    BILLING,
    COLLEAGUES,
    CUSTOMERS,
    LIVE_CONVERSATIONS,
    SUPPORT,
    PlannedConversation,
    StoryTurn,
    import_records,
    load_stories,
    plan,
)

_HEALTHY: Final = "The CRM"
_BROKEN: Final = "Search index"
_BROKEN_STATUS: Final = 503
_CLEAN_UP_TIMEOUT_S: Final = 10.0
_CONCURRENCY: Final = 6  # conversations that are held at the same time
# The live conversations with a picture, a text file and network logs, by their index.
_WITH_PICTURE: Final = 2
_WITH_TEXT: Final = 5
_WITH_LOGS: Final = 8


class DemoProject(Struct, frozen=True):
    """The demo project of a service, as its `demo.json` describes it; `token` is the owner's."""

    base_url: str
    key: str
    token: str
    project_id: str
    email: str
    password: str


def read_demo_project(data: Path) -> DemoProject:
    """Return the demo project of the service with this data directory. Raises DemoError."""
    path = data / "demo.json"
    try:
        demo = orjson.loads(path.read_bytes())
        names = ("baseUrl", "serverKey", "token", "projectId")
        url, key, token, project = (demo[name] for name in names)
        return DemoProject(url, key, token, project, demo["user"]["email"], demo["user"]["password"])
    except FileNotFoundError:
        raise DemoError(f"{path} does not exist: start the service with `deskwire serve`.") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DemoError(f"{path} can't be used ({type(error).__name__}).") from error


async def run_inbox(project: DemoProject, log: Callable[[str], None]) -> None:
    """Fill the inbox, unless it was filled before, and receive its webhooks until cancelled.

    Raises DemoError.
    """
    async with trio.open_nursery() as nursery, _webhook_receivers(nursery, project, log):
        passwords: Mapping[str, str] | None = None
        if await _is_filled(project):
            log("The inbox was filled before.")
        else:
            log("Filling the inbox …")
            passwords = await _fill(project)
        log(_credentials(project, passwords))
        await trio.sleep_forever()


def _credentials(project: DemoProject, passwords: Mapping[str, str] | None) -> str:
    """Return the address of the desk and the users who can sign in."""
    lines = [f"The desk is at {project.base_url}/desk", ""]
    lines.append(f"  {project.email:<22} {project.password:<20} owner")
    for each in COLLEAGUES:
        password = "as printed before" if passwords is None else passwords[each.email]
        lines.append(f"  {each.email:<22} {password:<20} agent, {each.team}")
    lines += ["", f"“{_HEALTHY}” accepts every webhook, “{_BROKEN}” refuses them all."]
    return "\n".join([*lines, "", "Stop it with Ctrl-C."])


@asynccontextmanager
async def _webhook_receivers(
    nursery: trio.Nursery, project: DemoProject, log: Callable[[str], None]
) -> AsyncIterator[None]:
    """Receive the project's webhooks in the block; afterwards the endpoints are disabled."""
    receivers = {
        _HEALTHY: WebhookReceiver(DemoChannel()),
        _BROKEN: WebhookReceiver(DemoChannel(), _BROKEN_STATUS),
    }
    async with ApiClient(project.base_url, project.key) as backend:
        known = {each["description"]: each["id"] for each in (await backend.get("/s2s/webhooks"))["items"]}
        ids: list[str] = []
        try:
            for name, receiver in receivers.items():
                await nursery.start(receiver.run)
                ids.append(await _register(backend, name, receiver.url, known.get(name)))
        except DemoError as error:
            log(
                f"Without webhooks, because the service refuses them (serve --allow-private-webhooks): {error}"
            )
        try:
            yield
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + _CLEAN_UP_TIMEOUT_S):
                for endpoint in ids:
                    await _disable(backend, endpoint)
            nursery.cancel_scope.cancel()


async def _register(backend: ApiClient, name: str, url: str, known: str | None) -> str:
    if known is None:
        body: dict[str, Any] = {"url": url, "events": [], "description": name}
        return str((await backend.post("/s2s/webhooks", body))["id"])
    await backend.call("PATCH", f"/s2s/webhooks/{known}", {"url": url, "status": "enabled"})
    return known


async def _disable(backend: ApiClient, endpoint: str) -> None:
    try:
        await backend.call("PATCH", f"/s2s/webhooks/{endpoint}", {"status": "disabled"})
    except DemoError:
        return  # the service may have ended already


async def _is_filled(project: DemoProject) -> bool:
    """Return whether an earlier run has filled the inbox completely."""
    async with _user(project, project.token) as owner:
        last = CUSTOMERS[-1].user_id
        known = (await owner.get("/contacts", q=last))["items"]
        if all(each["userId"] != last for each in known):
            return False  # a list of conversations refuses an unknown contact
        return bool((await owner.get("/conversations", contact=last))["items"])


async def _fill(project: DemoProject) -> Mapping[str, str]:
    """Fill the inbox: people first, then older conversations, then live ones. Return the agents' passwords."""
    content = orjson.loads(bundled("inbox.json"))
    async with AsyncExitStack() as stack:
        backend = await stack.enter_async_context(ApiClient(project.base_url, project.key))
        owner = await stack.enter_async_context(_user(project, project.token))
        agents = await _add_agents(stack, project, owner)
        teams = await _add_teams(owner, agents)
        for number, snippet in enumerate(content["snippets"]):
            await agents[number % len(agents)].client.post("/snippets", snippet)
        planned = plan(load_stories())
        contacts = [
            await backend.call("PUT", f"/s2s/contacts/{each.user_id}", each.identity) for each in CUSTOMERS
        ]
        await _import(backend, owner, planned[:-LIVE_CONVERSATIONS], agents, teams)
        for number, contact in enumerate(contacts[::3]):
            name, text = content["memories"][number % len(content["memories"])]
            await owner.post(f"/sessions/{contact['id']}/memory", {"name": name, "content": text})
        await _add_survey(backend, owner, content["survey"])
        live = _LiveConversations(backend, agents, teams)
        *others, last = enumerate(planned[-LIVE_CONVERSATIONS:])
        limiter = trio.CapacityLimiter(_CONCURRENCY)
        async with trio.open_nursery() as nursery:
            for index, each in others:
                nursery.start_soon(live.hold, limiter, index, each)
        await live.hold(limiter, *last)
    return {each.email: each.password for each in agents}


def _user(project: DemoProject, token: str) -> ApiClient:
    return ApiClient(project.base_url, token, project.project_id)


class _SignedInAgent(Struct, frozen=True):
    """A colleague with a client of its own."""

    id: str
    email: str
    team: str
    client: ApiClient
    password: str


async def _add_agents(
    stack: AsyncExitStack, project: DemoProject, owner: ApiClient
) -> Sequence[_SignedInAgent]:
    organisation = (await owner.get("/organisations"))["items"][0]["id"]
    agents: list[_SignedInAgent] = []
    for each in COLLEAGUES:
        body = {"email": each.email, "name": each.name, "role": "agent"}
        member = await owner.post(f"/organisations/{organisation}/members", body)
        password = f"demo-{secrets.token_urlsafe(9)}"
        async with ApiClient(project.base_url) as anonymous:
            signed_in = await anonymous.post(
                "/auth/token", {"email": each.email, "password": member["password"], "newPassword": password}
            )
        client = await stack.enter_async_context(_user(project, signed_in["token"]))
        agents.append(_SignedInAgent(member["id"], each.email, each.team, client, password))
    return agents


async def _add_teams(owner: ApiClient, agents: Sequence[_SignedInAgent]) -> Sequence[str]:
    """Return the ids of both teams, with their members added."""
    known = {each["name"]: each["id"] for each in (await owner.get("/teams"))["items"]}
    ids: list[str] = []
    for name in (SUPPORT, BILLING):
        members = [each.id for each in agents if each.team == name]
        if name in known:
            await owner.call("PATCH", f"/teams/{known[name]}", {"members": members})
            ids.append(known[name])
        else:
            ids.append((await owner.post("/teams", {"name": name, "members": members}))["id"])
    return ids


async def _import(
    backend: ApiClient,
    owner: ApiClient,
    old: Sequence[PlannedConversation],
    agents: Sequence[_SignedInAgent],
    teams: Sequence[str],
) -> None:
    """Import older conversations, then tag and snooze some of them."""
    now, ids = time.time_ns() // 1_000_000, [each.id for each in agents]
    await backend.send_lines(
        "/s2s/import", [record for each in old for record in import_records(each, now, ids, teams)]
    )
    for each in old:
        if each.status != "CLOSED" or each.number % 4 == 0:
            found = await backend.get("/s2s/import/conversation", externalId=f"desk-{each.number}")
            await owner.call("PATCH", f"/conversations/{found['id']}", _tags_and_snooze(each))


def _tags_and_snooze(each: PlannedConversation) -> dict[str, Any]:
    fields: dict[str, Any] = {"tags": list(each.tags)}
    if each.snoozed:
        until = datetime.now(UTC) + timedelta(hours=2 + each.number)
        fields["snoozedUntil"] = until.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return fields


async def _add_survey(backend: ApiClient, owner: ApiClient, survey: Mapping[str, Any]) -> None:
    survey_id = (await owner.post("/engagement/surveys", survey))["id"]
    scores, comments = (9, 10, 3, 8), ("", "Quick!", "It took a week.", "")
    for customer, score, comment in zip(CUSTOMERS, scores, comments, strict=False):
        answers = {"score": score} | ({"why": comment} if comment else {})
        body = {"contact": {"userId": customer.user_id}, "answers": answers}
        await backend.post(f"/s2s/surveys/{survey_id}/responses", body)


class _LiveConversations(Struct, frozen=True):
    """Holds conversations message by message, as customers and agents do."""

    backend: ApiClient
    agents: Sequence[_SignedInAgent]
    teams: Sequence[str]

    async def hold(self, limiter: trio.CapacityLimiter, index: int, each: PlannedConversation) -> None:
        """Hold a conversation, and leave it in its planned state."""
        async with limiter:
            conversation = await self._start(index, each)
            path, agent = f"/conversations/{conversation}", self.agents[each.agent].client
            if each.assigned != "nobody":
                await agent.post(f"{path}/assign", {"assignee": self._assignee(each)})
            for number, turn in enumerate(each.turns[1:]):
                await self._send(path, agent, turn, with_text=number == 0 and index == _WITH_TEXT)
            await agent.call("PATCH", path, _tags_and_snooze(each))
            if index % 6 == 1:
                await agent.post("/tickets", self._ticket(each, conversation))
            if index == _WITH_LOGS:
                await self._log_requests(path)
            await self._finish(path, agent, each)

    async def _start(self, index: int, each: PlannedConversation) -> str:
        message: dict[str, Any] = {"text": each.turns[0].text}
        if index == _WITH_PICTURE:
            picture = await self.backend.upload("parcel.png", bundled("parcel.png"), "image/png")
            message["attachments"] = [picture]
        contact = {"userId": each.customer.user_id, **each.customer.identity}
        body = {"contact": contact, "title": each.title, "message": message}
        return str((await self.backend.post("/s2s/conversations", body))["id"])

    async def _send(self, path: str, agent: ApiClient, turn: StoryTurn, *, with_text: bool) -> None:
        if turn.speaker == "customer":
            body = {"text": turn.text, "author": {"type": "contact"}}
            await self.backend.post(f"/s2s{path}/messages", body)
            return
        message: dict[str, Any] = {"text": turn.text, "internal": turn.speaker == "note"}
        if with_text:
            text = b"08:04 depot 7: scan of A-4100, label not readable\n"
            message["attachments"] = [await self.backend.upload("scans.txt", text, "text/plain")]
        await agent.post(f"{path}/messages", message)

    def _assignee(self, each: PlannedConversation) -> dict[str, str]:
        if each.assigned == "team":
            return {"type": "team", "id": self.teams[each.number % len(self.teams)]}
        return {"type": "user", "id": self.agents[each.agent].id}

    def _ticket(self, each: PlannedConversation, conversation: str) -> dict[str, Any]:
        return {
            "title": each.title,
            "priority": ("LOW", "MEDIUM", "HIGH")[each.number % 3],
            "conversationId": conversation,
            "tags": list(each.tags),
            "processingUser": self.agents[each.agent].id,
        }

    async def _log_requests(self, path: str) -> None:
        url = "https://shop.example/checkout"
        request = {"url": url, "duration": 30_012, "response": "upstream timed out"}
        await self.backend.call("PUT", f"/s2s{path}/network-logs", {"requests": [request]})

    async def _finish(self, path: str, agent: ApiClient, each: PlannedConversation) -> None:
        if each.status == "PENDING":
            await agent.call("PATCH", path, {"status": "PENDING"})
        elif each.status == "CLOSED":
            await agent.post(f"{path}/close")
            if each.rating is not None:
                await self.backend.post(f"/s2s{path}/rating", {"rating": each.rating})
