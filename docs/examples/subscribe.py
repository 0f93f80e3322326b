"""Follow every event of a project with Pysher 1.0.8: pip install Pysher, then
BASE=http://127.0.0.1:8080 KEY=sk_... python3 subscribe.py [FILE]
This runs on your server: the server key must never reach a customer.
In FILE it keeps its place: started again, it continues after the last event that it has processed.
"""

import collections
import json
import os
import socket
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pysher

BASE, KEY = os.environ["BASE"], os.environ["KEY"]
CONVERSATIONS = ("created", "updated", "closed", "reopened", "assigned", "deleted")
TYPES = [*(f"conversation.{each}" for each in CONVERSATIONS), "message.created", "contact.updated"]
TYPES += ["workflow.step.presented", "workflow.completed"]  # Pysher can't bind to everything
HEADERS = {"Authorization": f"Bearer {KEY}"}
PLACE = Path(sys.argv[1]) if len(sys.argv) > 1 else None
CONSUMER = f"mirror-{socket.gethostname()}-{os.getpid()}"  # a new one for each start of the process
with urllib.request.urlopen(urllib.request.Request(f"{BASE}/v3/s2s/project", headers=HEADERS)) as answer:
    PROJECT = json.load(answer)


def endpoint(resume):
    """Return the address that authorizes: Pysher can add no fields to the body, so they stand in the query string."""
    return f"{BASE}/v3/s2s/stream/auth?{urlencode({'consumerId': CONSUMER, 'resume': resume})}"


url = urlsplit(BASE)
secure = url.scheme == "https"
client = pysher.Pusher(
    PROJECT["streamKey"],
    custom_host=url.hostname,
    port=url.port or (443 if secure else 80),
    secure=secure,
    auth_endpoint=endpoint(PLACE.read_text() if PLACE and PLACE.exists() else "auto"),
    auth_endpoint_headers=HEADERS,
)
recent = collections.deque(maxlen=1000)  # events in flight when a connection broke come twice


def on_connected(_data):
    """Subscribe, again after each reconnect: each needs an authorization of its own."""
    channel = client.subscribe(f"private-project-{PROJECT['id']}")
    channel.bind("pusher_internal:subscription_succeeded", on_subscribed)
    channel.bind("pusher:subscription_error", lambda refusal: print("refused", refusal, flush=True))
    for kind in TYPES:
        channel.bind(kind, on_event)


def on_subscribed(data):
    """From now on the service knows the place: pongs confirm what has arrived. `gap`: fetch the conversations again."""
    client.auth_endpoint = endpoint("auto")
    print("subscribed", data, flush=True)


def on_event(data):
    """Take in one event; Pysher hands the envelope over as text."""
    event = json.loads(data)
    if event["id"] in recent:
        return
    print(event["type"], event["sequence"], event["id"], flush=True)  # your work
    recent.append(event["id"])
    if PLACE:
        new = PLACE.with_suffix(".new")
        new.write_text(event["id"])
        new.replace(PLACE)


client.connection.bind("pusher:connection_established", on_connected)
client.connect()
while True:
    time.sleep(1)
