"""The architecture page names the existing folders, layers and files."""

import re
import tomllib
from pathlib import Path

from tests.support.root import ROOT

PAGE = (ROOT / "docs/architecture.md").read_text()
LAYERS = {"engine": ROOT / "engine/deskwire/engine", "http": ROOT / "http/deskwire/http"}
LAYERS["storage"] = ROOT / "storage/deskwire/storage"
PROGRAM = ROOT / "engine/deskwire"
CODE = re.compile(r"`([\w/]+(?:\.py)?)`")
FILES = [path for layer in LAYERS for path in (ROOT / layer).rglob("*.py")]


def place(name: str) -> Path:
    """Return the file or folder that a path on the page refers to."""
    layer, _, rest = name.partition("/")
    return LAYERS[layer] / rest if layer in LAYERS else PROGRAM / name


def rooms() -> list[str]:
    """Return the folders on the first two levels."""
    outer = [
        path.name for path in PROGRAM.iterdir() if path.is_dir() and path.name not in (*LAYERS, "__pycache__")
    ]
    inner = [
        f"{layer}/{path.name}"
        for layer, folder in LAYERS.items()
        if layer != "storage"
        for path in folder.iterdir()
        if path.is_dir() and path.name != "__pycache__"
    ]
    return sorted([*outer, *inner, "storage"])


def test_the_table_has_every_room_and_no_other() -> None:
    table = PAGE.partition("## The floors")[0].partition("| --- | --- |")[2]
    named = [name for row in re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE) for name in CODE.findall(row)]
    assert sorted({"storage" if name.startswith("storage/") else name for name in named}) == rooms()


def test_every_file_and_folder_that_the_page_names_is_there() -> None:
    names = {
        name
        for name in CODE.findall(PAGE)
        if ("/" in name or name.endswith(".py")) and "deskwire" not in name
    }
    missing = [
        name
        for name in names
        if not place(name).exists() and not any(str(path).endswith(f"/{name}") for path in FILES)
        if not any(path.is_dir() and str(path).endswith(f"/{name}") for path in (PROGRAM.rglob("*")))
    ]
    assert missing == []


def test_the_floors_are_those_that_are_checked() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [floors] = [contract for contract in contracts if contract["id"] == "floors"]
    drawn = re.search(r"```\n(voice.*?)```", PAGE, re.DOTALL)
    assert drawn is not None
    shown = [set(line.split()) for line in drawn[1].splitlines()]
    assert shown == [set(line.replace("|", " ").split()) for line in floors["layers"] if line != "ports"]
