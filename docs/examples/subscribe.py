"""Follow every event of a project with Pysher 1.0.8: pip install Pysher, then
BASE=http://127.0.0.1:8080 KEY=sk_... python3 subscribe.py
This runs on your server: the server key must never reach a customer.
"""

import json
import os
import socket
import time
import urllib.request
from urllib.parse import urlencode, urlsplit

import pysher

BASE, KEY = os.environ["BASE"], os.environ["KEY"]
HEADERS = {"Authorization": f"Bearer {KEY}"}
with urllib.request.urlopen(urllib.request.Request(f"{BASE}/v3/s2s/project", headers=HEADERS)) as answer:
    PROJECT = json.load(answer)

url = urlsplit(BASE)
secure = url.scheme == "https"
# Pysher can't add fields to the authorization's body, so they stand in its query string. Take a new consumerId
# for each start of the process.
options = urlencode({"consumerId": f"mirror-{socket.gethostname()}-{os.getpid()}"})
client = pysher.Pusher(
    PROJECT["streamKey"],
    custom_host=url.hostname,
    port=url.port or (443 if secure else 80),
    secure=secure,
    auth_endpoint=f"{BASE}/v3/s2s/stream/auth?{options}",
    auth_endpoint_headers=HEADERS,
)


def on_connected(_data):
    """Subscribe, again after each reconnect: each needs an authorization of its own."""
    channel = client.subscribe(f"private-project-{PROJECT['id']}")
    channel.bind("pusher_internal:subscription_succeeded", lambda data: print("subscribed", data, flush=True))
    channel.bind("message.created", on_message)


def on_message(data):
    """Take in one event; Pysher hands the envelope over as text."""
    event = json.loads(data)
    print(event["type"], event["sequence"], event["id"], flush=True)


client.connection.bind("pusher:connection_established", on_connected)
client.connect()
while True:
    time.sleep(1)
