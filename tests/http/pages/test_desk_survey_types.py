"""The desk's form for surveys knows the types of questions as the service does."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any, Final, get_args

import pytest

from deskwire.engine.definitions.checks import escaped
from deskwire.engine.surveys.definition import Question, QuestionType
from deskwire.engine.surveys.logic import PRESENCE
from deskwire.engine.surveys.question_types import TYPES
from tests.support.deadlines import HANG_TIMEOUT_S
from tests.support.root import ROOT

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")

_FOLDER: Final = ROOT / "http/deskwire/http/pages/desk/insights"
NAMES: Final = ("plain", "a/b~c", "~1", "", "ü" * 39 + "😀/x", "x" * 200)


def evaluated(module: str, expression: str) -> Any:
    """Return the value of an expression that uses the exports of a module as `m`."""
    source = f"import * as m from '{(_FOLDER / module).as_uri()}'; console.log(JSON.stringify({expression}));"
    done = subprocess.run(
        ["node", "--input-type=module", "-e", source],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_TIMEOUT_S,
    )
    return json.loads(done.stdout)


def test_form_has_each_type_with_its_operators_choices_and_bounds() -> None:
    expected = {}
    for kind in get_args(QuestionType):
        rules = TYPES[kind]
        scale = rules.scale(Question("q", kind, {}))
        expected[kind] = {
            "ops": list(rules.operators),
            **({"choices": True} if rules.has_choices else {}),
            **({"bounds": True} if rules.bounds(1) is not None else {}),
            **({"scale": list(scale)} if scale is not None else {}),
        }
    assert evaluated("survey-model.js", "m.TYPES") == expected
    assert evaluated("survey-model.js", "m.PRESENCE") == list(PRESENCE)


def test_form_writes_names_in_pointers_as_the_service() -> None:
    found = evaluated("form-model.js", f"{json.dumps(NAMES)}.map(m.escaped)")
    assert found == [escaped(each) for each in NAMES]
