"""Drives Pysher, unmodified, in a separate process: commands on stdin, reports on stdout, as JSON lines.

Subscriptions are made in the handler of `pusher:connection_established`, as a user must, so that they are repeated
after each reconnect, each with a new authorization.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import Any
from urllib.parse import urlencode

import pysher


def tell(saw: str, **more: Any) -> None:
    print(json.dumps({"saw": saw, **more}), flush=True)


def make(key: str, port: int, endpoint: str, serverKey: str, fields: dict[str, str], **options: Any) -> Any:
    """Return a client that is not connected yet."""
    return pysher.Pusher(
        key,
        custom_host="127.0.0.1",
        port=port,
        secure=False,
        auth_endpoint=f"{endpoint}?{urlencode(fields)}",
        auth_endpoint_headers={"Authorization": f"Bearer {serverKey}"},
        **options,
    )


def follow(client: Any, channel: str, types: list[str]) -> None:
    """Subscribe at each connection, and report events of these types."""

    def on_connected(_: object) -> None:
        tell("state", state="connected")
        followed = client.subscribe(channel)
        followed.bind("pusher_internal:subscription_succeeded", on_subscribed)
        followed.bind("pusher:subscription_error", on_refused)
        for kind in types:
            followed.bind(kind, lambda text, kind=kind: tell("event", type=kind, text=text))

    def on_subscribed(text: str) -> None:
        tell("subscribed", data=json.loads(text))

    def on_refused(text: str) -> None:
        data = json.loads(text)
        tell("refused", status=data["status"], type=data["type"])

    client.connection.bind("pusher:connection_established", on_connected)
    client.connection.bind("pusher:error", lambda data: tell("error", code=data.get("code")))


def watch(client: Any) -> None:
    """Report the end of the client's thread."""
    client.connection.join()
    tell("ended")


def main() -> None:
    """Read commands until stdin ends; the only command is `connect`."""
    for line in sys.stdin:
        wanted = json.loads(line)
        assert (wanted.pop("command"), wanted.pop("authorization")) == ("connect", "query")
        channel, types, options = wanted.pop("channel"), wanted.pop("types"), wanted.pop("options")
        client = make(**wanted, **options)
        follow(client, channel, types)
        client.connect()
        threading.Thread(target=watch, args=(client,), daemon=True).start()


if __name__ == "__main__":
    main()
