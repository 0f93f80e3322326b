"""The desk's words for permissions are those of the service."""

from __future__ import annotations

import re

from deskwire.engine.accounts.people import PERMISSIONS
from tests.support.root import ROOT

FOLDER = ROOT / "http/deskwire/http/pages/desk/admin"


def test_every_permission_is_explained_in_words() -> None:
    [means] = re.findall(r"\bmeans: \{([^{}]*)\}", (FOLDER / "texts.js").read_text())
    explained = set(re.findall(r'"(\w+\.\w+)": "', means))
    assert explained == set(PERMISSIONS["owner"])
