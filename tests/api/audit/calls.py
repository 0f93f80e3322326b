"""A call of each route that the audit trail records, and what its record says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import httpx

from deskwire.engine.audit.deeds import shown_url
from tests.api.events.test_channels_agree import register
from tests.api.stream.test_revocation import Streams, project_channel
from tests.support.api.browsers import PAGE, browser, enter, staff
from tests.support.api.service import Service
from tests.support.api.staff import PASSWORD, client, hire, organisation_of, sign_in
from tests.support.api.surveys import respond, survey
from tests.support.log_leaks import plant

CLIENT: Final = "203.0.113.7"
"""Where all of them come from."""
NEW_PASSWORD: Final = plant("another long password")


@dataclass
class Stage:
    """A service with a webhook receiver; what calls have answered.

    Args:
        by_user: whether a user calls what server keys can call, too.
    """

    service: Service
    receiver: str
    by_user: bool = False

    @property
    def backend(self) -> httpx.AsyncClient:
        return self.service.http

    @property
    def owner(self) -> httpx.AsyncClient:
        return self.service.dashboard

    @property
    def caller(self) -> httpx.AsyncClient:
        """Who calls what both can call."""
        return self.owner if self.by_user else self.backend

    @property
    def actor(self) -> str:
        return "user" if self.by_user else "server_key"

    @property
    def base(self) -> str:
        return "" if self.by_user else "/s2s"

    async def endpoint(self) -> str:
        return f"{self.base}/webhooks/{(await register(self.service, self.receiver))['id']}"

    async def project(self) -> str:
        path = f"/organisations/{await organisation_of(self.service)}/projects"
        return f"/projects/{(await self.owner.post(path, json={'name': 'P'})).json()['id']}"

    async def key(self) -> str:
        path = f"/projects/{self.service.demo['projectId']}/keys"
        made = (await self.owner.post(path, json={"label": "L"})).json()
        plant(made["key"])
        return f"{path}/{made['id']}"

    async def credential(self) -> str:
        path = f"/projects/{self.service.demo['projectId']}/credentials"
        made = (await self.owner.post(path, json={"name": "N", "permissions": []})).json()
        plant(made["secret"])
        return f"{path}/{made['id']}"

    async def members(self) -> str:
        return f"/organisations/{await organisation_of(self.service)}/members"

    async def contact(self) -> dict[str, Any]:
        answer: dict[str, Any] = (await self.backend.put("/s2s/contacts/u1", json={"name": "Ada"})).json()
        return answer

    async def message(self) -> tuple[str, dict[str, Any]]:
        """The path of a message, and the details that a record about it has."""
        conversation = await self.service.create("u1")
        message = await self.service.say(conversation, "Hello")
        path = f"/conversations/{conversation['id']}/messages/{message['id']}"
        return path, {"conversation": conversation["id"]}

    async def delivery(self) -> tuple[str, str]:
        path = await self.endpoint()
        return path, (await self.caller.post(f"{path}/test")).json()["id"]


Call = Callable[[], Awaitable[httpx.Response]]
Prepare = Callable[[Stage], Awaitable[tuple[Call, str, dict[str, Any]]]]
"""Makes what a call needs; the call, the actor it is made by, and what its record must have."""


def done(call: Call, actor: str, **expected: Any) -> tuple[Call, str, dict[str, Any]]:
    return call, actor, expected


async def rename(stage: Stage) -> Any:
    path = f"/organisations/{await organisation_of(stage.service)}"
    return done(
        lambda: stage.owner.patch(path, json={"name": "Other"}),
        "user",
        changes={"name": {"before": "Demo organisation", "after": "Other"}},
    )


async def create_project(stage: Stage) -> Any:
    path = f"/organisations/{await organisation_of(stage.service)}/projects"
    return done(lambda: stage.owner.post(path, json={"name": "P"}), "user")


async def change_project(stage: Stage) -> Any:
    path = f"/projects/{stage.service.demo['projectId']}"
    body = {"settings": {"archivedRetentionDays": 9, "memoryEnabled": False}}
    changes = {
        "archivedRetentionDays": {"before": 365, "after": 9},
        "memoryEnabled": {"before": True, "after": False},
    }
    return done(lambda: stage.owner.patch(path, json=body), "user", changes=changes)


async def delete_project(stage: Stage) -> Any:
    path = await stage.project()
    return done(lambda: stage.owner.delete(path), "user")


async def create_key(stage: Stage) -> Any:
    path = f"/projects/{stage.service.demo['projectId']}/keys"
    changes = {"label": {"before": None, "after": "CRM"}}
    return done(lambda: stage.owner.post(path, json={"label": "CRM"}), "user", changes=changes)


async def revoke_key(stage: Stage) -> Any:
    path = await stage.key()
    return done(lambda: stage.owner.post(f"{path}/revoke"), "user")


async def create_credential(stage: Stage) -> Any:
    path = f"/projects/{stage.service.demo['projectId']}/credentials"
    body = {"name": "CRM", "permissions": ["tickets.read"]}
    changes = {
        "name": {"before": None, "after": "CRM"},
        "permissions": {"before": None, "after": ["tickets.read"]},
        "expiresAt": {"before": None, "after": None},
    }
    return done(lambda: stage.owner.post(path, json=body), "user", changes=changes)


async def change_credential(stage: Stage) -> Any:
    path = await stage.credential()
    changes = {"permissions": {"before": [], "after": ["tickets.read"]}}
    return done(
        lambda: stage.owner.patch(path, json={"permissions": ["tickets.read"]}), "user", changes=changes
    )


async def rotate_credential(stage: Stage) -> Any:
    path = await stage.credential()
    return done(
        lambda: stage.owner.post(f"{path}/rotate", json={}), "user", details={"overlapSeconds": 86_400}
    )


async def revoke_credential(stage: Stage) -> Any:
    path = await stage.credential()
    return done(lambda: stage.owner.delete(path), "user")


async def add_member(stage: Stage) -> Any:
    path, body = await stage.members(), {"email": "ada@example.com", "role": "agent"}
    changes = {"role": {"before": None, "after": "agent"}}
    return done(lambda: stage.owner.post(path, json=body), "user", changes=changes)


async def change_member(stage: Stage) -> Any:
    path = f"{await stage.members()}/{(await hire(stage.service, 'agent'))['id']}"
    changes = {"role": {"before": "agent", "after": "admin"}}
    return done(lambda: stage.owner.patch(path, json={"role": "admin"}), "user", changes=changes)


async def remove_member(stage: Stage) -> Any:
    path = f"{await stage.members()}/{(await hire(stage.service, 'agent'))['id']}"
    changes = {"role": {"before": "agent", "after": None}}
    return done(lambda: stage.owner.delete(path), "user", changes=changes)


async def change_me(stage: Stage) -> Any:
    changes = {"name": {"before": "Demo owner", "after": "Ada"}}
    return done(lambda: stage.owner.patch("/users/me", json={"name": "Ada"}), "user", changes=changes)


async def delete_me(stage: Stage) -> Any:
    hired = await hire(stage.service, "agent")
    token = (await sign_in(stage.service, hired["email"], hired["password"], PASSWORD)).json()["token"]

    async def leave() -> httpx.Response:
        async with client(stage.service, token) as http:
            return await http.delete("/users/me")

    return done(leave, "user", address=None)  # hers is gone with her


async def set_password(stage: Stage) -> Any:
    body = {"password": stage.service.demo["user"]["password"], "newPassword": NEW_PASSWORD}

    async def change() -> httpx.Response:
        answer = await stage.owner.post("/users/me/password", json=body)
        stage.owner.headers["Authorization"] = f"Bearer {answer.json()['token']}"  # the old one has ended
        return answer

    return done(change, "user")


async def issue_token(stage: Stage) -> Any:
    user = stage.service.demo["user"]
    return done(lambda: sign_in(stage.service, user["email"], user["password"]), "user")


def page_of(stage: Stage, cookies: httpx.Cookies | None = None) -> httpx.AsyncClient:
    """A browser with these cookies; use it as a context."""
    page = browser(stage.service, {**PAGE, "X-Forwarded-For": CLIENT})
    page.cookies.update(cookies)
    return page


async def session_of(stage: Stage, email: str, password: str = PASSWORD) -> httpx.Cookies:
    """The cookies of somebody who has signed in with a browser."""
    async with page_of(stage) as page:
        assert (await enter(page, email, password)).status_code == 200
        return page.cookies


async def owners_session(stage: Stage) -> httpx.Cookies:
    user = stage.service.demo["user"]
    return await session_of(stage, user["email"], user["password"])


async def pushed(stage: Stage) -> str:
    """The path of the push of the trail, which is set up."""
    path = f"/organisations/{await organisation_of(stage.service)}/audit/push"
    plant((await stage.owner.put(path, json={"url": stage.receiver})).json()["secret"])
    return path


async def put_push(stage: Stage) -> Any:
    path, url = await pushed(stage), "https://127.0.0.1:9443/siem"
    changes = {"url": {"before": shown_url(stage.receiver), "after": url}}
    return done(lambda: stage.owner.put(path, json={"url": url}), "user", changes=changes)


async def rotate_push_secret(stage: Stage) -> Any:
    path = await pushed(stage)
    return done(lambda: stage.owner.post(f"{path}/rotate-secret"), "user", changes={})


async def delete_push(stage: Stage) -> Any:
    path = await pushed(stage)
    return done(lambda: stage.owner.delete(path), "user")


async def token_of(stage: Stage) -> tuple[str, str]:
    """The id of an access token of a new agent, and that of the agent."""
    hired = await hire(stage.service, "agent")
    issued = (await sign_in(stage.service, hired["email"], hired["password"], PASSWORD)).json()
    return issued["id"], hired["id"]


async def end_token(stage: Stage) -> Any:
    user = stage.service.demo["user"]
    issued = (await sign_in(stage.service, user["email"], user["password"])).json()

    async def end() -> httpx.Response:
        async with client(stage.service, issued["token"]) as http:
            return await http.post("/auth/token/revoke", headers={"X-Forwarded-For": CLIENT})

    return done(end, "user", details={"token": issued["id"]})


async def end_token_by_id(stage: Stage) -> Any:
    user = stage.service.demo["user"]
    issued = (await sign_in(stage.service, user["email"], user["password"])).json()
    path = f"/users/me/tokens/{issued['id']}"
    return done(lambda: stage.owner.delete(path), "user", details={"token": issued["id"]})


async def end_member_token(stage: Stage) -> Any:
    token, user = await token_of(stage)
    path = f"{await stage.members()}/{user}/tokens/{token}"
    return done(lambda: stage.owner.delete(path), "user", details={"token": token})


async def start_session(stage: Stage) -> Any:
    user = stage.service.demo["user"]

    async def start() -> httpx.Response:
        async with page_of(stage) as page:
            return await enter(page, user["email"], user["password"])

    return done(start, "user")


async def end_session(stage: Stage) -> Any:
    cookies = await owners_session(stage)

    async def end() -> httpx.Response:
        async with page_of(stage, cookies) as page:
            return await page.delete("/auth/session")

    return done(end, "user")


async def end_session_by_id(stage: Stage) -> Any:
    await owners_session(stage)
    (session,) = (await stage.owner.get("/users/me/sessions")).json()["items"]
    return done(lambda: stage.owner.delete(f"/users/me/sessions/{session['id']}"), "user")


async def end_sessions(stage: Stage) -> Any:
    await owners_session(stage)
    cookies = await owners_session(stage)

    async def end() -> httpx.Response:
        async with page_of(stage, cookies) as page:
            return await page.delete("/users/me/sessions", params={"others": "true"})

    return done(end, "user")


async def end_member_sessions(stage: Stage) -> Any:
    hired = await staff(stage.service, "agent")
    await session_of(stage, hired["email"])
    path = f"{await stage.members()}/{hired['id']}/sessions"
    return done(lambda: stage.owner.delete(path), "user")


async def renew_member_password(stage: Stage) -> Any:
    hired = await staff(stage.service, "agent")
    path = f"{await stage.members()}/{hired['id']}/password"
    return done(lambda: stage.owner.post(path), "user")


async def create_endpoint(stage: Stage) -> Any:
    url, _, _ = stage.receiver.partition("?")
    body = {"url": f"{url}?token=hidden", "description": "CRM"}
    changes = {
        "url": {"before": None, "after": f"{url}?…"},
        "events": {"before": None, "after": []},
        "description": {"before": None, "after": "CRM"},
        "catchUp": {"before": None, "after": "automatic"},
        "internal": {"before": None, "after": False},
    }
    return done(lambda: stage.caller.post(f"{stage.base}/webhooks", json=body), stage.actor, changes=changes)


async def change_endpoint(stage: Stage) -> Any:
    path = await stage.endpoint()
    changes = {"description": {"before": None, "after": "x"}}
    return done(lambda: stage.caller.patch(path, json={"description": "x"}), stage.actor, changes=changes)


async def rotate_secret(stage: Stage) -> Any:
    path = await stage.endpoint()
    return done(lambda: stage.caller.post(f"{path}/rotate-secret"), stage.actor, changes={})


async def delete_endpoint(stage: Stage) -> Any:
    path = await stage.endpoint()
    return done(lambda: stage.caller.delete(path), stage.actor, details={"pendingDropped": 0})


async def redeliver(stage: Stage) -> Any:
    _, delivery = await stage.delivery()
    path = f"{stage.base}/deliveries/{delivery}/redeliver"
    return done(lambda: stage.caller.post(path), stage.actor, details={"deliveries": 1})


async def recover(stage: Stage) -> Any:
    path = await stage.endpoint()
    await stage.caller.patch(path, json={"status": "disabled"})
    await stage.service.create("u1", message={"text": "Hello"})
    await stage.caller.patch(path, json={"status": "enabled"})
    body = {"since": "2026-01-01T00:00:00Z"}
    return done(
        lambda: stage.caller.post(f"{path}/recover", json=body), stage.actor, details={"deliveries": 2}
    )


async def replay(stage: Stage) -> Any:
    body = {"conversationId": (await stage.service.create("u1", message={"text": "Hello"}))["id"]}
    path = await stage.endpoint()
    return done(
        lambda: stage.caller.post(f"{path}/replay", json=body), stage.actor, details={"deliveries": 2}
    )


def by_user(prepare: Prepare) -> Prepare:
    """The same call by a user."""
    return lambda stage: prepare(replace(stage, by_user=True))


async def delete_contact(stage: Stage) -> Any:
    await stage.contact()
    return done(lambda: stage.backend.delete("/s2s/contacts/u1"), "server_key")


async def delete_contact_as_agent(stage: Stage) -> Any:
    path = f"/contacts/{(await stage.contact())['id']}"
    return done(lambda: stage.owner.delete(path), "user")


async def merge_contact(stage: Stage) -> Any:
    await stage.contact()
    await stage.backend.put("/s2s/contacts/visitor", json={"name": "Visitor"})
    return done(lambda: stage.backend.post("/s2s/contacts/u1/merge", json={"from": "visitor"}), "server_key")


async def merge_contact_as_agent(stage: Stage) -> Any:
    path = f"/contacts/{(await stage.contact())['id']}/merge"
    visitor = (await stage.backend.put("/s2s/contacts/visitor", json={"name": "Visitor"})).json()["id"]
    return done(lambda: stage.owner.post(path, json={"from": visitor}), "user")


async def export_contact(stage: Stage) -> Any:
    await stage.contact()
    return done(lambda: stage.backend.get("/s2s/contacts/u1/export"), "server_key")


async def export_contact_with_notes(stage: Stage) -> Any:
    path = f"/contacts/{(await stage.contact())['id']}/export"
    return done(lambda: stage.owner.get(path), "user")


async def redact_message(stage: Stage) -> Any:
    path, details = await stage.message()
    body = {"text": True}
    return done(lambda: stage.backend.post(f"/s2s{path}/redact", json=body), "server_key", details=details)


async def redact_message_as_agent(stage: Stage) -> Any:
    path, details = await stage.message()
    return done(lambda: stage.owner.post(f"{path}/redact", json={"text": True}), "user", details=details)


async def delete_message(stage: Stage) -> Any:
    path, details = await stage.message()
    return done(lambda: stage.backend.delete(f"/s2s{path}"), "server_key", details=details)


async def delete_message_as_agent(stage: Stage) -> Any:
    path, details = await stage.message()
    return done(lambda: stage.owner.delete(path), "user", details=details)


async def import_history(stage: Stage) -> Any:
    lines = (
        b'{"type":"conversation","externalId":"a","contact":{"userId":"u9"},"createdAt":"2024-01-01T00:00:00Z"}\n'
        b'{"type":"message","externalId":"b","conversation":"a","author":{"type":"contact"},"text":"x",'
        b'"createdAt":"2024-01-01T00:00:00Z"}\n'
    )
    headers = {"Content-Type": "application/x-ndjson"}
    return done(
        lambda: stage.backend.post("/s2s/import", content=lines, headers=headers),
        "server_key",
        details={"conversations": 1, "messages": 1},
    )


async def export_audit_records(stage: Stage) -> Any:
    path = f"/organisations/{await organisation_of(stage.service)}/audit.ndjson"
    return done(lambda: stage.owner.get(path), "user")


async def delete_conversation(stage: Stage) -> Any:
    conversation = await stage.service.create("u1", message={"text": "Hello"})
    path = f"{stage.base}/conversations/{conversation['id']}"
    expected = {"object": {"type": "conversation", "id": conversation["id"], "name": None}}
    return done(lambda: stage.caller.delete(path), stage.actor, details={"messages": 1}, **expected)


async def delete_ticket(stage: Stage) -> Any:
    conversation = await stage.service.create("u1")
    body = {"title": "T", "conversationId": conversation["id"]}
    ticket = (await stage.owner.post("/tickets", json=body)).json()
    expected = {"object": {"type": "ticket", "id": ticket["id"], "name": None}}
    return done(lambda: stage.owner.delete(f"/tickets/{ticket['id']}"), "user", **expected)


async def survey_answered(stage: Stage) -> tuple[str, dict[str, Any]]:
    """The path of a survey with a response, and that response."""
    made = await survey(stage.service)
    return f"/engagement/surveys/{made['id']}", await respond(stage.service, made, "u1", answers={"score": 9})


async def delete_survey(stage: Stage) -> Any:
    path, _ = await survey_answered(stage)
    return done(lambda: stage.owner.delete(path), "user", details={"responses": 1})


async def delete_response(stage: Stage) -> Any:
    path, response = await survey_answered(stage)
    survey_id = path.rpartition("/")[2]
    return done(
        lambda: stage.owner.delete(f"{path}/responses/{response['id']}"),
        "user",
        details={"survey": survey_id},
    )


async def export_responses(stage: Stage) -> Any:
    path, _ = await survey_answered(stage)
    return done(lambda: stage.owner.get(f"{path}/responses.csv"), "user", details={"lines": 2})


async def delete_workflow(stage: Stage) -> Any:
    actions = [{"id": 1, "type": "message", "text": "Hi"}]
    body = {"name": "W", "trigger": {"type": "manual"}, "flows": [{"id": "main", "actions": actions}]}
    answer = await stage.owner.post("/workflows", json=body)
    assert answer.status_code == 200, answer.text
    return done(lambda: stage.owner.delete(f"/workflows/{answer.json()['id']}"), "user")


async def delete_upload(stage: Stage) -> Any:
    answer = await stage.owner.post("/uploads", files={"file": ("a.txt", b"four")})
    assert answer.status_code == 200, answer.text
    return done(lambda: stage.owner.delete(f"/uploads/{answer.json()['id']}"), "user", details={"bytes": 4})


async def delete_snippet(stage: Stage) -> Any:
    answer = await stage.owner.post("/snippets", json={"shortcut": "hi", "title": "Hi", "text": "Hello"})
    assert answer.status_code == 200, answer.text
    return done(lambda: stage.owner.delete(f"/snippets/{answer.json()['id']}"), "user")


async def delete_entry(stage: Stage) -> Any:
    path = "/translations/entries/statictranslation:a"
    answer = await stage.owner.put(path, json={"language": "en", "fields": {"title": "T"}})
    assert answer.status_code == 200, answer.text
    return done(lambda: stage.owner.delete(path), "user", details={"language": None})


async def delete_team(stage: Stage) -> Any:
    team = (await stage.owner.post("/teams", json={"name": "T"})).json()
    return done(lambda: stage.owner.delete(f"/teams/{team['id']}"), "user")


async def remembered(stage: Stage) -> str:
    """The path of a contact's memory, which has two entries."""
    path = f"/sessions/{(await stage.contact())['id']}/memory"
    for name in ("one", "two"):
        answer = await stage.owner.post(path, json={"name": name, "content": "x"})
        assert answer.status_code == 200, answer.text
    return path


async def clear_memory(stage: Stage) -> Any:
    path = await remembered(stage)
    return done(lambda: stage.owner.delete(path), "user", details={"entries": 2})


async def delete_memory(stage: Stage) -> Any:
    path = await remembered(stage)
    return done(lambda: stage.owner.delete(f"{path}/one"), "user", details={"entries": 1})


async def end_consumer(stage: Stage) -> Any:
    async def end() -> httpx.Response:
        async with AsyncExitStack() as stack:
            stream = await Streams(stage.service, stack).open(stage.service.demo["serverKey"])
            await stream.subscribe(project_channel(stage.service), "mirror")
            return await stage.caller.delete(f"{stage.base}/stream/consumers/mirror")

    return done(end, stage.actor, details={"channels": 1})


def export_of(kind: str) -> Prepare:
    """An export of the objects of a kind, of which there is one."""

    async def export(stage: Stage) -> Any:
        conversation = await stage.service.create("u1", message={"text": "Hello"})
        await stage.owner.post("/tickets", json={"title": "T", "conversationId": conversation["id"]})
        await survey_answered(stage)
        details = {"kind": kind, "lines": 2}
        return done(lambda: stage.backend.get(f"/s2s/export/{kind}"), "server_key", details=details)

    return export


def report_of(kind: str) -> Prepare:
    """An export of a report."""

    async def report(stage: Stage) -> Any:
        return done(lambda: stage.owner.get(f"/reports/{kind}.csv"), "user", details={"kind": kind})

    return report


CALLS: Final[Mapping[str, tuple[Prepare, str]]] = {
    "changeOrganisation": (rename, "organisation.changed"),
    "createProject": (create_project, "project.created"),
    "changeProject": (change_project, "project.changed"),
    "deleteProject": (delete_project, "project.deleted"),
    "createKey": (create_key, "key.created"),
    "revokeKey": (revoke_key, "key.revoked"),
    "createCredential": (create_credential, "credential.created"),
    "changeCredential": (change_credential, "credential.changed"),
    "rotateCredential": (rotate_credential, "credential.rotated"),
    "revokeCredential": (revoke_credential, "credential.revoked"),
    "addMember": (add_member, "member.added"),
    "changeMember": (change_member, "member.role_changed"),
    "removeMember": (remove_member, "member.removed"),
    "changeMe": (change_me, "account.changed"),
    "deleteMe": (delete_me, "member.removed"),
    "setPassword": (set_password, "account.password_changed"),
    "issueToken": (issue_token, "sign_in.succeeded"),
    "putAuditPush": (put_push, "audit.push_changed"),
    "rotateAuditPushSecret": (rotate_push_secret, "audit.push_secret_rotated"),
    "deleteAuditPush": (delete_push, "audit.push_deleted"),
    "endToken": (end_token, "token.ended"),
    "endTokenById": (end_token_by_id, "token.ended"),
    "endMemberToken": (end_member_token, "token.ended"),
    "startSession": (start_session, "sign_in.succeeded"),
    "endSession": (end_session, "account.sessions_ended"),
    "endSessionById": (end_session_by_id, "account.sessions_ended"),
    "endSessions": (end_sessions, "account.sessions_ended"),
    "endMemberSessions": (end_member_sessions, "account.sessions_ended"),
    "renewMemberPassword": (renew_member_password, "account.password_changed"),
    "createEndpoint": (create_endpoint, "webhook.created"),
    "changeEndpoint": (change_endpoint, "webhook.changed"),
    "rotateSecret": (rotate_secret, "webhook.secret_rotated"),
    "deleteEndpoint": (delete_endpoint, "webhook.deleted"),
    "redeliver": (redeliver, "webhook.replayed"),
    "recover": (recover, "webhook.replayed"),
    "replayConversation": (replay, "webhook.replayed"),
    "createWebhook": (by_user(create_endpoint), "webhook.created"),
    "changeWebhook": (by_user(change_endpoint), "webhook.changed"),
    "rotateWebhookSecret": (by_user(rotate_secret), "webhook.secret_rotated"),
    "deleteWebhook": (by_user(delete_endpoint), "webhook.deleted"),
    "redeliverWebhook": (by_user(redeliver), "webhook.replayed"),
    "recoverWebhook": (by_user(recover), "webhook.replayed"),
    "replayToWebhook": (by_user(replay), "webhook.replayed"),
    "deleteContact": (delete_contact, "contact.erased"),
    "dashboardDeleteContact": (delete_contact_as_agent, "contact.erased"),
    "mergeContact": (merge_contact, "contact.merged"),
    "dashboardMergeContact": (merge_contact_as_agent, "contact.merged"),
    "exportContact": (export_contact, "contact.exported"),
    "exportContactWithNotes": (export_contact_with_notes, "contact.exported"),
    "redactMessage": (redact_message, "message.redacted"),
    "dashboardRedactMessage": (redact_message_as_agent, "message.redacted"),
    "deleteMessage": (delete_message, "message.deleted"),
    "dashboardDeleteMessage": (delete_message_as_agent, "message.deleted"),
    "importHistory": (import_history, "history.imported"),
    "exportAuditRecords": (export_audit_records, "audit.exported"),
    "deleteConversation": (delete_conversation, "conversation.deleted"),
    "dashboardDeleteConversation": (by_user(delete_conversation), "conversation.deleted"),
    "deleteTicket": (delete_ticket, "ticket.deleted"),
    "deleteSurvey": (delete_survey, "survey.deleted"),
    "deleteResponse": (delete_response, "response.deleted"),
    "exportResponses": (export_responses, "survey.exported"),
    "deleteWorkflow": (delete_workflow, "workflow.deleted"),
    "deleteUpload": (delete_upload, "upload.deleted"),
    "deleteSnippet": (delete_snippet, "snippet.deleted"),
    "deleteEntry": (delete_entry, "translation.deleted"),
    "deleteTeam": (delete_team, "team.deleted"),
    "clearMemory": (clear_memory, "memory.deleted"),
    "deleteMemory": (delete_memory, "memory.deleted"),
    "endConsumer": (end_consumer, "consumer.ended"),
    "endStreamConsumer": (by_user(end_consumer), "consumer.ended"),
    "exportConversations": (export_of("conversations"), "project.exported"),
    "exportMessages": (export_of("messages"), "project.exported"),
    "exportTickets": (export_of("tickets"), "project.exported"),
    "exportSurveyResponses": (export_of("survey-responses"), "project.exported"),
    "exportFirstResponse": (report_of("first-response"), "report.exported"),
    "exportTimeToClose": (report_of("time-to-close"), "report.exported"),
    "exportCsat": (report_of("csat"), "report.exported"),
    "exportVolume": (report_of("volume"), "report.exported"),
    "exportBacklog": (report_of("backlog"), "report.exported"),
}
"""A call of every recorded route, and the action that it leaves."""
