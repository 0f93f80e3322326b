"""Keep a copy of every conversation and message of a project in a SQLite file: no dependencies.
BASE=http://127.0.0.1:8080 KEY=sk_... python3 mirror.py mirror.db
This runs on your server: the server key must never reach a customer.
"""

import json
import os
import sqlite3
import sys
import urllib.error
import urllib.request
from urllib.parse import urlencode

TABLES = """
CREATE TABLE IF NOT EXISTS place (one INTEGER PRIMARY KEY CHECK (one = 1), event TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS conversations (id TEXT PRIMARY KEY, sequence INTEGER, contact TEXT, body TEXT, run INTEGER);
CREATE TABLE IF NOT EXISTS messages (id TEXT PRIMARY KEY, conversation TEXT, body TEXT);
CREATE INDEX IF NOT EXISTS messages_by_conversation ON messages (conversation);
"""


class Mirror:
    """The copy. Each page is committed together with its place, so the program can be stopped at any time."""

    def __init__(self, base, key, path):
        self.base, self.key = f"{base}/v3/s2s/", key
        self.db = sqlite3.connect(path)
        self.db.executescript(TABLES)

    def get(self, path, **params):
        """Return what the API answers. Raises HTTPError."""
        request = urllib.request.Request(f"{self.base}{path}?{urlencode(params)}")
        request.add_header("Authorization", f"Bearer {self.key}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def pages(self, path, **params):
        """Yield all pages of a list."""
        page = self.get(path, **params)
        yield page
        while page["nextCursor"]:
            page = self.get(path, cursor=page["nextCursor"], **params)
            yield page

    def build(self):
        """Copy everything, drop what is gone, and note where the events go on."""
        run = (self.db.execute("SELECT max(run) FROM conversations").fetchone()[0] or 0) + 1
        for page in self.pages("conversations", sort="updated", order="asc", limit=200):
            for conversation in page["items"]:
                self.keep(conversation, run)
                self.pull_messages(conversation["id"])
            self.db.commit()
        for (gone,) in self.db.execute("SELECT id FROM conversations WHERE run < ?", (run,)).fetchall():
            self.drop(gone)
        self.go_on_behind(page["asOf"])

    def pull_messages(self, conversation):
        """Copy the messages of a conversation, and drop those that are gone."""
        try:
            pages = self.pages(f"conversations/{conversation}/messages", limit=200)
            messages = [message for page in pages for message in page["items"]]
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return self.drop(conversation)  # it was deleted in the meantime
        self.db.execute("DELETE FROM messages WHERE conversation = ?", (conversation,))
        for message in messages:
            self.keep_message(message)

    def catch_up(self, wait=0):
        """Take in the next events, waiting for them if there are none; return their number."""
        place = self.db.execute("SELECT event FROM place").fetchone()
        if place is None:
            return self.build()
        try:
            events = self.get("events", after=place[0], wait=wait, limit=200)["items"]
        except urllib.error.HTTPError as error:
            if error.code not in (404, 410):  # no longer stored, or not yet: the service was restored
                raise
            return self.build()
        for event in events:
            self.take_in(event["type"], event["data"])
        if events:
            self.go_on_behind(events[-1]["id"])
        return len(events)

    def take_in(self, kind, data):
        """Do to the copy what an event tells. An event that was taken in already changes nothing."""
        if kind == "contact.updated":
            return self.rename(data["contact"])
        conversation = data["conversation"]
        if kind == "conversation.deleted":
            return self.drop(conversation["id"])
        self.keep(conversation)
        if "message" in data:
            self.keep_message(data["message"])
        if "messages" in data.get("changed", ()):  # some were redacted or deleted
            self.pull_messages(conversation["id"])

    def keep(self, conversation, run=0):
        """Keep a conversation, unless the copy has it as new already."""
        values = {"id": conversation["id"], "sequence": conversation["sequence"], "run": run}
        values |= {"contact": conversation["contact"]["id"], "body": json.dumps(conversation)}
        self.db.execute(
            "INSERT INTO conversations VALUES (:id, :sequence, :contact, :body, :run) ON CONFLICT (id) DO UPDATE SET "
            "body = CASE WHEN excluded.sequence >= sequence THEN excluded.body ELSE body END, "
            "contact = CASE WHEN excluded.sequence >= sequence THEN excluded.contact ELSE contact END, "
            "sequence = max(sequence, excluded.sequence), run = max(run, excluded.run)",
            values,
        )

    def keep_message(self, message):
        """Keep a message in its newest form."""
        row = (message["id"], message["conversationId"], json.dumps(message))
        self.db.execute("INSERT OR REPLACE INTO messages VALUES (?, ?, ?)", row)

    def rename(self, contact):
        """Show a contact's name and address in its conversations: they have no event for it."""
        for key, body in self.db.execute(
            "SELECT id, body FROM conversations WHERE contact = ?", (contact["id"],)
        ).fetchall():
            shown = json.loads(body)
            shown["contact"] = {name: contact[name] for name in ("id", "userId", "name", "email")}
            self.db.execute("UPDATE conversations SET body = ? WHERE id = ?", (json.dumps(shown), key))

    def drop(self, conversation):
        """Drop a conversation with its messages."""
        self.db.execute("DELETE FROM conversations WHERE id = ?", (conversation,))
        self.db.execute("DELETE FROM messages WHERE conversation = ?", (conversation,))

    def go_on_behind(self, event):
        """Note the event behind which to go on, together with all that was taken in before it."""
        self.db.execute("INSERT OR REPLACE INTO place VALUES (1, ?)", (event,))
        self.db.commit()


if __name__ == "__main__":
    mirror = Mirror(os.environ["BASE"], os.environ["KEY"], sys.argv[1])
    while True:
        mirror.catch_up(wait=30)
        counts = [
            mirror.db.execute(f"SELECT count(*) FROM {t}").fetchone()[0]
            for t in ("conversations", "messages")
        ]
        print(f"{counts[0]} conversations, {counts[1]} messages", flush=True)
