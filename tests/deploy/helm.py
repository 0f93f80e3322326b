"""Helm's lint, template and package for the chart, by the library that Helm itself is built from.

Each call runs in a process of its own, because the library brings the runtime of Go, its threads and its signal handlers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.chart import CHART
from tests.support.root import ROOT

_PROGRAM = """
import json, sys
import helm_python as helm

def answer(asked):
    path, values = asked["chart"], asked["values"]
    if asked["call"] == "lint":
        return helm.lint(path, values, strict=True)
    if asked["call"] == "package":
        return helm.package(path, destination=asked["destination"])
    with helm.Chart.load(path) as chart:
        chart.validate_schema(values)
        return chart.render(values, name=asked["release"], namespace=asked["namespace"])

made = []
for asked in json.load(sys.stdin):
    try:
        made.append({"result": answer(asked)})
    except helm.HelmError as error:
        made.append({"refused": str(error)})
json.dump(made, sys.stdout)
"""


class Refused(Exception):
    """Helm refused the chart or its values; the text is Helm's."""


def _answers(asked: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return Helm's answer to each call, made in one process."""
    sent = json.dumps([{"chart": str(CHART), "values": {}, **each} for each in asked])
    command = [sys.executable, "-c", _PROGRAM]
    done = subprocess.run(command, input=sent, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def _call(call: str, **asked: Any) -> Any:
    (answer,) = _answers([{"call": call, **asked}])
    if "refused" in answer:
        raise Refused(answer["refused"])
    return answer["result"]


def lint(chart: Path = CHART, values: dict[str, Any] | None = None) -> list[str]:
    """Return the warnings and errors of `helm lint --strict`."""
    found = _call("lint", chart=str(chart), values=values or {})
    messages = [each["error"] for each in found["messages"] if each["severity"] > 1]
    return [str(each) for each in (*messages, *found["errors"])]


def template(
    values: dict[str, Any], release: str = "deskwire", namespace: str = "deskwire"
) -> list[dict[str, Any]]:
    """Return the objects that `helm template` prints.

    Raises:
        Refused: the values break the schema, or a template refuses them.
    """
    made = _call("template", values=values, release=release, namespace=namespace)
    texts = [text for name, text in made.items() if name.endswith(".yaml")]
    return [each for text in texts for each in yaml.safe_load_all(text) if each is not None]


def refusals(each: Sequence[dict[str, Any]]) -> list[str]:
    """Return why `helm template` refuses each of these values; empty if it does not."""
    asked = [
        {"call": "template", "values": values, "release": "deskwire", "namespace": "deskwire"}
        for values in each
    ]
    return [str(answer.get("refused", "")) for answer in _answers(asked)]


def notes(values: dict[str, Any]) -> str:
    """Return the text that `helm install` prints."""
    made = _call("template", values=values, release="deskwire", namespace="deskwire")
    return str(made["deskwire/templates/NOTES.txt"])


def package(destination: Path) -> Path:
    """Write the archive of `helm package`; return its path."""
    return Path(_call("package", destination=str(destination)))
