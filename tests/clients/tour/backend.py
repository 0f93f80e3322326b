"""The calls of a project's backend: conversations, contacts, events, webhooks, the realtime stream."""

from __future__ import annotations

from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import trio

from tests.api.stream.test_revocation import Streams, project_channel
from tests.clients.tour.recorder import Recorder
from tests.engine.workflows.building import SUPPORT
from tests.support.api.import_lines import NDJSON

SINCE: Final = "2026-01-01T00:00:00.000Z"
UNTIL: Final = "2099-01-01T00:00:00.000Z"
_DELIVERED_S: Final = 30.0


def in_days(days: int) -> str:
    """Return the time in a number of days, or before as many for a negative number."""
    at = datetime.now(UTC) + timedelta(days=days)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def conversations(call: Recorder) -> None:
    """Call the operations of conversations and their messages."""
    await call("getOwnProject")
    contact = {"userId": "u1", "name": "Ada Lovelace", "email": "ada@example.org", "phone": None}
    made = await call(
        "createConversation",
        body={
            "contact": contact,
            "title": "Order A-1001",
            "attributes": {"order": "A-1001", "items": 3, "paid": True, "weight": 1.5},
            "message": {"text": "Where is my order? 👋"},
        },
        Idempotency_Key="order-1001",
    )
    first = made["id"]
    upload = (await call.service.http.post("/uploads", files={"file": ("a.txt", b"four")})).json()
    said = await call(
        "postMessage",
        first,
        body={
            "text": "On its way, to Grüne Straße 1.",
            "author": {"type": "agent", "id": await owner(call), "name": "Grace"},
            "attachments": [upload["id"]],
        },
        Idempotency_Key="answer 1",
    )
    await call("postMessage", first, body={"text": "Thanks"})
    await call(
        "changeConversation", first, body={"title": None, "status": "PENDING", "attributes": {"order": None}}
    )
    await call("assignConversation", first, body={"assignee": {"type": "user", "id": await owner(call)}})
    await call("markRead", first)
    await call("setContactTyping", first, body={"typing": True})
    await call("rateConversation", first, body={"rating": 9, "comment": "Quick"})
    await call(
        "replaceNetworkLogs",
        first,
        body={
            "requests": [
                {
                    "url": "https://shop.example.org/cart",
                    "type": "fetch",
                    "duration": 84.5,
                    "success": True,
                    "request": {"headers": {"a": "b"}},
                    "response": [1, None],
                }
            ]
        },
    )
    await call("replaceConversationTags", first, body={"tags": ["returns", "vip"]})
    await call("getConversationTags", first)
    await call("listTags", limit=10)
    await call(
        "redactMessage", first, said["id"], body={"ranges": [{"start": 0, "end": 2}]}, Idempotency_Key="r1"
    )
    await call("closeConversation", first, body={"closedBy": "bot"})
    await call("reopenConversation", first)
    await call("listMessages", first, limit=2)
    await call("getConversation", first, include="tags")
    await call(
        "listConversations",
        limit=20,
        updatedSince=SINCE,
        updatedBefore=UNTIL,
        since=SINCE,
        until=UNTIL,
        status="OPEN,PENDING",
        archived=False,
        contact="u1",
        rated=True,
        rating="7..10",
        attribute="items:3",
        tag="vip",
        visible=True,
        include="tags",
        sort="activity",
        order="desc",
    )
    await call("listConversationEvents", first, after=1, limit=100)
    await call("deleteMessage", first, said["id"])
    await call("deleteConversation", (await call.service.create("u2", message={"text": "Bye"}))["id"])


async def owner(call: Recorder) -> str:
    """Return the id of the demo's owner."""
    return str((await call.service.dashboard.get("/users/me")).json()["id"])


async def workflow_steps(call: Recorder) -> None:
    """Call the operations of a workflow's steps in a conversation."""
    team = (await call.service.dashboard.post("/teams", json={"name": "Returns"})).json()
    flows = [_with_team(flow, team["id"]) for flow in SUPPORT["flows"]]
    flow = (await call.service.dashboard.post("/workflows", json={**SUPPORT, "flows": flows})).json()
    conversation = (await call.service.create("u3", message={"text": "Hi"}))["id"]
    await call("startWorkflow", conversation, body={"workflowId": flow["id"]}, Idempotency_Key="w1")
    await call("getWorkflowStep", conversation)
    await call("replyToStep", conversation, body={"actionId": 2, "value": "order"}, Idempotency_Key="w2")
    answers = {"number": "A-1001", "paid": True}
    await call("replyToStep", conversation, body={"actionId": 10, "value": answers})


def _with_team(flow: dict[str, Any], team: str) -> dict[str, Any]:
    """Return a flow whose assignments are to this team."""
    actions = [
        {**each, "assignee": {**each["assignee"], "id": team}} if "assignee" in each else each
        for each in flow["actions"]
    ]
    return {**flow, "actions": actions}


async def contacts(call: Recorder) -> None:
    """Call the operations of contacts."""
    await call("putContactIdentity", "ada/1 ü", body={"name": "Ada", "email": None, "avatar": None})
    await call(
        "changeContact",
        "u1",
        body={
            "phone": "+49 30 1234",
            "attributes": {"plan": "pro", "seats": 3, "gone": None},
            "tags": ["vip"],
        },
    )
    await call("getContact", "u1")
    await call("listContactConversations", "u1", limit=10, archived=False)
    await call(
        "listContacts",
        limit=10,
        updatedSince=SINCE,
        updatedBefore=UNTIL,
        attribute="plan:pro",
        tag="vip",
        sort="updated",
        order="asc",
    )
    await call("exportContact", "u1")
    await call("blockContact", "u1", body={"reason": "Insults"})
    await call("unblockContact", "u1")
    await call("mergeContact", "u1", body={"from": "u3"})
    await call("deleteContact", "ada/1 ü")


async def imports(call: Recorder) -> None:
    """Find a conversation that was imported."""
    lines = (
        b'{"type":"conversation","externalId":"zendesk-1","contact":{"userId":"u9"},"createdAt":"2024-01-01T00:00:00Z"}\n'
        b'{"type":"message","externalId":"m1","conversation":"zendesk-1","author":{"type":"contact"},"text":"x",'
        b'"createdAt":"2024-01-01T00:00:00Z"}\n'
    )
    answer = await call.service.http.post("/s2s/import", content=lines, headers=NDJSON)
    assert answer.status_code == 200, answer.text
    await call("findImported", externalId="zendesk-1")


async def events(call: Recorder) -> None:
    """Read the feed of events, of which one type after another is there by now."""
    first = (await call.service.events())[0]
    await call("listEvents", limit=200, wait=0)
    await call("listEvents", after=first["id"], limit=2, types="message.created,conversation.updated")


async def webhooks(call: Recorder) -> None:
    """Call the operations of webhook endpoints and deliveries, as the backend and as a user."""
    await _endpoint(
        call,
        "createEndpoint listEndpoints getEndpoint changeEndpoint rotateSecret testEndpoint getDelivery listDeliveries "
        "redeliver recover replayConversation getEndpointFigures deleteEndpoint",
        {"events": [], "internal": True},
    )
    await _endpoint(
        call,
        "createWebhook listWebhooks getWebhook changeWebhook rotateWebhookSecret testWebhook getWebhookDelivery "
        "listWebhookDeliveries redeliverWebhook recoverWebhook replayToWebhook getWebhookFigures deleteWebhook",
        {"events": ["message.created"], "description": "CRM", "catchUp": "off"},
    )


async def channels(call: Recorder) -> None:
    """Call the operations of channels."""
    body = {
        "name": "Shop",
        "origins": ["https://shop.example", "http://localhost"],
        "visitors": {"ask": ["name?", "email"]},
        "look": {"texts": {"de": {"title": "Fragen?", "greeting": "Schreiben Sie uns."}}},
    }
    made = await call("createChannel", body=body, Idempotency_Key="shop")
    channel = made["id"]
    await call("listChannels", limit=10)
    await call("changeChannel", channel, body={"look": {"colour": "#00aa55"}, "survey": None})
    await call("getChannel", channel)
    await call("getPublicChannel", channel)
    await call("checkChannelSite", channel, body={"url": call.service.url})
    await call("rotateChannelSecret", channel)
    await call("deleteChannel", channel)


async def _endpoint(call: Recorder, operations: str, body: dict[str, Any]) -> None:
    """Call the operations in their order with an endpoint of its own, which receives the events of a message."""
    (
        create,
        list_all,
        get,
        change,
        rotate,
        test,
        get_delivery,
        listed,
        redeliver,
        recover,
        replay,
        figures,
        delete,
    ) = operations.split()
    conversation = (await call.service.create("u4", message={"text": "Before"}))["id"]
    endpoint = (await call(create, body={"url": call.receiver, **body}, Idempotency_Key="e1"))["id"]
    await call(list_all)
    await call(change, endpoint, body={"description": None, "status": "disabled"})
    await call.service.say({"id": conversation}, "Missed")
    await call(change, endpoint, body={"status": "enabled"})
    await call(get, endpoint)
    await call(rotate, endpoint, Idempotency_Key="e2")
    delivery = (await call(test, endpoint))["id"]
    await delivered(call, delivery)
    await call(get_delivery, delivery)
    await call(redeliver, delivery, Idempotency_Key="e3")
    await call(recover, endpoint, body={"since": SINCE, "dryRun": True})
    await call(
        replay, endpoint, body={"conversationId": conversation, "from": 1, "to": None, "dryRun": False}
    )
    await call(listed, endpoint, limit=20, since=SINCE, until=UNTIL)
    await call(listed, endpoint, limit=20, type="webhook.test")
    await call(figures, endpoint, since=in_days(-1), bucket="hour")
    await call(delete, endpoint)


async def delivered(call: Recorder, delivery: str) -> None:
    """Return once a delivery has succeeded."""
    with trio.fail_after(_DELIVERED_S):
        while True:
            found = (await call.service.http.get(f"/s2s/deliveries/{delivery}")).json()
            if found["status"] == "delivered":
                return
            await trio.sleep(0.05)  # poll: there is no notification


async def stream(call: Recorder) -> None:
    """Authorize a consumer of the realtime stream, list the consumers, and end them."""
    channel = project_channel(call.service)
    async with AsyncExitStack() as stack:
        opened = await Streams(call.service, stack).open(call.service.demo["serverKey"])
        await opened.subscribe(channel, "mirror 17")
        body = {"socket_id": opened.socket_id, "channel_name": channel, "consumerId": "mirror 17"}
        await call("authorizeStream", body=body)
        await call("listConsumers")
        await call("listStreamConsumers")
        await call("endConsumer", "mirror 17")
        opened = await Streams(call.service, stack).open(call.service.demo["serverKey"])
        await opened.subscribe(channel, "mirror-18")
        await call("endStreamConsumer", "mirror-18", channel=channel)
