"""The metadata of a build: its commit, in wheel and sdist, and a long description with links that work on other sites."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Final

import pytest
from packaging.version import Version
from release.hooks import absolute, base_version, commit, versioned

from deskwire.engine.core import build
from tests.support.root import ROOT

SHA: Final = "0123456789abcdef0123456789abcdef01234567"
OFFLINE: Final = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "1"}


def run(*command: str | Path, cwd: Path, **environ: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environ}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    return run("git", *who, *arguments, cwd=folder)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of this tree and the wheel that is made of it, both without a network."""
    out = tmp_path_factory.mktemp("built")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out, **OFFLINE)
    return out


def test_the_commit_is_the_one_that_the_sources_name(tmp_path: Path) -> None:
    (tmp_path / "SOURCE").write_text(f"{SHA}-dirty\n")
    assert commit(tmp_path) == f"{SHA}-dirty"


def test_the_commit_of_a_checkout_says_when_something_is_not_committed(tmp_path: Path) -> None:
    (tmp_path / "SOURCE").write_text("$Format:%H$\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "SOURCE")
    git(tmp_path, "commit", "-qm", "first")
    git(tmp_path, "tag", "-a", "v1", "-m", "a tag is not a commit")
    made = git(tmp_path, "rev-parse", "HEAD")
    assert commit(tmp_path) == made
    (tmp_path / "SOURCE").write_text("$Format:%H$\n\n")
    assert commit(tmp_path) == f"{made}-dirty"


def test_the_commit_of_an_image_without_the_history_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_COMMIT", SHA)
    assert commit(tmp_path) == SHA
    monkeypatch.setenv("SOURCE_COMMIT", "main")
    assert commit(tmp_path) == "unknown"


def test_links_and_pictures_become_absolute_and_nothing_else_does() -> None:
    text = "[a](a/b.md#b) ![c](d.png) [e](https://x.example/) [f](#g) `[h](i)`[j](mailto:k@l.example)"
    assert absolute(text, "https://r.example", "v1.2") == (
        "[a](https://r.example/blob/v1.2/a/b.md#b) ![c](https://r.example/raw/v1.2/d.png) "
        "[e](https://x.example/) [f](#g) `[h](https://r.example/blob/v1.2/i)`[j](mailto:k@l.example)"
    )


def test_all_links_of_the_long_description_lead_to_files_of_the_repository(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        described = archive.read(name).decode()
    source = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
    targets = re.findall(r"\]\(([^)]+)\)", described)
    assert targets
    at = re.search(r"/(?:v[\d.]+|[0-9a-f]{40}|HEAD)/", targets[0])
    assert at is not None
    for target in targets:
        place, _, path = target.partition(at[0])
        assert place in (f"{source}/blob", f"{source}/raw"), target
        assert (ROOT / path.partition("#")[0]).exists(), target


def test_all_addresses_of_the_project_are_of_one_repository() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
    assert all(url.startswith(urls["Source"]) for url in urls.values())


def test_the_sdist_makes_the_same_wheel_as_the_tree_and_both_tell_the_same_commit(
    built: Path, tmp_path: Path
) -> None:
    (wheel,) = built.glob("*.whl")
    (sdist,) = built.glob("*.tar.gz")
    run(
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        tmp_path,
        ROOT,
        cwd=tmp_path,
        **OFFLINE,
    )
    assert (tmp_path / wheel.name).read_bytes() == wheel.read_bytes()
    with zipfile.ZipFile(wheel) as archive, tarfile.open(sdist) as sources:
        told = archive.read("deskwire/program/commit")
        source = sources.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/SOURCE")
        assert source is not None
        assert source.read() == told
    assert told.decode() == f"{commit(ROOT)}\n"


@pytest.mark.parametrize(
    ("base", "named", "made"),
    [
        ("0.2.0.dev0", SHA, "0.2.0.dev0+g0123456789ab"),
        ("0.2.0.dev0", f"{SHA}-dirty", "0.2.0.dev0+g0123456789ab.dirty"),
        ("0.2.0.dev0", "unknown", "0.2.0.dev0"),
        ("0.2.0", SHA, "0.2.0"),
    ],
)
def test_development_version_has_its_commit_and_a_release_has_none(base: str, named: str, made: str) -> None:
    """Builds and checkouts have the same rule in two places."""
    assert versioned(base, named) == build.versioned(base, named) == made
    assert str(Version(made)) == made


def test_versions_are_in_the_order_of_pep_440() -> None:
    order = ["0.1.0", "0.2.0.dev0", versioned("0.2.0.dev0", SHA), "0.2.0rc1", "0.2.0", "0.3.0.dev0"]
    assert sorted(order, key=Version) == order


def test_wheel_and_sdist_have_the_version_of_this_checkout(built: Path) -> None:
    """The suffix `.dirty` apart: a running checkout does not compare its files."""
    (wheel,) = built.glob("*.whl")
    (sdist,) = built.glob("*.tar.gz")
    made = versioned(base_version((ROOT / "pyproject.toml").read_text()), commit(ROOT))
    assert wheel.name == f"deskwire-{made}-py3-none-any.whl"
    assert sdist.name == f"deskwire-{made}.tar.gz"
    assert made.removesuffix(".dirty") == build.version()


def test_sources_without_history_build_the_version_alone(tmp_path: Path) -> None:
    """As in an archive that a site makes without git."""
    bare = tmp_path / "bare"
    for name in ("pyproject.toml", "README.md", "LICENSE", "release/hooks.py"):
        (bare / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, bare / name)
    (bare / "engine/deskwire").mkdir(parents=True)
    (bare / "engine/deskwire/__main__.py").write_text("")
    (bare / "SOURCE").write_text("$Format:%H$\n")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, bare]
    run(*map(str, command), cwd=tmp_path, SOURCE_COMMIT="", **OFFLINE)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"deskwire-{base_version((ROOT / 'pyproject.toml').read_text())}-py3-none-any.whl"


def test_editable_installation_keeps_no_commit_in_its_metadata(tmp_path: Path) -> None:
    """The checkout moves on: `deskwire --version` reads its commit at run time."""
    code = "import sys; from hatchling.build import build_editable; print(build_editable(sys.argv[1]))"
    made = run(sys.executable, "-c", code, tmp_path, cwd=ROOT).splitlines()[-1]
    assert made == f"deskwire-{base_version((ROOT / 'pyproject.toml').read_text())}-py3-none-any.whl"


def test_the_changelog_has_entries_of_a_development_version_only() -> None:
    """From the first change after a release on, the version is the next one's."""
    version = base_version((ROOT / "pyproject.toml").read_text())
    unreleased, newest = re.findall(
        r"^## \[([^]]+)\].*\n((?:(?!## \[).*\n)*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )[:2]
    assert (unreleased[0], ".dev" in version) == ("Unreleased", bool(unreleased[1].strip()))
    assert Version(version) >= Version(newest[0])
    assert ".dev" in version or newest[0] == version


def test_the_sdist_has_tests_documents_and_the_locks(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as sources:
        names = {name.partition("/")[2] for name in sources.getnames()}
    assert {
        "requirements/build.txt",
        "release/hooks.py",
        "tests/conftest.py",
        "docs/index.md",
        "Makefile",
    } <= names


@pytest.mark.thorough
def test_code_that_imports_an_installed_wheel_is_checked_with_its_types(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    (tmp_path / "importer.py").write_text(
        "from deskwire.config.config import Config\n"
        "from deskwire.engine.core.errors import DomainError\n"
        "from deskwire.http.api.routing import Routes\n"
        "from deskwire.engine.core.build import commit\n"
        "reveal_type(commit())\n"
        "reveal_type(Config.load({}, {}).port)\n"
        "reveal_type(Routes)\n"
        "commit(1)\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--config-file=",
            "--cache-dir",
            tmp_path / "cache",
            "importer.py",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if line.startswith("importer.py")]
    assert [line.partition(": ")[2] for line in said][:2] == [
        'note: Revealed type is "str"',
        'note: Revealed type is "int"',
    ]
    assert [line for line in said if "error" in line] == [
        'importer.py:8: error: Argument 1 to "commit" has incompatible type "int"; expected "Path"  [arg-type]'
    ]
