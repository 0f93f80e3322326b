"""Build hook for hatchling: version and addresses of the SDK are those of the server in the same tree."""

from __future__ import annotations

import tomllib
from email.parser import Parser
from pathlib import Path
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
    project = tomllib.loads((root.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    return {"version": project["version"], "urls": project["urls"]}
