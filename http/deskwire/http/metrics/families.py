"""The metrics of Deskwire: name, meaning and source of each.

Labels have a few known values, never the id of a project, conversation, contact or endpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, get_args

from msgspec.structs import asdict

from deskwire.engine.accounts.credential_ends import CredentialEnds
from deskwire.engine.audit.push import PushHealth
from deskwire.engine.core.counters import Histogram
from deskwire.engine.events.open_streams import OpenStreams
from deskwire.engine.mail.ports import MailHealth
from deskwire.engine.push.ports import PushReason
from deskwire.http.api.routing import public_path
from deskwire.http.api.services import Services
from deskwire.http.metrics.metric import Metric, Rows, Scrape
from deskwire.http.metrics.nodes import NODE_METRICS


def _one(read: Callable[[Services], float | Histogram]) -> Callable[[Scrape], Rows]:
    """Return the reader of a metric without labels."""
    return lambda scrape: [((), read(scrape.services))]


def _named(read: Callable[[Services], Mapping[str, float]]) -> Callable[[Scrape], Rows]:
    """Return the reader of a metric with one label."""
    return lambda scrape: [((name,), value) for name, value in read(scrape.services).items()]


def _route(rule: str | None) -> str:
    return "none" if rule is None else public_path(rule)


def _responses(scrape: Scrape) -> Rows:
    for (method, rule, status), count in scrape.services.measured.requests.responses.items():
        yield (method, _route(rule), str(status)), count


def _request_seconds(scrape: Scrape) -> Rows:
    for (method, rule), seconds in scrape.services.measured.requests.seconds.items():
        yield (method, _route(rule)), seconds


def _deliveries(scrape: Scrape) -> Rows:
    counters = scrape.services.measured.dispatcher.counters
    yield ("stored", "delivered"), counters.delivered
    yield ("stored", "dropped"), counters.dropped
    yield ("stored", "skipped"), counters.skipped
    yield ("typing", "delivered"), counters.typing_delivered
    yield ("typing", "dropped"), counters.typing_dropped


def _pushes(scrape: Scrape) -> Rows:
    if scrape.pushes is not None:
        yield ("failing",), scrape.pushes.failing
        yield ("good",), scrape.pushes.pushes - scrape.pushes.failing


def _failing_s(pushes: PushHealth, now: int) -> float:
    return 0.0 if pushes.failing_since is None else max(0, now - pushes.failing_since) / 1000


def _mails(scrape: Scrape) -> Iterator[tuple[str, int]]:
    counters = scrape.services.measured.mails
    yield "sent", counters.sent
    yield "failed", counters.failures - counters.given_up
    yield "given_up", counters.given_up


def _oldest_s(mails: MailHealth, now: int) -> float:
    return 0.0 if mails.oldest_at is None else max(0, now - mails.oldest_at) / 1000


def _attempts(scrape: Scrape) -> Rows:
    counters = scrape.services.measured.dispatcher.counters
    for kind, attempts, failed, paused in (
        ("stored", counters.attempts, counters.failed_attempts, counters.paused_attempts),
        (
            "typing",
            counters.typing_attempts,
            counters.typing_failed_attempts,
            counters.typing_paused_attempts,
        ),
    ):
        yield (kind, "good"), attempts - failed - paused
        yield (kind, "failed"), failed
        yield (kind, "paused"), paused


def _room(scrape: Scrape) -> Rows:
    if scrape.room is not None:
        yield ("database",), scrape.room.database
        yield ("wal",), scrape.room.wal


def _free(scrape: Scrape) -> Rows:
    if scrape.room is not None:
        yield (), scrape.room.free


def _retained_at(scrape: Scrape) -> Rows:
    done_at = scrape.services.measured.pruned.done_at
    if done_at is not None:
        yield (), done_at / 1000


def _certificate_ends(scrape: Scrape) -> Rows:
    ends = scrape.services.measured.certificate_ends()
    if ends is not None:
        yield (), ends / 1000


def _credentials(read: Callable[[CredentialEnds], int]) -> Callable[[Scrape], Rows]:
    """Return the reader of a count of credentials by their type."""
    return lambda scrape: [((kind,), read(ends)) for kind, ends in scrape.credential_ends.items()]


def _collections(scrape: Scrape) -> Rows:
    for generation, seconds in enumerate(scrape.services.measured.stalls.collections):
        yield (str(generation),), seconds


def _event_streams(
    reader: str, of: Callable[[Services], OpenStreams[Any]], meaning: str, passing: str, page: str
) -> Iterator[Metric]:
    """Yield the metrics of one kind of streams, such as `agent_streams` and `agent_stream_events_total`.

    Args:
        reader: `agent` or `customer`.
        meaning: of the first metric.
        passing: the ephemeral events.
        page: the part of the client that fetches everything again after a gap.
    """
    yield Metric(f"{reader}_streams", "gauge", meaning, _one(lambda s: len(of(s))))
    yield Metric(
        f"{reader}_streams_deaf",
        "gauge",
        f"Open streams of {reader}s without new events, because their node has lost its lease.",
        _one(lambda s: of(s).stalled),
    )
    yield Metric(
        f"{reader}_stream_lag_max_events",
        "gauge",
        "Events in memory that the slowest of their readers has not read yet.",
        _one(lambda s: of(s).lag),
    )
    yield Metric(
        f"{reader}_stream_events_total",
        "counter",
        f"Events written to {reader}s: `stored`, or {passing} (`passing`).",
        _named(lambda s: {"stored": of(s).counters.events, "passing": of(s).counters.ephemeral}),
        ("kind",),
    )
    yield Metric(
        f"{reader}_streams_ended_total",
        "counter",
        f"Streams of {reader}s that this node ended, by the reason in their goodbye; `out_of_touch`, without a goodbye, because the "
        "node was without its lease for too long.",
        _named(lambda s: of(s).counters.ended),
        ("reason",),
    )
    yield Metric(
        f"{reader}_streams_refused_total",
        "counter",
        f"Streams of {reader}s refused because of too many.",
        _one(lambda s: of(s).counters.refused),
    )
    yield Metric(
        f"{reader}_streams_with_gap_total",
        "counter",
        f"Streams of {reader}s that began with a gap: the {page} had to fetch everything again.",
        _one(lambda s: of(s).counters.gaps),
    )


METRICS: Final = (
    Metric(
        "build_info",
        "gauge",
        "Always 1; the label has the version that runs.",
        lambda s: [((s.services.version,), 1)],
        ("version",),
    ),
    Metric(
        "ready",
        "gauge",
        "1 while the service accepts requests, like `/readyz`, else 0.",
        lambda scrape: [((), scrape.ready)],
    ),
    # Requests
    Metric(
        "http_requests_total",
        "counter",
        "Requests by the status of their responses. Route `none` counts requests without a matching route.",
        _responses,
        ("method", "route", "status"),
    ),
    Metric(
        "http_request_duration_seconds",
        "histogram",
        "Time from the head of a request to that of its response, long polls of the feed included.",
        _request_seconds,
        ("method", "route"),
    ),
    Metric(
        "http_requests_under_way",
        "gauge",
        "Requests being handled, except requests whose body is still arriving or that wait in the feed.",
        _one(lambda s: s.admission.requests),
    ),
    Metric("connections", "gauge", "Connections of clients.", _one(lambda s: s.measured.connections.open)),
    Metric(
        "connections_ended_total",
        "counter",
        "Connections ended in favour of others: `idle` ones for a new one, `unread` ones whose clients do not read "
        "their responses; and `refused` ones, because all were in use.",
        _named(lambda s: dict(s.measured.connections.ended.items())),
        ("why",),
    ),
    Metric(
        "http_unsent_bytes",
        "gauge",
        "Bytes of responses in memory that wait for their clients to read them.",
        _one(lambda s: s.measured.connections.unsent),
    ),
    Metric(
        "feed_waits", "gauge", "Calls of the feed that wait for events.", _one(lambda s: s.admission.waits)
    ),
    Metric(
        "http_request_bodies_bytes",
        "gauge",
        "Request bodies in memory.",
        _one(lambda s: s.admission.bodies_bytes),
    ),
    Metric(
        "http_overloaded_total",
        "counter",
        "Requests refused with 503 because of too many: `requests` under way, `bodies` in memory, `waits` in "
        "the feed, `writes` waiting for the writer, `imports`.",
        _named(lambda s: s.admission.refused),
        ("reason",),
    ),
    Metric(
        "http_rate_limited_total",
        "counter",
        "Calls refused with 429: from a `project` or a `user` above its rate, for the `authorization` of too many stream "
        "channels, from an `address` that failed to authenticate, from a caller above its share of requests (`at_once`).",
        _named(
            lambda s: {
                "project": s.rate_limits.calls.refused,
                "user": s.rate_limits.users.refused,
                "authorization": s.rate_limits.authorizations.refused,
                "address": s.rate_limits.failures.refused,
                "at_once": s.admission.crowded,
            }
        ),
        ("reason",),
    ),
    Metric(
        "idempotency_total",
        "counter",
        "Requests with an `Idempotency-Key`, by `outcome`: carried out, replayed, or the reason of their refusal.",
        _named(lambda s: asdict(s.answers.counters)),
        ("outcome",),
    ),
    # Commands and commits
    Metric("actors", "gauge", "Conversations in memory.", _one(lambda s: len(s.actors))),
    Metric(
        "actors_started_total",
        "counter",
        "Conversations loaded into memory.",
        _one(lambda s: s.actors.commands.actors),
    ),
    Metric(
        "commands_refused_total",
        "counter",
        "Commands refused with 503: `mailbox_full`, too many waited for the conversation; "
        "`too_many_actors`, no further conversation fits into memory.",
        _named(
            lambda s: {
                "mailbox_full": s.actors.commands.mailbox_full,
                "too_many_actors": s.actors.commands.too_many_actors,
            }
        ),
        ("reason",),
    ),
    Metric(
        "writer_waiting_jobs",
        "gauge",
        "Changes that wait for a commit.",
        _one(lambda s: s.measured.waiting()),
    ),
    Metric(
        "commit_jobs",
        "histogram",
        "Changes written by one commit.",
        _one(lambda s: s.measured.commits.jobs),
    ),
    Metric(
        "commit_duration_seconds",
        "histogram",
        "Time of one commit, until it is on disk.",
        _one(lambda s: s.measured.commits.seconds),
    ),
    Metric(
        "commits_refused_total",
        "counter",
        "Commits that the disk refused; none of their changes is stored.",
        _one(lambda s: s.measured.commits.refused),
    ),
    Metric("storage_bytes", "gauge", "Size of the database and of its write-ahead log.", _room, ("file",)),
    Metric(
        "database_identity_refused",
        "gauge",
        "1 while the database is not the installation's own, by the evidence, else 0.",
        _named(lambda services: services.measured.identity.by_reason()),
        ("reason",),
    ),
    Metric("storage_free_bytes", "gauge", "Room that is left on the database's disk.", _free),
    # The event log
    Metric(
        "log_position",
        "gauge",
        "Position of the newest event in this node's memory; without PostgreSQL it is the newest event of all, and grows by about one "
        "per event.",
        _one(lambda s: s.log.progress),
    ),
    Metric("log_ring_events", "gauge", "Newest events held in memory.", _one(lambda s: s.log.memory_size[0])),
    Metric(
        "log_ring_bytes",
        "gauge",
        "Bytes of the envelopes of the events in memory.",
        _one(lambda s: s.log.memory_size[1]),
    ),
    # Webhooks
    Metric(
        "webhook_deliveries_total",
        "counter",
        "Deliveries that have ended. Deliveries of typing events, which are not stored, are counted separately.",
        _deliveries,
        ("kind", "outcome"),
    ),
    Metric(
        "webhook_attempts_total",
        "counter",
        "Requests to receivers; `good` is a 2xx before the timeout.",
        _attempts,
        ("kind", "result"),
    ),
    Metric(
        "webhook_attempt_duration_seconds",
        "histogram",
        "Time from the start of an attempt to the end of its response; without typing events.",
        _one(lambda s: s.measured.dispatcher.counters.attempt_s),
    ),
    Metric(
        "webhook_held_deliveries",
        "gauge",
        "Pending deliveries in memory, at most `DESKWIRE_WEBHOOK_MEMORY_DELIVERIES` of an endpoint; "
        "more may wait in the database.",
        _named(lambda s: {"stored": s.measured.dispatcher.held, "typing": s.measured.dispatcher.typing_held}),
        ("kind",),
    ),
    Metric(
        "webhook_outage_deliveries",
        "gauge",
        "Deliveries that wait because of an outage: held by an open circuit, or missed and to be sent again.",
        _named(lambda s: s.measured.dispatcher.outages),
        ("why",),
    ),
    Metric(
        "webhook_endpoints",
        "gauge",
        "Enabled endpoints that this node delivers to, by the state of their circuit.",
        _named(lambda s: s.measured.dispatcher.circuits()),
        ("circuit",),
    ),
    Metric(
        "webhook_endpoint_conditions",
        "gauge",
        "Enabled endpoints that this node delivers to, by their condition: `healthy`, or the first reason why not. "
        "`dropped`: a delivery of the last 24 hours did not arrive and was not sent again.",
        lambda s: [((condition,), count) for condition, count in s.conditions.items()],
        ("condition",),
    ),
    # The audit trail
    Metric(
        "audit_pushes",
        "gauge",
        "Pushes of an audit trail to a webhook, by whether the last attempt succeeded; the same at all nodes.",
        _pushes,
        ("state",),
    ),
    Metric(
        "audit_push_failing_seconds",
        "gauge",
        "Time since the push that has failed for longest began to fail; 0 if none fails.",
        lambda s: [] if s.pushes is None else [((), _failing_s(s.pushes, s.now))],
    ),
    Metric(
        "audit_push_waiting_records",
        "gauge",
        "Records of audit trails that wait to be pushed, counted up to 10,000.",
        lambda s: [] if s.pushes is None else [((), s.pushes.unpushed)],
    ),
    Metric(
        "audit_push_missed_records",
        "gauge",
        "Records removed from an audit trail at the end of their retention before they could be pushed.",
        lambda s: [] if s.pushes is None else [((), s.pushes.missed)],
    ),
    # Mails
    Metric(
        "mails_total",
        "counter",
        "Attempts of this node to send a mail, by outcome; `given_up`: the mail failed for good.",
        lambda s: [((outcome,), count) for outcome, count in _mails(s)],
        ("outcome",),
    ),
    Metric(
        "mails_waiting",
        "gauge",
        "Mails that wait to be sent; the same at all nodes.",
        lambda s: [] if s.mails is None else [((), s.mails.waiting)],
    ),
    Metric(
        "mails_waiting_seconds",
        "gauge",
        "Age of the oldest waiting mail; 0 without one.",
        lambda s: [] if s.mails is None else [((), _oldest_s(s.mails, s.now))],
    ),
    Metric(
        "mails_failed",
        "gauge",
        "Mails of the last 7 days that failed for good; `deskwire mail list` has the reasons.",
        lambda s: [] if s.mails is None else [((), s.mails.failed)],
    ),
    # Web push
    Metric(
        "web_pushes_total",
        "counter",
        "Web pushes that ended at this node, by reason; `accepted`: the push service took it.",
        lambda s: [
            ((reason,), s.services.measured.pushes.ended.get(reason, 0)) for reason in get_args(PushReason)
        ],
        ("reason",),
    ),
    Metric(
        "web_push_failures_total",
        "counter",
        "Attempts of this node to send a web push that failed and are retried.",
        lambda s: [((), s.services.measured.pushes.failures)],
    ),
    # The stream
    Metric("stream_connections", "gauge", "Open websockets.", _one(lambda s: s.measured.consumers())),
    Metric(
        "stream_consumers",
        "gauge",
        "Consumers that hold a channel, by the kind of the channel.",
        lambda s: [((kind,), lag.consumers) for kind, lag in s.lags.items()],
        ("channel",),
    ),
    Metric(
        "stream_deaf_connections",
        "gauge",
        "Connections that look healthy to their clients and get no events: `lease`, the node has lost its lease and keeps "
        "their channels for a while; `unsubscribed`, without a subscription for 5 s.",
        _named(lambda s: {"lease": s.hub.count_paused(), "unsubscribed": s.measured.deaf()}),
        ("reason",),
    ),
    Metric(
        "stream_pauses_total",
        "counter",
        "Consumers whose node lost its lease: `kept`, paused until the lease was back; `lapsed`, disconnected after 6 s.",
        _named(lambda s: {"kept": s.hub.counters.kept, "lapsed": s.hub.counters.lapsed}),
        ("outcome",),
    ),
    Metric(
        "stream_calls_held",
        "gauge",
        "Authorizations, and openings of agents' streams, that wait for the database.",
        _one(lambda s: s.holding.held),
    ),
    Metric(
        "stream_held_calls_total",
        "counter",
        "Such calls: `waited`, or `refused` because too many waited.",
        _named(lambda s: {"waited": s.holding.waited, "refused": s.holding.refused}),
        ("outcome",),
    ),
    Metric(
        "stream_lag_events",
        "gauge",
        "Sum of the events that these consumers have not confirmed, counting up to 10,000 for each.",
        lambda s: [((kind,), lag.summed) for kind, lag in s.lags.items()],
        ("channel",),
    ),
    Metric(
        "stream_lag_max_events",
        "gauge",
        "Unconfirmed events of the consumer with the largest lag.",
        lambda s: [((kind,), lag.largest) for kind, lag in s.lags.items()],
        ("channel",),
    ),
    Metric(
        "stream_subscriptions_total",
        "counter",
        "Subscriptions by their start: `live`, with the next event; `resumed`, after the consumer's last event; "
        "`gap`, some missed events are no longer stored or too old.",
        _named(
            lambda s: {
                "live": s.hub.counters.live,
                "resumed": s.hub.counters.resumed,
                "gap": s.hub.counters.gaps,
            }
        ),
        ("start",),
    ),
    Metric(
        "stream_takeovers_total",
        "counter",
        "Channels taken from a connected consumer: `other`, by another consumer; `same`, by another connection of the same one.",
        _named(lambda s: {"other": s.hub.counters.takeovers, "same": s.hub.counters.replaced}),
        ("by",),
    ),
    Metric(
        "stream_fenced_total",
        "counter",
        "Superseded consumers that were prevented from taking the channel back.",
        _one(lambda s: s.hub.counters.fenced),
    ),
    Metric(
        "stream_frames_total",
        "counter",
        "Events written to consumers.",
        _named(lambda s: {"stored": s.measured.traffic.events, "typing": s.measured.traffic.typing}),
        ("kind",),
    ),
    Metric(
        "stream_dropped_connections_total",
        "counter",
        "Dropped connections: `write_timeout`, the peer did not read in time; `no_pong`, it did not respond to pings; "
        "`flooded`, it exceeded a rate limit; `crowded`, too many of its network had not subscribed; `unauthorized`, an "
        "authorization was temporarily refused, which clients do not repeat.",
        _named(
            lambda s: {
                "write_timeout": s.measured.traffic.write_timeouts,
                "no_pong": s.measured.traffic.no_pong,
                "flooded": s.measured.traffic.flooded,
                "crowded": s.measured.traffic.crowded,
                "unauthorized": s.measured.traffic.unauthorized,
            }
        ),
        ("reason",),
    ),
    *_event_streams("agent", lambda s: s.agents, "Open streams of agents.", "ephemeral", "page"),
    *_event_streams(
        "customer",
        lambda s: s.customer_streams,
        "Open streams and long polls of customers.",
        "typing of agents",
        "panel",
    ),
    Metric(
        "customer_sessions_started_total",
        "counter",
        "Starts of customers' sessions: `signed` and `visitor` are new ones, `resumed` continues one. A visitor's is stored with the "
        "first message only.",
        _named(lambda s: s.customers.counters.started),
        ("kind",),
    ),
    Metric(
        "customer_sessions_refused_total",
        "counter",
        "Refused starts of customers' sessions, by the code of the error.",
        _named(lambda s: s.customers.counters.refused),
        ("reason",),
    ),
    Metric(
        "oidc_sign_ins_total",
        "counter",
        "Finished sign-ins at identity providers: `signed_in`, `proved`, or the code with which they were refused.",
        lambda scrape: scrape.services.oidc.results.items(),
        ("provider", "result"),
    ),
    Metric(
        "oidc_logouts_total",
        "counter",
        "Back-channel logouts that identity providers have reported.",
        _named(lambda s: s.oidc.logouts),
        ("provider",),
    ),
    # Retention and the process
    Metric(
        "storage_scrub_pending",
        "gauge",
        "1 while bytes of erased data may still be in the database file or the search index, else 0.",
        _one(lambda s: s.measured.scrubbing()),
    ),
    Metric(
        "storage_scrub_delay_seconds",
        "gauge",
        "Age of the oldest of these bytes; with continuous deletions it stays at about the time of one scrub. On PostgreSQL the delay "
        "of a vacuum, which is late after half of DESKWIRE_SCRUB_S.",
        _one(lambda s: s.measured.scrub_delay()),
    ),
    Metric(
        "search_index_delay_seconds",
        "gauge",
        "Age of the oldest commit that the search may not find yet; 0 if the index is complete.",
        _one(lambda s: s.measured.indexed.delay_s),
    ),
    Metric(
        "search_index_messages_total",
        "counter",
        "Messages and notes that were indexed.",
        _one(lambda s: s.measured.indexed.messages),
    ),
    Metric(
        "retention_pruned_rows_total",
        "counter",
        "Rows and uploads that retention removed: conversations by the reason, uploads without a reference.",
        _named(lambda s: {**s.measured.pruned.rows, "uploads": s.uploads.expired}),
        ("what",),
    ),
    Metric(
        "retention_done_timestamp_seconds",
        "gauge",
        "Unix time of the last completed retention run.",
        _retained_at,
    ),
    Metric(
        "tls_certificate_end_timestamp_seconds",
        "gauge",
        "Unix time at which the server's certificate expires; absent without a certificate.",
        _certificate_ends,
    ),
    Metric(
        "credentials_ending",
        "gauge",
        "Server keys and machine credentials that expire within seven days, except those made for no longer; the same at all nodes.",
        _credentials(lambda ends: ends.ending),
        ("kind",),
    ),
    Metric(
        "credentials_endless",
        "gauge",
        "Unrevoked server keys and machine credentials that never expire; the same at all nodes.",
        _credentials(lambda ends: ends.endless),
        ("kind",),
    ),
    Metric(
        "log_dropped_total",
        "counter",
        "Lines of the log that were lost because the reader of the output was blocked or gone, or the disk was full.",
        _one(lambda s: s.measured.log_dropped()),
    ),
    Metric(
        "loop_delay_seconds",
        "histogram",
        "Delay of a task that is due four times a second; it grows when the process is busy.",
        _one(lambda s: s.measured.stalls.turns),
    ),
    Metric(
        "gc_pause_seconds",
        "histogram",
        "Time that each garbage collection paused the process.",
        _collections,
        ("generation",),
    ),
    *NODE_METRICS,
)
