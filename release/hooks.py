"""Build hooks for hatchling: version and commit for wheel and sdist, and a README whose links work outside the repository.

The version is the one of pyproject.toml; a development version also has the first 12 characters of its commit, such as
`0.2.0.dev0+g0123456789ab`. An editable installation has no commit in its version, because the checkout moves on.

The commit is the one that `SOURCE` names, as in an sdist and in an archive made by git; else that of the checkout, with
the suffix `-dirty` if something is not committed; else `SOURCE_COMMIT` of the environment, for an image that is built
without the history; else `unknown`.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT: Final = Path(__file__).parents[1]
COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?(?:-dirty)?")
RELATIVE: Final = re.compile(r"(?P<picture>!?)(?P<text>\[[^\]]*\])\((?!https?:|mailto:|#)(?P<path>[^)\s]+)\)")
EDITABLE_HOOKS: Final = ("build_editable", "prepare_metadata_for_build_editable")
PLACES: Final = {"sdist": "SOURCE", "wheel": "deskwire/program/commit"}


def commit(root: Path) -> str:
    """Return the commit of the files in this folder, or `unknown`."""
    source = root / "SOURCE"
    named = source.read_text().strip() if source.is_file() else ""
    for each in (named, _described(root), os.environ.get("SOURCE_COMMIT", "")):
        if COMMIT.fullmatch(each):
            return each
    return "unknown"


def base_version(pyproject: str) -> str:
    """Return the version that the text of pyproject.toml names."""
    version: str = tomllib.loads(pyproject)["tool"]["deskwire"]["version"]
    return version


def versioned(base: str, commit: str) -> str:
    """Return the version with its commit, if it is a development version and the commit is known.

    `deskwire.engine.core.build` has the same rule for a checkout; a build can't import it.
    """
    if ".dev" not in base or commit == "unknown":
        return base
    return f"{base}+g{commit[:12]}{'.dirty' if commit.endswith('-dirty') else ''}"


def build_version(root: Path = ROOT) -> str:
    """Return the version of the build that is under way."""
    base = base_version((root / "pyproject.toml").read_text("utf-8"))
    return base if _is_editable_build() else versioned(base, commit(root))


def _is_editable_build() -> bool:
    """Return whether this is called by one of the hooks for editable installations (PEP 660).

    hatchling does not pass the kind of the build to the source of the version.
    """
    return any(frame.function in EDITABLE_HOOKS for frame in inspect.stack(context=0))


def _described(root: Path) -> str:
    if not (root / ".git").exists() or shutil.which("git") is None:
        return ""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False).stdout.strip()


def absolute(readme: str, repository: str, revision: str) -> str:
    """Return a text in Markdown whose links lead to the repository as it was at this tag or commit."""

    def link(found: re.Match[str]) -> str:
        kind = "raw" if found["picture"] else "blob"
        return f"{found['picture']}{found['text']}({repository}/{kind}/{revision}/{found['path']})"

    return RELATIVE.sub(link, readme)


class Readme(MetadataHookInterface):
    """The long description, made from README.md and the address in `[project.urls]`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the description to the metadata."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        made = absolute(text, metadata["urls"]["Source"], self._revision(metadata["version"]))
        metadata["readme"] = {"content-type": "text/markdown", "text": made}

    def _revision(self, version: str) -> str:
        if ".dev" not in version:
            return f"v{version}"
        named = commit(Path(self.root)).removesuffix("-dirty")
        return "HEAD" if named == "unknown" else named


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
