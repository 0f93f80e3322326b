"""The image as described by its files: its contents, its command, and its health check."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import httpx
import trio
from click.testing import CliRunner

from deskwire.cli import cli
from deskwire.config.config import Config
from tests.deploy.dockerfile import DOCKERFILE, defaults, sent, stages
from tests.deploy.engine import seen_by_an_engine
from tests.deploy.tools import needs, program
from tests.support.api.service import running
from tests.support.root import ROOT
from tests.support.sockets.certificates import Files

(BEFORE, FIRST, LAST) = stages()
HEALTH: Final = ROOT / "docs/deploy/healthcheck.py"
LOCKS: Final = {"build.txt", "run.txt", "extra-postgres.txt", "extra-s3.txt"}
PLANTED: Final = (
    ".git/config",
    ".venv/bin/python",
    "data/secret",
    "data/deskwire.sqlite3",
    "engine/deskwire/__pycache__/__main__.cpython-313.pyc",
    "deskwire.env",
    "docs/deploy/deskwire.env",
    "requirements/dev.txt",
    "support.tar",
    "tests/conftest.py",
)
"""Files that may be in a checkout but do not belong in a build."""


def test_image_runs_the_program_as_an_unprivileged_user() -> None:
    assert all(int(number) > 0 for number in LAST.only("USER").split(":"))
    config = Config.load(LAST.environment({}), {})
    assert LAST.only("VOLUME") == str(config.data_dir)
    assert LAST.only("EXPOSE") == str(config.port)
    assert LAST.command("ENTRYPOINT") == ["deskwire"]
    command = LAST.command("CMD")
    done = CliRunner().invoke(cli, [*command, "--help"])
    assert done.exit_code == 0, done.output
    assert all(f" {each} " in done.output for each in command if each.startswith("--"))


def test_image_has_labels_from_the_build_arguments() -> None:
    labels = dict(pair.split("=", 1) for pair in shlex.split(LAST.only("LABEL")))
    told = {name: value for name, value in labels.items() if "$" in value}
    assert told == {
        "org.opencontainers.image.version": "${VERSION}",
        "org.opencontainers.image.revision": "${COMMIT}",
    }
    assert defaults(LAST) == {"VERSION": "unknown", "COMMIT": "unknown"}
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert labels["org.opencontainers.image.licenses"] == project["license"]


def test_the_image_is_built_with_locked_libraries_and_no_tool_of_developers() -> None:
    named = {each for rest in FIRST.every("COPY") for each in re.findall(r"requirements/([\w-]+\.txt)", rest)}
    assert named == LOCKS
    installs = [part for rest in FIRST.every("RUN") for part in re.split("&&|;", rest) if "pip" in part]
    installs = [part for part in installs if " install " in part]
    assert len(installs) == 4
    assert all("--require-hashes" in part or "--no-deps" in part for part in installs)
    assert not [*FIRST.every("ADD"), *LAST.every("ADD")]
    assert re.fullmatch(r"python:3\.\d+-slim-\w+", defaults(BEFORE)["BASE"])


def test_image_has_the_sources_of_the_wheel() -> None:
    copied = {source for rest in FIRST.every("COPY") for source in shlex.split(rest)[:-1]}
    for source in copied:
        files = [path for path in (ROOT / source, *(ROOT / source).rglob("*.py")) if path.is_file()]
        assert sent([path.relative_to(ROOT) for path in files]), f"{source}: .dockerignore leaves it out"
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    only = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert {each.split("/")[0] for each in only} | {
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "SOURCE",
        "release/hooks.py",
    } <= copied
    assert project["project"]["optional-dependencies"].keys() == set(defaults(FIRST)["EXTRAS"].split())


def test_locks_of_extras_add_only_their_own_libraries() -> None:
    def pins(name: str) -> set[str]:
        text = (ROOT / "requirements" / name).read_text()
        return set(re.findall(r"^[\w.-]+==[^\s;]+", text, re.MULTILINE))

    def added(name: str) -> set[str]:
        assert pins("run.txt") < pins(name)
        return {pin.partition("==")[0] for pin in pins(name) - pins("run.txt")}

    assert added("extra-postgres.txt") == {"psycopg", "psycopg-binary"}
    assert added("extra-s3.txt") == {"obstore"}


def test_build_context_has_no_secrets_or_unneeded_files() -> None:
    assert sent(Path(each) for each in PLANTED) == []
    assert sent([Path("LICENSE"), Path("engine/deskwire/__main__.py")]) != []


@needs("docker")
def test_docker_sends_only_the_files_that_the_build_needs(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    kept = ["LICENSE", "pyproject.toml", "requirements/run.txt", "requirements/extra-s3.txt"]
    kept += ["engine/deskwire/__main__.py", "docs/deploy/healthcheck.py", "docs/deploy/deskwire-backup"]
    for name in (*PLANTED, *kept):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).touch()
    (checkout / ".dockerignore").write_bytes((ROOT / ".dockerignore").read_bytes())
    (checkout / "docs/deploy/Dockerfile").write_bytes(DOCKERFILE.read_bytes())
    environ = {**os.environ, "DOCKER_BUILDKIT": "0", "DOCKER_CONFIG": str(tmp_path)}
    docker = program("docker")
    assert docker is not None
    with seen_by_an_engine(tmp_path) as (url, names):
        command = [docker, "--host", url, "build", "-f", "docs/deploy/Dockerfile", "."]
        subprocess.run(command, cwd=checkout, env=environ, check=True, capture_output=True)
    assert set(names) - {".dockerignore", "docs/deploy/Dockerfile"} == set(kept)


@needs("hadolint")
def test_hadolint_reports_nothing() -> None:
    hadolint = program("hadolint")
    assert hadolint is not None
    done = subprocess.run([hadolint, str(DOCKERFILE)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


async def asked(port: int, **environ: str) -> tuple[int, str]:
    """Return the exit status and the output of the health check."""
    given = {"DESKWIRE_PORT": str(port), "http_proxy": "http://127.0.0.1:9", **environ}
    done = await trio.run_process(
        [sys.executable, "-I", str(HEALTH)], env=given, capture_stderr=True, check=False
    )
    return done.returncode, done.stderr.decode()


async def test_health_check_checks_readiness_with_and_without_tls(
    tmp_path: Path,
) -> None:
    plain, secure = tmp_path / "plain", tmp_path / "secure"
    plain.mkdir()
    secure.mkdir()
    files = Files(tmp_path)
    files.write("support.example.com")  # a name by which the check does not ask
    async with running(plain) as one, running(secure, **files.settings) as two:
        ports = [httpx.URL(each.url).port or 0 for each in (one, two)]
        assert await asked(ports[0]) == (0, "")
        assert await asked(ports[1], DESKWIRE_TLS_CERT=str(files.chain)) == (0, "")
        assert (await asked(ports[1]))[0] == 1
    status, words = await asked(ports[0])
    assert (status, words[:10]) == (1, "no answer:")


async def test_the_health_check_repeats_why_a_service_is_not_ready() -> None:
    async def refuse(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some(4096)
            await stream.send_all(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 7\r\n\r\nstopped")

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, refuse, [listener])
        assert await asked(listener.socket.getsockname()[1]) == (1, "503 stopped\n")
        nursery.cancel_scope.cancel()
