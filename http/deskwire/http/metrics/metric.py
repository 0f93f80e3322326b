"""A metric: a family of time series whose values are read at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Final, Literal

from msgspec import Struct
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family

from deskwire.engine.accounts.credential_ends import CredentialEnds, CredentialType
from deskwire.engine.audit.push import PushHealth
from deskwire.engine.core.counters import DiskSpace, Histogram
from deskwire.engine.mail.ports import MailHealth
from deskwire.engine.stream.channel import ChannelKind
from deskwire.engine.stream.lag import Lag
from deskwire.http.api.services import Services

PREFIX: Final = "deskwire_"

# Values, each with the values of its labels.
Rows = Iterable[tuple[tuple[str, ...], float | Histogram]]


class Scrape(Struct, frozen=True):
    """The sources of one scrape.

    Args:
        room: disk space, None if it can't be read.
        mails: the state of the queue of mails; None if it can't be read.
        pushes: the state of the audit trail's pushes; None if it can't be read.
        now: the time (ms).
        credential_ends: counts of credentials that end or never end, by their type; empty if they can't be read.
        conditions: number of endpoints by their condition; empty if it can't be read.
    """

    services: Services
    lags: Mapping[ChannelKind, Lag]
    room: DiskSpace | None
    ready: bool
    conditions: Mapping[str, int]
    pushes: PushHealth | None
    credential_ends: Mapping[CredentialType, CredentialEnds]
    mails: MailHealth | None
    now: int


class Metric(Struct, frozen=True):
    """A family of time series.

    Args:
        name: without the prefix; includes the unit, and counters end in `_total`.
        meaning: the meaning of a value, in a sentence or two.
        read: returns the current values.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    meaning: str
    read: Callable[[Scrape], Rows]
    labels: tuple[str, ...] = ()

    def family(self, rows: Rows) -> Family:
        """Return the family with these values."""
        name = PREFIX + self.name
        if self.kind == "histogram":
            return self._histogram(name, rows)
        kind = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        family = kind(name, self.meaning, labels=self.labels)
        for labels, value in rows:
            assert not isinstance(value, Histogram)
            family.add_metric(labels, value)
        return family

    def _histogram(self, name: str, rows: Rows) -> Family:
        family = HistogramMetricFamily(name, self.meaning, labels=self.labels)
        for labels, value in rows:
            assert isinstance(value, Histogram)
            buckets = [(_bound(bound), count) for bound, count in value.cumulative()]
            family.add_metric(labels, buckets, value.total)
        return family


def _bound(bound: float) -> str:
    return "+Inf" if bound == inf else repr(bound)
