"""Send a message to a conversation, once, however often it has to be tried. Needs Python 3.9 or newer, and nothing else.

BASE=http://127.0.0.1:8080 KEY=sk_... python3 send.py cnv_... order-1001-shipped "It left us today."
The second argument is the Idempotency-Key: the id that the message has in your own system.
"""

import http.client
import json
import os
import random
import sys
import time
import urllib.error
import urllib.request

ATTEMPTS = 8
AGAIN = {409, 429, 500, 502, 503, 504}


class Refused(Exception):
    """The service has refused the message, or was unavailable for too long; the text says why."""


def send(conversation, key, text):
    """Return the message as it was stored. Raises Refused."""
    url = f"{os.environ['BASE']}/v3/s2s/conversations/{conversation}/messages"
    request = urllib.request.Request(
        url, json.dumps({"text": text, "author": {"type": "bot", "name": "Shop"}}).encode()
    )
    request.add_header("Authorization", f"Bearer {os.environ['KEY']}")
    request.add_header("Content-Type", "application/json")
    request.add_header("Idempotency-Key", key)  # the same on each attempt
    for attempt in range(ATTEMPTS):
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            wanted, reason = error.headers.get("Retry-After", ""), error.read().decode()
            if error.code not in AGAIN or (error.code == 409 and not wanted):
                raise Refused(reason) from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            wanted, reason = (
                "",
                repr(error),
            )  # no answer: it may have been stored, which the key tells the service
        if attempt < ATTEMPTS - 1:
            pause = int(wanted) if wanted.isdigit() else min(2**attempt, 30)
            time.sleep(pause + random.random())  # not all clients at once
    raise Refused(reason)


if __name__ == "__main__":
    try:
        print("sent", send(*sys.argv[1:4])["id"])
    except Refused as refusal:
        sys.exit(f"not sent: {refusal}")
