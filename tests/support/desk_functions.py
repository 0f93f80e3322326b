"""Calls functions of the desk's modules in Node.js, for tests that compare them with the service's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.root import ROOT


def desk_results(module: str, function: str, calls: Sequence[Sequence[str]]) -> list[Any]:
    """Return the results of an exported function of a module, such as `core/folding.js`, for each list of arguments."""
    url = (ROOT / "http/deskwire/http/pages/desk" / module).as_uri()
    script = (
        f"import {{ {function} }} from '{url}';"
        "let given = ''; process.stdin.on('data', (part) => (given += part));"
        f"process.stdin.on('end', () => process.stdout.write(JSON.stringify(JSON.parse(given).map((each) => {function}(...each)))));"
    )
    command = ["node", "--input-type=module", "-e", script]
    done = subprocess.run(
        command, input=json.dumps(calls), capture_output=True, text=True, check=True, timeout=HANG_TIMEOUT_S
    )
    return list(json.loads(done.stdout))
