"""The clients that openapi-generator makes: they compile, and those of Python and TypeScript do a small job."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import trio

from tests.clients.generating import BINARIES, HERE, PACKAGE, TOOLS, Generator, go, jar, succeed
from tests.support.api.service import Service

COMPILER_OPTIONS: Mapping[str, Any] = {
    "strict": True,
    "target": "es2022",
    "module": "nodenext",
    "moduleResolution": "nodenext",
    "skipLibCheck": True,
    "typeRoots": [str(TOOLS / "node_modules/@types")],
    "types": ["node"],
    "outDir": "built",
}
NUMBERED = [
    "conversation.created",
    "message.created",
    "message.created",
    "conversation.updated",
    "conversation.updated",
]


async def done(command: list[str], service: Service, **environment: str) -> dict[str, Any]:
    """Run a job against the service; return what it has seen."""
    with trio.fail_after(120):
        job = await trio.run_process(
            [*command, service.url, service.demo["serverKey"]],
            capture_stdout=True,
            capture_stderr=True,
            check=False,
            env={**os.environ, **environment},
        )
    assert job.returncode == 0, job.stdout.decode() + job.stderr.decode()
    seen: dict[str, Any] = json.loads(job.stdout)
    return seen


def as_expected(seen: dict[str, Any], names: list[str]) -> None:
    """Check what a job has seen, with the names that the language has for the types of events."""
    assert seen.pop("conversation").startswith("cnv_")
    events = seen.pop("events")
    assert [each[0] for each in events if each[1] is not None] == names
    assert [each[1] for each in events if each[1] is not None] == [1, 2, 3, 4, 5]
    assert seen == {
        "title": "Order A-1001",
        "attributes": {"order": "A-1001"},
        "messages": ["Where is my order?", "On its way."],
        "authors": ["contact", "agent"],
        "problem": [422, "invalid_input", ["/rating"]],
        "secret": "whsec_",
        "rating": 9,
    }


async def test_the_python_client_does_a_small_job(generator: Generator, service: Service) -> None:
    client = generator.client("python")
    succeed([sys.executable, "-m", "compileall", "-q", PACKAGE], client)
    seen = await done([sys.executable, str(HERE / "jobs/job.py")], service, PYTHONPATH=str(client))
    as_expected(seen, ["".join(word.title() for word in kind.split(".")) + "Event" for kind in NUMBERED])


def test_every_module_of_the_python_client_can_be_imported(generator: Generator) -> None:
    script = (
        f"import importlib, pkgutil, {PACKAGE} as package\n"
        f"for each in pkgutil.walk_packages(package.__path__, '{PACKAGE}.'): importlib.import_module(each.name)"
    )
    succeed([sys.executable, "-c", script], generator.client("python"))


async def test_the_typescript_client_compiles_and_does_a_small_job(
    generator: Generator, service: Service, tmp_path: Path
) -> None:
    shutil.copytree(generator.client("typescript-fetch"), tmp_path / "client")
    shutil.copy(HERE / "jobs/job.ts", tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": COMPILER_OPTIONS, "files": ["job.ts"]})
    )
    succeed([BINARIES / "tsc", "-p", "."], tmp_path)
    as_expected(await done(["node", str(tmp_path / "built/job.js")], service), NUMBERED)


def test_the_go_client_compiles(generator: Generator) -> None:
    client = generator.client("go")
    stub = f"gopkg.in/validator.v2={HERE / 'stubs/go'}"
    # Nothing is fetched: the one module that the client needs is replaced.
    settings = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOSUMDB": "off"}
    environment = {**settings, "GOCACHE": str(generator.directory / "go-cache")}
    succeed([go(), "mod", "edit", "-replace", stub], client, environment)
    succeed(
        [go(), "build", "-gcflags=all=-N -l", "./..."], client, environment
    )  # type checks count, not speed


def test_the_java_client_compiles(generator: Generator, tmp_path: Path) -> None:
    client = generator.client("java")
    sources = [*(client / "src/main/java").rglob("*.java"), *(HERE / "stubs/java").rglob("*.java")]
    (tmp_path / "sources").write_text("\n".join(map(str, sources)))
    # The generator's own jar has the libraries for JSON that the client needs, too.
    options: list[str | Path] = ["-nowarn", "-proc:none", "-Xmaxerrs", "1000"]
    libraries: list[str | Path] = ["-cp", jar(), "-d", tmp_path / "classes"]
    succeed(["javac", *options, *libraries, f"@{tmp_path / 'sources'}"], tmp_path)
