"""The check of the search index by `deskwire check`."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from deskwire.storage.sqlite.check import check
from deskwire.storage.sqlite.search.file import FILE_NAME
from tests.storage.search.test_index import talking


async def kept(directory: Path) -> Path:
    """Create an index of two conversations; return its file."""
    async with talking(directory, ["first", "second"]):
        return directory / FILE_NAME


def found(directory: Path) -> list[str]:
    """Return the codes of the problems."""
    return [problem.code for problem in check(directory, None, contents=False).problems]


async def test_a_sound_index_and_none_at_all_are_well(tmp_path: Path) -> None:
    path = await kept(tmp_path)
    assert found(tmp_path) == []
    path.unlink()
    assert found(tmp_path) == []


async def test_words_of_a_deleted_conversation_are_reported(tmp_path: Path) -> None:
    path = await kept(tmp_path)
    with closing(sqlite3.connect(path)) as index, index:
        index.execute("INSERT INTO words VALUES (99, 1, 'stray', '')")
    assert found(tmp_path) == ["search_index_stray"]


@pytest.mark.parametrize("harm", [b"\0" * 100, b"\xff" * 4096])
async def test_damage_is_reported_with_a_remedy(tmp_path: Path, harm: bytes) -> None:
    path = await kept(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: 4096 * 2] + harm + content[4096 * 2 + len(harm) :])
    (problem, *_) = check(tmp_path, None, contents=False).problems
    assert problem.code == "search_index_damaged"
    assert problem.message.endswith(f"remove {FILE_NAME}: the next start rebuilds it.")
