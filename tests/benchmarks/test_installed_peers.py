"""Peers that are installed apart: how they are found and filled, and the answers and subscriptions that are theirs alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, cast

import psycopg
import pytest
from benchmarks.job import SENT
from benchmarks.load import response_of_http
from benchmarks.peers import nginx, request_tracker, request_tracker_fill, subscribers
from benchmarks.peers.peer import TEXT, NotInstalled, bodies_of
from benchmarks.peers.request_tracker import RequestTracker

from tests.benchmarks.serving import served
from tests.support.postgres import PostgresServer, fresh_database

CHUNKED: Final = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'5;x=y\r\n{"a":\r\nA\r\n1234567890\r\n1\r\n}\r\n0\r\n\r\n'
)


def test_an_answer_in_chunks_is_whole_with_the_last_one() -> None:
    assert response_of_http(CHUNKED) == (True, False, b'{"a":1234567890}')
    assert all(response_of_http(CHUNKED[:size]) is None for size in range(len(CHUNKED)))
    refused = CHUNKED.replace(b"200 OK", b"429 No")
    assert response_of_http(refused) == (False, False, refused)


def test_request_tracker_says_which_part_of_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_tracker, "_WORKER", str(tmp_path / "rt-server.fcgi"))
    server = RequestTracker(tmp_path / "rt", cast("PostgresServer", None))
    with pytest.raises(NotInstalled, match=r"rt5-fcgi and nginx are not all installed: .*rt-server\.fcgi"):
        server.prepare(100)
    assert not (tmp_path / "rt").exists()


def test_nginx_uses_files_of_its_own_folder_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nginx, "program", lambda: "/usr/sbin/nginx")
    command = nginx.command(tmp_path, 8_123, tmp_path / "rt.sock")
    assert command == ["/usr/sbin/nginx", "-p", f"{tmp_path}", "-c", f"{tmp_path}/nginx.conf", "-e", "stderr"]
    written = (tmp_path / "nginx.conf").read_text()
    assert "listen 127.0.0.1:8123;" in written
    assert f"fastcgi_pass unix:{tmp_path}/rt.sock;" in written
    paths = re.findall(r"(?<= |:)(/[^\s;]*)", written)
    assert {each for each in paths if not each.startswith(str(tmp_path))} == {"/"}


TABLES: Final = """
CREATE SEQUENCE tickets_id_seq START 7; CREATE SEQUENCE principals_id_seq START 40;
CREATE SEQUENCE groupmembers_id_seq START 20; CREATE SEQUENCE cachedgroupmembers_id_seq START 50;
CREATE SEQUENCE transactions_id_seq START 90; CREATE SEQUENCE attachments_id_seq START 70;
CREATE TABLE tickets (id int PRIMARY KEY, effectiveid int, subject text, created timestamp, started timestamp, lastupdated timestamp);
CREATE TABLE principals (id int PRIMARY KEY, principaltype text);
CREATE TABLE groups (id int PRIMARY KEY, name text, domain text, instance int);
CREATE TABLE groupmembers (id int PRIMARY KEY, groupid int, memberid int, UNIQUE (groupid, memberid));
CREATE TABLE cachedgroupmembers (id int PRIMARY KEY, groupid int, memberid int, via int, immediateparentid int);
CREATE TABLE transactions (id bigint PRIMARY KEY, objecttype text, objectid int, type text, created timestamp);
CREATE TABLE attachments (id bigint PRIMARY KEY, transactionid bigint, content text, headers text, created timestamp);
INSERT INTO tickets VALUES (6, 6, 'Where?', now(), now(), now());
INSERT INTO principals VALUES (30, 'Group'), (31, 'Group');
INSERT INTO groups VALUES (30, 'Owner', 'RT::Ticket-Role', 6), (31, 'Requestor', 'RT::Ticket-Role', 6),
    (32, 'Owner', 'RT::Queue-Role', 6);
INSERT INTO groupmembers VALUES (10, 30, 2), (11, 31, 3);
INSERT INTO cachedgroupmembers VALUES (40, 30, 30, 40, 30), (41, 31, 31, 41, 31), (42, 30, 2, 42, 30), (43, 31, 3, 43, 31);
INSERT INTO transactions VALUES (80, 'RT::Ticket', 6, 'Create', now()), (81, 'RT::Ticket', 6, 'EmailRecord', now()),
    (82, 'RT::Ticket', 6, 'Correspond', now()), (83, 'RT::Queue', 6, 'Create', now());
INSERT INTO attachments VALUES (60, 80, 'a', 'h1', now()), (61, 81, 'mail', '', now()), (62, 82, 'b', 'h2', now());
"""
"""The columns of Request Tracker's tables that a copy changes, and one of each that it leaves."""


def test_a_copied_ticket_has_all_rows_of_its_pattern_but_those_of_mail() -> None:
    texts = bodies_of(200, word=True)[:3]
    with fresh_database(migrated=False) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(TABLES.encode())
        ids = request_tracker_fill.fill(url, 6, texts, messages=3)
        assert ids == [7, 8, 9]
        with psycopg.connect(url) as connection:

            def rows(sql: str) -> list[tuple[object, ...]]:
                return connection.execute(sql.encode()).fetchall()

            ordered = rows("SELECT id FROM tickets WHERE id > 6 AND effectiveid = id ORDER BY lastupdated")
            assert ordered == [(7,), (8,), (9,)]
            roles = rows(
                "SELECT instance, name, memberid FROM groups JOIN principals USING (id) JOIN groupmembers ON groupid = groups.id "
                "WHERE domain = 'RT::Ticket-Role' AND instance > 6 ORDER BY instance, name"
            )
            assert roles == [(each, *role) for each in ids for role in (("Owner", 2), ("Requestor", 3))]
            cached = rows(
                "SELECT count(*) FILTER (WHERE memberid = groupid), count(*) FILTER (WHERE memberid IN (2, 3)), count(*) "
                "FROM cachedgroupmembers WHERE id >= 50 AND via = id AND immediateparentid = groupid"
            )
            assert cached == [(6, 6, 12)]
            messages = rows(
                "SELECT objectid, type, content, headers FROM transactions JOIN attachments ON transactionid = transactions.id "
                "WHERE objectid > 6 ORDER BY objectid, transactions.id"
            )
            reply = ("Correspond", TEXT.replace(SENT, "0" * 19), "h2")
            assert messages == [
                (ticket, *message)
                for ticket, text in zip(ids, texts, strict=True)
                for message in (("Create", text, "h1"), reply, reply)
            ]


SYNCING: Final = """
import json, sys, threading, time
from http.server import BaseHTTPRequestHandler as Handler, ThreadingHTTPServer

class Server(Handler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_): pass

    def do_GET(self):
        if self.headers["Authorization"] != "Bearer the token":
            self.send_response(401)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        if "since=s2" in self.path:
            threading.Event().wait()  # nothing more is new
        sent = time.monotonic_ns() - 5_000_000 if "since=s1" in self.path else 0
        number = 2 if "since=s1" in self.path else 1
        body = json.dumps({"next_batch": f"s{number}", "text": f"sent {sent:019} The parcel"}).encode()
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in (body[:9], body[9:], b""):
            self.wfile.write(b"%x\\r\\n%s\\r\\n" % (len(part), part))

server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
print(server.server_port, flush=True)
server.serve_forever()
"""


def test_a_long_poll_reports_the_ages_of_what_is_new_after_its_first_answer() -> None:
    with served(SYNCING) as port, subscribers.long_poll(port, "the token") as ages:
        found = list[float]()
        while not found:
            found += ages()
        assert len(found) == 1
        assert 5.0 <= found[0] < 60_000


def test_a_long_poll_that_is_refused_is_reported() -> None:
    with served(SYNCING) as port, pytest.raises(RuntimeError, match="has ended with status 1"):
        subscribers.long_poll(port, "another").__enter__()
