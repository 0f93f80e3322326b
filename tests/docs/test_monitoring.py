"""The metrics' page, guide, dashboard and alerts refer only to existing metrics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deskwire.http.metrics.exposition import PROCESS
from deskwire.http.metrics.families import METRICS
from deskwire.http.metrics.metric import PREFIX
from tests.api.operating.test_metrics import Figures, scrape
from tests.support.api.service import running
from tests.support.root import ROOT

DASHBOARD: dict[str, Any] = json.loads((ROOT / "docs/monitoring/dashboard.json").read_text())
GUIDE = (ROOT / "docs/guide/monitoring.md").read_text()
PAGE = (ROOT / "docs/reference/metrics.md").read_text()
RULE = re.compile(
    r"      - alert: (?P<alert>\w+)\n"
    r"        expr: (?P<expr>.+)\n"
    r"(?:        for: \d+m\n)?"
    r"        labels: \{severity: (?:page|ticket)\}\n"
    r'        annotations: \{summary: "(?P<summary>[^"\\]+)"\}\n'
)
"""A rule as our file writes it: a small subset of YAML, so that no parser is needed."""
SCRAPED = {"instance", "job"}
"""The labels that Prometheus adds."""
SELECTOR = re.compile(r"\b(deskwire_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~|!=|=)"([^"]*)"')
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
FROM_THE_START = {each.name for each in METRICS if not each.name.startswith(("http_", "node_"))}
"""Metrics that exist from the start: without those that the first request or a second node creates."""


def alerts() -> list[dict[str, str]]:
    """Return the rules; any other text in the file fails."""
    text = (ROOT / "docs/monitoring/alerts.yml").read_text()
    head, _, rules = text.partition("    rules:\n")
    assert re.fullmatch(r"(?:# .*\n)+groups:\n  - name: deskwire\n", head)
    assert RULE.sub("", rules).strip() == ""
    return [match.groupdict() for match in RULE.finditer(rules)]


def expressions() -> Iterator[str]:
    """Yield every published expression."""
    yield from (rule["expr"] for rule in alerts())
    for panel in PANELS:
        yield from (target["expr"] for target in panel["targets"])
    yield from (each["expr"] for each in DASHBOARD["annotations"]["list"] if each["name"] != "Alerts")


def series() -> dict[str, frozenset[str]]:
    """Return every series by its name, with its labels."""
    found: dict[str, frozenset[str]] = {}
    for each in METRICS:
        name, labels = PREFIX + each.name, frozenset(each.labels)
        if each.kind == "histogram":
            found |= {f"{name}_bucket": labels | {"le"}, f"{name}_sum": labels, f"{name}_count": labels}
        else:
            found[name] = labels
    for family in PROCESS.collect():
        found |= {sample.name: frozenset() for sample in family.samples}
    return found


def rows() -> dict[str, tuple[str, str]]:
    """Return kind and labels of each metric on the page."""
    cells = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| .+ \|$", PAGE, re.MULTILINE)
    return {name: (kind, labels) for name, kind, labels in cells}


def test_the_page_has_every_metric_and_no_other() -> None:
    listed = {PREFIX + each.name: each for each in METRICS}
    process = {sample.name for family in PROCESS.collect() for sample in family.samples}
    assert rows().keys() == listed.keys() | process
    for name, each in listed.items():
        assert rows()[name] == (each.kind, ", ".join(f"`{label}`" for label in each.labels))


def test_names_follow_the_conventions_and_none_is_there_twice() -> None:
    names = [each.name for each in METRICS]
    assert len(set(names)) == len(names)
    for each in METRICS:
        assert re.fullmatch(r"[a-z]+(_[a-z]+)*", each.name)
        assert each.name.endswith("_total") == (each.kind == "counter")
        assert not each.name.endswith(("_ms", "_count", "_sum", "_bucket"))
        assert each.meaning.endswith(".")
        assert not set(each.labels) & {"project", "conversation", "contact", "endpoint", "url", "id", "le"}


def test_the_guide_names_only_metrics_that_exist() -> None:
    named = set(re.findall(r"\bdeskwire_\w+", GUIDE))
    assert named
    assert named <= rows().keys()


@pytest.mark.parametrize("expression", list(expressions()))
def test_an_expression_names_only_series_and_labels_that_exist(expression: str) -> None:
    known = series()
    used = SELECTOR.findall(expression)
    assert used
    for name, matchers in used:
        assert name in known, name
        assert {label for label, _, _ in MATCHER.findall(matchers)} <= known[name] | SCRAPED
        assert MATCHER.sub("", matchers).strip(", ") == ""
    grouped = {label for group in re.findall(r"\bby \(([^)]*)\)", expression) for label in group.split(", ")}
    assert grouped <= SCRAPED.union(*(known[name] for name, _ in used))
    assert expression.count("(") == expression.count(")")
    for name in re.findall(r"\b(?:rate|increase)\((\w+)", expression):
        assert name.endswith(("_total", "_bucket", "_sum", "_count")), f"{name} is no counter"
    for name in re.findall(r"\b(?:deriv|predict_linear)\((\w+)", expression):
        assert not name.endswith("_total"), f"{name} is a counter"


async def test_every_label_value_in_an_expression_is_one_that_occurs(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        figures = await scrape(service)
    for expression in expressions():
        for name, matchers in SELECTOR.findall(expression):
            if name.removeprefix(PREFIX).removesuffix("_bucket") in FROM_THE_START:
                for label, how, value in MATCHER.findall(matchers):
                    assert how == "=~" or value in values(figures, name, label), (expression, value)


def values(figures: Figures, name: str, label: str) -> set[str]:
    """Return the values of a label of a series."""
    return {dict(labels)[label] for labels in figures.series(name.removeprefix(PREFIX))}


def test_every_alert_is_explained_in_the_guide_and_no_other() -> None:
    names = [rule["alert"] for rule in alerts()]
    assert len(names) == len(set(names)) > 10
    assert set(re.findall(r"`(Deskwire\w+)`", GUIDE)) == set(names)


def test_the_labels_in_a_summary_are_those_that_its_expression_leaves() -> None:
    for rule in alerts():
        for label in re.findall(r"\$labels\.(\w+)", rule["summary"]):
            whole = SCRAPED.union(*(series()[name] for name, _ in SELECTOR.findall(rule["expr"])))
            kept = re.findall(r"\bby \(([^)]*)\)", rule["expr"])
            assert label in (kept[0].split(", ") if kept else whole)


def test_the_panels_of_the_dashboard_have_titles_units_and_places_of_their_own() -> None:
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert len({panel["title"] for panel in PANELS}) == len(PANELS)
    places = [
        (x, y)
        for panel in DASHBOARD["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]
    assert len(places) == len(set(places))
    assert all(0 <= x < 24 for x, _ in places)
    for panel in PANELS:
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            shown = re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
            assert all(re.search(rf"\bby \([^)]*\b{label}\b", target["expr"]) for label in shown)


def test_the_dashboard_is_free_of_addresses_and_asks_for_its_data_source() -> None:
    assert "http:" not in json.dumps(DASHBOARD)
    variables = {each["name"]: each["type"] for each in DASHBOARD["templating"]["list"]}
    assert variables == {"datasource": "datasource", "job": "query", "instance": "query"}
    asked = [*PANELS, *DASHBOARD["templating"]["list"][1:], *DASHBOARD["annotations"]["list"]]
    assert all(each["datasource"]["uid"] == "${datasource}" for each in asked)


def test_the_dashboard_can_be_imported_beside_any_other() -> None:
    """As Grafana exports one to share: no identity of its own, and a list of the parts that it needs."""
    assert DASHBOARD["id"] is None
    assert "uid" not in DASHBOARD
    assert DASHBOARD["__inputs"] == []
    needed = {(each["type"], each["id"]) for each in DASHBOARD["__requires"]}
    panels = {("panel", each["type"]) for each in PANELS}
    assert needed == panels | {("grafana", "grafana"), ("datasource", "prometheus")}
    assert DASHBOARD["tags"]
    assert all(each["description"].endswith(".") for each in (DASHBOARD, *PANELS))


def test_every_query_keeps_to_the_chosen_job_and_instance() -> None:
    for panel in PANELS:
        for target in panel["targets"]:
            for name, matchers in SELECTOR.findall(target["expr"]):
                assert matchers.startswith('job=~"$job", instance=~"$instance"'), (name, target["expr"])


def test_guide_links_to_the_published_files() -> None:
    published = {path.name for path in (ROOT / "docs/monitoring").iterdir()}
    assert published == set(re.findall(r"\(\.\./monitoring/([\w.]+)\)", GUIDE))
