"""The events of a customer's own conversations."""

from __future__ import annotations

from tests.clients.tour.recorder import Recorder
from tests.support.api.customers import Browser, make_channel, signed


async def events(call: Recorder) -> None:
    """List the events of a customer by long poll; the stream has no end."""
    channel = await make_channel(call.service)
    async with Browser(call.service, channel) as page:
        cursor = (await page.start(signed(channel, "u-events"))).json()["cursor"]
        page.http.headers["Authorization"] = f"Bearer {page.token}"
        await call.service.create("u-events", message={"text": "Hello"})
        await call("listMyEvents", client=page.http, after=cursor, wait=5)
        await call("listMyEvents", client=page.http)
