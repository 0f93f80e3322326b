"""A page with a support chat. Needs Python 3.9 or newer, chat.html, chat.js and pusher-js beside it, and nothing else.

BASE=http://127.0.0.1:8080 KEY=sk_... SESSION_KEY=<64 random digits> python3 chat.py 9000
"""

import hashlib
import hmac
import json
import os
import secrets
import sys
import urllib.error
import urllib.request
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote

BASE, KEY, SESSION_KEY = (os.environ[name] for name in ("BASE", "KEY", "SESSION_KEY"))
STREAM = os.environ.get("STREAM", BASE)  # Deskwire's address for browsers
API = f"{BASE}/v3/s2s"
BODY_MAX = 64 * 1024
FILES = {
    "/": ("chat.html", "text/html; charset=utf-8"),
    "/chat.js": ("chat.js", "text/javascript"),
    "/pusher.js": ("node_modules/pusher-js/dist/web/pusher.min.js", "text/javascript"),
}
POLICY = (
    f"default-src 'self'; style-src 'unsafe-inline'; connect-src 'self' {STREAM.replace('http', 'ws', 1)}"
)


def deskwire(method, path, body=None, key=None):
    """Call Deskwire with the server key, which never leaves this process; repeat a POST under its key without harm."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    if key is not None:
        headers["Idempotency-Key"] = key
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{API}/{path}", data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def signed(visitor):
    """Return a visitor's cookie: the user id, and a signature that only this server can make."""
    signature = hmac.new(SESSION_KEY.encode(), visitor.encode(), hashlib.sha256).hexdigest()
    return f"{visitor}.{signature}"


def conversation_of(visitor):
    """Return the id of the visitor's latest conversation, or None."""
    try:
        found = deskwire("GET", f"conversations?contact={quote(visitor, safe='')}&limit=1")["items"]
    except urllib.error.HTTPError as error:
        if error.code != 400:  # 400: no such contact yet
            raise
        return None
    return found[0]["id"] if found else None


def messages_of(conversation):
    """Return the messages of a conversation, with the fields that the page shows and no others."""
    shown, cursor = [], ""
    while cursor is not None:
        page = deskwire(
            "GET", f"conversations/{conversation}/messages?limit=200{cursor and '&cursor=' + cursor}"
        )
        for each in page["items"]:
            author = {name: each["author"][name] for name in ("type", "name")}
            shown.append({"id": each["id"], "index": each["index"], "author": author, "text": each["text"]})
        cursor = page["nextCursor"]
    return shown


class Chat(BaseHTTPRequestHandler):
    """The page, its messages, and the authorization of its channel."""

    timeout = 10

    def do_GET(self):
        """Send a file, or the visitor's conversation."""
        if self.path == "/chat":
            return self.carry_out(self.history)
        if self.path not in FILES:
            return self.answer(404)
        name, kind = FILES[self.path]
        headers = [("Content-Type", kind)]
        if self.path == "/" and self.visitor() is None:  # your sign-in does this
            cookie = signed(f"visitor-{secrets.token_hex(8)}")
            headers.append(
                ("Set-Cookie", f"chat={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000")
            )
        with open(name, "rb") as file:
            self.answer(200, file.read(), *headers)

    def do_POST(self):
        """Send a message, or authorize the page's subscription."""
        actions = {"/messages": self.send_message, "/auth": self.authorize}
        self.carry_out(actions.get(self.path, lambda _: self.answer(404)))

    def carry_out(self, action):
        """Run an action for the visitor; report a refusal by Deskwire with its status alone."""
        visitor = self.visitor()
        if visitor is None:
            return self.answer(403)
        try:
            action(visitor)
        except urllib.error.HTTPError as error:
            self.answer(error.code if error.code < 500 else 503)
        except OSError:  # Deskwire is unavailable
            self.answer(503)
        except (ValueError, KeyError, TypeError):  # not a request of our page
            self.answer(400)

    def visitor(self):
        """Return the user id of this visitor, or None. Only a cookie with our signature names one."""
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get("chat")
        value = cookie.value if cookie else ""
        visitor = value.partition(".")[0]
        return visitor if hmac.compare_digest(value.encode(), signed(visitor).encode()) else None

    def history(self, visitor):
        """Answer with the messages so far, and where to subscribe."""
        conversation = conversation_of(visitor)
        shown = [] if conversation is None else messages_of(conversation)
        stream = {"url": STREAM, "key": deskwire("GET", "project")["streamKey"]}
        self.send_json({"conversation": conversation, "messages": shown, "stream": stream})

    def send_message(self, visitor):
        """Post the visitor's message; the first one opens the conversation."""
        if self.headers.get("Content-Type") != "application/json":  # a form of another site can't send this
            return self.answer(415)
        sent = json.loads(self.body())
        message, key = {"text": str(sent["text"])}, str(sent["id"])
        conversation = conversation_of(visitor)
        if conversation is None:
            contact = {"userId": visitor, "name": "Visitor"}
            conversation = deskwire("POST", "conversations", {"contact": contact}, key)["id"]
        deskwire("POST", f"conversations/{conversation}/messages", message, key)
        self.answer(204)

    def authorize(self, visitor):
        """Let the page subscribe to its own conversation, and to no other channel."""
        form = {name: values[0] for name, values in parse_qs(self.body().decode()).items()}
        if form["channel_name"] != f"private-conversation-{conversation_of(visitor)}":
            return self.answer(403)
        body = {name: form[name] for name in ("socket_id", "channel_name", "consumerId")}
        self.send_json(deskwire("POST", "stream/auth", {**body, "typingEvents": True, "resume": "live"}))

    def body(self):
        """Return the request's body; a long one is refused."""
        length = int(self.headers.get("Content-Length", 0))
        if not 0 <= length <= BODY_MAX:
            raise ValueError("too long")
        return self.rfile.read(length)

    def send_json(self, document):
        """Answer with a document that no cache keeps."""
        headers = [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
        self.answer(200, json.dumps(document).encode(), *headers)

    def answer(self, status, body=b"", *headers):
        """Answer with these bytes."""
        self.send_response(status)
        for name, value in (
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", POLICY),
            *headers,
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Print nothing of requests."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Chat)
    print(f"the chat is on http://127.0.0.1:{sys.argv[1]}/", flush=True)
    server.serve_forever()
