"""A project with a marker in each area, and the areas that each permission may see; for `tests/api/scopes`.

Written by hand, apart from the sources, as `route_guards` is. A new route is called automatically, with a body from
below or the minimum that its model accepts; a new parameter of a path has to be planted here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from deskwire.http.api.routing import Route
from tests.support.api.customers import SITE, signed
from tests.support.api.service import Service
from tests.support.log_leaks import plant

AREAS: Final = (
    "thread",
    "message",
    "note",
    "identity",
    "profile",
    "ticket",
    "memory",
    "survey",
    "answer",
    "translation",
    "snippet",
    "workflow",
    "team",
    "webhook",
    "credential",
    "key",
    "channel",
)
"""The areas with a marker: the conversation itself is the thread, a contact's attributes and tags are the profile."""

_ALL_OF_CONVERSATIONS: Final = frozenset({"thread", "message", "note", "identity", "snippet", "workflow"})

SEES: Final[Mapping[str, frozenset[str]]] = {
    "conversations.read": _ALL_OF_CONVERSATIONS,
    "conversations.reply": frozenset({"thread"}),
    "conversations.manage": frozenset({"thread"}),
    "conversations.delete": frozenset(),
    "contacts.read": frozenset({"identity", "profile"}),
    "contacts.manage": frozenset({"identity", "profile"}),
    "tickets.read": frozenset({"ticket", "team"}),
    "tickets.manage": frozenset({"ticket"}),
    "memory.read": frozenset({"memory"}),
    "memory.manage": frozenset({"memory"}),
    "surveys.read": frozenset({"survey", "answer"}),
    "surveys.manage": frozenset({"survey"}),
    "translations.read": frozenset({"translation"}),
    "translations.manage": frozenset(),
    "webhooks.manage": frozenset({"webhook"}),
    "projects.manage": frozenset({"credential", "key", "channel"}),
    "members.manage": frozenset({"team"}),
    "snippets.manage": frozenset(),
}
"""The areas whose markers a credential with only this permission may see, in any form."""

LISTING_NEEDS: Final[Mapping[str, str]] = {
    "ticket": "tickets.read",
    "survey": "surveys.read",
    "webhook": "webhooks.manage",
    "contact.changed": "contacts.read",
    "contact.merged": "contacts.read",
    "contact.session.started": "contacts.read",
}
"""The permission that an endpoint's events need, by type or its first word; others need `conversations.read`."""


def mark(area: str) -> str:
    """Return the marker of an area, which occurs in no other name."""
    return f"mkzq{area}qz"


def seen_in(text: str | bytes) -> set[str]:
    """Return the areas whose markers are in a text."""
    found = text if isinstance(text, str) else text.decode(errors="replace")
    return {area for area in AREAS if mark(area) in found}


@dataclass
class Planted:
    """A project full of markers: values for path parameters, and ids for bodies."""

    service: Service
    names: dict[str, str] = field(default_factory=dict)
    others: int = 0

    def path(self, route: Route) -> str:
        """Return the route's path with the planted values for its parameters."""
        return re.sub("<(?:[a-z]+:)?([^>]+)>", lambda match: self.names[match[1]], route.path)

    async def plant(self) -> None:
        """Create one object of each kind, again if a caller has removed it."""
        await self._plant_conversation()
        await self._plant_beside(self.names["conversation_id"])
        await self._plant_settings()
        await self._plant_channel()

    async def _plant_conversation(self) -> None:
        service, names = self.service, self.names
        await self.plant_another()
        names["project_id"] = service.demo["projectId"]
        names["user_id"] = "ada"
        conversation = await self._act(
            "POST",
            "/s2s/conversations",
            contact={
                "userId": "ada",
                "name": mark("identity"),
                "email": f"{mark('identity')}@example.org",
                "phone": "+4930123456",
            },
            title=mark("thread"),
            attributes={"order": mark("thread")},
            message={"text": mark("message")},
        )
        names["conversation_id"] = conversation["id"]
        names["contact_id"] = names["session_id"] = conversation["contact"]["id"]
        at = f"/s2s/conversations/{conversation['id']}"
        names["message_id"] = (await self._act("POST", f"{at}/messages", text=mark("message")))["id"]
        await self._act("PUT", f"{at}/tags", tags=[mark("thread")])
        logs = {"requests": [{"url": f"https://example.org/{mark('message')}"}]}
        assert (await service.http.put(f"{at}/network-logs", json=logs)).status_code == 204
        await self._act(
            "POST", f"/conversations/{conversation['id']}/messages", text=mark("note"), internal=True
        )
        await self._act(
            "PATCH",
            "/s2s/contacts/ada",
            attributes={"plan": mark("profile")},
            tags=[mark("profile")],
            avatar=f"https://example.org/{mark('identity')}",
        )

    async def plant_another(self) -> None:
        """Create a contact to merge into the planted one, because a merge removes it."""
        self.others += 1
        made = await self.service.http.put(f"/s2s/contacts/visitor{self.others}", json={})
        self.names |= {"other": made.json()["userId"], "other_id": made.json()["id"]}
        conversation = await self.service.create(made.json()["userId"])
        self.names["other_conversation_id"] = conversation["id"]

    async def _plant_beside(self, conversation: str) -> None:
        names = self.names
        ticket = {"title": mark("ticket"), "description": mark("ticket")}
        names["ticket_id"] = (await self._act("POST", "/tickets", conversationId=conversation, **ticket))[
            "id"
        ]
        memory = f"/sessions/{names['session_id']}/memory"
        await self._act("POST", memory, name="plan", content=mark("memory"))
        names["entry_name"] = "plan"
        survey = await self._act("POST", "/engagement/surveys", name=mark("survey"), definition=DEFINITION)
        names |= {"survey_id": survey["id"], "version": "1"}
        path = f"/s2s/surveys/{survey['id']}/responses"
        answer = await self._act("POST", path, contact={"userId": "ada"}, answers={"why": mark("answer")})
        names["response_id"] = answer["id"]
        names["entry_id"] = "statictranslation:hello"
        fields = {"text": mark("translation")}
        await self._act("PUT", f"/translations/entries/{names['entry_id']}", language="en", fields=fields)
        texts = {"title": mark("snippet"), "text": mark("snippet")}
        snippet = await self._act("POST", "/snippets", shortcut=conversation[4:].lower(), **texts)
        names["snippet_id"] = snippet["id"]
        upload = await self.service.http.post("/uploads", files={"file": ("a.txt", b"hello")})
        names["upload_id"] = upload.json()["id"]
        recording = await self.service.http.post("/uploads", files={"file": ("a.wav", _WAV)})
        names["audio_url"] = recording.json()["url"]

    async def _plant_settings(self) -> None:
        names, service = self.names, self.service
        workflow = await self._act("POST", "/workflows", name=mark("workflow"), **FLOW)
        names["workflow_id"] = workflow["id"]
        names["team_id"] = (await self._act("POST", "/teams", name=f"{mark('team')} {workflow['id']}"))["id"]
        project = f"/projects/{names['project_id']}"
        key = await self._act("POST", f"{project}/keys", label=mark("key"))
        credential = await self._act(
            "POST", f"{project}/credentials", name=mark("credential"), permissions=[]
        )
        names |= {"key_id": key["id"], "credential_id": credential["id"], "consumer_id": "mirror"}
        for each in (await service.http.get("/s2s/webhooks")).json()["items"]:
            await service.http.delete(f"/s2s/webhooks/{each['id']}")
        endpoint = await self._act(
            "POST", "/s2s/webhooks", url=f"http://127.0.0.1:9999/{mark('webhook')}", events=[]
        )
        names["endpoint_id"] = endpoint["id"]
        await self._act("PATCH", f"/s2s/webhooks/{endpoint['id']}", status="disabled")
        await service.http.post(
            f"/s2s/conversations/{names['conversation_id']}/messages", json={"text": mark("message")}
        )
        events = (await service.http.get("/s2s/events", params={"limit": "200"})).json()["items"]
        names["event_id"] = events[-1]["id"]
        log = (await service.http.get(f"/s2s/webhooks/{endpoint['id']}/deliveries")).json()["items"]
        names["delivery_id"] = log[0]["id"]
        await self._act("PATCH", f"/s2s/webhooks/{endpoint['id']}", status="enabled")

    async def _plant_channel(self) -> None:
        """Create a channel with a session of the contact, in place of the ones before."""
        service, names = self.service, self.names
        for each in (await service.http.get("/channels")).json()["items"]:
            await service.http.delete(f"/channels/{each['id']}")
        channel = await self._act("POST", "/channels", name=mark("channel"), origins=[SITE])
        names["channel_id"] = channel["id"]
        body = {"channelId": channel["id"], "identity": signed(channel, "ada")}
        page = {"Origin": SITE, "Authorization": "", "User-Agent": mark("identity")}
        started = await service.http.post("/customer/session", json=body, headers=page)
        assert started.status_code == 200, started.text
        plant(started.json()["token"])
        (session,) = (await service.http.get("/s2s/contacts/ada/sessions")).json()["items"]
        names["customer_session_id"] = session["id"]

    async def plant_events(self) -> None:
        """Cause an event of each kind from objects with markers."""
        await self._plant_conversation()
        names = self.names
        await self._plant_beside(names["conversation_id"])
        await self._plant_channel()
        url = f"http://127.0.0.1:9999/{mark('webhook')}"
        other = await self._act("POST", "/s2s/webhooks", url=url, events=["webhook.enabled"])
        await self._act("PATCH", f"/s2s/webhooks/{other['id']}", status="disabled")
        await self._act(
            "PATCH", "/s2s/contacts/ada", name=f"{mark('identity')} B", tags=[mark("profile"), "b"]
        )
        await self._act("PATCH", f"/tickets/{names['ticket_id']}", priority="HIGH")
        await self._act("POST", f"/s2s/conversations/{names['conversation_id']}/close")

    async def _act(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        of = self.service.http if path.startswith("/s2s") else self.service.dashboard
        answer = await of.request(method, path, json=body)
        assert answer.status_code == 200, (path, answer.text)
        made: dict[str, Any] = answer.json()
        return made

    def sent(self, route: Route) -> dict[str, Any]:
        """Return the query and the body of a call that succeeds if the caller has the permission."""
        name = route.operation_id
        if name in ("importHistory",):
            return {"content": _LINES, "headers": {"Content-Type": "application/x-ndjson"}}
        if name == "uploadFile":
            return {"files": {"file": ("b.txt", b"mine")}}
        if name == "authorizeStream":
            channel = f"private-project-{self.names['project_id']}"
            return {"json": {"socket_id": "1.1", "channel_name": channel, "consumerId": "own"}}
        query = _QUERIES.get(name, {})
        if route.method == "GET":
            return {"params": query}
        return {"json": orjson.loads(self._filled(BODIES.get(name, {})))}

    def _filled(self, body: Mapping[str, Any]) -> bytes:
        text = orjson.dumps(body).decode()
        return re.sub(r"<(\w+)>", lambda match: self.names[match[1]], text).encode()


DEFINITION: Final = {
    "schemaVersion": "2.0",
    "title": mark("survey"),
    "languages": ["en"],
    "primaryLanguage": "en",
    "questions": [{"id": "why", "type": "text", "title": {"en": mark("survey")}}],
}
FLOW: Final = {
    "trigger": {"type": "manual"},
    "flows": [{"id": "main", "actions": [{"id": 1, "type": "message", "text": mark("workflow")}]}],
}
_OWN_FLOW: Final = {
    "trigger": {"type": "manual"},
    "flows": [{"id": "main", "actions": [{"id": 1, "type": "message", "text": "Hello"}]}],
}
_OWN_DEFINITION: Final = {
    **DEFINITION,
    "title": "Own",
    "questions": [{"id": "why", "type": "text", "title": {"en": "Why?"}}],
}
_WAV: Final = (
    b"RIFF\x2c\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x08\x00\x00\x00"
    + b"\x00" * 8
)
_LINES: Final = (
    b'{"type":"conversation","externalId":"c1","contact":{"userId":"ada"},"createdAt":"2024-01-01T00:00:00Z"}\n'
    b'{"type":"message","externalId":"m1","conversation":"c1","author":{"type":"contact"},"text":"Hello",'
    b'"createdAt":"2024-01-01T00:00:01Z"}\n'
)
_QUERIES: Final[Mapping[str, Mapping[str, str]]] = {
    "search": {"q": "mkzq", "in": "contacts,tickets"},
    "findImported": {"externalId": "c1"},
}
_MINE: Final = {"url": "http://127.0.0.1:9999/", "events": []}
_CONTACT: Final = {"userId": "ada"}
BODIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "createConversation": {"contact": _CONTACT},
    "changeConversation": {"status": "PENDING"},
    "dashboardChangeConversation": {"status": "PENDING"},
    "postMessage": {"text": "Hello", "author": {"type": "bot"}},
    "assignConversation": {"assignee": None},
    "dashboardAssignConversation": {"assignee": None},
    "setContactTyping": {"typing": True},
    "mergeConversation": {"into": "<other_conversation_id>"},
    "splitConversation": {"messageIds": ["<message_id>"]},
    "markNoAnswerNeeded": {"index": 0},
    "rateConversation": {"rating": 9},
    "replaceNetworkLogs": {"requests": []},
    "replyToStep": {"actionId": 1, "value": "x"},
    "startWorkflow": {"workflowId": "<workflow_id>"},
    "dashboardStartWorkflow": {"workflowId": "<workflow_id>"},
    "redactMessage": {"ranges": [{"start": 0, "end": 1}]},
    "dashboardRedactMessage": {"ranges": [{"start": 0, "end": 1}]},
    "replaceConversationTags": {"tags": ["own"]},
    "putContactIdentity": {"name": "Ada"},
    "changeContact": {"tags": ["own"]},
    "dashboardChangeContact": {"tags": ["own"]},
    "mergeContact": {"from": "<other>"},
    "dashboardMergeContact": {"from": "<other_id>"},
    "createEndpoint": _MINE,
    "createWebhook": _MINE,
    "changeEndpoint": {"url": "http://127.0.0.1:9999/mine", "status": "enabled"},
    "changeWebhook": {"url": "http://127.0.0.1:9999/mine", "status": "enabled"},
    "recover": {"since": "2020-01-01T00:00:00Z"},
    "recoverWebhook": {"since": "2020-01-01T00:00:00Z"},
    "replayConversation": {"conversationId": "<conversation_id>"},
    "replayToWebhook": {"conversationId": "<conversation_id>"},
    "createWorkflow": {"name": "Own", **_OWN_FLOW},
    "changeWorkflow": {"name": "Renamed"},
    "validateWorkflow": {"name": "Own", **_OWN_FLOW},
    "simulateWorkflow": {"flows": _OWN_FLOW["flows"]},
    "createTicket": {"title": "Own"},
    "changeTickets": {"selection": {"ids": ["<ticket_id>"]}, "payload": {"priority": "HIGH"}},
    "changeTicket": {"priority": "LOW"},
    "makeVoiceReply": {"audioUrl": "<audio_url>"},
    "makeVoiceReplyInConversation": {"audioUrl": "<audio_url>"},
    "createTeam": {"name": "Own"},
    "changeTeam": {"members": []},
    "putEntry": {"language": "en", "fields": {"text": "Hello"}},
    "putMemory": {"name": "own", "content": "x"},
    "changeMemory": {"description": "own"},
    "createSurvey": {"name": "Own", "definition": _OWN_DEFINITION},
    "changeSurvey": {"status": "OPEN"},
    "validateDefinition": {"definition": _OWN_DEFINITION},
    "publishVersion": {"definition": _OWN_DEFINITION},
    "createResponse": {"contact": _CONTACT, "answers": {"why": "x"}},
    "putInsights": {"summary": "x", "themes": [], "drivers": [], "segments": [], "alerts": []},
    "changeProject": {"settings": {"memoryEnabled": True}},
    "createChannel": {"name": "Own"},
    "changeChannel": {"enabled": True},
    "checkChannelSite": {"url": "http://127.0.0.1:9999/"},
    "createCredential": {"name": "Child", "permissions": []},
    "changeCredential": {"name": "Renamed"},
}
"""A body for each call that needs one, which changes as little as possible; `<name>` is a path parameter."""
