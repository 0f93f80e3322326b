"""The calls of the TypeScript SDK against a real service."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from sdk.generate.description import Operation, described
from sdk.generate.typescript import EVENT_UNION

from tests.clients.generating import BINARIES, succeed
from tests.sdk.typescript.jobs_run import Jobs, credentials, deno, listed, packed
from tests.support.api.service import Service


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)


def _expected(operation: Operation) -> dict[str, object]:
    name = ".".join(map(_camel, (*operation.resource, operation.name)))
    return {
        "name": name,
        "segments": len(operation.path_parameters),
        "body": operation.body.kind if operation.body else None,
    }


async def test_each_operation_has_a_method_that_calls_it(jobs: Jobs, tmp_path: Path) -> None:
    operations = described().operations
    (tmp_path / "operations.json").write_text(json.dumps([_expected(each) for each in operations]))
    (requests,) = await jobs.run("operations", {}, str(tmp_path / "operations.json"))
    wanted = []
    for each in operations:
        path = each.path
        for number, parameter in enumerate(each.path_parameters, 1):
            path = path.replace(f"{{{parameter.name}}}", str(number))
        wanted.append(f"{each.method} {path}")
    assert requests == wanted


@pytest.mark.parametrize("program", ["node", "deno"])
async def test_the_common_calls_do_what_their_names_say(jobs: Jobs, service: Service, program: str) -> None:
    jobs = jobs if program == "node" else Jobs(jobs.folder, deno())
    (seen,) = await jobs.run("calls", credentials(service))
    assert seen["problems"] == [
        ["ValidationError", "invalid_input", "/rating", "req_"],
        ["NotFoundError", "conversation_not_found", 404],
        ["UnauthenticatedError", "invalid_server_key", 401],
        ["ArgumentError", 'userId must not be "..".'],
        ["ArgumentError", 'userId must not be "".'],
        [
            "ArgumentError",
            'baseUrl must be an address such as https://support.example.com, not "support.example.com".',
        ],
        [
            "ArgumentError",
            "baseUrl must be an address such as https://support.example.com: give it, or set DESKWIRE_URL.",
        ],
        ["ArgumentError", "project.get needs a credential: give `apiKey`, or set DESKWIRE_API_KEY."],
        ["ArgumentError", "The credential has a character that no credential has."],
        seen["problems"][9],
        ["ValidationError", "idempotency_mismatch", None, "req_"],
    ]
    assert seen["problems"][9][0] == "PreconditionFailedError"
    del seen["problems"]
    texts = ["Where is it?", "On its way.", "0", "1", "2", "3", "4"]
    assert seen == {
        "requested": [True, "object"],
        "texts": texts,
        "pages": [3, 3, 1],
        "second": texts[3:6],
        "asOf": "evt_",
        "listed": 1,
        "contact": "team/7 ä",
        "states": ["OPEN", "CLOSED", "OPEN"],
        "priority": "HIGH",
        "note": True,
        "permissions": True,
        "sizes": [5, 3],
        "downloaded": "label",
        "lines": 8,
        "later": ["later"],
        "imports": [1, 1, "u9"],
        "csv": True,
        "same": [True, "true"],
        "deleted": True,
        "conflict": "ConflictError",
    }


async def test_unknown_fields_values_and_events_are_read(jobs: Jobs, service: Service) -> None:
    (seen,) = await jobs.run("unknown", credentials(service))
    assert seen == {
        "shown": ["SNOOZED", "high"],
        "types": ["conversation.created", "message.created", "conversation.snoozed"],
        "mirrored": [["SNOOZED", "high"]],
    }


def test_the_package_has_its_documents_and_no_sources(package: Path) -> None:
    names = listed(package)
    assert {"package/README.md", "package/LICENSE", "package/package.json"} <= {*names}
    assert all(name.endswith((".js", ".d.ts")) for name in names if name.startswith("package/dist/"))
    assert not [name for name in names if name.startswith("package/src/")]


def test_two_builds_are_the_same_bytes(package: Path, tmp_path: Path) -> None:
    again = packed(tmp_path)
    assert again.name == package.name
    assert again.read_bytes() == package.read_bytes()


async def test_types_can_be_used_without_those_of_node(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "node_modules").symlink_to(installed / "node_modules")
    (tmp_path / "page.ts").write_text(
        f'import {{ Deskwire, EventStream, type {EVENT_UNION} }} from "deskwire-sdk";\n'
        "export const shown = (event: DeskwireEvent): string => event.type === 'message.created' ? event.data.message.text : event.id;\n"
        "export const stream = (client: Deskwire): EventStream => new EventStream({ client });\n"
    )
    options = {"strict": True, "target": "es2022", "module": "esnext", "moduleResolution": "bundler"}
    (tmp_path / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": {**options, "types": [], "noEmit": True}, "files": ["page.ts"]})
    )
    succeed([BINARIES / "tsc", "-p", "."], tmp_path)
