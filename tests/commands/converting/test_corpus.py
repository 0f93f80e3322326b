"""Exports as the services write them: each folder is converted to the lines that it has, whatever the order of its files.

A folder has the files of a first export (`1-…`) and of a later one (`2-…`), and the lines and counts that become of both. To
see what has changed, write them again: `python -m tests.commands.converting.test_corpus`.
"""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Final

import pytest

from tests.commands.converting.converted import Converted, converted_bytes

CORPUS: Final = Path(__file__).parent / "corpus"
FOLDERS: Final = sorted(path for path in CORPUS.iterdir() if path.is_dir())
_LINES: Final = "lines.ndjson"
_NOTES: Final = "notes.json"


def files_of(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.glob("[12]*.json"))]


def read(folder: Path, files: list[bytes]) -> Converted:
    return converted_bytes(folder.name.partition("-")[0], *files)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_export_gives_the_same_lines_in_any_order_of_files(folder: Path) -> None:
    expected = (folder / _LINES).read_text()
    assert "4111" not in expected
    for order in permutations(files_of(folder)):
        done = read(folder, list(order))
        assert done.output.decode() == expected
        assert done.notes == json.loads((folder / _NOTES).read_text())


if __name__ == "__main__":
    for each in FOLDERS:
        result = read(each, files_of(each))
        (each / _LINES).write_bytes(result.output)
        (each / _NOTES).write_text(json.dumps(result.notes, indent=2) + "\n")
