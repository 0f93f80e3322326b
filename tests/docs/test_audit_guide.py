"""The guide to the audit trail agrees with the code."""

from __future__ import annotations

import re

from deskwire.engine.audit.actions import ACTIONS
from deskwire.engine.audit.trail import ACTOR_TYPES
from deskwire.http.schemas.audit import AuditRecord
from deskwire.http.schemas.base import model_of
from tests.support.root import ROOT

GUIDE = (ROOT / "docs/guide/audit.md").read_text()


def test_the_table_of_actions_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \| (.*?) \| (.*?) \|$", GUIDE, re.MULTILINE)
    assert rows == [
        (each.name, ", ".join(f"`{name}`" for name in each.details) or "-", each.meaning)
        for each in ACTIONS.values()
    ]


def test_counted_actions_are_named_as_such() -> None:
    (sentence,) = re.findall(r"\bCounted are (.*?)\.$", GUIDE, re.MULTILINE | re.DOTALL)
    assert re.findall(r"`([a-z_.]+)`", sentence) == [each.name for each in ACTIONS.values() if each.counted]


def test_every_field_and_every_kind_of_actor_is_explained() -> None:
    fields = {field.alias or name for name, field in model_of(AuditRecord).model_fields.items()}
    assert fields <= set(re.findall(r"`([A-Za-z]+)`", GUIDE))
    assert {each for each in ACTOR_TYPES if each != "unknown"} <= set(re.findall(r"`([a-z_]+)`", GUIDE))
