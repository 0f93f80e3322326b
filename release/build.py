"""Builds all files of a release from a commit only, in a separate folder."""

from __future__ import annotations

import gzip
import io
import platform
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from release.binary import shared
from release.image import image_context
from release.parts import executable, libraries, vendored
from release.sbom import contents

NODE_TOOLS: Final = Path("tests/clients/tools/node_modules/.bin")


class NotReproducible(Exception):
    """Raised if two builds that must be identical differ; the text names the differences."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release to build, and its source.

    Args:
        repository: a checkout, whose commits are built.
        snapshot: the commit to build: `commit`, or an unnamed one that also has the uncommitted changes.
        commit: the full hash, which is recorded in everything that is built.
        made: when it was committed.
        source: the repository's address.
    """

    repository: Path
    snapshot: str
    commit: str
    version: str
    made: datetime
    source: str

    @property
    def lacks(self) -> str | None:
        """The reason why this machine cannot make the npm package; None if it can."""
        if shutil.which("npm") is None:
            return "npm is missing"
        if not (self.repository / NODE_TOOLS / "tsc").exists():
            return f"{NODE_TOOLS}/tsc is missing"
        return None

    def build(self, work: Path) -> Path:
        """Build it in an empty folder, and return the subfolder with the results.

        Raises:
            NotReproducible: the source distribution makes another wheel than the commit.
            CalledProcessError: a tool failed, and has said why.
        """
        tree, out, again = work / "tree", work / "out", work / "again"
        for folder in (tree, out, again):
            folder.mkdir(parents=True)
        archive = subprocess.run(
            ["git", "archive", "--format=tar", self.snapshot],
            cwd=self.repository,
            capture_output=True,
            check=True,
        )
        _unpack(io.BytesIO(archive.stdout), tree)
        (tree / "SOURCE").write_text(f"{self.commit}\n")
        _python(tree, "build", "--no-isolation", "--sdist", "--outdir", out)
        _python(tree, "build", "--no-isolation", "--wheel", "--outdir", out)
        (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
        with gzip.open(sdist) as unzipped:
            _unpack(unzipped, again)
        (unpacked,) = again.iterdir()
        _python(unpacked, "build", "--no-isolation", "--wheel", "--outdir", again)
        if (again / wheel.name).read_bytes() != wheel.read_bytes():
            raise NotReproducible(f"{sdist.name} makes another wheel than the commit that it is made of")
        _python(tree, "release.binary", wheel, out)
        _python(tree / "sdk/python", "build", "--no-isolation", "--outdir", out)  # the wheel from its sdist
        if self.lacks is None:
            _python(tree, "sdk.typescript_package", self.version, out, self.repository / NODE_TOOLS)
        self._describe(out)
        image_context(unpacked, out / f"deskwire-{self.version}-image-context.tar.gz")
        return out

    def _describe(self, out: Path) -> None:
        binary = (out / "deskwire").rename(out / f"deskwire-{self.version}-{sys.platform}-{_machine()}")
        told = subprocess.run([binary, "--notices"], capture_output=True, check=True).stdout
        (out / "THIRD-PARTY-NOTICES.txt").write_bytes(told)
        parts = [*libraries(self.repository), *vendored(self.repository), *executable(shared(binary))]
        text = contents(parts, self.version, self.commit, self.made, self.source)
        (out / f"deskwire-{self.version}.cdx.json").write_text(text, "utf-8")


def _unpack(archive: io.IOBase | gzip.GzipFile, folder: Path) -> None:
    with tarfile.open(fileobj=archive) as members:
        members.extractall(folder, filter="data")


def _python(folder: Path, module: str, *arguments: str | Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        done.check_returncode()


def _machine() -> str:
    return platform.machine()
