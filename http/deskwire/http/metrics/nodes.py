"""The metrics of a node that shares its database with others.

A single node has none of them (ADR 13).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from deskwire.engine.core.counters import Histogram
from deskwire.http.measurements import NodeMeasurements
from deskwire.http.metrics.metric import Metric, Rows, Scrape


def _one(read: Callable[[NodeMeasurements], float | Histogram]) -> Callable[[Scrape], Rows]:
    """Return the reader of a metric without labels.

    A single node has no values.
    """

    def rows(scrape: Scrape) -> Rows:
        node = scrape.services.measured.node
        return [] if node is None else [((), read(node))]

    return rows


def _named(
    read: Callable[[NodeMeasurements], Mapping[str, float] | Mapping[str, Histogram]],
) -> Callable[[Scrape], Rows]:
    """Return the reader of a metric with one label."""

    def rows(scrape: Scrape) -> Rows:
        node = scrape.services.measured.node
        return [] if node is None else [((name,), value) for name, value in read(node).items()]

    return rows


NODE_METRICS: Final = (
    Metric(
        "node_lease_valid_seconds",
        "gauge",
        "Time for which the node's lease is still valid. It is renewed each second; at 0 the node accepts no requests.",
        _one(lambda node: node.lease_s()),
    ),
    Metric(
        "node_clock_offset_seconds",
        "gauge",
        "Offset of the node's clock against the database's; from 5 on, in either direction, the node is not ready.",
        _one(lambda node: node.clock_offset_s()),
    ),
    Metric(
        "node_live_nodes",
        "gauge",
        "Nodes with a valid lease, to the knowledge of this node.",
        _one(lambda node: node.live()),
    ),
    Metric(
        "node_on_duty",
        "gauge",
        "1 on the leader, which runs timers, retention, the search index and removals; else 0.",
        _one(lambda node: node.is_leader()),
    ),
    Metric(
        "node_commit_round_seconds",
        "histogram",
        "Time of a batch's round trips to the database: `read` locks and reads, `heads` writes rows and waits for the logs "
        "of the projects, `commit` writes events and commits. For few changes, and under load at several nodes, `heads` is the first.",
        _named(lambda node: node.commits.rounds),
        ("round",),
    ),
    Metric(
        "node_decided_again_total",
        "counter",
        "Changes decided again in the same commit, because another node was first.",
        _one(lambda node: node.commits.decided_again),
    ),
    Metric(
        "node_outcomes_resolved_total",
        "counter",
        "Commits without a response of the database, by whether they turned out to be stored.",
        _named(lambda node: {"yes": node.commits.found_stored, "no": node.commits.found_lost}),
        ("stored",),
    ),
    Metric(
        "node_follower_behind_events",
        "gauge",
        "Events of other nodes that this node knows of and has not read yet.",
        _one(lambda node: node.behind()),
    ),
    Metric(
        "node_hints_total",
        "counter",
        "Hints of other nodes about new events of a project: `new`, or already `known`.",
        _named(lambda node: node.hints()),
        ("what",),
    ),
    Metric(
        "node_messages_total",
        "counter",
        "Messages to and from other nodes; `dropped` ones were too many or too long, which loses no data.",
        _named(lambda node: node.messages()),
        ("fate",),
    ),
    Metric(
        "node_barrier_seconds",
        "histogram",
        "Time that a revocation, removal or erasure waited until all nodes had invalidated their caches.",
        _one(lambda node: node.barrier_s),
    ),
)
