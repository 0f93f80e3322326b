"""Support from Slack: new conversations are posted to a channel, and replies in their threads are sent to the customer.

BASE=http://127.0.0.1:8080 KEY=sk_... SLACK_TOKEN=xoxb-... SLACK_SIGNING_SECRET=... SLACK_CHANNEL=C... \
    python3 slack_bridge.py bridge.db 9001
The Request URL of the Slack app is POST /slack/events on this port. Needs Python 3.9 or newer, and nothing else.
"""

import hashlib
import hmac
import html
import http.client
import json
import os
import re
import sqlite3
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlencode

BASE, KEY = os.environ["BASE"], os.environ["KEY"]
SLACK, TOKEN = os.environ.get("SLACK_API", "https://slack.com/api"), os.environ["SLACK_TOKEN"]
SIGNING_SECRET, CHANNEL = os.environ["SLACK_SIGNING_SECRET"], os.environ["SLACK_CHANNEL"]
WAIT_S = 2  # for the next event; a reply from Slack is sent within this time
PAUSE_MAX_S = 60
TOLERANCE_S = 300
BODY_MAX = 1 << 20
TEXT_MAX = 39_000  # of Slack's 40,000
THREAD_GONE = {"thread_not_found", "thread_locked", "cannot_reply_to_message"}
# `posts` has each message of the bridge in Slack; `ts` is null until Slack's response is stored. `inbox` has each reply from
# Slack; `message` is null until the reply is sent.
TABLES = """
CREATE TABLE IF NOT EXISTS place (one INTEGER PRIMARY KEY CHECK (one = 1), event TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS threads (conversation TEXT PRIMARY KEY, ts TEXT UNIQUE NOT NULL);
CREATE TABLE IF NOT EXISTS posts (key TEXT PRIMARY KEY, thread TEXT, at REAL, ts TEXT);
CREATE TABLE IF NOT EXISTS inbox
  (key TEXT PRIMARY KEY, thread TEXT, user TEXT, text TEXT, files INTEGER, body TEXT, message TEXT);
"""


class Unavailable(Exception):
    """Slack or Deskwire can't be reached, or asks for a pause; the call is repeated."""

    pause = 0


class Refused(Exception):
    """Slack or Deskwire has refused the call for good; the text says why, `code` is Slack's code or Deskwire's status."""

    def __init__(self, code, reason):
        super().__init__(reason)
        self.code = code


def call(request):
    """Return the JSON of a response. Raises Unavailable, Refused."""
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        text, wanted = error.read().decode(), error.headers.get("Retry-After", "")
        # 401 and 403 are for the operator to repair; 409 with Retry-After: the first attempt is still in progress.
        if error.code in (401, 403, 429) or error.code >= 500 or (error.code == 409 and wanted):
            problem = Unavailable(f"{error.code} {text[:200]}")
            problem.pause = int(wanted) if wanted.isdigit() else 0
            raise problem from None
        raise Refused(error.code, text[:500]) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise Unavailable(repr(error)) from None


def deskwire(path, body=None, key=None):
    """Call Deskwire; a POST has an Idempotency-Key, so it takes effect once however often it is repeated."""
    request = urllib.request.Request(f"{BASE}/v3/s2s/{path}", body and body.encode())
    request.add_header("Authorization", f"Bearer {KEY}")
    if key is not None:
        request.add_header("Content-Type", "application/json")
        request.add_header("Idempotency-Key", key)
    return call(request)


def slack(method, **fields):
    """Call a method of Slack's Web API."""
    request = urllib.request.Request(f"{SLACK}/{method}", urlencode(fields).encode())
    request.add_header("Authorization", f"Bearer {TOKEN}")
    answer = call(request)
    if not answer["ok"]:
        raise Refused(answer["error"], f"{method}: {answer['error']}")
    return answer


def signed(secret, headers, body, now=None):
    """Return whether Slack has signed the request: https://api.slack.com/authentication/verifying-requests-from-slack."""
    t = headers.get("X-Slack-Request-Timestamp", "")
    if not (t.isascii() and t.isdigit() and len(t) <= 15):
        return False
    if abs((time.time() if now is None else now) - int(t)) > TOLERANCE_S:
        return False
    expected = (
        "v0=" + hmac.new(secret.encode(), b"v0:" + t.encode() + b":" + body, hashlib.sha256).hexdigest()
    )
    return hmac.compare_digest(expected.encode(), headers.get("X-Slack-Signature", "").encode())


def to_slack(text):
    """Return a text with Slack's special characters escaped."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")[:TEXT_MAX]


def from_slack(text):
    """Return a text of Slack as its author sees it, with links written out."""
    text = re.sub(r"<([^<>|]+)\|([^<>]*)>", lambda found: f"{found[2]} ({found[1]})", text)
    return html.unescape(re.sub(r"<([^<>]+)>", r"\1", text))


def database():
    """Open the bridge's database; each thread has a connection of its own."""
    db = sqlite3.connect(sys.argv[1], timeout=30)
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript(TABLES)
    return db


class Bridge:
    """Carries events to Slack and replies to Deskwire, one after the other. Each step is stored, so a crash repeats one."""

    def __init__(self):
        self.db, self.names = database(), {}

    def run(self):
        """Work, and pause after a failure."""
        pause = 1
        while True:
            try:
                self.send_replies()
                self.show_events()
                pause = 1
            except Unavailable as problem:
                print("trying again:", problem, flush=True)
                time.sleep(max(problem.pause, pause))
                pause = min(2 * pause, PAUSE_MAX_S)

    def one(self, statement, *values):
        """Return the first column of the first row, or None."""
        row = self.db.execute(statement, values).fetchone()
        return row and row[0]

    def send_replies(self):
        """Send the replies from Slack, before events are read: so their own events are recognised."""
        rows = self.db.execute(
            "SELECT key, thread, user, text, files FROM inbox WHERE message IS NULL ORDER BY rowid"
        )
        for key, thread, user, text, files in rows.fetchall():
            conversation = self.one("SELECT conversation FROM threads WHERE ts = ?", thread)
            if conversation is None and self.one("SELECT 1 FROM posts WHERE ts IS NULL AND thread IS NULL"):
                continue  # the thread may be that of the post whose response is missing
            outcome = (
                "another thread"
                if conversation is None
                else self.send(conversation, key, thread, user, text, files)
            )
            with self.db:
                self.db.execute(
                    "UPDATE inbox SET message = ?, text = NULL, body = NULL WHERE key = ?", (outcome, key)
                )

    def send(self, conversation, key, thread, user, text, files):
        """Send a reply to the customer; return the id of its message. A refusal is posted in the thread."""
        if files:
            self.notice(
                f"files-{key}", "Files are not sent to the customer: upload them in Deskwire.", thread
            )
        if not text.strip():
            return "no text"
        body = self.one("SELECT body FROM inbox WHERE key = ?", key)
        if body is None:  # stored before it is sent, because a key with another body is refused
            body = json.dumps(
                {"text": from_slack(text), "author": {"type": "agent", "name": self.name(user)}}
            )
            with self.db:
                self.db.execute("UPDATE inbox SET body = ? WHERE key = ?", (body, key))
        try:
            message = deskwire(f"conversations/{conversation}/messages", body, f"slack-{key}")["id"]
        except Refused as refusal:
            self.notice(f"refused-{key}", f"Not sent to the customer: {to_slack(str(refusal))}", thread)
            return "refused"
        print("sent", message, flush=True)
        return message

    def notice(self, key, text, thread):
        """Post a notice about a reply in its thread, or print it if the thread is gone."""
        try:
            self.post(key, text, thread)
        except Refused:
            print(key, text, flush=True)
            with self.db:
                self.db.execute("DELETE FROM posts WHERE key = ?", (key,))

    def name(self, user):
        """Return a person's name in Slack, or None."""
        if user not in self.names:
            try:
                self.names[user] = slack("users.info", user=user)["user"]["profile"]["real_name"]
            except Refused:
                return None
        return self.names[user]

    def show_events(self):
        """Read the next events, and post those that Slack shows; the place is stored after each."""
        place = self.one("SELECT event FROM place")
        try:
            if place is None:
                return self.go_on(deskwire("conversations?limit=1")["asOf"])  # begin with the next event
            events = deskwire(f"events?{urlencode({'after': place, 'wait': WAIT_S, 'limit': 100})}")["items"]
        except Refused as refusal:
            if refusal.code not in (404, 410):
                raise Unavailable(str(refusal)) from None
            print("events are missing: this was down for longer than they are stored", flush=True)
            return self.go_on(deskwire("conversations?limit=1")["asOf"])
        for event in events:
            self.show(event["type"], event["id"], event["data"])
            self.go_on(event["id"])

    def go_on(self, event):
        """Store the event after which to continue."""
        with self.db:
            self.db.execute("INSERT OR REPLACE INTO place VALUES (1, ?)", (event,))

    def show(self, kind, event, data):
        """Post an event in the thread of its conversation."""
        if kind == "conversation.deleted":
            return self.delete(data["conversation"]["id"])
        if kind == "conversation.created":
            self.thread(data["conversation"])
        elif kind == "message.created":
            message = data["message"]
            if self.one("SELECT 1 FROM inbox WHERE message = ?", message["id"]):
                return  # it came from this thread
            names = [message["text"], *(f"[{each['name']}]" for each in message["attachments"])]
            author = message["author"]["name"] or message["author"]["type"]
            text = to_slack(f"*{author}*: {' '.join(filter(None, names))}")
            self.tell(data["conversation"], event, text)
        elif kind in ("conversation.closed", "conversation.reopened"):
            self.tell(data["conversation"], event, f"_{kind.partition('.')[2].capitalize()}_")

    def tell(self, conversation, key, text):
        """Post to the thread of a conversation; start another one if people have deleted or locked it."""
        try:
            self.post(key, text, self.thread(conversation))
        except Refused:
            with self.db:
                self.db.execute("DELETE FROM threads WHERE conversation = ?", (conversation["id"],))
                self.db.execute("DELETE FROM posts WHERE key IN (?, ?)", (conversation["id"], key))
            self.post(key, text, self.thread(conversation))

    def thread(self, conversation):
        """Return the thread of a conversation; start it if there is none."""
        ts = self.one("SELECT ts FROM threads WHERE conversation = ?", conversation["id"])
        if ts is None:
            who = conversation["contact"]["name"] or conversation["contact"]["userId"] or "A visitor"
            link = f"{BASE}/desk/{conversation['projectId']}/c/{conversation['id']}"
            title = to_slack(f"{who}: {conversation['title'] or 'new conversation'}")
            ts = self.post(conversation["id"], f"*{title}* <{link}|Open in Deskwire>", None)
            with self.db:
                self.db.execute("INSERT INTO threads VALUES (?, ?)", (conversation["id"], ts))
        return ts

    def post(self, key, text, thread):
        """Post a message once; return its `ts`. Raises Refused if the thread is gone.

        Slack has no idempotency keys. So the key is stored before the call and sent as metadata, and if the response is
        lost, the message is looked for before it is posted again.
        """
        row = self.db.execute("SELECT ts, at FROM posts WHERE key = ?", (key,)).fetchone()
        if row and row[0]:
            return row[0]
        ts = self.find(key, thread, row[1]) if row else None
        if row is None:
            with self.db:
                self.db.execute("INSERT INTO posts VALUES (?, ?, ?, NULL)", (key, thread, time.time()))
        if ts is None:
            metadata = json.dumps({"event_type": "deskwire", "event_payload": {"key": key}})
            fields = {"channel": CHANNEL, "text": text, "metadata": metadata, "unfurl_links": "false"}
            try:
                ts = slack("chat.postMessage", **fields, **({"thread_ts": thread} if thread else {}))["ts"]
            except Refused as refusal:
                if thread and refusal.code in THREAD_GONE:
                    raise
                # A setting of the app or of the channel, which the operator can repair.
                raise Unavailable(str(refusal)) from None
        with self.db:
            self.db.execute("UPDATE posts SET ts = ? WHERE key = ?", (ts, key))
        print("posted", key, flush=True)
        return ts

    def find(self, key, thread, at):
        """Return the `ts` of the message with a key if Slack has it, or None."""
        method, where = ("conversations.replies", {"ts": thread}) if thread else ("conversations.history", {})
        fields = {
            "channel": CHANNEL,
            **where,
            "oldest": f"{at - 60:.6f}",
            "include_all_metadata": "true",
            "limit": 200,
        }
        cursor = ""
        while True:
            try:
                page = slack(method, **fields, cursor=cursor)
            except Refused as refusal:
                if refusal.code in THREAD_GONE:
                    return None
                raise Unavailable(str(refusal)) from None
            for message in page["messages"]:
                if message.get("metadata", {}).get("event_payload", {}).get("key") == key:
                    return message["ts"]
            cursor = page.get("response_metadata", {}).get("next_cursor")
            if not cursor:
                return None

    def delete(self, conversation):
        """Delete the bridge's messages about a deleted conversation. A bot can't delete messages of people."""
        thread = self.one("SELECT ts FROM threads WHERE conversation = ?", conversation)
        posts = self.db.execute(
            "SELECT key, ts FROM posts WHERE thread = ? OR ts = ?", (thread, thread)
        ).fetchall()
        for key, ts in posts:
            try:
                slack("chat.delete", channel=CHANNEL, ts=ts)
            except Refused as refusal:
                if refusal.code != "message_not_found":
                    raise Unavailable(str(refusal)) from None
            with self.db:
                self.db.execute("DELETE FROM posts WHERE key = ?", (key,))
        with self.db:
            self.db.execute("DELETE FROM threads WHERE conversation = ?", (conversation,))


class Events(BaseHTTPRequestHandler):
    """The Request URL for Slack's events: stores replies, and responds within Slack's three seconds."""

    timeout = 10

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        body = self.rfile.read(int(length)) if length.isdigit() and int(length) <= BODY_MAX else b""
        if self.path != "/slack/events" or not signed(SIGNING_SECRET, self.headers, body):
            return self.answer(401)
        asked = json.loads(body)
        if asked["type"] == "url_verification":
            return self.answer(200, asked["challenge"])
        self.take(asked.get("event", {}))
        self.answer(200)

    def take(self, event):
        """Store a person's reply in a thread, once: Slack repeats an event, also after this has responded."""
        person = event.get("type") == "message" and not event.get("bot_id")
        if not (person and event.get("channel") == CHANNEL and event.get("thread_ts")):
            return
        if event.get("subtype") not in (None, "file_share", "thread_broadcast"):
            return  # an edit, a deletion, a new member
        key, text, files = f"{CHANNEL}-{event['ts']}", event.get("text") or "", len(event.get("files", ()))
        db = database()
        with db:
            row = (key, event["thread_ts"], event.get("user"), text, files)
            db.execute("INSERT OR IGNORE INTO inbox VALUES (?, ?, ?, ?, ?, NULL, NULL)", row)
        db.close()

    def answer(self, status, text=""):
        """Send the response now."""
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        """Print no access log."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Events)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Bridge().run()
