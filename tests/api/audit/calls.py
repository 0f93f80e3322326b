"""A call of each route that the audit trail records, and what its record says."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Final

import httpx

from tests.api.audit.account_calls import (
    add_member,
    change_me,
    change_member,
    change_role,
    create_invitation,
    create_password_link,
    create_role,
    delete_me,
    delete_push,
    delete_role,
    end_member_session,
    end_member_sessions,
    end_member_token,
    end_session,
    end_session_by_id,
    end_sessions,
    end_token,
    end_token_by_id,
    issue_token,
    prove_session,
    put_push,
    remove_member,
    renew_invitation,
    renew_member_password,
    revoke_invitation,
    rotate_push_secret,
    set_password,
    start_session,
    use_link,
)
from tests.api.audit.customer_calls import (
    change_channel,
    create_channel,
    delete_channel,
    end_contact_session,
    rotate_channel_secret,
)
from tests.api.audit.factor_calls import (
    add_passkey,
    confirm_totp,
    finish_sign_in,
    remove_passkey,
    remove_totp,
    renew_recovery_codes,
    reset_member_factors,
    sign_in_by_passkey,
)
from tests.api.audit.oidc_calls import complete_oidc_sign_in, end_oidc_sessions, unlink_identity
from tests.api.audit.stage import Prepare, Stage, done
from tests.api.stream.test_revocation import Streams, project_channel
from tests.support.api.staff import organisation_of
from tests.support.api.surveys import respond, survey


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


async def put_setup(stage: Stage) -> Any:
    changes = {"hidden": {"before": False, "after": True}}
    return done(lambda: stage.owner.put("/setup", json={"hidden": True}), "user", changes=changes)


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


async def create_endpoint(stage: Stage) -> Any:
    url, _, _ = stage.receiver.partition("?")
    body = {"url": f"{url}?token=hidden", "description": "CRM"}
    changes = {
        "url": {"before": None, "after": f"{url}?…"},
        "events": {"before": None, "after": []},
        "apiVersion": {"before": None, "after": "2026-11-01"},
        "description": {"before": None, "after": "CRM"},
        "catchUp": {"before": None, "after": "automatic"},
        "internal": {"before": None, "after": False},
        "credentialId": {"before": None, "after": None},
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


async def block_contact(stage: Stage) -> Any:
    contact = await stage.contact()
    path = f"{stage.base}/contacts/{contact['id'] if stage.by_user else 'u1'}/block"
    return done(lambda: stage.caller.post(path, json={"reason": "Insults"}), stage.actor)


async def unblock_contact(stage: Stage) -> Any:
    contact = await stage.contact()
    await stage.backend.post("/s2s/contacts/u1/block", json={})
    path = f"{stage.base}/contacts/{contact['id'] if stage.by_user else 'u1'}/unblock"
    return done(lambda: stage.caller.post(path), stage.actor)


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


async def merge_conversation(stage: Stage) -> Any:
    source = await stage.service.create("u1", message={"text": "Hello"})
    target = await stage.service.create("u1")
    expected = {
        "object": {"type": "conversation", "id": source["id"], "name": None},
        "details": {"into": target["id"]},
    }
    path = f"/conversations/{source['id']}/merge"
    return done(lambda: stage.owner.post(path, json={"into": target["id"]}), "user", **expected)


async def unmerge_conversation(stage: Stage) -> Any:
    source = await stage.service.create("u1", message={"text": "Hello"})
    target = await stage.service.create("u1")
    path = f"/conversations/{source['id']}"
    await stage.owner.post(f"{path}/merge", json={"into": target["id"]})
    expected = {
        "object": {"type": "conversation", "id": source["id"], "name": None},
        "details": {"into": target["id"]},
    }
    return done(lambda: stage.owner.post(f"{path}/unmerge"), "user", **expected)


async def split_conversation(stage: Stage) -> Any:
    conversation = await stage.service.create("u1")
    message = await stage.service.say(conversation, "And my address has changed.")
    details: dict[str, Any] = {"messages": 1}

    async def split() -> Any:
        path, body = f"/conversations/{conversation['id']}/split", {"messageIds": [message["id"]]}
        answer = await stage.owner.post(path, json=body)
        details["into"] = answer.json()["id"]
        return answer

    expected = {
        "object": {"type": "conversation", "id": conversation["id"], "name": None},
        "details": details,
    }
    return done(split, "user", **expected)


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


async def delete_view(stage: Stage) -> Any:
    answer = await stage.owner.post("/views", json={"name": "Open", "filter": {"status": "OPEN"}})
    assert answer.status_code == 200, answer.text
    return done(lambda: stage.owner.delete(f"/views/{answer.json()['id']}"), "user")


CLOSING: Final = {"filter": {"tag": "none"}, "action": {"type": "close"}}


async def start_bulk_job(stage: Stage) -> Any:
    return done(lambda: stage.owner.post("/bulk-jobs", json=CLOSING), "user")


async def undo_bulk_job(stage: Stage) -> Any:
    answer = await stage.owner.post("/bulk-jobs", json=CLOSING)
    assert answer.json()["status"] == "completed", answer.text  # because it has no conversations
    return done(lambda: stage.owner.post(f"/bulk-jobs/{answer.json()['id']}/undo"), "user")


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
    "putSetup": (put_setup, "setup.changed"),
    "deleteProject": (delete_project, "project.deleted"),
    "createKey": (create_key, "key.created"),
    "revokeKey": (revoke_key, "key.revoked"),
    "createCredential": (create_credential, "credential.created"),
    "changeCredential": (change_credential, "credential.changed"),
    "rotateCredential": (rotate_credential, "credential.rotated"),
    "revokeCredential": (revoke_credential, "credential.revoked"),
    "addMember": (add_member, "member.added"),
    "changeMember": (change_member, "member.role_changed"),
    "createRole": (create_role, "role.created"),
    "changeRole": (change_role, "role.changed"),
    "deleteRole": (delete_role, "role.deleted"),
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
    "finishSignIn": (finish_sign_in, "sign_in.succeeded"),
    "signInByPasskey": (sign_in_by_passkey, "sign_in.succeeded"),
    "confirmTotp": (confirm_totp, "account.factor_added"),
    "removeTotp": (remove_totp, "account.factor_removed"),
    "addPasskey": (add_passkey, "account.factor_added"),
    "removePasskey": (remove_passkey, "account.factor_removed"),
    "renewRecoveryCodes": (renew_recovery_codes, "account.factor_added"),
    "resetMemberFactors": (reset_member_factors, "account.factors_reset"),
    "proveSession": (prove_session, "sign_in.proved"),
    "completeOidcSignIn": (complete_oidc_sign_in, "identity.linked"),
    "endOidcSessions": (end_oidc_sessions, "account.sessions_ended"),
    "unlinkIdentity": (unlink_identity, "identity.unlinked"),
    "endSession": (end_session, "account.sessions_ended"),
    "endSessionById": (end_session_by_id, "account.sessions_ended"),
    "endSessions": (end_sessions, "account.sessions_ended"),
    "endMemberSession": (end_member_session, "account.sessions_ended"),
    "endMemberSessions": (end_member_sessions, "account.sessions_ended"),
    "renewMemberPassword": (renew_member_password, "account.password_changed"),
    "createInvitation": (create_invitation, "invitation.created"),
    "revokeInvitation": (revoke_invitation, "invitation.revoked"),
    "renewInvitation": (renew_invitation, "invitation.renewed"),
    "createPasswordLink": (create_password_link, "account.password_link_created"),
    "useLink": (use_link, "invitation.accepted"),
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
    "blockContact": (block_contact, "contact.blocked"),
    "dashboardBlockContact": (by_user(block_contact), "contact.blocked"),
    "unblockContact": (unblock_contact, "contact.unblocked"),
    "dashboardUnblockContact": (by_user(unblock_contact), "contact.unblocked"),
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
    "mergeConversation": (merge_conversation, "conversation.merged"),
    "unmergeConversation": (unmerge_conversation, "conversation.unmerged"),
    "splitConversation": (split_conversation, "conversation.split"),
    "deleteTicket": (delete_ticket, "ticket.deleted"),
    "deleteSurvey": (delete_survey, "survey.deleted"),
    "deleteResponse": (delete_response, "response.deleted"),
    "exportResponses": (export_responses, "survey.exported"),
    "deleteWorkflow": (delete_workflow, "workflow.deleted"),
    "deleteUpload": (delete_upload, "upload.deleted"),
    "deleteView": (delete_view, "view.deleted"),
    "startBulkJob": (start_bulk_job, "bulk_job.started"),
    "undoBulkJob": (undo_bulk_job, "bulk_job.undone"),
    "deleteSnippet": (delete_snippet, "snippet.deleted"),
    "deleteEntry": (delete_entry, "translation.deleted"),
    "deleteTeam": (delete_team, "team.deleted"),
    "clearMemory": (clear_memory, "memory.deleted"),
    "deleteMemory": (delete_memory, "memory.deleted"),
    "createChannel": (create_channel, "channel.created"),
    "changeChannel": (change_channel, "channel.changed"),
    "rotateChannelSecret": (rotate_channel_secret, "channel.secret_rotated"),
    "deleteChannel": (delete_channel, "channel.deleted"),
    "endContactSession": (end_contact_session, "contact.session_ended"),
    "dashboardEndContactSession": (by_user(end_contact_session), "contact.session_ended"),
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
