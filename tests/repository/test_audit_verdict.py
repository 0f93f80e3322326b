"""The verdict of `make audit` on the tool's answers: it passes only if a source knows every pin and reports no vulnerability.

The tool is a fake that prints recorded output of pip-audit.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.audit.__main__ import UNREACHED, main
from tests.audit.verdict import BadExceptions, pardons

GOOD = {"name": "markupsafe", "version": "3.0.2", "vulns": []}
UNKNOWN = {"name": "own", "skip_reason": "Dependency not found on PyPI and could not be audited: own (1.0)"}
PLANTED = {
    "name": "jinja2",
    "version": "2.10",
    "vulns": [
        {
            "id": "PYSEC-2019-217",
            "fix_versions": ["2.10.1"],
            "aliases": ["CVE-2019-10906", "GHSA-462w-v97r-4m45"],
            "description": "sandbox escape",
        }
    ],
}
REFUSED = "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='x', port=443): Max retries exceeded"


def today() -> date:
    """Return the current day, which may differ from the day when the run began."""
    return datetime.now(UTC).date()


class Bench:
    """A folder with locks, and a fake tool that answers for each."""

    def __init__(self, folder: Path) -> None:
        self.locks = folder / "locks"
        self.exceptions = folder / "exceptions.toml"
        self.exceptions.write_text("")
        self.tool = folder / "tool.py"
        self.tool.write_text(
            "import json, pathlib, sys\n"
            "said = json.loads(pathlib.Path(sys.argv[sys.argv.index('--requirement') + 1]).read_text())\n"
            "print(said['out'], end='')\n"
            "print(said['err'], end='', file=sys.stderr)\n"
            "sys.exit(said['status'])\n"
        )
        self.locks.mkdir()

    def says(self, name: str, *dependencies: dict[str, Any], err: str = "", status: int = 0) -> None:
        """Set the tool's answer for the lock of this name; without dependencies it prints nothing on stdout."""
        out = json.dumps({"dependencies": dependencies, "fixes": []}) if dependencies else ""
        (self.locks / f"{name}.txt").write_text(json.dumps({"out": out, "err": err, "status": status}))

    def audit(self, *more: str) -> int:
        """Run the audit; return the exit status."""
        tool = f"{sys.executable} {self.tool}"
        given = ("--locks", str(self.locks), "--exceptions", str(self.exceptions), "--tool", tool)
        return main([*given, *more])


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def excuse(until: date, advisory: str = "CVE-2019-10906", package: str = "jinja2") -> str:
    return (
        f'[[exception]]\npackage = "{package}"\nadvisory = "{advisory}"\nreason = "No templates of others."\n'
        f"until = {until}\n"
    )


def test_pins_that_a_source_knows_nothing_against_pass(bench: Bench) -> None:
    bench.says("run", GOOD)
    bench.says("dev", GOOD)
    assert bench.audit() == 0


def test_planted_pin_fails_and_is_named_with_its_fix(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.says("run", GOOD)
    bench.says("dev", PLANTED, GOOD, status=1)
    assert bench.audit("--where-reached") == 1
    assert capsys.readouterr().err.splitlines() == [
        "jinja2 2.10: CVE-2019-10906, GHSA-462w-v97r-4m45, PYSEC-2019-217; fixed in 2.10.1"
    ]


def test_a_pin_that_a_source_does_not_know_is_no_success(bench: Bench) -> None:
    bench.says("run", GOOD, UNKNOWN)
    assert bench.audit("--where-reached") == 1


def test_source_that_fails_halfway_is_not_a_success(bench: Bench) -> None:
    bench.says("dev", GOOD)
    bench.says("run", err=REFUSED, status=1)
    assert bench.audit("--where-reached") == 1


def test_failing_tool_is_not_a_success(bench: Bench) -> None:
    bench.says("run", err="ERROR: requirement jinja2 is not pinned", status=1)
    assert bench.audit("--where-reached") == 1


@pytest.mark.parametrize("reached_by_nothing", ["an error", "no package known"])
def test_missing_source_is_reported_and_tolerated_only_on_request(
    bench: Bench, capsys: pytest.CaptureFixture[str], reached_by_nothing: str
) -> None:
    if reached_by_nothing == "an error":
        bench.says("run", err=REFUSED, status=1)
    else:
        bench.says("run", UNKNOWN, UNKNOWN)  # reported by pip-audit as "No known vulnerabilities found"
    assert bench.audit() == 1
    assert bench.audit("--where-reached") == 0
    assert capsys.readouterr().out.splitlines() == [UNREACHED, UNREACHED]


def test_exception_suppresses_its_finding_until_it_expires(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.says("run", PLANTED, status=1)
    bench.exceptions.write_text(excuse(today()))
    assert bench.audit() == 0
    assert "No templates of others." in capsys.readouterr().out
    bench.exceptions.write_text(excuse(today(), advisory="CVE-2019-1"))
    assert bench.audit() == 1
    bench.exceptions.write_text(excuse(today(), package="markupsafe"))
    assert bench.audit() == 1


def test_expired_exception_fails_even_without_a_source(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.says("run", err=REFUSED, status=1)
    bench.exceptions.write_text(excuse(today() - timedelta(days=1)))
    assert bench.audit("--where-reached") == 1
    assert "expired" in capsys.readouterr().out


def test_an_exception_that_nothing_needs_has_to_go(bench: Bench) -> None:
    bench.says("run", GOOD)
    bench.exceptions.write_text(excuse(today()))
    assert bench.audit() == 1


@pytest.mark.parametrize(
    "text",
    [
        excuse(today() + timedelta(days=91)),
        excuse(today()).replace("No templates of others.", " "),
        excuse(today()).replace('reason = "No templates of others."\n', ""),
        excuse(today()).replace(f"until = {today()}\n", ""),
        excuse(today()) + 'forever = "yes"\n',
    ],
)
def test_an_exception_has_a_reason_and_an_end_that_is_not_far(tmp_path: Path, text: str) -> None:
    (tmp_path / "exceptions.toml").write_text(text)
    with pytest.raises(BadExceptions):
        pardons(tmp_path / "exceptions.toml", today())
