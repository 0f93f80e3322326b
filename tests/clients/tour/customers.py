"""The calls of customers, and those about their sessions."""

from __future__ import annotations

from tests.clients.tour.recorder import Recorder
from tests.support.api.customers import Browser, make_channel, signed


async def sessions(call: Recorder) -> None:
    """Call the operations of customers' sessions, as a browser, a backend and an agent."""
    channel = await make_channel(call.service)
    async with Browser(call.service, channel) as page:
        for seats in range(3):
            identity = signed(channel, "u-7", name="Ada", attributes={"seats": seats})
            started = await call(
                "startCustomerSession",
                client=page.http,
                body={"channelId": channel["id"], "identity": identity},
            )
        page.http.headers["Authorization"] = f"Bearer {started['token']}"
        await call("getCustomer", client=page.http)
        context = {"url": "https://shop.example/cart", "language": "en-GB", "custom": {"items": 3}}
        body = {"email": "ada@example.org", "phone": None, "context": context}
        me = await call("changeCustomer", client=page.http, body=body)
        listed = await call("listContactSessions", "u-7", limit=10)
        others = [each["id"] for each in listed["items"] if each["id"] != me["session"]["id"]]
        await call("endContactSession", "u-7", others[0])
        await call("dashboardListContactSessions", me["id"], limit=10)
        await call("dashboardEndContactSession", me["id"], others[1])
        await call("endCustomerSession", client=page.http)
