"""Receive Deskwire's webhooks: verify, store, answer, and then work. Needs Python 3.9 or newer, and nothing else.

WEBHOOK_SECRET=whsec_... python3 verify.py 9000
While you rotate the secret, give both: WEBHOOK_SECRET=whsec_new,whsec_old
"""

import hashlib
import hmac
import json
import os
import queue
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TOLERANCE_S = 300
BODY_MAX = 1 << 20
INBOX = Path(os.environ.get("INBOX", "deskwire-inbox"))
jobs = queue.SimpleQueue()


def verify(secret, header, body, now=None):
    """Whether `header`, the value of Service-Signature, signs `body`, the raw bytes as they came."""
    t, signatures = "", []
    for part in header.split(","):
        name, _, value = part.strip().partition("=")
        if name == "t":
            t = value
        elif name == "v1":
            signatures.append(value.encode())
    if not (t.isascii() and t.isdigit() and len(t) <= 15):
        return False
    if abs((time.time() if now is None else now) - int(t)) > TOLERANCE_S:
        return False
    # The key is the whole secret, `whsec_` included. It is not base64: do not decode it.
    keys = [each.strip().encode() for each in secret.split(",")]
    expected = [hmac.new(key, t.encode() + b"." + body, hashlib.sha256).hexdigest().encode() for key in keys]
    return any(hmac.compare_digest(ours, theirs) for ours in expected for theirs in signatures)


def store(event_id, body):
    """Keep an event in a file of its own; False if it is there. A table with a unique column does the same."""
    INBOX.mkdir(exist_ok=True)
    part = INBOX / f".{event_id}-{os.getpid()}-{threading.get_ident()}"
    part.write_bytes(body)
    try:
        os.link(part, INBOX / f"{event_id}.json")  # whole, and once
    except FileExistsError:
        return False
    finally:
        part.unlink()
    return True


class Receiver(BaseHTTPRequestHandler):
    """Answers 204 to a signed event once it is stored, and 400 to the rest, within 5 seconds however long the work takes."""

    timeout = 10

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length) if length <= BODY_MAX else b""
        if not verify(os.environ["WEBHOOK_SECRET"], self.headers.get("Service-Signature", ""), body):
            return self.answer(400)
        event = json.loads(body)
        if not re.fullmatch("evt_[0-9A-Za-z]{1,60}", event["id"]):
            return self.answer(400)
        if store(event["id"], body):
            jobs.put(event)
        else:
            print("again", event["id"], flush=True)
        self.answer(204)

    def answer(self, status):
        """Send the answer now."""
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        """Print nothing but events."""


def work():
    """Do what your business needs, one event after the other. Events that a crash left undone are in the inbox."""
    while True:
        event = jobs.get()
        print("verified", event["type"], event["sequence"], event["id"], flush=True)


if __name__ == "__main__":
    threading.Thread(target=work, daemon=True).start()
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
