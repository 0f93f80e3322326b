"""The third-party parts of a release, each with a licence."""

from __future__ import annotations

import re
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

import pytest
from release.notices import notices
from release.parts import (
    KEPT,
    LOCKS,
    SHARED,
    Part,
    UnknownLicence,
    executable,
    libraries,
    licence,
    pins,
    vendored,
)

from tests.support.root import ROOT

PAGE: Final = ROOT / "docs/dependencies.md"
LOCK: Final = ROOT / "requirements/run.txt"
SIZE_FACTOR: Final = 1.5
"""Compiled libraries differ in size from one Python and processor to the other."""


def table(head: str) -> list[list[str]]:
    """The rows of the table with that head."""
    body = PAGE.read_text().partition(f"| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in body]


def test_the_table_of_dependencies_has_every_package_of_the_lock_with_those_who_ask_for_it() -> None:
    rows = {name: sorted(asking.split(", ")) for name, asking, *_ in table("Package | Asked for by")}
    assert rows == {
        pin.name: sorted("Deskwire" if each == "deskwire" else each for each in pin.via) for pin in pins(LOCK)
    }


def test_the_table_of_dependencies_gives_for_each_a_reason_its_licence_and_its_size() -> None:
    for name, _, reason, spdx, megabytes in table("Package | Asked for by"):
        found = distribution(name)
        paths = [Path(str(found.locate_file(file))) for file in found.files or () if file.suffix != ".pyc"]
        size = sum(path.stat().st_size for path in paths if path.is_file()) / 1e6
        assert reason, name
        assert spdx == licence(found), name
        assert size / SIZE_FACTOR - 0.1 <= float(megabytes) <= size * SIZE_FACTOR + 0.1, (name, size)


def test_what_the_locks_leave_out_is_in_none_and_on_the_page() -> None:
    text = (ROOT / "release/left-out.txt").read_text()
    left_out = set(re.findall(r"^([a-z0-9-]+) ;", text, re.MULTILINE))
    assert left_out == {row[0] for row in table("Package | Declared by")}
    for lock in LOCKS:
        assert not left_out & {pin.name for pin in pins(ROOT / "requirements" / lock)}


def test_every_library_of_the_locks_has_its_licence_in_full() -> None:
    parts = libraries()
    assert {pin.name for pin in pins(LOCK)} <= {part.name for part in parts}
    shortest = min(parts, key=lambda part: sum(map(len, part.texts)))
    assert sum(map(len, shortest.texts)) > 400, shortest


def test_all_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    locks = tmp_path / "requirements"
    locks.mkdir()
    for lock in LOCKS:
        (locks / lock).write_text(
            "nosuch==1 \\\n    # via deskwire\ntrio==0.1\n    # via\n    #   deskwire\n"
        )
    with pytest.raises(UnknownLicence) as told:
        libraries(tmp_path)
    assert str(told.value).splitlines() == [
        "nosuch is not installed",
        f"trio {distribution('trio').version} is installed, but 0.1 is locked",
    ]


def test_vendored_parts_have_versions_and_licences() -> None:
    assert {part.name for part in vendored() if part.version} == {
        "swagger-ui-dist",
        "preact",
        "htm",
        "@preact/signals",
        "@preact/signals-core",
        "@noble/ciphers",
        "vadersentiment",
    }
    assert all(all(part.texts) for part in vendored())


def test_every_licence_file_of_the_wheel_is_of_a_part() -> None:
    told = {text for part in vendored() for text in part.texts}
    layers = [ROOT / layer / "deskwire" for layer in ("engine", "http", "storage")]
    named = re.compile("licen[cs]e|notice", re.IGNORECASE)
    files = [
        path
        for layer in layers
        for path in layer.rglob("*")
        if named.search(path.name) and path.suffix not in (".py", ".pyc", ".js", ".css", ".html")
    ]
    assert files
    assert {path.read_text().strip() for path in files} == told


def test_a_shared_library_whose_licence_nobody_told_ends_the_build() -> None:
    with pytest.raises(UnknownLicence, match="libnew, libodd in it"):
        executable(["libz.so.1", "libodd.so.2", "libnew.so"])


def test_the_executables_own_parts_are_python_and_what_is_known_of_the_machine() -> None:
    names = {part.name for part in executable([f"{name}.so.1" for name in SHARED])}
    assert names == {"cpython", "pyinstaller", *(name for name, _ in SHARED.values())}


def test_every_licence_that_is_kept_is_of_something() -> None:
    used = {"cpython", *(name for name, _ in SHARED.values()), *(part.name for part in libraries())}
    assert {path.stem for path in KEPT.glob("*.txt")} <= used


def test_notices_list_everything_and_print_a_shared_licence_once() -> None:
    one, two = (
        Part("one", "1", "pypi", "MIT", ("the text",)),
        Part("two", None, "generic", "MIT", ("the text",)),
    )
    text = notices([one, two])
    assert "  one 1: MIT\n  two: MIT\n" in text
    assert text.count("the text") == 1
