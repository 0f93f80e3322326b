"""The TypeScript SDK as a user installs it, against a real service.

`make clients` installs what these tests need (Node.js comes from the system) and fails where something is missing; all other
commands leave them out.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tests.clients.generating import BINARIES, TOOLS, missing, succeed
from tests.sdk.typescript.jobs_run import Jobs, packed
from tests.support.api.service import Service, running
from tests.support.sockets.server_process import Server

_ASKED = os.environ.get("CLIENTS") == "required"
if _ASKED and missing():
    raise pytest.UsageError(f"The SDK can't be tried: {', '.join(missing())} is missing.")

collect_ignore_glob = [] if _ASKED else ["test_*.py"]

COMPILER_OPTIONS = {
    "strict": True,
    "exactOptionalPropertyTypes": True,
    "target": "es2022",
    "module": "nodenext",
    "moduleResolution": "nodenext",
    "lib": ["es2022"],  # not "dom": the types of Node have the web standards, too
    "typeRoots": [str(TOOLS / "node_modules/@types")],
    "types": ["node"],
    "rootDir": "jobs",
    "outDir": "built",
}


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as a release has it."""
    return packed(tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="session")
def installed(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the package was installed, with nothing else but the library of Standard Webhooks."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "package.json").write_text('{"type": "module"}')
    command: list[str | Path] = [
        "npm",
        "install",
        "--offline",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        package,
    ]
    succeed(command, folder)
    for name in ("standardwebhooks", "@stablelib", "fast-sha256", "ws"):
        (folder / "node_modules" / name).symlink_to(TOOLS / "node_modules" / name)
    return folder


@pytest.fixture(scope="session")
def jobs(installed: Path) -> Jobs:
    """The compiled jobs."""
    shutil.copytree(Path(__file__).with_name("jobs"), installed / "jobs")
    (installed / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": COMPILER_OPTIONS, "include": ["jobs"]})
    )
    succeed([BINARIES / "tsc", "-p", "."], installed)
    return Jobs(installed / "built")


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """A service on an empty directory, in this process."""
    directory = tmp_path / "service"
    directory.mkdir()
    async with running(directory) as started:
        yield started


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A service in a process of its own, which a test may stop."""
    server = Server(tmp_path, "--allow-private-webhooks")
    await server.start()
    yield server
    assert await server.stop() == 0


@pytest.fixture
async def api(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    """A client with the project's server key."""
    headers = {"Authorization": f"Bearer {server.demo()['serverKey']}"}
    async with httpx.AsyncClient(
        base_url=f"{server.url}/v3", headers=headers, trust_env=False, timeout=30
    ) as client:
        yield client
