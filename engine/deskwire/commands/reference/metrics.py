"""The reference page of metrics, from their table and the process metrics of the library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import Metric as Family

from deskwire.http.description.tables import markdown_table
from deskwire.http.metrics.exposition import PROCESS
from deskwire.http.metrics.families import METRICS
from deskwire.http.metrics.metric import PREFIX

INTRODUCTION: Final = """\
# Metrics

<!-- Written by `make docs` from the table of metrics; do not edit. -->

`GET /metrics` returns these metrics in the text format of Prometheus. [The guide](../guide/monitoring.md) explains
access and use. A histogram `x` is the series `x_bucket`, `x_sum` and `x_count`. Counters and
histograms start at zero at each start. Units are in the names: seconds, bytes, events. No label is the id of a project,
conversation, contact or endpoint.
"""


def markdown() -> str:
    """Return the page, with the process metrics of a system that has `/proc`."""
    return f"{INTRODUCTION}\n{markdown_table(('Metric', 'Kind', 'Labels', 'What it says'), _rows())}"


def _rows() -> Iterator[tuple[str, str, str, str]]:
    for each in METRICS:
        labels = ", ".join(f"`{label}`" for label in each.labels)
        yield f"`{PREFIX}{each.name}`", each.kind, labels, each.meaning
    for family in PROCESS.collect():
        yield f"`{_shown(family)}`", family.type, "", family.documentation


def _shown(family: Family) -> str:
    return family.name + ("_total" if family.type == "counter" else "")
