"""The cursor's file: whole or not at all, one process at a time."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.commands.listen.cursor import CursorError, CursorFile, CursorState, default_path
from tests.support.sockets.server_process import environment

KEPT = CursorState("evt_1", "whsec_1", {"cnv_1": 3}, True)
NEWER = CursorState("evt_2", "whsec_1", {"cnv_1": 4}, True)
DIES_BEFORE_THE_RENAME = """
import os, sys
from pathlib import Path
from deskwire.commands.listen.cursor import CursorFile, CursorState
Path.replace = lambda *_: os._exit(9)  # what SIGKILL does, at this very line
with CursorFile(Path(sys.argv[1])) as file:
    file.save(CursorState("evt_2", "whsec_1", {"cnv_1": 4}, True))
"""


@given(
    st.none() | st.text(st.characters(exclude_categories=["Cs"])),
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 2**53)),
    st.booleans(),
)
def test_loading_returns_the_saved_cursor(after: str | None, sequences: dict[str, int], forgot: bool) -> None:
    kept = CursorState(after, "whsec_1", sequences, forgot)
    with TemporaryDirectory() as folder, CursorFile(Path(folder) / "cursor.json") as file:
        file.save(kept)
        assert file.load() == kept


def test_first_run_finds_no_cursor_and_only_its_owner_reads_the_file(tmp_path: Path) -> None:
    path = default_path(tmp_path, "http://x.test", "prj_1")
    with CursorFile(path) as file:
        assert file.load() is None
        file.save(KEPT)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_each_service_and_each_project_has_a_file_of_its_own(tmp_path: Path) -> None:
    paths = {default_path(tmp_path, url, project) for url in ("http://a", "http://b") for project in "12"}
    assert len(paths) == 4


def test_a_crash_between_writing_and_renaming_leaves_the_old_cursor_whole(tmp_path: Path) -> None:
    path = tmp_path / "cursor.json"
    with CursorFile(path) as file:
        file.save(KEPT)
    command = [sys.executable, "-c", DIES_BEFORE_THE_RENAME, str(path)]
    assert subprocess.run(command, env=environment(), check=False).returncode == 9
    with CursorFile(path) as file:
        assert file.load() == KEPT
        file.save(NEWER)
        assert file.load() == NEWER
    assert sorted(each.name for each in tmp_path.iterdir()) == [".cursor.json.lock", "cursor.json"]


def test_second_process_on_the_same_cursor_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "cursor.json"
    with CursorFile(path), pytest.raises(CursorError, match="Another"), CursorFile(path):
        raise AssertionError
    with CursorFile(path) as file:
        assert file.load() is None


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"after": 1, "secret": "x", "sequences": {}, "forgot": false}']
)
def test_a_file_that_is_no_cursor_is_refused_and_left_alone(tmp_path: Path, content: str) -> None:
    path = tmp_path / "cursor.json"
    path.write_text(content)
    with CursorFile(path) as file, pytest.raises(CursorError, match="remove it, or give another"):
        file.load()
    assert path.read_text() == content


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CursorError, match="folder can't be used"), CursorFile(tmp_path / "file" / "c.json"):
        raise AssertionError
