"""Alert rules on series that are written here, as evaluated by Prometheus itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.support.root import ROOT

PROMTOOL: Final = shutil.which("promtool")
ALERT: Final = "DeskwireStreamWithoutConsumer"
CONSUMERS: Final = 'deskwire_stream_consumers{channel="project",job="deskwire",instance="a"}'
OTHERS: Final = 'deskwire_stream_consumers{channel="conversation",job="deskwire",instance="a"}'
GONE_AT_M: Final = 60

pytestmark = pytest.mark.skipif(PROMTOOL is None, reason="needs promtool, of Debian's package prometheus")


def firing(directory: Path, series: dict[str, str], at_m: int) -> bool:
    """Return whether the alert fires at a minute, with these values for each minute."""
    shutil.copy(ROOT / "docs/monitoring/alerts.yml", directory)
    inputs = "".join(f"      - {{series: '{name}', values: '{values}'}}\n" for name, values in series.items())
    expr = f"count(ALERTS{{alertname='{ALERT}',alertstate='firing'}}) or vector(0)"
    tests = directory / "tests.yml"
    results = []
    for expected in (0, 1):
        tests.write_text(
            "rule_files: [alerts.yml]\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n"
            f"    input_series:\n{inputs}    promql_expr_test:\n"
            f'      - {{expr: "{expr}", eval_time: {at_m}m, exp_samples: [{{value: {expected}}}]}}\n'
        )
        assert PROMTOOL is not None
        command = [PROMTOOL, "test", "rules", str(tests)]
        results.append(subprocess.run(command, capture_output=True, text=True, check=False).returncode == 0)
    assert results[0] is not results[1]
    return results[1]


@pytest.mark.parametrize(
    ("at_m", "expected"),
    [(GONE_AT_M - 1, False), (GONE_AT_M + 12, True), (24 * 60, True), (GONE_AT_M + 24 * 60 + 5, False)],
    ids=["connected", "gone", "gone for a day", "gone for longer"],
)
def test_lost_consumer_is_reported_for_a_day(tmp_path: Path, at_m: int, expected: bool) -> None:
    series = {CONSUMERS: f"1x{GONE_AT_M - 1} 0x2000", OTHERS: "0x2100"}
    assert firing(tmp_path, series, at_m) is expected


def test_installation_without_a_consumer_has_no_alert(tmp_path: Path) -> None:
    assert not firing(tmp_path, {CONSUMERS: "0x100", OTHERS: "1x100"}, 90)


def test_consumer_that_moves_to_another_node_has_no_alert(tmp_path: Path) -> None:
    other = CONSUMERS.replace('"a"', '"b"')
    series = {CONSUMERS: "1x59 0x100", other: "0x59 1x100"}
    assert not firing(tmp_path, series, 90)
