"""The generated clients call every operation, and read what a later release may add to each answer and event."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
import trio

from deskwire.http.app import ROUTES
from tests.clients.comparison import differences
from tests.clients.generating import HERE, Generator, succeed
from tests.clients.later_release import with_additions
from tests.clients.replay import TOKEN, Replay, serving
from tests.clients.tour.record import WITHOUT_JSON, recorded
from tests.clients.tour.recorder import Exchange
from tests.support.api.openapi_check import described

Release = Literal["this", "later"]
Exchanges = list[Exchange]


@pytest.fixture(scope="session")
def tour(tmp_path_factory: pytest.TempPathFactory) -> Exchanges:
    """All exchanges of the tour, recorded once."""
    return trio.run(recorded, tmp_path_factory.mktemp("tour"))


@pytest.fixture(params=["this", "later"])
def release(request: pytest.FixtureRequest) -> Release:
    """The release whose answers and events the clients get."""
    found: Release = request.param
    return found


def test_the_tour_has_every_operation_with_json(tour: Exchanges) -> None:
    called = {each.operation for each in tour}
    assert called.isdisjoint(WITHOUT_JSON)
    missing = {each.operation_id for each in ROUTES} - called - WITHOUT_JSON.keys()
    assert missing == set(), "call them in a part of tests/clients/tour"
    assert called | WITHOUT_JSON.keys() <= {each.operation_id for each in ROUTES}


def test_no_two_exchanges_have_the_same_request(tour: Exchanges) -> None:
    """Two would get the first one's response."""
    requests = [
        json.dumps([each.method, each.path, each.as_json()["parameters"], each.body]) for each in tour
    ]
    assert len(set(requests)) == len(requests)


def test_python_client_calls_every_operation(
    generator: Generator, tour: Exchanges, release: Release, tmp_path: Path
) -> None:
    environment = {"PYTHONPATH": str(generator.client("python"))}
    command: list[str | Path] = [sys.executable, HERE / "jobs/every_operation.py"]
    check(tour, release, tmp_path, lambda given: succeed([*command, *given], tmp_path, environment))


def test_typescript_client_calls_every_operation(
    generator: Generator, tour: Exchanges, release: Release, tmp_path: Path
) -> None:
    command: list[str | Path] = [
        "node",
        HERE / "jobs/every_operation.mjs",
        generator.typescript() / "client/index.js",
    ]
    check(tour, release, tmp_path, lambda given: succeed([*command, *given], tmp_path))


def test_go_client_calls_every_operation(
    generator: Generator, tour: Exchanges, release: Release, tmp_path: Path
) -> None:
    program = generator.go_program(each["model"] for each in events("this"))
    check(tour, release, tmp_path, lambda given: succeed([program, *given], tmp_path))


def test_java_client_calls_every_operation(
    generator: Generator, tour: Exchanges, release: Release, tmp_path: Path
) -> None:
    command: list[str | Path] = [
        "java",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        generator.java_classes(),
        "EveryOperation",
    ]
    check(tour, release, tmp_path, lambda given: succeed([*command, *given], tmp_path))


def check(tour: Exchanges, release: Release, directory: Path, run: Callable[[list[str | Path]], str]) -> None:
    """Run a client's program against the recorded answers; fail with each operation that goes wrong, and why.

    Args:
        run: runs the program with the arguments URL, TOKEN and CASSETTE, and returns its output.
    """
    described_events = events(release)
    answers = {each.name: answer(each, release) for each in tour}
    cassette = directory / "cassette.json"
    cassette.write_text(
        json.dumps({"exchanges": [each.as_json() for each in tour], "events": described_events})
    )
    replay = Replay(tour, answers)
    with serving(replay) as url:
        found = json.loads(run([url, TOKEN, cassette]))
    expected = {**answers, **{each["name"]: each["body"] for each in described_events}}
    wrong = {name: outcome_errors(found.get(name), value) for name, value in expected.items()}
    wrong = {name: errors for name, errors in wrong.items() if errors}
    for name, errors in replay.mismatches.items():
        wrong.setdefault(name, []).extend(errors)
    not_called = [each.name for each in tour if each.name not in replay.received and each.name not in wrong]
    assert (wrong, not_called) == ({}, []), "\n".join(f"{name}: {errors}" for name, errors in wrong.items())


def answer(exchange: Exchange, release: Release) -> Any:
    """Return the response of this or a later release to an exchange."""
    if release == "this" or exchange.response is None:
        return exchange.response
    operation = described()["paths"][exchange.template][exchange.method.lower()]
    schema = operation["responses"][str(exchange.status)]["content"]["application/json"]["schema"]
    return with_additions(exchange.response, schema, described()["components"]["schemas"])


def events(release: Release) -> list[dict[str, Any]]:
    """Return the examples of all events that webhooks get, with the names of their models."""
    found = []
    for kind, path in described()["webhooks"].items():
        content = path["post"]["requestBody"]["content"]["application/json"]
        body, schema = content["example"], content["schema"]
        if release == "later":
            body = with_additions(body, schema, described()["components"]["schemas"])
        found.append({"name": kind, "model": schema["$ref"].rpartition("/")[2], "body": body})
    return found


def outcome_errors(outcome: Mapping[str, Any] | None, expected: Any) -> list[str]:
    """Return what is wrong with the outcome of a call, or of reading an event."""
    if outcome is None:
        return ["the client's program has left it out"]
    if "error" in outcome:
        return [outcome["error"]]
    return [*differences(expected, outcome["answer"], nulls=False)]
