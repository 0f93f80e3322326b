"""The service against its own description: Schemathesis generates valid and invalid requests, and follows links."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
import trio

from tests.support.api.service import Service

pytestmark = pytest.mark.long

REASONS: Final = """\
# Rules beyond a schema: an id in a body that names nothing here, a cursor that no list has given, a text of a certain
# form. They are refused as such (decisions 1), so what fits the schema may be answered with these, too; with 429 after many
# sign-ins with made-up passwords; and with a redirect.
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 302, 303, 304, 400, 401, 403, 404, 409, 410, 412, 416, 422, 429]

# The long poll: it waits for events that do not come.
[[operations]]
include-operation-id = "listEvents"
parameters = { "query.wait" = 0 }

# The links are those of the description; more that are guessed by names would lead nowhere most of the time.
[phases.stateful.inference]
algorithms = []

# Its body is NDJSON, which Schemathesis can't write.
[[operations]]
include-operation-id = "importHistory"
enabled = false

# It would end the credential that all other calls are made with.
[[operations]]
include-operation-id = "deleteMe"
enabled = false

# No language model is configured here, which is a 503 by decisions 7.
[[operations]]
include-operation-id = "makeVoiceReply"
[operations.checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 503]
"""
BUDGET_S: Final = 900.0
"""Far more than the run takes, for a busy machine."""


def configuration(service: Service) -> str:
    """Return Schemathesis' settings: credentials, and the exceptions with their reasons."""
    demo = {name: json.dumps(service.demo[name]) for name in ("serverKey", "token", "projectId")}
    return f"""\
[auth.openapi.serverKey]
bearer = {demo["serverKey"]}
[auth.openapi.accessToken]
bearer = {demo["token"]}
[parameters]
"header.project" = {demo["projectId"]}
{REASONS}"""


async def schemathesis(service: Service, directory: Path, *options: str) -> tuple[int, str]:
    """Run Schemathesis on the service; return its exit status and output. Every run generates the same cases."""
    (directory / "schemathesis.toml").write_text(configuration(service))
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml", "run"]
    command += [f"{service.url}/v3/openapi.json", "--generation-deterministic", "--no-color", *options]
    with trio.fail_after(BUDGET_S):
        done = await trio.run_process(
            command, cwd=directory, capture_stdout=True, stderr=subprocess.STDOUT, check=False
        )
    return done.returncode, done.stdout.decode(errors="replace")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(("--phases", "examples"), id="examples"),
        pytest.param(("--phases", "coverage"), id="coverage"),
        pytest.param(("--phases", "fuzzing", "--max-examples", "2"), id="fuzzing"),
        pytest.param(("--phases", "stateful", "--max-examples", "40"), id="stateful"),
    ],
)
async def test_generated_requests_are_answered_as_described(
    service: Service, tmp_path: Path, options: tuple[str, ...]
) -> None:
    status, said = await schemathesis(service, tmp_path, *options)
    assert status == 0, said
