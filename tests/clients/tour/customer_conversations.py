"""The customer's own conversations, messages and survey."""

from __future__ import annotations

from typing import Any, Final

from tests.clients.tour.recorder import Recorder
from tests.clients.tour.surveys import DEFINITION
from tests.support.api.customers import Browser, make_channel

_WORKFLOW: Final[dict[str, Any]] = {
    "name": "Orders",
    "trigger": {"type": "manual"},
    "flows": [
        {
            "id": "main",
            "actions": [
                {
                    "id": 1,
                    "type": "buttons",
                    "text": "What is it about?",
                    "options": [{"id": "order", "label": "My order"}],
                },
                {"id": 2, "type": "hand_off"},
            ],
        }
    ],
}


async def conversations(call: Recorder) -> None:
    """Call all operations of the customer's own conversations."""
    service = call.service
    workflow = (await service.dashboard.post("/workflows", json=_WORKFLOW)).json()["id"]
    survey = (
        await service.dashboard.post("/engagement/surveys", json={"name": "CSAT", "definition": DEFINITION})
    ).json()
    channel = await make_channel(service, startsWorkflow=workflow, survey=survey["id"])
    async with Browser(service, channel) as browser:
        assert (await browser.start()).status_code == 200
        browser.http.headers["Authorization"] = f"Bearer {browser.token}"
        mine = browser.http
        message = {"text": "Hello", "clientId": "m-1"}
        body = {
            "clientId": "t-1",
            "message": message,
            "contact": {"name": "Ada"},
            "context": {"url": "https://shop.example/"},
        }
        started = await call("startMyConversation", client=mine, body=body)
        named = "client:t-1"
        await call("listMyConversations", client=mine, limit=10)
        await call("getMyConversation", started["id"], client=mine)
        await call("getMyWorkflowStep", named, client=mine)
        await call(
            "replyToMyStep", named, client=mine, body={"actionId": 1, "value": "order"}, Idempotency_Key="c1"
        )
        sent = await call("postMyMessage", named, client=mine, body={"text": "Thanks", "clientId": "m-2"})
        await call("listMyMessages", named, client=mine, limit=10, order="desc")
        await call("markMyMessages", named, client=mine, body={"reached": sent["id"], "seen": sent["id"]})
        await call("setMyTyping", named, client=mine, body={"typing": True})
        await call("rateMyConversation", named, client=mine, body={"rating": 9, "comment": "Quick"})
        made = {"url": "https://shop.example/cart", "type": "fetch", "success": True, "request": {"a": 1}}
        logs = {"requests": [{**made, "response": [1, None]}]}
        await call("replaceMyNetworkLogs", named, client=mine, body=logs)
        await call("showMySurvey", survey["id"], client=mine)
        answers = {"clientId": "r-1", "answers": {"score": 9}, "version": None, "language": "en"}
        await call("createMyResponse", survey["id"], client=mine, body=answers)
