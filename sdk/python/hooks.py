"""Build hook for hatchling: version and addresses of the SDK are those of the server in the same tree."""

from __future__ import annotations

import tomllib
from email.parser import Parser
from pathlib import Path
from runpy import run_path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Shared(MetadataHookInterface):
    """The metadata that the SDK shares with the server."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add version and addresses, from the server's pyproject.toml or from the metadata of an unpacked sdist."""
        metadata.update(shared(Path(self.root)))


def shared(root: Path) -> dict[str, Any]:
    """Return version and addresses for the SDK in this folder."""
    built = root / "PKG-INFO"
    if built.is_file():
        said = Parser().parsestr(built.read_text("utf-8"))
        urls = dict(each.split(", ", 1) for each in said.get_all("Project-URL", []))
        return {"version": said["Version"], "urls": urls}
    tree = root.parents[1]
    project = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))["project"]
    return {"version": project.get("version") or _built_version(tree), "urls": project["urls"]}


def _built_version(tree: Path) -> str:
    """Return the version that the server's hook gives to builds of this tree, with the commit between releases."""
    version: str = run_path(str(tree / "release/hooks.py"))["build_version"](tree)
    return version
