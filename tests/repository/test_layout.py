"""The shape of the repository: required files, forbidden files, and words that files must not contain."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.root import ROOT

LAYERS = ("engine", "http", "storage")

# Written so that this file does not match them.
REGISTRIES = re.compile(r"pypi[.]org|python[h]osted|registry[.]npm|npm[j]s[.](?:org|com)|deb[.]debian")
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:work|farm|root|home|Users)/")


def tracked_files() -> list[Path]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_standard_library_wins_over_the_folder_http_at_the_root() -> None:
    code = "import http.client; print(http.client.__file__)"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = Path(answer.stdout.strip())
    assert found.parts[-2:] == ("http", "client.py")
    assert not found.is_relative_to(ROOT / "http")


@pytest.mark.parametrize(
    "folder", ["http", "tests/http", "engine/deskwire", "http/deskwire", "storage/deskwire"]
)
def test_a_folder_that_must_stay_a_namespace_has_no_init_module(folder: str) -> None:
    assert not (ROOT / folder / "__init__.py").exists()


@pytest.mark.parametrize("layer", LAYERS)
def test_each_layer_is_an_ordinary_typed_package(layer: str) -> None:
    package = ROOT / layer / "deskwire" / layer
    assert (package / "__init__.py").is_file()
    assert (package / "py.typed").is_file()


def test_the_wheel_and_every_tool_know_all_three_source_roots(project: dict[str, Any]) -> None:
    tool = project["tool"]
    wheel = tool["hatch"]["build"]["targets"]["wheel"]
    assert wheel["only-include"] == [f"{layer}/deskwire" for layer in LAYERS]
    assert wheel["sources"] == tool["hatch"]["build"]["dev-mode-dirs"] == list(LAYERS)
    roots = [*LAYERS, "sdk/python/src"]
    assert tool["ruff"]["src"] == tool["pytest"]["ini_options"]["pythonpath"] == roots
    assert tool["mypy"]["files"] == [*LAYERS, "tests", "benchmarks", "release", "sdk"]


def test_the_distribution_has_its_name_licence_and_script(project: dict[str, Any]) -> None:
    facts = project["project"]
    assert (facts["name"], facts["requires-python"], facts["license"]) == ("deskwire", ">=3.11", "Apache-2.0")
    assert facts["scripts"] == {"deskwire": "deskwire.__main__:main"}
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def test_every_runtime_dependency_is_explained_in_its_decision_record(project: dict[str, Any]) -> None:
    record = (ROOT / "docs/adr/0002-dependencies.md").read_text()
    for requirement in project["project"]["dependencies"]:
        assert f"\n| {requirement.partition('>=')[0]} |" in record


def locked(name: str) -> dict[str, str]:
    """Return versions by name; every requirement in the file must be pinned and have hashes."""
    text = (ROOT / "requirements" / name).read_text()
    entries = re.findall(
        r"^([a-z0-9.-]+)==([^ ;\\]+)[^\n]*\\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE
    )
    assert len(entries) == len(re.findall(r"^[^ #\n]", text, re.MULTILINE))
    return dict(entries)


def group(project: dict[str, Any], name: str) -> set[str]:
    """Return the packages that a group names directly, without the groups that it includes."""
    named = [each for each in project["dependency-groups"][name] if isinstance(each, str)]
    return {each.partition(">=")[0].partition("[")[0] for each in named}


def test_both_locks_hold_the_same_versions_and_every_dependency(project: dict[str, Any]) -> None:
    run, dev = locked("run.txt"), locked("dev.txt")
    assert run.items() <= dev.items()
    assert {each.partition(">=")[0] for each in project["project"]["dependencies"]} <= run.keys()
    assert group(project, "dev") | group(project, "build") <= dev.keys()


def test_every_group_has_a_lock_that_agrees_with_the_developers_one(project: dict[str, Any]) -> None:
    dev = locked("dev.txt")
    for name in project["dependency-groups"].keys() - {"dev"}:
        pins = locked(f"{name}.txt")
        assert group(project, name) <= pins.keys()
        if name != "s3":  # the S3 server has its own environment, and needs older libraries
            assert {each: pins[each] for each in pins.keys() & dev.keys()}.items() <= dev.items(), name


def test_every_file_of_requirements_is_a_lock_and_so_is_audited() -> None:
    names = {path.name for path in (ROOT / "requirements").iterdir()}
    assert names
    assert all(name.endswith(".txt") and locked(name) for name in names)


def test_no_file_names_a_package_registry_or_a_path_of_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked_files()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if REGISTRIES.search(line) or MACHINE_PATHS.search(line)
    ]
    assert not found


def test_the_search_for_registries_and_paths_finds_planted_ones() -> None:
    host, folder = "hosted.org", "root"
    assert REGISTRIES.search(f"https://files.python{host}/packages")
    assert MACHINE_PATHS.search(f"see /{folder}/.pyenv")
    assert not MACHINE_PATHS.search(f"https://example.com/{folder}/page")
