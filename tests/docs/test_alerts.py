"""The webhook alerts fire on the figures of a receiver that is down, as evaluated by Prometheus itself."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
import trio

from deskwire.http.metrics.families import METRICS
from deskwire.http.metrics.metric import PREFIX, Scrape
from tests.simulation.away import Away, conversations, live, traffic
from tests.support.root import ROOT

PROMTOOL = shutil.which("promtool")
SCRAPE_S = 15
QUIET_S, AWAY_S, AFTER_S = 60, 150, 120
"""The phases: the receiver is up, down, and up again."""

HELD = 'deskwire_webhook_outage_deliveries{why="held"}'
DROPPED = 'deskwire_webhook_deliveries_total{kind="stored",outcome="dropped"}'
SKIPPED = 'deskwire_webhook_deliveries_total{kind="stored",outcome="skipped"}'
OPEN = 'deskwire_webhook_endpoints{circuit="open"}'
ALERTS = {
    "DeskwireWebhooksHeld": HELD,
    "DeskwireWebhooksDropped": DROPPED,
    "DeskwireWebhooksSkipped": SKIPPED,
    "DeskwireCircuitOpen": OPEN,
}
"""The series of each alert, which is above zero from the first event that the alert is about."""

Course = Mapping[str, list[float]]

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(PROMTOOL is None, reason="needs promtool, of Debian's package prometheus"),
]


def scraped(away: Away) -> dict[str, float]:
    """Return the current values of the webhooks' series, as in a scrape."""
    server = away.world.server
    assert server is not None
    assert server.services is not None
    scrape = Scrape(
        server.services,
        {},
        None,
        ready=True,
        conditions={},
        pushes=None,
        credential_ends={},
        mails=None,
        now=0,
    )
    found: dict[str, float] = {}
    for metric in METRICS:
        if not metric.name.startswith("webhook_") or metric.kind == "histogram":
            continue
        for values, number in metric.read(scrape):
            labels = ",".join(f'{name}="{value}"' for name, value in zip(metric.labels, values, strict=True))
            assert isinstance(number, int | float)
            found[f"{PREFIX}{metric.name}{{{labels}}}"] = number
    return found


def measured(directory: Path, **settings: float) -> Course:
    """Return every series over all phases, with a value for each scrape."""
    course: dict[str, list[float]] = {}

    async def script(away: Away) -> None:
        ids = await conversations(away)
        start = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(traffic, away, ids, 5, start + QUIET_S + AWAY_S + AFTER_S)
            for number in range((QUIET_S + AWAY_S + AFTER_S) // SCRAPE_S):
                at = number * SCRAPE_S
                await trio.sleep_until(start + at)  # virtual time: the mock clock jumps
                for name, value in scraped(away).items():
                    course.setdefault(name, []).append(value)
                if at == QUIET_S:
                    away.leave("failing")
                elif at == QUIET_S + AWAY_S:
                    away.receiver.manner = "well"

    live(directory, script, **settings)
    return course


def first_above_zero(values: list[float]) -> int | None:
    """Return the number of the first scrape that shows the event."""
    return next((number for number, value in enumerate(values) if value > 0), None)


def firing(alert: str, number: int, expected: bool) -> str:
    """Return a test case for promtool: whether an alert fires at a scrape."""
    samples = "[{value: 1}]" if expected else "[]"
    expr = f"count(ALERTS{{alertname='{alert}',alertstate='firing'}})"
    return f'      - {{expr: "{expr}", eval_time: {number * SCRAPE_S}s, exp_samples: {samples}}}\n'


def judged(directory: Path, course: Course, expectations: str) -> str:
    """Return promtool's complaints about the published rules on these series; empty if they behave as expected."""
    shutil.copy(ROOT / "docs/monitoring/alerts.yml", directory)
    series = "".join(
        f"      - {{series: '{name[:-1]},instance=\"a\"}}', values: '{' '.join(map(str, values))}'}}\n"
        for name, values in course.items()
    )
    tests = directory / "tests.yml"
    tests.write_text(
        f"rule_files: [alerts.yml]\nevaluation_interval: {SCRAPE_S}s\ntests:\n  - interval: {SCRAPE_S}s\n"
        f"    input_series:\n{series}    promql_expr_test:\n{expectations}"
    )
    assert PROMTOOL is not None
    told = subprocess.run(
        [PROMTOOL, "test", "rules", str(tests)], capture_output=True, text=True, check=False
    )
    return "" if told.returncode == 0 else told.stdout + told.stderr


@pytest.mark.parametrize(
    ("settings", "alerts"),
    [
        ({}, {"DeskwireWebhooksHeld", "DeskwireWebhooksDropped", "DeskwireCircuitOpen"}),
        ({"webhook_horizon_s": 45.0}, {"DeskwireWebhooksSkipped", "DeskwireCircuitOpen"}),
    ],
    ids=["held and dropped", "skipped"],
)
def test_each_alert_fires_within_a_minute_of_its_first_event(
    tmp_path: Path, settings: dict[str, float], alerts: set[str]
) -> None:
    course = measured(tmp_path, **settings)
    expectations = ""
    for alert in sorted(alerts):
        first = first_above_zero(course[ALERTS[alert]])
        assert first is not None, f"nothing has happened that {alert} is about"
        assert first > QUIET_S // SCRAPE_S
        within_a_minute = first - 1 + 60 // SCRAPE_S  # the event happened after the previous scrape
        expectations += firing(alert, first - 1, False) + firing(alert, within_a_minute, True)
    assert judged(tmp_path, course, expectations) == ""


def test_promtool_notices_an_alert_that_does_not_fire(tmp_path: Path) -> None:
    quiet = {name: [0.0] * 20 for name in ALERTS.values()}
    expected = firing("DeskwireCircuitOpen", 10, True)
    assert "DeskwireCircuitOpen" in judged(tmp_path, quiet, expected)
    assert judged(tmp_path, quiet, firing("DeskwireCircuitOpen", 10, False)) == ""
