"""The metrics endpoint, for Prometheus (ADR 13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import trio
from msgspec import Struct
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, ProcessCollector, generate_latest
from prometheus_client.metrics_core import Metric as Family

from deskwire.engine.accounts.credential_ends import WARNING_MS, CredentialEnds, CredentialType
from deskwire.engine.audit.push import PushHealth
from deskwire.engine.core.counters import DiskSpace
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.mail.ports import MailHealth
from deskwire.http.api.calls import Answer, BytesAnswer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import SCRAPER, Media, Routes, Tag
from deskwire.http.api.services import Services
from deskwire.http.measurements import Measurements
from deskwire.http.metrics.families import METRICS
from deskwire.http.metrics.metric import PREFIX, Metric, Rows, Scrape

routes = Routes(Tag("Metrics", "Metrics of the service, for Prometheus."), SCRAPER, prefix="", watching=True)
# Memory, CPU time and file descriptors, on systems with `/proc`.
PROCESS: Final = ProcessCollector(namespace=PREFIX.rstrip("_"), registry=None)


# Records that wait to be pushed are counted up to this number.
_UNPUSHED_MAX: Final = 10_000


class _Gathered(Struct, frozen=True):
    """Metric families, in the form that the library expects."""

    families: Sequence[Family]

    def collect(self) -> Iterable[Family]:
        return self.families


@routes.add("GET", "/metrics", operation_id="metrics", answer=Media("text/plain"))
async def metrics(call: Call[Body, Query]) -> Answer:
    """Fetch the metrics of the service, in the text format of Prometheus."""
    services = call.services
    measured = services.measured
    lags = await services.hub.lags()
    room = await trio.to_thread.run_sync(_room, measured, limiter=measured.threads)
    ready = await services.readiness.refusal() is None
    conditions, pushes = await _conditions(measured), await _pushes(services)
    ends = await _credential_ends(services)
    mails = await _mails(services)
    scrape = Scrape(services, lags, room, ready, conditions, pushes, ends, mails, services.clock())
    rows = [
        (metric, list(metric.read(scrape))) for metric in METRICS
    ]  # read on Trio's thread, which changes the values
    text = await trio.to_thread.run_sync(_written, rows, limiter=measured.threads)
    return BytesAnswer(text, CONTENT_TYPE_PLAIN_0_0_4)


async def _conditions(measured: Measurements) -> Mapping[str, int]:
    try:
        return await measured.dispatcher.health_counts()
    except Unavailable:  # the metric is omitted; the store's error is logged and counted elsewhere
        return {}


async def _pushes(services: Services) -> PushHealth | None:
    try:
        return await services.store.read(lambda reader: reader.audit_push_health(_UNPUSHED_MAX))
    except Unavailable:
        return None


async def _credential_ends(services: Services) -> Mapping[CredentialType, CredentialEnds]:
    now = services.clock()
    try:
        return await services.store.read(lambda reader: reader.count_credential_ends(now, now + WARNING_MS))
    except Unavailable:
        return {}


async def _mails(services: Services) -> MailHealth | None:
    try:
        return await services.store.read(lambda reader: reader.mail_health())
    except Unavailable:
        return None


def _room(measured: Measurements) -> DiskSpace | None:
    try:
        return measured.room()
    except OSError:  # the metrics that need it are omitted; the disk's error is logged elsewhere
        return None


def _written(rows: Sequence[tuple[Metric, Rows]]) -> bytes:
    families = [metric.family(values) for metric, values in rows]
    return generate_latest(_Gathered([*families, *PROCESS.collect()]))
