"""A consumer of the realtime stream, by an independent websocket library."""

from __future__ import annotations

import json

import httpx
from trio_websocket import WebSocketConnection


async def subscribe(
    websocket: WebSocketConnection, api: httpx.AsyncClient, channel: str, consumer_id: str
) -> None:
    """Subscribe a fresh connection to the channel; returns when that is confirmed."""
    opened = json.loads(await websocket.get_message())
    socket_id = json.loads(opened["data"])["socket_id"]
    wanted = {"socket_id": socket_id, "channel_name": channel, "consumerId": consumer_id}
    answer = await api.post("/s2s/stream/auth", json=wanted)
    answer.raise_for_status()
    data = {"channel": channel, "auth": answer.json()["auth"]}
    await websocket.send_message(json.dumps({"event": "pusher:subscribe", "data": data}))
    confirmed = json.loads(await websocket.get_message())
    if confirmed["event"] != "pusher_internal:subscription_succeeded":
        raise RuntimeError(f"the subscription to {channel} was refused: {confirmed}")


def url(port: int, stream_key: str) -> str:
    """Where the stream is."""
    return f"ws://127.0.0.1:{port}/app/{stream_key}?protocol=7&client=benchmark&version=1"


def client(port: int, server_key: str) -> httpx.AsyncClient:
    """A client for the API."""
    headers = {"Authorization": f"Bearer {server_key}"}
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/v3", headers=headers, timeout=30)
