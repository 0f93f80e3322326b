"""The nightly backup: retention, and the systemd units that start it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.support.api.service import running
from tests.support.root import ROOT
from tests.support.sockets.server_process import environment

DEPLOY: Final = ROOT / "docs/deploy"
SCRIPT: Final = DEPLOY / "deskwire-backup"
FORM: Final = "deskwire-%Y%m%dT%H%M%SZ.tar"
UNITS: Final = ("deskwire-backup.service", "deskwire-backup.timer")

pytestmark = pytest.mark.skipif(shutil.which("sh") is None, reason="there is no shell")


async def backup(folder: Path, data: Path, **environ: str) -> subprocess.CompletedProcess[bytes]:
    """Run the script as systemd does, with this interpreter's program on the path."""
    programs = folder.parent / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "deskwire").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m deskwire "$@"\n')
    (programs / "deskwire").chmod(0o755)
    given = {
        **environment(),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "DESKWIRE_DATA": str(data),
        **environ,
    }
    return await trio.run_process(
        [str(SCRIPT), str(folder)], env=given, capture_stdout=True, capture_stderr=True, check=False
    )


def planted(folder: Path, times: Iterable[datetime]) -> set[str]:
    """Create a file for each past backup; return their names."""
    folder.mkdir()
    names = {each.strftime(FORM) for each in times}
    for name in names:
        (folder / name).touch()
    return names


def to_stay(names: Iterable[str], daily: int, weekly: int) -> set[str]:
    """Return the last backup of each of the newest days and weeks."""
    last_of_day: dict[str, str] = {}
    last_of_week: dict[str, str] = {}
    for name in sorted(names):
        time = datetime.strptime(name, FORM)
        last_of_day[time.strftime("%Y%m%d")] = name
        last_of_week[time.strftime("%G-%V")] = name
    days, weeks = list(last_of_day.values()), list(last_of_week.values())
    return {*days[len(days) - min(daily, len(days)) :], *weeks[len(weeks) - min(weekly, len(weeks)) :]}


@pytest.mark.parametrize(("daily", "weekly"), [(7, 4), (2, 0), (0, 3)])
async def test_the_last_backup_of_each_of_the_newest_days_and_weeks_stays(
    tmp_path: Path, daily: int, weekly: int
) -> None:
    now = datetime.now(UTC)
    folder = tmp_path / "backups"
    names = planted(folder, (now - timedelta(hours=12 * each + 1) for each in range(100)))
    (folder / "notes.txt").touch()
    async with running(tmp_path / "data") as service:
        done = await backup(folder, service.directory, KEEP_DAILY=str(daily), KEEP_WEEKLY=str(weekly))
    assert done.returncode == 0, done.stderr
    left = {path.name for path in folder.iterdir()} - {"notes.txt"}
    (made,) = left - names
    assert left == to_stay({*names, made}, daily, weekly)
    assert (folder / "notes.txt").exists()
    assert stat.S_IMODE((folder / made).stat().st_mode) == 0o600
    assert (folder / made).stat().st_size > 10_000


async def test_failed_backup_removes_no_existing_ones(tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    names = planted(folder, (datetime.now(UTC) - timedelta(days=each) for each in range(30)))
    done = await backup(folder, tmp_path / "nothing")
    assert done.returncode == 1
    assert {path.name for path in folder.iterdir()} == names


@pytest.mark.parametrize("environ", [{"KEEP_DAILY": "a week"}, {"KEEP_DAILY": "0", "KEEP_WEEKLY": "0"}])
async def test_invalid_number_of_backups_is_refused_before_a_backup(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    done = await backup(tmp_path / "backups", tmp_path / "data", **environ)
    assert done.returncode == 2
    assert b"KEEP_DAILY" in done.stderr
    assert not (tmp_path / "backups").exists()


def test_unit_may_write_only_to_data_and_backups() -> None:
    unit = (DEPLOY / "deskwire-backup.service").read_text()
    service = (DEPLOY / "deskwire.service").read_text()
    for line in ("User=deskwire", "Environment=DESKWIRE_DATA=/var/lib/deskwire"):
        assert line in unit
        assert line in service
    assert "ExecStart=/usr/local/bin/deskwire-backup /var/backups/deskwire\n" in unit
    assert "ReadWritePaths=/var/lib/deskwire /var/backups/deskwire\n" in unit
    assert os.access(SCRIPT, os.X_OK)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze to ask")
def test_systemd_accepts_the_units_and_knows_when_the_timer_is_due(tmp_path: Path) -> None:
    for name in UNITS:
        text = (DEPLOY / name).read_text()
        (tmp_path / name).write_text(text.replace("/usr/local/bin/deskwire-backup", "/bin/true"))
    command = [
        "systemd-analyze",
        "verify",
        "--man=no",
        "--generators=no",
        *(str(tmp_path / name) for name in UNITS),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "deskwire" in line]) == (0, [])
    (when,) = [
        line[11:] for line in (DEPLOY / UNITS[1]).read_text().splitlines() if line.startswith("OnCalendar=")
    ]
    subprocess.run(["systemd-analyze", "calendar", when], check=True, capture_output=True)
