"""The calls of an agent: conversations, inbox, drafts, tickets, memory, snippets, teams, reports, search."""

from __future__ import annotations

from tests.api.conversations.test_voice import wav
from tests.clients.tour.backend import SINCE, UNTIL, in_days, owner
from tests.clients.tour.recorder import Recorder
from tests.engine.workflows.building import MENU, send, workflow
from tests.support.api.agent_stream import page


async def conversations(call: Recorder) -> None:
    """Call the operations of conversations for agents."""
    me = await owner(call)
    started = await call(
        "dashboardStartConversation",
        body={
            "contact": {"userId": "u5", "name": "Grace"},
            "title": "Your order",
            "message": {"text": "Your order has left us."},
            "assignee": {"type": "user", "id": me},
        },
        Idempotency_Key="s1",
    )
    first = started["id"]
    await call.service.say({"id": first}, "Mail me at grace@example.org")
    said = await call(
        "dashboardPostMessage",
        first,
        body={
            "text": "It left us today.",
            "ifSequence": (await call.service.fetch({"id": first}))["sequence"],
            "then": {"status": "PENDING", "snoozedUntil": in_days(1)},
        },
        Idempotency_Key="s2",
    )
    await call("dashboardPostMessage", first, body={"text": "A note", "internal": True})
    await call(
        "dashboardChangeConversation", first, view="agent", body={"tags": ["vip"], "snoozedUntil": None}
    )
    await call("dashboardRedactMessage", first, said["id"], body={"text": True}, Idempotency_Key="s3")
    await call("dashboardSetTyping", first, body={"typing": True, "internal": True})
    await call("dashboardMarkRead", first)
    await call.service.http.put(
        f"/s2s/conversations/{first}/network-logs", json={"requests": [{"url": "https://a.b/c"}]}
    )
    await call("dashboardGetNetworkLogs", first)
    await call("dashboardAssignConversation", first, body={"assignee": None})
    await call("dashboardCloseConversation", first)
    await call("dashboardReopenConversation", first, body={})
    await call("dashboardGetConversation", first, view="agent")
    await call(
        "dashboardListConversations",
        limit=20,
        view="agent",
        status="OPEN,PENDING",
        tag="vip",
        since=SINCE,
        until=UNTIL,
        archived=False,
        visible=True,
        sort="activity",
        order="desc",
    )
    await call("dashboardListMessages", first, limit=20, order="desc")
    await call("dashboardListConversationEvents", first, after=0, limit=50)
    await call("dashboardListConversationActivity", first, limit=50)
    await call("listConversationTags", limit=20)
    await call("getConversationContext", first)
    await call("listConversationDeliveries", first, limit=20, from_=1, to=9)
    await call("listConversationConsumers", first)
    second = (await call.service.create("u6", message={"text": "Hello again"}))["id"]
    third = (await call.service.create("u6"))["id"]
    await call("mergeConversation", second, body={"into": third})
    await call("unmergeConversation", second)
    asked = (await call.service.http.get(f"/s2s/conversations/{second}/messages")).json()["items"][0]
    split = {"messageIds": [asked["id"]], "title": "Change of address"}
    await call("splitConversation", second, body=split)
    await call("dashboardDeleteMessage", first, said["id"])
    await call("dashboardDeleteConversation", (await call.service.create("u6"))["id"])


async def inbox(call: Recorder) -> None:
    """Call the operations of the inbox: seen, drafts, held messages, and the page's view."""
    first = (await call.service.create("u7", message={"text": "Hello"}))["id"]
    await call("getInboxCounters")
    await call("getSetup")
    await call("putSetup", body={"hidden": True})
    await call("putSeen", first, body={"index": 0})
    await call("putAllSeen", body={"until": None})
    await call("markNoAnswerNeeded", first, body={"index": 0})
    await call("waitAgain", first)
    await call("followConversation", first)
    noted = {"text": "Look at this", "internal": True}
    note = await call.service.dashboard.post(f"/conversations/{first}/messages", json=noted)
    await call("putSeenMentions", first, body={"messageId": note.json()["id"]})
    await call("unfollowConversation", first)
    await call(
        "putDraft",
        first,
        "reply",
        body={"text": "It left", "version": 0, "baseSequence": 1, "attachments": []},
    )
    await call("getDrafts", first)
    await call("listDrafts", limit=20)
    held = []
    for text in ("Soon", "Later"):
        waiting = {"text": text, "holdSeconds": 60}
        held.append(
            (await call.service.dashboard.post(f"/conversations/{first}/messages", json=waiting)).json()["id"]
        )
    await call("listHeldMessagesOfConversation", first)
    await call("listHeldMessages")
    await call("takeBackMessage", held[0])
    await call("sendHeldMessage", held[1], body={"ifSequence": None})
    async with page(call.service.dashboard) as opened:
        view = {"conversationIds": [first], "composing": first}
        await call("showView", opened.hello["streamId"], body=view)
    await call("listRecentEvents", limit=100)
    await call("listRecentEvents", types="message.created", conversation=first)
    await call("getEvent", (await call.service.events())[0]["id"])


async def contacts(call: Recorder) -> None:
    """Call the operations of contacts for agents."""
    ids = [
        (await call.service.http.put(f"/s2s/contacts/{name}", json={"name": name})).json()["id"]
        for name in ("v1", "v2", "v3")
    ]
    await call("dashboardGetContact", ids[0])
    await call("getContactPresence", ids[0])
    await call(
        "dashboardChangeContact",
        ids[0],
        body={"email": "v@example.org", "phone": None, "attributes": {"plan": "pro"}},
    )
    await call("dashboardBlockContact", ids[2], body={"reason": "Insults"})
    await call("dashboardUnblockContact", ids[2])
    await call("dashboardMergeContact", ids[0], body={"from": ids[1]})
    await call(
        "dashboardListContacts",
        limit=10,
        updatedSince=SINCE,
        attribute="plan:pro",
        sort="updated",
        order="desc",
    )
    await call("exportContactWithNotes", ids[0])
    await memory(call, ids[0])
    await call("dashboardDeleteContact", ids[2])


async def memory(call: Recorder, contact: str) -> None:
    """Call the operations of a contact's memory."""
    await call(
        "putMemory",
        contact,
        body={"name": "shoe size", "content": "43", "description": None},
        Idempotency_Key="m",
    )
    await call("putMemory", contact, body={"name": "plan", "content": "gold"})
    await call("changeMemory", contact, "shoe size", body={"description": "since May"})
    await call("getMemory", contact, "shoe size")
    await call("listMemory", contact, limit=10)
    await call("deleteMemory", contact, "plan")
    await call("clearMemory", contact)


async def workflows(call: Recorder) -> None:
    """Call the operations of workflows."""
    body = workflow([send(1), MENU, {"id": 3, "type": "hand_off"}], order=[send(4)])
    await call("validateWorkflow", body=body)
    made = await call("createWorkflow", body=body, Idempotency_Key="f1")
    flow = made["id"]
    tag = (await call.service.dashboard.get(f"/workflows/{flow}")).headers["ETag"]
    await call("changeWorkflow", flow, body={"name": "Orders", "trigger": {"type": "manual"}}, If_Match=tag)
    await call("getWorkflow", flow)
    await call("listWorkflows", limit=10, trigger="manual")
    await call("listWorkflowVersions", flow, limit=10)
    await call("getWorkflowVersion", flow, 1)
    await call(
        "simulateWorkflow", body={"flows": body["flows"], "attributes": {"plan": "pro"}, "answers": ["order"]}
    )
    conversation = (await call.service.create("u8"))["id"]
    await call("dashboardStartWorkflow", conversation, body={"workflowId": flow}, Idempotency_Key="f2")
    await call("dashboardGetWorkflowStep", conversation)
    await call("listWorkflowRuns", flow, limit=10, state="waiting")
    await call("getWorkflowFigures", flow)
    await call("deleteWorkflow", (await call.service.dashboard.post("/workflows", json=body)).json()["id"])


async def tickets(call: Recorder) -> None:
    """Call the operations of tickets."""
    conversation = (await call.service.create("u9", message={"text": "Lost"}))["id"]
    body = {
        "title": "Parcel lost",
        "description": None,
        "priority": "HIGH",
        "snoozedUntil": in_days(1),
        "conversationId": conversation,
        "tags": ["lost"],
        "processingUser": await owner(call),
    }
    ticket = (await call("createTicket", body=body, Idempotency_Key="t1"))["id"]
    await call("changeTicket", ticket, body={"status": "IN_PROGRESS", "snoozedUntil": None})
    await call(
        "changeTickets",
        body={"selection": {"ids": [ticket]}, "payload": {"priority": "URGENT", "duration": 3600.5}},
    )
    await call("getTicket", ticket)
    await call(
        "listTickets",
        limit=10,
        status="IN_PROGRESS",
        priority="URGENT",
        tag="lost",
        snoozed=False,
        conversation=conversation,
        sort="createdAt",
        order="desc",
    )
    await call("listActivity", ticket, limit=20)
    await _voice(call, ticket, conversation)
    await call("deleteTicket", ticket)


async def _voice(call: Recorder, ticket: str, conversation: str) -> None:
    recording = (await call.service.http.post("/uploads", files={"file": ("a.wav", wav())})).json()
    body = {"audioUrl": recording["url"], "mode": "dictate"}
    await call("makeVoiceReply", ticket, body=body)
    await call("makeVoiceReplyInConversation", conversation, body={"audioUrl": recording["url"]})


async def reports(call: Recorder) -> None:
    """Call the reports, and the search."""
    for name in ("FirstResponse", "TimeToClose", "Csat", "Volume", "Backlog"):
        await call(f"report{name}", by="day", timezone="Europe/Berlin", imported=False)
    await call("search", q="order", limit=5, in_="conversations,tickets")


async def teams(call: Recorder) -> None:
    """Call the operations of teams and snippets."""
    team = (
        await call(
            "createTeam", body={"name": "Billing", "members": [await owner(call)]}, Idempotency_Key="x1"
        )
    )["id"]
    await call("listTeams", limit=10)
    await call("changeTeam", team, body={"name": "Refunds"})
    await call("getTeam", team)
    hello = {
        "shortcut": "hi",
        "title": "Hello",
        "text": "Hello {contact.name}",
        "language": None,
        "teamId": team,
    }
    snippet = (await call("createSnippet", body=hello, Idempotency_Key="x2"))["id"]
    await call("listSnippets", limit=10)
    await call("changeSnippet", snippet, body={"teamId": None, "language": "en"})
    await call("getSnippet", snippet)
    await call("deleteSnippet", snippet)
    named = {"name": "Refunds", "filter": {"tag": "refund"}, "visibility": "team", "teamId": team}
    view = (await call("createView", body=named, Idempotency_Key="x3"))["id"]
    await call("listViews", counts=True)
    await call("changeView", view, body={"name": "All refunds", "after": None})
    await call("getView", view)
    await call("deleteView", view)
    closing = {"filter": {"tag": "none"}, "action": {"type": "tag", "add": ["seen"]}}
    job = (await call("startBulkJob", body=closing, Idempotency_Key="x4"))["id"]
    await call("listBulkJobs")
    await call("getBulkJob", job)
    await call("undoBulkJob", job)
    await call("deleteTeam", team)


async def uploads(call: Recorder) -> None:
    """Call the operations of an uploaded file that have JSON."""
    upload = (await call.service.dashboard.post("/uploads", files={"file": ("a.txt", b"four")})).json()["id"]
    await call("getUpload", upload)
    await call("deleteUpload", upload)


async def translations(call: Recorder) -> None:
    """Call the operations of translations."""
    languages = {"settings": {"languages": ["en", "de"]}}
    answer = await call.service.dashboard.patch(f"/projects/{call.service.demo['projectId']}", json=languages)
    assert answer.status_code == 200, answer.text
    entry = "statictranslation:checkout/title"
    body = {"language": "en", "fields": {"text": "Checkout"}}
    await call("putEntry", entry, body=body, If_None_Match="*")
    await call("putEntry", entry, body={"language": "de", "fields": {"text": "Kasse"}})
    await call("getEntry", entry, language="de")
    await call("listEntries", limit=10, type="statictranslation", language="de")
    await call("reportMissing")
    await call("deleteEntry", entry, language="de")
