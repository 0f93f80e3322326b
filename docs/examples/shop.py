"""A shop's backend beside Deskwire, to copy from: its customers' page shows their conversations out of a mirror of its own.

BASE=http://127.0.0.1:8080 KEY=sk_... WEBHOOK_SECRET=whsec_... python3 shop.py shop.db 9000
It needs mirror.py and verify.py beside it, Python 3.9 or newer, and nothing else. Your sign-in belongs in front of its pages.

    GET    /customers/u1   the page with orders and conversations
    PUT    /customers/u1   {"name": "Ada", "email": "ada@example.org"}: told to Deskwire as the contact's identity
    DELETE /customers/u1   erased here, and the request passed on to Deskwire
    POST   /webhooks       Deskwire's events
"""

import html
import json
import os
import queue
import sqlite3
import sys
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, unquote

from mirror import Mirror
from verify import verify

BASE, KEY = os.environ["BASE"], os.environ["KEY"]
REPAIR_S = float(os.environ.get("REPAIR_S", "60"))  # how often the feed is read though no webhook asks for it
TABLES = """
CREATE TABLE IF NOT EXISTS customers (id TEXT PRIMARY KEY, name TEXT, email TEXT);
CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, customer TEXT, status TEXT);
CREATE TABLE IF NOT EXISTS tasks (number INTEGER PRIMARY KEY AUTOINCREMENT, method TEXT, path TEXT, body TEXT);
"""
SHOWN = """SELECT c.id, c.body, m.body FROM mirror.conversations c LEFT JOIN mirror.messages m ON m.conversation = c.id
WHERE json_extract(c.body, '$.contact.userId') = ? ORDER BY c.id, json_extract(m.body, '$.index')"""
inbox = (
    queue.SimpleQueue()
)  # events of webhooks, and None for a task; the feed has what is lost with the process


def database():
    """Open the shop's database, and the mirror's to read from; each thread has a connection of its own."""
    db = sqlite3.connect(sys.argv[1], timeout=30)
    db.execute("ATTACH ? AS mirror", (f"{sys.argv[1]}-mirror",))
    return db


def mirror():
    """Open the mirror, a file of its own: it is written while Deskwire is asked, for which no page waits."""
    opened = Mirror(BASE, KEY, f"{sys.argv[1]}-mirror")
    opened.db.execute("PRAGMA journal_mode = WAL")
    return opened


class Worker:
    """The one that writes the mirror and talks to Deskwire, in a thread of its own."""

    def run(self):
        """Catch up, and then take in what comes."""
        self.mirror, self.shop = mirror(), database()
        behind = True
        while True:
            try:
                while behind and self.mirror.catch_up() != 0:
                    pass
                self.carry_out()
                behind = False
                event = inbox.get(timeout=REPAIR_S)
                behind = event is not None and not self.take_in(event)
            except queue.Empty:
                behind = True
            except (
                OSError
            ) as error:  # Deskwire is unavailable or has refused (URLError, HTTPError), or a connection broke
                self.mirror.db.rollback()
                print("trying again:", error, flush=True)
                threading.Event().wait(1)
                behind = True

    def take_in(self, event):
        """Take in the event that follows on what the mirror has of its conversation; False if the feed has to be read.

        Late, repeated and missing events make no difference that way: the feed has everything, in order.
        """
        if event["sequence"] is None:
            return False
        conversation = event["data"]["conversation"]["id"]
        row = self.mirror.db.execute(
            "SELECT sequence FROM conversations WHERE id = ?", (conversation,)
        ).fetchone()
        if row is None or event["sequence"] > row[0] + 1:
            return False
        if event["sequence"] == row[0] + 1:
            self.mirror.take_in(event["type"], event["data"])
            self.mirror.db.commit()
        return True

    def carry_out(self):
        """Tell Deskwire what this shop has written down for it, in order; each call may be repeated without harm."""
        for number, method, path, body in self.shop.execute("SELECT * FROM tasks ORDER BY number").fetchall():
            request = urllib.request.Request(f"{BASE}/v3/s2s/{path}", method=method)
            request.add_header("Authorization", f"Bearer {KEY}")
            if body is not None:
                request.add_header("Content-Type", "application/json")
                request.data = body.encode()
            try:
                urllib.request.urlopen(request, timeout=60).close()
            except urllib.error.HTTPError as error:
                if error.code != 404 and not (error.code in (400, 422) and method == "PUT"):
                    raise
                print("not taken:", error.code, error.read().decode(), flush=True)
            with self.shop:
                self.shop.execute("DELETE FROM tasks WHERE number = ?", (number,))


class Shop(BaseHTTPRequestHandler):
    """The shop's pages, and the address for webhooks."""

    timeout = 10

    def do_GET(self):
        """Show a customer's orders and conversations, from this shop's own database alone."""
        db, customer = database(), self.customer()
        row = db.execute("SELECT name FROM customers WHERE id = ?", (customer,)).fetchone()
        if row is None:
            return self.answer(404)
        parts = [f"<h1>{html.escape(row[0])}</h1><h2>Orders</h2><ul>"]
        for order in db.execute("SELECT id, status FROM orders WHERE customer = ? ORDER BY id", (customer,)):
            parts.append("<li>{}: {}</li>".format(*map(html.escape, order)))
        parts.append("</ul><h2>Conversations</h2>")
        shown = None
        for key, body, written in db.execute(SHOWN, (customer,)):
            if key != shown:
                shown, conversation = key, json.loads(body)
                title = html.escape(conversation["title"] or "Conversation")
                parts.append(f"<h3>{title} ({conversation['status'].lower()})</h3>")
            if written is not None:
                message = json.loads(written)
                name = html.escape(message["author"]["name"] or message["author"]["type"])
                parts.append(f"<p><b>{name}</b> {html.escape(message['text'])}</p>")
        self.answer(200, "<!doctype html><meta charset=utf-8>" + "".join(parts))

    def do_PUT(self):
        """Keep who a customer is, and write down that Deskwire has to know."""
        db, customer, body = database(), self.customer(), self.body()
        identity = json.loads(body)
        with db:  # one transaction: the task is there if the change is
            row = (customer, identity["name"], identity["email"])
            db.execute("INSERT OR REPLACE INTO customers VALUES (?, ?, ?)", row)
            task = ("PUT", f"contacts/{quote(customer, safe='')}", json.dumps(identity))
            db.execute("INSERT INTO tasks (method, path, body) VALUES (?, ?, ?)", task)
        inbox.put(None)
        self.answer(204)

    def do_DELETE(self):
        """Erase a customer here, and write down that Deskwire has to. Its events then empty the mirror, too."""
        db, customer = database(), self.customer()
        with db:
            db.execute("DELETE FROM orders WHERE customer = ?", (customer,))
            db.execute("DELETE FROM customers WHERE id = ?", (customer,))
            path = f"contacts/{quote(customer, safe='')}"
            db.execute("DELETE FROM tasks WHERE path = ?", (path,))  # unsent changes of the customer
            db.execute("INSERT INTO tasks (method, path) VALUES ('DELETE', ?)", (path,))
        inbox.put(None)
        self.answer(204)

    def do_POST(self):
        """Take an event of Deskwire: verify, answer at once, and leave the work to the worker."""
        body, header = self.body(), self.headers.get("Service-Signature", "")
        if self.path != "/webhooks" or not verify(os.environ["WEBHOOK_SECRET"], header, body):
            return self.answer(400)
        self.answer(204)
        inbox.put(json.loads(body))

    def customer(self):
        """Return the id in the path."""
        return unquote(self.path.removeprefix("/customers/"))

    def body(self):
        """Return the body, of at most 1 MiB."""
        return self.rfile.read(min(int(self.headers.get("Content-Length", 0)), 1 << 20))

    def answer(self, status, page=""):
        """Answer with a page."""
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page.encode())))
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *_):
        """Print nothing of requests."""


if __name__ == "__main__":
    mirror().db.close()
    database().executescript(TABLES)
    threading.Thread(target=Worker().run, daemon=True).start()
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Shop).serve_forever()
