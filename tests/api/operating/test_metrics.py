"""Metrics, as Prometheus reads them over the wire."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import trio
import trio_websocket
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families

from deskwire.http.metrics.families import METRICS
from deskwire.http.metrics.metric import PREFIX
from deskwire.http.metrics.nodes import NODE_METRICS
from deskwire.storage.sqlite.directory import FILE_NAME
from tests.api.conversations.test_typing import type_in
from tests.api.events.test_channels_agree import Consumer, consuming, receiving, register
from tests.support.api.customers import Browser, make_channel, signed
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.sockets.receivers import Request, answering
from tests.support.sockets.server_process import LOOK_S, free_port
from tests.support.stores import chosen

TOKEN = "a token of more than thirty-two characters"
MESSAGES = "/v3/s2s/conversations/{conversationId}/messages"
STARTED = ("signed", "visitor", "resumed")
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}


class Figures:
    """One scrape, parsed by the library that others read it with."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.families: dict[str, Family] = {each.name: each for each in text_string_to_metric_families(text)}
        self._values = {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families.values()
            for sample in family.samples
        }

    def __call__(self, name: str, **labels: str) -> float:
        """The value with these labels; 0 if there is none yet."""
        return self._values.get((PREFIX + name, frozenset(labels.items())), 0.0)

    def series(self, name: str) -> set[frozenset[tuple[str, str]]]:
        """The labels of every series of that name."""
        return {labels for found, labels in self._values if found == PREFIX + name}


SECURED = {"tls_certificate_end_timestamp_seconds"}
ON_OUR_DISK = {"storage_bytes", "storage_free_bytes"}
"""Metrics of a server with a certificate only (test_tls.py)."""
OF_PROVIDERS = {"oidc_sign_ins_total", "oidc_logouts_total"}
"""Metrics without a series before the first sign-in, or logout, at an identity provider."""


async def scrape(service: Service, **headers: str) -> Figures:
    """Scrape the metrics; the request must succeed."""
    async with httpx.AsyncClient() as http:
        answer = await http.get(f"{service.url}/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return Figures(answer.text)


async def until(service: Service, said: Callable[[Figures], bool]) -> Figures:
    """Return the first scrape for which the condition holds; there is no notification of a new figure."""
    with trio.fail_after(HANG_TIMEOUT_S):
        while True:
            figures = await scrape(service)
            if said(figures):
                return figures
            await trio.sleep(LOOK_S)  # poll: there is no notification


def retained(figures: Figures) -> bool:
    """Whether the first retention is done: a node begins it when it has the duty."""
    return bool(figures.families[f"{PREFIX}retention_done_timestamp_seconds"].samples)


async def test_every_metric_of_the_table_is_there_with_its_kind_and_labels(service: Service) -> None:
    await service.create()
    figures = await until(service, retained)
    for each in METRICS:
        family = figures.families[(PREFIX + each.name).removesuffix("_total")]
        assert (family.type, family.documentation) == (each.kind, each.meaning)
        away = each.name in SECURED | OF_PROVIDERS or each in NODE_METRICS
        assert family.samples or away or (chosen() == "postgres" and each.name in ON_OUR_DISK), each.name
        for sample in family.samples:
            assert sample.name.removeprefix(family.name) in SUFFIXES[each.kind]
            assert sample.labels.keys() - {"le"} == set(each.labels)
    assert all(name.startswith(PREFIX) for name in figures.families)


async def test_starts_of_customers_sessions_are_counted_without_ids(service: Service) -> None:
    channel = await make_channel(service)
    async with Browser(service, channel) as browser:
        for identity in (None, None, signed(channel, "u1"), signed(channel, "u1"), signed(channel, "u2")):
            assert (await browser.start(identity)).status_code == 200
        assert (await browser.start(signed(channel, "u1", aud="chn_other"))).status_code == 401
        assert (await browser.start(signed(channel, "visitor-01M3251Z44DD0F8CSH8T06RHSX"))).status_code == 422
    figures = await scrape(service)
    counted = {kind: figures("customer_sessions_started_total", kind=kind) for kind in STARTED}
    assert counted == {"signed": 2, "visitor": 1, "resumed": 2}
    refused = {
        dict(labels)["reason"]: figures("customer_sessions_refused_total", **dict(labels))
        for labels in figures.series("customer_sessions_refused_total")
    }
    assert refused.pop("identity_invalid") == refused.pop("reserved_user_id") == 1
    assert set(refused.values()) == {0}
    assert channel["id"] not in figures.text


@pytest.mark.skipif(sys.platform != "linux", reason="there may be no /proc: the process tells nothing then")
async def test_process_metrics_include_memory_time_and_descriptors(service: Service) -> None:
    figures = await scrape(service)
    assert figures("process_resident_memory_bytes") > 1 << 20
    assert figures("process_cpu_seconds_total") > 0
    assert 0 < figures("process_open_fds") < figures("process_max_fds")


async def test_a_message_moves_requests_commits_log_and_actors(service: Service) -> None:
    before = await until(service, retained)
    conversation = await service.create()
    await service.say(conversation, "Hello")
    after = await scrape(service)

    def moved(name: str, **labels: str) -> float:
        return after(name, **labels) - before(name, **labels)

    assert moved("http_requests_total", method="POST", route=MESSAGES, status="200") == 1
    assert moved("http_request_duration_seconds_count", method="POST", route=MESSAGES) == 1
    assert moved("http_request_duration_seconds_sum", method="POST", route=MESSAGES) > 0
    assert moved("commit_jobs_sum") >= 2
    assert moved("commit_duration_seconds_count") == moved("commit_jobs_count") >= 2
    if (
        chosen() == "sqlite"
    ):  # a node with a shared database has only events in memory that it reads for clients
        assert moved("log_position") == 2
        assert moved("log_ring_events") == 2
        events = (await service.http.get("/s2s/events")).content
        assert moved("log_ring_bytes") == len(events) - len(b'{"items":[,],"nextCursor":null}\n')
    assert (moved("actors"), moved("actors_started_total")) == (1, 1)
    assert after("ready") == 1
    if chosen() == "sqlite":
        assert after("storage_bytes", file="database") > 0
        assert after("storage_free_bytes") > 0
    assert after("retention_done_timestamp_seconds") > 1_600_000_000


async def test_refusals_are_counted_by_their_status(service: Service) -> None:
    await service.http.get("/s2s/conversations/cnv_nobody")
    async with httpx.AsyncClient() as http:
        await http.get(f"{service.url}/v3/s2s/events")
    figures = await scrape(service)
    route = "/v3/s2s/conversations/{conversationId}"
    assert figures("http_requests_total", method="GET", route=route, status="404") == 1
    assert figures("http_requests_total", method="GET", route="/v3/s2s/events", status="401") == 1


async def test_input_of_callers_adds_no_time_series(service: Service) -> None:
    for number in range(20):
        conversation = await service.create(user=f"wayfarer{number}")
        await service.http.request(f"WAT{number}", f"/wat/{number}")
        await service.http.request(f"WAT{number}", f"/s2s/conversations/{conversation['id']}")
        await service.http.put(f"/s2s/nothing/wayfarer{number}")
        await service.http.get(f"/s2s/conversations/{conversation['id']}")
    figures = await scrape(service)
    labels = [dict(each) for each in figures.series("http_requests_total")]
    unrouted = {(each["method"], each["status"]) for each in labels if each["route"] == "none"}
    assert unrouted == {("other", "404"), ("other", "405"), ("PUT", "404")}
    assert len(labels) == 5
    for planted in ("wayfarer", "WAT", "wat", conversation["id"], service.demo["projectId"], "127.0.0.1"):
        assert planted not in figures.text


async def test_a_full_mailbox_is_counted(tmp_path: Path) -> None:
    async with running(tmp_path, mailbox_commands=1) as service:
        conversation = await service.create()
        path = f"/s2s/conversations/{conversation['id']}/messages"
        statuses: list[int] = []

        async def post() -> None:
            statuses.append((await service.http.post(path, json={"text": "x"})).status_code)

        async with trio.open_nursery() as nursery:
            for _ in range(30):
                nursery.start_soon(post)
        assert set(statuses) == {200, 503}
        figures = await scrape(service)
        assert figures("commands_refused_total", reason="mailbox_full") == statuses.count(503)


async def test_deliveries_are_counted_by_outcome(tmp_path: Path) -> None:
    async with running(tmp_path, webhook_retry_after_s=(0.0, 0.0, 0.0)) as service, receiving() as receiver:
        await register(service, receiver.url)
        conversation = await service.create()
        figures = await until(
            service, lambda f: f("webhook_deliveries_total", kind="stored", outcome="delivered") == 1
        )
        assert figures("webhook_attempts_total", kind="stored", result="good") == 1
        assert figures("webhook_attempts_total", kind="stored", result="failed") == 0
        assert figures("webhook_endpoints", circuit="closed") == 1
        assert figures("webhook_endpoint_conditions", condition="healthy") == 1

        receiver.behaviour = answering("500 Internal Server Error")
        await service.say(conversation, "Hello")
        figures = await until(
            service, lambda f: f("webhook_deliveries_total", kind="stored", outcome="dropped") == 1
        )
        assert figures("webhook_attempts_total", kind="stored", result="failed") == 4
        assert figures("webhook_attempt_duration_seconds_count") == 5
        assert figures("webhook_held_deliveries", kind="stored") == 0
        assert figures("webhook_attempts_total", kind="typing", result="failed") == 0
        assert figures("webhook_endpoint_conditions", condition="failing") == 1
        assert figures("webhook_endpoint_conditions", condition="healthy") == 0


async def test_open_circuit_and_its_held_deliveries_are_counted(tmp_path: Path) -> None:
    settings = {"webhook_circuit_failures": 3, "webhook_circuit_s": 0.0}
    async with running(tmp_path, **settings) as service, receiving() as receiver:
        receiver.behaviour = answering("500 Internal Server Error")
        await register(service, receiver.url)
        for user in range(3):
            await service.create(f"u{user}")
        await until(service, lambda f: f("webhook_endpoints", circuit="open") == 1)
        await service.create("u3")
        figures = await until(service, lambda f: f("webhook_outage_deliveries", why="held") >= 1)
        assert figures("webhook_endpoints", circuit="closed") == 0
        assert figures("webhook_endpoint_conditions", condition="circuit_open") == 1
        assert figures("webhook_deliveries_total", kind="stored", outcome="skipped") == 0


async def test_missed_deliveries_are_counted_until_they_are_sent_again(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, webhook_retry_after_s=(0.0, 0.0, 0.0)) as service, receiving() as receiver:
        receiver.behaviour = answering("500 Internal Server Error")
        await register(service, receiver.url)
        await service.create("u1")
        await until(service, lambda f: f("webhook_outage_deliveries", why="missed") == 1)
        receiver.behaviour = answering("204 No Content")
        await service.create("u2")
        figures = await until(
            service, lambda f: f("webhook_deliveries_total", kind="stored", outcome="delivered") == 2
        )
        assert figures("webhook_outage_deliveries", why="missed") == 0
        assert figures("webhook_outage_deliveries", why="held") == 0


async def test_answers_that_ask_for_a_pause_are_counted_apart(service: Service) -> None:
    async with receiving() as receiver:
        receiver.behaviour = answering("429 Too Many Requests", extra=b"Retry-After: 60\r\n")
        await register(service, receiver.url)
        await service.create("u1")
        figures = await until(
            service, lambda f: f("webhook_attempts_total", kind="stored", result="paused") == 1
        )
        assert figures("webhook_attempts_total", kind="stored", result="failed") == 0
        assert figures("webhook_attempts_total", kind="stored", result="good") == 0


async def test_deliveries_to_a_silent_receiver_are_held(service: Service) -> None:
    async def silent(_stream: trio.abc.Stream, _request: Request) -> None:
        await trio.sleep_forever()

    async with receiving() as receiver:
        receiver.behaviour = silent
        await register(service, receiver.url)
        conversation = await service.create()
        await service.say(conversation, "Hello")
        await receiver.wait(1)
        figures = await scrape(service)
        assert figures("webhook_held_deliveries", kind="stored") == 2


async def test_typing_is_counted_apart(service: Service) -> None:
    async with receiving() as receiver, consuming(service) as consumer:
        await register(service, receiver.url, events=["agent.typing.started"])
        await consumer.subscribe(typingEvents=True)
        await type_in(service, await service.create())
        assert [(await consumer.receive())["event"] for _ in range(2)][1] == "agent.typing.started"
        figures = await until(
            service, lambda f: f("webhook_deliveries_total", kind="typing", outcome="delivered") == 1
        )
        assert figures("webhook_attempts_total", kind="typing", result="good") == 1
        assert figures("webhook_deliveries_total", kind="stored", outcome="delivered") == 0
        assert figures("stream_frames_total", kind="typing") == 1
        assert figures("stream_frames_total", kind="stored") == 1


async def test_frames_to_consumers_that_are_written_to_at_once_are_all_counted(service: Service) -> None:
    conversation = await service.create()
    channels = [None, f"private-conversation-{conversation['id']}", "private-contact-u1"]
    async with consuming(service) as one, consuming(service) as two, consuming(service) as three:
        consumers = (one, two, three)
        for consumer, channel in zip(consumers, channels, strict=True):
            await consumer.subscribe("c1", channel=channel, typingEvents=True, resume="live")
        await service.say(conversation, "Hello")
        for consumer in consumers:
            assert (await consumer.receive())["event"] == "message.created"
        await type_in(service, conversation)
        for consumer in consumers:
            assert (await consumer.receive())["event"] == "agent.typing.started"
        figures = await until(service, lambda f: f("stream_frames_total", kind="typing") == 3)
        assert figures("stream_frames_total", kind="stored") == 3
        for kind in ("project", "conversation", "contact"):
            assert figures("stream_consumers", channel=kind) == 1


async def test_a_consumer_that_stops_reading_lags_until_it_reads_again(service: Service) -> None:
    url = f"{service.url.replace('http', 'ws')}/app/{service.demo['streamKey']}?protocol=7&client=test"
    async with trio_websocket.open_websocket_url(url, message_queue_size=1) as socket:
        consumer = Consumer(service, socket)
        consumer.socket_id = json.loads((await consumer.receive())["data"])["socket_id"]
        await consumer.subscribe()
        conversation = await service.create()
        for number in range(20):
            await service.say(conversation, str(number))
        figures = await scrape(service)
        assert figures("stream_connections") == 1
        assert figures("stream_consumers", channel="project") == 1
        lag = figures("stream_lag_events", channel="project")
        assert 15 < lag == figures("stream_lag_max_events", channel="project") <= 21
        for _ in range(21):
            await consumer.receive()
        figures = await until(service, lambda f: f("stream_lag_events", channel="project") == 0)
        assert figures("stream_frames_total", kind="stored") == 21
        assert figures("stream_lag_events", channel="conversation") == 0


async def test_takeovers_and_resumes_are_counted(service: Service) -> None:
    async with consuming(service) as first, consuming(service) as second:
        await first.subscribe("one")
        await service.create()
        await second.subscribe("two")
        figures = await scrape(service)
        assert figures("stream_takeovers_total", by="other") == 1
        assert figures("stream_subscriptions_total", start="live") >= 1
        async with consuming(service) as returned:
            assert (await returned.subscribe("one"))["event"] == "pusher:subscription_error"
            await returned.subscribe("two")
        figures = await scrape(service)
    assert figures("stream_takeovers_total", by="same") == 1
    assert figures("stream_fenced_total") == 1
    assert figures("stream_subscriptions_total", start="resumed") >= 1


async def test_removals_of_retention_are_counted(tmp_path: Path) -> None:
    async with running(tmp_path, event_window_s=0.0, retention_interval_s=0.1) as service:
        conversation = await service.create()
        await service.say(conversation, "Hello")
        await until(service, lambda f: f("retention_pruned_rows_total", what="events") == 1)


@pytest.mark.sqlite  # the disk is asked for the room
async def test_a_disk_that_does_not_answer_leaves_the_other_metrics(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unanswered(path: object) -> os.statvfs_result:
        raise OSError(errno.EIO, "Input/output error", str(path))

    with monkeypatch.context() as patch:
        patch.setattr("deskwire.storage.sqlite.store.os.statvfs", unanswered)
        figures = await scrape(service)
    assert figures.series("storage_bytes") == figures.series("storage_free_bytes") == set()
    assert figures("ready") == 1


@pytest.mark.sqlite  # the WAL's file is away
async def test_lost_wal_is_reported_and_leaves_the_other_metrics(service: Service) -> None:
    wal = service.directory / f"{FILE_NAME}-wal"
    away = wal.rename(wal.with_name("elsewhere"))
    try:
        figures = await scrape(service)
    finally:
        away.rename(wal)
    assert figures.series("storage_bytes") == figures.series("storage_free_bytes") == set()
    assert figures("database_identity_refused", reason="file_gone") == 1
    assert figures("ready") == 0
    figures = await scrape(service)
    assert figures("database_identity_refused", reason="file_gone") == 0
    assert figures("ready") == 1


async def test_with_a_token_set_no_scrape_works_without_it(tmp_path: Path) -> None:
    async with running(tmp_path, metrics_token=TOKEN) as service, httpx.AsyncClient() as http:
        for credential in (
            None,
            "Bearer",
            f"Basic {TOKEN}",
            f"Bearer {TOKEN}x",
            f"Bearer {service.demo['serverKey']}",
        ):
            headers = {} if credential is None else {"Authorization": credential}
            answer = await http.get(f"{service.url}/metrics", headers=headers)
            assert answer.status_code == 401, credential
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert "deskwire_" not in answer.text
        figures = await scrape(service, Authorization=f"Bearer {TOKEN}", Host="deskwire", Via="1.1 proxy")
        assert figures("http_requests_total", method="GET", route="/metrics", status="401") == 5


@pytest.mark.parametrize("headers", [{"Host": "support.example.com"}, {"X-Forwarded-For": "192.0.2.7"}])
async def test_without_a_token_a_proxied_request_reads_nothing(
    service: Service, headers: dict[str, str]
) -> None:
    async with httpx.AsyncClient() as http:
        answer = await http.get(f"{service.url}/metrics", headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "metrics_local_only")
    assert "deskwire_" not in answer.text


async def test_public_url_requires_a_token(tmp_path: Path) -> None:
    port = free_port()
    async with (
        running(tmp_path, port=port, public_url="https://support.example.com"),
        httpx.AsyncClient() as http,
    ):
        answer = await http.get(f"http://127.0.0.1:{port}/metrics")
    assert (answer.status_code, answer.json()["code"]) == (403, "metrics_local_only")
