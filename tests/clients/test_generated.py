"""A small job with the clients that openapi-generator makes for Python and TypeScript."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import trio

from tests.clients.generating import HERE, OPTIONS, PACKAGE, Generator, succeed
from tests.support.api.service import Service
from tests.support.root import ROOT

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


def as_expected(seen: dict[str, Any]) -> None:
    """Check what a job has seen."""
    assert seen.pop("conversation").startswith("cnv_")
    events = seen.pop("events")
    assert [each[0] for each in events if each[1] is not None] == NUMBERED
    assert [each[1] for each in events if each[1] is not None] == [1, 2, 3, 4, 5]
    assert seen == {
        "title": "Order A-1001",
        "attributes": {"order": "A-1001"},
        "eventTexts": ["Where is my order?", "On its way."],
        "messages": ["Where is my order?", "On its way."],
        "authors": ["contact", "agent"],
        "problem": [422, "invalid_input", ["/rating"]],
        "secret": "whsec_",
        "rating": 9,
    }


def test_the_guide_has_the_options_of_the_generators() -> None:
    guide = (ROOT / "docs/guide/clients.md").read_text()
    for language, options in OPTIONS.items():
        assert (
            f"openapi-generator-cli generate -i openapi.json -o client -g {' '.join((language, *options))}\n"
            in guide
        )


async def test_the_python_client_does_a_small_job(generator: Generator, service: Service) -> None:
    client = generator.client("python")
    succeed([sys.executable, "-m", "compileall", "-q", PACKAGE], client)
    seen = await done([sys.executable, str(HERE / "jobs/job.py")], service, PYTHONPATH=str(client))
    as_expected(seen)


def test_every_module_of_the_python_client_can_be_imported(generator: Generator) -> None:
    script = (
        f"import importlib, pkgutil, {PACKAGE} as package\n"
        f"for each in pkgutil.walk_packages(package.__path__, '{PACKAGE}.'): importlib.import_module(each.name)"
    )
    succeed([sys.executable, "-c", script], generator.client("python"))


async def test_the_typescript_client_compiles_and_does_a_small_job(
    generator: Generator, service: Service
) -> None:
    as_expected(await done(["node", str(generator.typescript() / "job.js")], service))
