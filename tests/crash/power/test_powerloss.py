"""Power that goes at any moment: of the service, and of the commands that copy its data. `make powerloss` is the long form."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import trio

from deskwire.engine.core.secret import Secrets
from deskwire.storage.sqlite.backup.copies import FOLDER, copy_before_upgrade
from deskwire.storage.sqlite.backup.unpack import read_archive
from deskwire.storage.sqlite.check import check
from deskwire.storage.sqlite.directory import FILE_NAME, RESTORING
from tests.crash.disk import NOTHING_SPARED, Disk
from tests.crash.powerloss import Moment, Recorded, moments, recorded
from tests.crash.shim import Shim, missing
from tests.plants.plants import plants_for
from tests.storage.backup.conftest import SECRET, back_up, fill
from tests.support.floors import shortfalls
from tests.support.root import ROOT
from tests.support.sockets.server_process import environment

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(missing()), reason=missing() or "there is a shim")]

CUTS = 30
PLANT_CUTS = 100


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """A recorded run of the service, killed once in the middle; takes seconds, because it is under load."""
    return recorded(tmp_path_factory.mktemp("run"), 1)


def test_nothing_acknowledged_or_sent_is_lost_in_a_power_failure(run: Recorded, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    problems = run.problems(CUTS, seed, tmp_path)
    assert not problems, f"seed {seed}: {problems}"


def test_a_disk_that_never_syncs_is_found_out(run: Recorded, tmp_path: Path) -> None:
    unsynced = [op for op in run.ops if op.kind != "S"]
    assert replace(run, ops=unsynced).losses(5, 1, tmp_path)


def test_a_disk_that_never_syncs_folders_is_found_out(run: Recorded, tmp_path: Path) -> None:
    folders = {op.inode for op in run.ops if op.kind == "D"}
    unsynced = [op for op in run.ops if op.kind != "S" or op.inode not in folders]
    assert replace(run, ops=unsynced).losses(5, 1, tmp_path)


def test_a_recorder_that_sees_no_answers_is_found_out(run: Recorded, tmp_path: Path) -> None:
    deaf = [op for op in run.ops if op.kind != "N" or b'"msg_' not in op.data]
    assert any("answers seen" in each for each in replace(run, ops=deaf).problems(1, 1, tmp_path))


@pytest.mark.parametrize("bug", plants_for("powerloss"))
def test_a_planted_bug_is_found_within_some_cuts(tmp_path: Path, bug: str) -> None:
    run = recorded(tmp_path, 1, bug)
    assert not shortfalls(run.floors()), "it is the bug that is found, not too little"
    assert run.losses(PLANT_CUTS, 1, tmp_path), f"{PLANT_CUTS} losses of power have not shown {bug}"


@pytest.fixture
def watched(tmp_path: Path) -> Shim:
    """A watched tree with a data directory that has something of everything."""
    shim = Shim(tmp_path, tmp_path / "disk", recording=True)
    trio.run(fill, shim.root / "data")
    return shim


def done(shim: Shim, *command: str) -> Iterator[Moment]:
    """Losses of power while a command runs on the tree, and one when it has ended well."""
    disk = Disk(shim.root)
    environ = {**environment(), **shim.environ}
    subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=environ, check=True, capture_output=True)
    scratch = shim.root.parent
    return moments(disk, list(shim.ops()), CUTS, random.Random(), scratch)


def test_a_backup_is_the_old_one_or_the_new_one_and_whole(watched: Shim) -> None:
    data, target = watched.root / "data", watched.root / "b.tar"
    old = back_up(data, target).path.read_bytes()
    command = ("deskwire", "backup", str(target), "--with-secret", "--force", "--data", str(data))
    left = b""
    for moment in done(watched, *command):
        left = (moment.tree / "b.tar").read_bytes()
        assert read_archive(moment.tree / "b.tar", Secrets(SECRET)).sealed, moment.words
    assert left != old, "it is done, and on the disk"


def test_a_restore_is_done_or_known_to_be_undone(watched: Shim) -> None:
    source = back_up(watched.root / "data", watched.root / "b.tar").path
    data = "absent"
    for moment in done(watched, "deskwire", "restore", str(source), "--data", str(watched.root / "new")):
        data = moment.words
        new = moment.tree / "new"
        if (new / FILE_NAME).exists() and not (new / RESTORING).exists():
            assert not check(new, Secrets(SECRET), contents=True, settled_s=0).problems, moment.words
            assert (new / "secret").exists(), moment.words
            data = "whole"
    assert data == "whole", "it is done, and on the disk"


def test_an_upgrade_loses_nothing_and_its_copy_is_whole(watched: Shim) -> None:
    data = watched.root / "data"
    with closing(sqlite3.connect(data / FILE_NAME)) as connection:
        count = connection.execute("SELECT count(*) FROM messages").fetchone()
    copy_before_upgrade(data / FILE_NAME, 1, "m9999_one_more")  # one that the next takes the place of
    (older,) = (data / FOLDER).iterdir()
    older.rename(older.with_name("20200101T000000Z-before-m9999_one_more.sqlite3"))
    for moment in done(watched, "tests.crash.upgrading", str(data)):
        found = [moment.tree / "data" / FILE_NAME, *(moment.tree / "data" / FOLDER).glob("*.sqlite3")]
        for path in found:
            with closing(sqlite3.connect(path)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",), moment.words
                assert connection.execute("SELECT count(*) FROM messages").fetchone() == count, moment.words
                upgraded = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'added'").fetchone()
            assert path.name != FILE_NAME or upgraded is None or len(found) >= 2, moment.words
    assert len(found) == 2, "it is upgraded, and one copy is left"


KEEPING = """
import sys
from pathlib import Path
from deskwire.engine.uploads.ports import FileContent
from deskwire.storage.files import DiskFiles

files = DiskFiles(Path(sys.argv[1]))
files.clear_drafts()
first, second = files.draft(), files.draft()
for draft in (first, second):
    draft.write(b"the same bytes")
    content = FileContent(1, draft.finish())
place = files.place(content)
place.parent.mkdir(parents=True)
first._path.rename(place)  # and no sync: that is what a sync that failed, or a kill before it, leaves
second.keep(content)
second.discard()
"""


SECRET_MADE = """
import sys
from pathlib import Path
from deskwire.program.secret_file import write_private

write_private(Path(sys.argv[1]) / "secret", "the same bytes")
"""


@pytest.mark.parametrize("script", [KEEPING, SECRET_MADE])
def test_file_is_on_disk_when_reported_as_stored(tmp_path: Path, script: str) -> None:
    shim = Shim(tmp_path, tmp_path / "disk", recording=True)
    disk = Disk(shim.root)
    command = [sys.executable, "-c", script, str(shim.root)]
    subprocess.run(command, env={**environment(), **shim.environ}, check=True)
    for op in shim.ops():
        disk.apply(op)
    disk.survivors(tmp_path / "left", NOTHING_SPARED)
    kept = [path for path in (tmp_path / "left").rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in kept] == [b"the same bytes"]
