"""`make release`: builds the files of a release in dist/release from the last commit; docs/releasing.md has every step.

It is built twice, in folders of different names, and the results must be the same bytes.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from release.build import NotReproducible, Release
from release.digests import SUMS, differences, sums
from release.hooks import base_version, versioned
from release.parts import ROOT, UnknownLicence
from release.sbom import objections

NEXT: Final = """
Each file's digest is in {sums}: `sha256sum -c {sums}` in that folder compares them.
docs/releasing.md says what comes next: compare with a second machine, sign, upload, announce.
"""


def main(arguments: Sequence[str]) -> int:
    """Build, check and list; the exit status is 0 if everything may be released."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "dist/release", help="where to; what is there is replaced"
    )
    parser.add_argument("--once", action="store_true", help="don't build a second time to compare")
    parser.add_argument(
        "--uncommitted", action="store_true", help="build what is changed in tracked files, too"
    )
    given = parser.parse_args(arguments)
    changed = _changed()
    wrong = list(_unready([] if given.uncommitted else changed))
    if wrong:
        return _refused(wrong)
    release = _release(bool(changed))
    with tempfile.TemporaryDirectory(prefix="deskwire-release-") as work:
        try:
            out = release.build(Path(work) / "first")
            if not given.once:
                wrong += differences(out, release.build(Path(work) / "the second one, elsewhere"))
        except (NotReproducible, UnknownLicence) as error:
            wrong.append(str(error))
        except subprocess.CalledProcessError as error:
            wrong.append(f"{' '.join(map(str, error.cmd))} failed")
        if wrong or (wrong := list(_objections(out))):
            return _refused(wrong)
        (out / SUMS).write_text(sums(out))
        shutil.rmtree(given.folder, ignore_errors=True)
        shutil.copytree(out, given.folder)
    _tell(release, given.folder, given.once)
    return 0


def _refused(wrong: Sequence[str]) -> int:
    print("\n".join(["There is no release:", *(f"- {each}" for each in wrong)]), file=sys.stderr)
    return 1


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.rstrip()


def _changed() -> list[str]:
    """Return the names of tracked files with uncommitted changes."""
    return [line[3:] for line in _git("status", "--porcelain", "--untracked-files=no").splitlines()]


def _release(changed: bool) -> Release:
    commit, made = _git("log", "-1", "--format=%H %cI").split()
    snapshot = _git("stash", "create") if changed else commit  # makes a commit, and touches nothing
    text = _git("show", f"{snapshot}:pyproject.toml")
    named = f"{commit}-dirty" if changed else commit
    return Release(
        ROOT,
        snapshot,
        named,
        versioned(base_version(text), named),
        datetime.fromisoformat(made),
        tomllib.loads(text)["project"]["urls"]["Source"],
    )


def _unready(changed: Sequence[str]) -> Iterator[str]:
    """Print the steps that are necessary before the build."""
    if changed:
        yield f"these are changed, and not committed: {', '.join(changed)}"
    version = base_version((ROOT / "pyproject.toml").read_text())
    if ".dev" in version:
        return
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$"
    if not re.search(heading, (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE):
        yield f"CHANGELOG.md has no heading `## [{version}] - <date>`"


def _objections(out: Path) -> Iterator[str]:
    packages = [
        str(path)
        for path in sorted(out.glob("deskwire[-_]*"))
        if path.name.endswith((".whl", ".tar.gz")) and "image" not in path.name
    ]
    checked = subprocess.run(
        [sys.executable, "-m", "twine", "check", "--strict", *packages],
        capture_output=True,
        text=True,
        check=False,
    )
    if checked.returncode:
        yield checked.stdout + checked.stderr
    (listed,) = out.glob("*.cdx.json")
    if found := objections(listed.read_text("utf-8")):
        yield f"{listed.name} is no CycloneDX: {found}"


def _tell(release: Release, folder: Path, once: bool) -> None:
    print(f"Deskwire {release.version}, commit {release.commit}, {_standing(release)}, in {folder}:")
    for path in sorted(folder.iterdir()):
        print(f"  {path.stat().st_size / 1e6:7.2f} MB  {path.name}")
    if release.lacks is not None:
        print(f"The npm package deskwire-sdk was not made: {release.lacks}.")
    print("Built once, compared with nothing." if once else "Built twice, from two folders: the same bytes.")
    print(NEXT.format(sums=SUMS).rstrip())


def _standing(release: Release) -> str:
    """Return the words that say whether these files may be published."""
    if ".dev" in release.version:
        return "a development version that is not published"
    tag = f"v{release.version}"
    tagged = tag in _git("tag", "--points-at", release.commit.removesuffix("-dirty")).split()
    return f"{'' if tagged else 'not yet '}tagged {tag}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
