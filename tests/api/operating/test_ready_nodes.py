"""The number of ready nodes that a balancer sends with its checks, which ends the waits of a node without its lease (ADR 60)."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from deskwire.config.parsers import networks
from deskwire.engine.agents.streams import AgentStreams
from deskwire.engine.cluster.cluster import SingleNode
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.stream.hub import Hub
from deskwire.http.api.admission import HeldCalls
from deskwire.http.api.readiness import ReadinessProbe
from tests.support.api.service import running

_ALL = {"Hub", "AgentStreams", "HeldCalls"}


@pytest.mark.sqlite  # the lease that the test sets is that of a node on a file
@pytest.mark.parametrize(
    ("trusted", "headers", "valid_until", "ended"),
    [
        ("127.0.0.1", {"X-Ready-Nodes": "2"}, -inf, _ALL),
        ("127.0.0.1", {"X-Ready-Nodes": "2"}, inf, _ALL - {"HeldCalls"}),
        ("127.0.0.1", {"X-Ready-Nodes": "0"}, -inf, set()),
        ("127.0.0.1", {"X-Ready-Nodes": "-1"}, -inf, set()),
        ("127.0.0.1", {"X-Ready-Nodes": "9" * 5_000}, -inf, set()),
        ("127.0.0.1", {"X-Ready-Nodes": "²"}, -inf, set()),
        ("127.0.0.1", {}, -inf, set()),
        ("127.0.0.1", {"X-Ready-Nodes": "2", "X-Forwarded-For": "203.0.113.7"}, -inf, set()),
        ("10.0.0.0/8", {"X-Ready-Nodes": "2"}, -inf, set()),
    ],
)
async def test_only_a_trusted_balancer_ends_the_waits_of_a_node_that_is_not_ready(
    trusted: str,
    headers: dict[str, str],
    valid_until: float,
    ended: set[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = set[str]()

    async def refusal(_: ReadinessProbe) -> Unavailable:
        return Unavailable("The database is unavailable.", code="storage_failed")

    async with running(tmp_path, trusted_proxies=networks(trusted)) as service:
        with monkeypatch.context() as patch:
            patch.setattr(ReadinessProbe, "refusal", refusal)
            patch.setattr(SingleNode, "valid_until", valid_until)
            for each, method in (
                (Hub, "send_away_nowait"),
                (AgentStreams, "send_away_nowait"),
                (HeldCalls, "refuse_all_nowait"),
            ):
                patch.setattr(each, method, lambda self: seen.add(type(self).__name__))
            encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
            answer = await service.http.get(f"{service.url}/readyz", headers=encoded)
        assert (answer.status_code, answer.json()["code"]) == (503, "storage_failed")
    assert seen == ended
