"""Two organisations in one installation: neither can learn anything of the other's objects (decisions 1, 3)."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx

from deskwire.http.api.routing import Route
from deskwire.http.app import ROUTES
from deskwire.http.schemas.base import public_name
from tests.api.events.test_channels_agree import receiving, register
from tests.api.stream.test_revocation import Streams, project_channel
from tests.engine.workflows.building import send, workflow
from tests.support.api.browsers import browser, enter
from tests.support.api.links import invited
from tests.support.api.openapi_check import caller
from tests.support.api.service import Service, running
from tests.support.api.surveys import survey
from tests.support.sockets.admin_socket import operate

BODIES: Final[Mapping[str, Any]] = {
    "PostMessageRequest": {"text": "x"},
    "DashboardPostMessageRequest": {"text": "x"},
    "AssignConversationRequest": {"assignee": None},
    "SetContactTypingRequest": {"typing": True},
    "ShowViewRequest": {"conversationIds": []},
    "PutSeenRequest": {"index": 1},
    "MergeConversationRequest": {"into": "cnv_00000000000000000000000000"},
    "SplitConversationRequest": {"messageIds": ["msg_00000000000000000000000000"]},
    "MarkNoAnswerNeededRequest": {"index": 1},
    "PutSeenMentionsRequest": {"messageId": "msg_00000000000000000000000000"},
    "PutDraftRequest": {"text": "x", "version": 0},
    "SendHeldMessageRequest": {},
    "DashboardChangeConversationRequest": {"title": "x"},
    "RateConversationRequest": {"rating": 5},
    "ReplaceNetworkLogsRequest": {"requests": []},
    "ChangeContactRequest": {"name": "x"},
    "ChangeConversationRequest": {"title": "x"},
    "ChangeWebhookEndpointRequest": {"description": "x"},
    "ReplayConversationRequest": {"conversationId": "cnv_00000000000000000000000000"},
    "RecoverEventsRequest": {"since": "2026-01-01T00:00:00Z"},
    "SetTypingRequest": {"typing": True},
    "ChangeTicketRequest": {"title": "x"},
    "MakeVoiceReplyRequest": {"audioUrl": "http://files.test/x"},
    "ChangeTeamRequest": {"name": "x"},
    "PutTranslationRequest": {"language": "en", "fields": {"text": "x"}},
    "PutMemoryRequest": {"name": "x", "content": "x"},
    "ChangeMemoryRequest": {"content": "x"},
    "ChangeSnippetRequest": {"title": "x"},
    "ChangeViewRequest": {"name": "x"},
    "ChangeSurveyRequest": {"name": "x"},
    "ValidateSurveyRequest": {"definition": {}},
    "PublishSurveyVersionRequest": {"definition": {}},
    "CreateSurveyResponseRequest": {"answers": {}},
    "RenameRequest": {"name": "x"},
    "ChangeOrganisationRequest": {"name": "x"},
    "AddMemberRequest": {"email": "x@example.org", "role": "agent"},
    "ChangeMemberRequest": {"role": "agent"},
    "CreateProjectRequest": {"name": "x"},
    "ChangeProjectRequest": {"name": "x"},
    "CreateKeyRequest": {"label": "x"},
    "RedactMessageRequest": {"text": True},
    "ReplaceTagsRequest": {"tags": ["vip"]},
    "MergeContactRequest": {"from": "x"},
    "DashboardMergeContactRequest": {"from": "con_00000000000000000000000000"},
    "CreateRoleRequest": {"name": "x", "permissions": []},
    "ChangeRoleRequest": {"name": "x"},
    "CreateCredentialRequest": {"name": "x", "permissions": []},
    "ChangeCredentialRequest": {"name": "x"},
    "RotateCredentialRequest": {},
    "ChangeWorkflowRequest": {"name": "x"},
    "ReplyToStepRequest": {"actionId": 1, "value": "x"},
    "StartWorkflowRequest": {"workflowId": "wfl_00000000000000000000000000"},
}
"""A good body for each model that needs one, so that nothing but the object can be refused."""

NAMED_BY_CALLER: Final = ("putContactIdentity", "putEntry")
"""These make what the path names, in the caller's own project: the name says nothing of another's."""

KINDS: Final = ("server_key", "dashboard", "organisation", "project")


@dataclass
class Stranger:
    """An owner of another organisation, with a project and a server key."""

    backend: httpx.AsyncClient
    agent: httpx.AsyncClient

    def client(self, route: Route) -> httpx.AsyncClient:
        return self.backend if route.access.kind == "server_key" else self.agent


@asynccontextmanager
async def stranger(service: Service) -> AsyncIterator[Stranger]:
    """Someone else."""
    await operate(service, "org.create", name="Elsewhere")
    project = await operate(service, "project.create", organisation="Elsewhere", project={"name": "P"})
    key = (await operate(service, "key.create", project=project["id"], label="theirs"))["key"]
    email = "boss@elsewhere.example"
    user = await operate(service, "user.create", email=email, organisation="Elsewhere", role="owner")
    token = (await operate(service, "token.create", user=user["id"], ttlS=3600))["token"]
    agent = {"Authorization": f"Bearer {token}", "project": project["id"]}
    async with (
        caller(service.url, {"Authorization": f"Bearer {key}"}) as backend,
        caller(service.url, agent) as signed_in,
    ):
        yield Stranger(backend, signed_in)


async def everything(service: Service, url: str) -> dict[str, str]:
    """Make one object of each kind in the demo project, by the name of the path parameter."""
    conversation = await service.create("u1")
    message = await service.say(conversation, "Hello")
    waiting = {"text": "Soon", "holdSeconds": 60}
    held = await service.dashboard.post(f"/conversations/{conversation['id']}/messages", json=waiting)
    endpoint = await register(service, url)
    delivery = (await service.http.post(f"/s2s/webhooks/{endpoint['id']}/test")).json()
    contact = (await service.http.get("/s2s/contacts/u1")).json()
    await service.dashboard.post(
        f"/sessions/{contact['id']}/memory", json={"name": "plan", "content": "gold"}
    )
    entry = {"language": "en", "fields": {"text": "x"}}
    await service.dashboard.put("/translations/entries/statictranslation:title", json=entry)
    ticket = (await service.dashboard.post("/tickets", json={"title": "T"})).json()
    team = (await service.dashboard.post("/teams", json={"name": "Billing"})).json()
    hello = {"shortcut": "hi", "title": "Hello", "text": "Hello"}
    snippet = (await service.dashboard.post("/snippets", json=hello)).json()
    open_ones = {"name": "Open", "filter": {"status": "OPEN"}}
    view = (await service.dashboard.post("/views", json=open_ones)).json()
    closing = {"filter": {"tag": "none"}, "action": {"type": "close"}}
    job = (await service.dashboard.post("/bulk-jobs", json=closing)).json()
    made = await survey(service)
    flow = (await service.dashboard.post("/workflows", json=workflow([send(1)]))).json()
    answered = await service.http.post(f"/s2s/surveys/{made['id']}/responses", json={"answers": {}})
    project = service.demo["projectId"]
    key = (await service.dashboard.get(f"/projects/{project}/keys")).json()["items"][0]
    named = {"name": "CRM", "permissions": ["tickets.read"]}
    credential = (await service.dashboard.post(f"/projects/{project}/credentials", json=named)).json()
    channel = (await service.dashboard.post("/channels", json={"name": "Shop"})).json()
    organisation = (await service.dashboard.get(f"/projects/{project}")).json()["organisationId"]
    role = {"name": "Reader", "permissions": ["tickets.read"]}
    made_role = (await service.dashboard.post(f"/organisations/{organisation}/roles", json=role)).json()
    async with browser(service) as page:
        await enter(page, "owner@demo.example", service.demo["user"]["password"])
        session = (await page.get("/users/me/sessions")).json()["items"][0]["id"]
    invitation = await invited(service)
    return {
        "role_id": made_role["id"],
        "conversation_id": conversation["id"],
        "message_id": message["id"],
        "held_message_id": held.json()["id"],
        "mode": "reply",
        "endpoint_id": endpoint["id"],
        "delivery_id": delivery["id"],
        "event_id": (await service.events())[0]["id"],
        "user_id": (await service.dashboard.get("/users/me")).json()["id"],
        "user:user_id": "u1",
        "consumer_id": await consumer(service),
        "session_id": contact["id"],
        "contact_id": contact["id"],
        "entry_name": "plan",
        "entry_id": "statictranslation:title",
        "ticket_id": ticket["id"],
        "team_id": team["id"],
        "snippet_id": snippet["id"],
        "view_id": view["id"],
        "bulk_job_id": job["id"],
        "survey_id": made["id"],
        "version": "1",
        "workflow_id": flow["id"],
        "response_id": answered.json().get("id", "rsp_00000000000000000000000001"),
        "organisation_id": organisation,
        "invitation_id": invitation["id"],
        "project_id": project,
        "key_id": key["id"],
        "credential_id": credential["id"],
        "channel_id": channel["id"],
        "token_id": (await service.dashboard.get("/users/me/tokens")).json()["items"][0]["id"],
        "browser_session_id": session,
        "passkey_id": "pky_00000000000000000000000000",
        "upload_id": "upl_00000000000000000000000000",
        "identity_id": "idn_00000000000000000000000000",
        "customer_session_id": "cse_00000000000000000000000000",
        "stream_id": "str_00000000000000000000000000",
    }


async def consumer(service: Service) -> str:
    """The id of one that has consumed the project's channel."""
    async with AsyncExitStack() as stack:
        stream = await Streams(service, stack).open(service.demo["serverKey"])
        await stream.subscribe(project_channel(service), "mirror-17")
    return "mirror-17"


def address(route: Route, objects: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        converter, name = match[1] or "", match[2]
        return quote(objects.get(f"{converter}{name}") or objects[name], safe=":")

    return re.sub("<([a-z]+:)?([a-z_]+)>", value, route.path)


def unknown(objects: Mapping[str, str]) -> dict[str, str]:
    """Return an id of each kind that no object has."""
    return {name: _nobodys(value) for name, value in objects.items()}


def _nobodys(value: str) -> str:
    kind, mark, rest = value.partition("_")
    if mark:
        return f"{kind}_{'0' * len(rest)}"
    return value if value.isdigit() else f"{value}-none"


def told(answer: httpx.Response) -> tuple[int, dict[str, Any]]:
    return answer.status_code, {**answer.json(), "requestId": ""}


async def test_no_route_shows_another_tenant_that_an_object_exists(tmp_path: Path) -> None:
    routes = [
        route
        for route in ROUTES
        if "<" in route.path and route.access.kind in KINDS and route.operation_id not in NAMED_BY_CALLER
    ]
    assert len(routes) > 80
    async with receiving() as receiver, running(tmp_path) as service, stranger(service) as other:
        objects = await everything(service, receiver.url)
        for route in routes:
            body = BODIES.get(public_name(route.body), {}) if route.body is not None else None
            client = other.client(route)
            ours = await client.request(route.method, address(route, objects), json=body)
            nobodys = await client.request(route.method, address(route, unknown(objects)), json=body)
            assert ours.status_code in (403, 404), (route.operation_id, ours.text)
            assert told(ours) == told(nobodys), route.operation_id
            if route.access.kind == "dashboard":  # and with our project's id
                header = {"project": service.demo["projectId"]}
                refused = await client.request(
                    route.method, address(route, objects), json=body, headers=header
                )
                assert (refused.status_code, refused.json()["code"]) == (404, "project_not_found"), (
                    route.operation_id
                )
        fetched = await service.fetch({"id": objects["conversation_id"]})
        assert (fetched["title"], fetched["closed"]) == (None, False)


async def test_no_list_shows_a_stranger_anything_of_ours(tmp_path: Path) -> None:
    lists = [
        route
        for route in ROUTES
        if route.method == "GET"
        and "<" not in route.path
        and route.access.kind in ("server_key", "dashboard")
        and route.whole  # the agents' stream has no end, and has tests of its own
        and not any(field.is_required() for field in route.query.model_fields.values())
    ]
    assert len(lists) > 8
    async with receiving() as receiver, running(tmp_path) as service, stranger(service) as other:
        objects = await everything(service, receiver.url)
        for route in lists:
            answer = await other.client(route).get(route.path)
            assert answer.status_code == 200, (route.operation_id, answer.text)
            shown = [name for name, value in objects.items() if len(value) > 8 and value in answer.text]
            assert shown == [], route.operation_id
