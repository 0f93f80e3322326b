"""Build hooks for hatchling: the commit for wheel and sdist, and a README whose links work outside the repository.

The commit is the one that `SOURCE` names, as in an sdist and in an archive made by git; else that of the checkout, with
the suffix `-dirty` if something is not committed; else `SOURCE_COMMIT` of the environment, for an image that is built
without the history; else `unknown`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?(?:-dirty)?")
RELATIVE: Final = re.compile(r"(?P<picture>!?)(?P<text>\[[^\]]*\])\((?!https?:|mailto:|#)(?P<path>[^)\s]+)\)")
PLACES: Final = {"sdist": "SOURCE", "wheel": "deskwire/program/commit"}


def commit(root: Path) -> str:
    """Return the commit of the files in this folder, or `unknown`."""
    source = root / "SOURCE"
    named = source.read_text().strip() if source.is_file() else ""
    for each in (named, _described(root), os.environ.get("SOURCE_COMMIT", "")):
        if COMMIT.fullmatch(each):
            return each
    return "unknown"


def _described(root: Path) -> str:
    if not (root / ".git").exists() or shutil.which("git") is None:
        return ""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout.strip()


def absolute(readme: str, repository: str, version: str) -> str:
    """Return a text in Markdown whose links lead to the repository as it was at this version."""

    def link(found: re.Match[str]) -> str:
        kind = "raw" if found["picture"] else "blob"
        return f"{found['picture']}{found['text']}({repository}/{kind}/v{version}/{found['path']})"

    return RELATIVE.sub(link, readme)


class Readme(MetadataHookInterface):
    """The long description, made from README.md and the address in `[project.urls]`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the description to the metadata."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        made = absolute(text, metadata["urls"]["Source"], metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": made}


class Commit(BuildHookInterface[Any]):
    """The file that names the commit, in wheel and sdist. An editable installation reads it from the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file and include it in the build."""
        if version != "editable":
            self.folder = tempfile.TemporaryDirectory()
            file = Path(self.folder.name) / "commit"
            file.write_text(commit(Path(self.root)) + "\n")
            build_data["force_include"][str(file)] = PLACES[self.target_name]

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file after the build."""
        if version != "editable":
            self.folder.cleanup()
