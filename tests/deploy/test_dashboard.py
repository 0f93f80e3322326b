"""The dashboard's queries, evaluated by Prometheus on the metrics of running services."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
import pytest
import trio
import yaml

from tests.api.events.test_channels_agree import consuming, receiving, register
from tests.deploy.test_proxies import started
from tests.deploy.tools import needs, program
from tests.support.api.service import Service, running
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.node_processes import Nodes, running_nodes
from tests.support.root import ROOT
from tests.support.sockets.receivers import answering
from tests.support.sockets.server_process import LOOK_S, free_port

DASHBOARD: Final[dict[str, Any]] = json.loads((ROOT / "docs/monitoring/dashboard.json").read_text())
VARIABLES: Final = {"$job": ".*", "$instance": ".*", "$__rate_interval": "30s"}
NODES_ROW: Final = "Several nodes on one PostgreSQL"
NEEDS_MORE: Final = {"Certificate"}
"""Panels that stay empty without a feature of their own: TLS by the service itself."""
ON_OWN_DISK: Final = {"Disk"}
"""Panels that stay empty on PostgreSQL."""
FROM_NODES: Final = {
    "Nodes",
    "Lease",
    "Clock offset",
    "Commit round trips, p99",
    "Events not yet read",
    "Contention",
    "Messages between nodes",
    "Waits for all nodes, p99",
}
"""Panels that stay empty on SQLite."""
needs_prometheus: Final = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="needs prometheus, of Debian's package of that name"
)


class Query(NamedTuple):
    """A query of a panel or of an annotation."""

    title: str
    expression: str
    legend: str


def queries() -> list[Query]:
    """Return every query, with values for the dashboard's variables."""
    found = [
        Query(panel["title"], target["expr"], target["legendFormat"])
        for panel in DASHBOARD["panels"]
        for target in panel.get("targets", [])
    ]
    annotations = [
        Query(each["name"], each["expr"], each["textFormat"]) for each in DASHBOARD["annotations"]["list"]
    ]
    return [Query(title, filled(expression), legend) for title, expression, legend in found + annotations]


def filled(expression: str) -> str:
    """Return an expression as Grafana sends it, with all jobs and instances selected."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


@asynccontextmanager
async def scraping(directory: Path, urls: Sequence[str]) -> AsyncIterator[httpx.AsyncClient]:
    """Run Prometheus on these services; yield a client of its API."""
    targets = [url.removeprefix("http://") for url in urls]
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ROOT / "docs/monitoring/alerts.yml")],
        "scrape_configs": [{"job_name": "deskwire", "static_configs": [{"targets": targets}]}],
    }
    (directory / "prometheus.yml").write_text(yaml.safe_dump(config))
    url = f"http://127.0.0.1:{free_port()}"
    command = [
        "prometheus",
        f"--config.file={directory}/prometheus.yml",
        f"--storage.tsdb.path={directory}/tsdb",
        f"--web.listen-address={url.removeprefix('http://')}",
    ]
    async with (
        started(command, f"{url}/-/ready", {}),
        httpx.AsyncClient(base_url=url, trust_env=False) as http,
    ):
        yield http


async def ask(http: httpx.AsyncClient, expression: str) -> list[dict[str, Any]]:
    """Return the series that Prometheus answers with; an error or a warning fails."""
    answer = (await http.get("/api/v1/query", params={"query": expression})).json()
    assert answer["status"] == "success", (expression, answer)
    assert not answer.get("warnings"), (expression, answer)
    result: list[dict[str, Any]] = answer["data"]["result"]
    return result


async def scraped(http: httpx.AsyncClient, nodes: int, times: int) -> None:
    """Wait until Prometheus has some further scrapes of every node."""
    seen = f"min(count_over_time(deskwire_ready[1h])) and count(deskwire_ready) == {nodes}"

    async def count() -> int:
        found = await ask(http, seen)
        return int(found[0]["value"][1]) if found else 0

    with trio.fail_after(HANG_TIMEOUT_S):
        wanted = await count() + times
        while True:
            if await count() >= wanted:
                return
            await trio.sleep(LOOK_S)  # poll: there is no notification of a scrape


async def empty(http: httpx.AsyncClient) -> set[str]:
    """Return the titles of the panels one of whose queries has no data; each legend's labels must exist."""
    titles = set()
    for query in queries():
        series = await ask(http, query.expression)
        if not series:
            titles.add(query.title)
        for label in re.findall(r"\{\{(\w+)\}\}", query.legend):
            assert all(label in each["metric"] for each in series), query
    return titles - {each["name"] for each in DASHBOARD["annotations"]["list"]}


async def work(service: Service) -> None:
    """Create a conversation, and post messages with idempotency keys."""
    conversation = await service.create()
    for number in range(3):
        key = {"Idempotency-Key": f"key-{number}"}
        path = f"/s2s/conversations/{conversation['id']}/messages"
        assert (await service.http.post(path, json={"text": "Hello"}, headers=key)).is_success


@needs("promtool")
def test_promtool_parses_every_query(tmp_path: Path) -> None:
    rules = [{"record": f"query:{number}", "expr": each.expression} for number, each in enumerate(queries())]
    file = tmp_path / "queries.yml"
    promtool = program("promtool")
    assert promtool is not None

    def checked(rules: list[dict[str, str]]) -> subprocess.CompletedProcess[str]:
        file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
        return subprocess.run(
            [promtool, "check", "rules", str(file)], capture_output=True, text=True, check=False
        )

    done = checked(rules)
    assert done.returncode == 0, done.stdout + done.stderr
    assert checked([{"record": "query:wrong", "expr": "sum by (status (deskwire_ready)"}]).returncode != 0


@pytest.mark.long
@needs_prometheus
async def test_each_panel_shows_data_of_a_node_with_its_own_disk(tmp_path: Path) -> None:
    async with (
        running(tmp_path / "data", webhook_retry_after_s=(0.0, 0.0, 0.0)) as service,
        receiving() as good,
        receiving() as bad,
        consuming(service) as consumer,
        scraping(tmp_path, [service.url]) as http,
    ):
        bad.behaviour = answering("500 Internal Server Error")
        await register(service, good.url)
        await register(service, bad.url)
        assert (await consumer.subscribe())["event"] == "pusher_internal:subscription_succeeded"
        await work(service)
        await scraped(http, 1, 3)
        await work(service)
        await scraped(http, 1, 3)
        assert await empty(http) == NEEDS_MORE | FROM_NODES
        failing = await ask(
            http, f'{{{"__name__"}="deskwire_webhook_endpoint_conditions",condition="failing"}}'
        )
        assert failing[0]["value"][1] == "1"


@pytest.mark.long
@needs_prometheus
async def test_each_panel_shows_data_of_several_nodes(tmp_path: Path) -> None:
    async with running_nodes(tmp_path) as nodes:
        urls = [each.url for each in nodes.servers]
        async with scraping(tmp_path, urls) as http:
            await scraped(http, len(urls), 3)
            await write_at_each(nodes)
            await scraped(http, len(urls), 3)
            assert await empty(http) == NEEDS_MORE | ON_OWN_DISK
            (ready,) = await ask(http, filled(_expression("Nodes ready")))
            assert ready["value"][1] == str(len(urls))
            (leaders,) = await ask(http, "sum(deskwire_node_on_duty)")
            assert leaders["value"][1] == "1"


async def write_at_each(nodes: Nodes) -> None:
    """Create a conversation at each node, each written to at all nodes."""
    for node in range(len(nodes.servers)):
        async with nodes.client(node, nodes.key) as client:
            created = await client.post("/s2s/conversations", json={"contact": {"userId": f"u{node}"}})
            assert created.is_success, created.text
        for other in range(len(nodes.servers)):
            async with nodes.client(other, nodes.key) as client:
                path = f"/s2s/conversations/{created.json()['id']}/messages"
                assert (await client.post(path, json={"text": "Hello"})).is_success


def _expression(title: str) -> str:
    (found,) = [
        target["expr"]
        for panel in DASHBOARD["panels"]
        if panel["title"] == title
        for target in panel["targets"]
    ]
    return str(found)
