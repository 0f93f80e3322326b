"""Verify a Deskwire webhook. Needs Python 3.9 or newer, and nothing else.

As a receiver to try it out: WEBHOOK_SECRET=whsec_... python3 verify.py 9000
"""

import hashlib
import hmac
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

TOLERANCE_S = 300


def verify(secret, header, body, now=None):
    """Whether `header`, the value of Service-Signature, signs `body`, the raw bytes as they came."""
    t, signatures = "", []
    for part in header.split(","):
        name, _, value = part.strip().partition("=")
        if name == "t":
            t = value
        elif name == "v1":
            signatures.append(value)
    if not (t.isascii() and t.isdigit() and len(t) <= 15):
        return False
    if abs((time.time() if now is None else now) - int(t)) > TOLERANCE_S:
        return False
    # The key is the whole secret, `whsec_` included. It is not base64: do not decode it.
    expected = hmac.new(secret.encode(), t.encode() + b"." + body, hashlib.sha256).hexdigest()
    return any(hmac.compare_digest(expected.encode(), each.encode()) for each in signatures)


class Receiver(BaseHTTPRequestHandler):
    """Answers 204 to what is signed, 400 to the rest, and prints what came."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        good = verify(os.environ["WEBHOOK_SECRET"], self.headers.get("Service-Signature", ""), body)
        if good:
            event = json.loads(body)
            print("verified", event["type"], event["sequence"], event["id"], flush=True)
        self.send_response(204 if good else 400)
        self.end_headers()

    def log_message(self, *_):
        """Print nothing but events."""


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
