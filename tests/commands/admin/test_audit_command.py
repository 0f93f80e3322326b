"""`deskwire audit`: a table for people, lines of JSON for programs, and all of it for an archive."""

from __future__ import annotations

import getpass
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from deskwire.commands.admin import audit
from tests.commands.admin.conftest import Deskwire, good


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in good(result).splitlines()]


@pytest.fixture
def busy(deskwire: Deskwire) -> Deskwire:
    """Return an installation in which the operator has done a few things."""
    good(deskwire("org", "create", "Acme"))
    good(deskwire("project", "create", "Shop"))
    good(deskwire("user", "create", "ada@example.com", "--role", "owner", "--one-time"))
    good(deskwire("key", "create", "--label", "CRM"))
    good(deskwire("org", "create", "Elsewhere"))
    return deskwire


def test_the_list_is_a_table_of_the_newest(busy: Deskwire) -> None:
    shown = good(busy("audit", "list", "--limit", "2"))
    assert "organisation.created" in shown
    assert "key.created" in shown
    assert "CRM" in shown
    assert getpass.getuser() in shown
    assert "member.added" not in shown


def test_json_is_a_line_for_each_record_as_the_api_shows_it(busy: Deskwire) -> None:
    newest, key, *_ = lines(busy("audit", "list", "--json"))
    assert (newest["action"], newest["object"]["name"]) == ("organisation.created", "Elsewhere")
    assert key["actor"] == {"type": "operator", "id": getpass.getuser(), "name": None}
    assert key["changes"] == {"label": {"before": None, "after": "CRM"}}
    assert (key["address"], key["requestId"]) == (None, None)


def test_export_has_all_records_in_order(busy: Deskwire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "PAGE", 2)
    records = lines(busy("audit", "export"))
    assert [each["action"] for each in records] == [
        "organisation.created",
        "project.created",
        "account.created",
        "member.added",
        "key.created",
        "organisation.created",
    ]
    assert records[::-1] == lines(busy("audit", "list", "--limit", "5", "--json")) + records[:1]


def test_filters_choose_and_take_addresses_for_users(busy: Deskwire) -> None:
    def actions(*options: str) -> list[str]:
        return [each["action"] for each in lines(busy("audit", "export", *options))]

    assert actions("--object", "ada@example.com") == ["account.created", "member.added"]
    assert actions("--action", "key.created") == ["key.created"]
    assert actions("--org", "Elsewhere") == ["organisation.created"]
    assert actions("--actor", "anonymous") == actions("--until", "1h") == []
    assert len(actions("--since", "1h", "--actor", "operator")) == 6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--action", "key.invented"), "There is no action"),
        (("--since", "yesterday"), "is not a time"),
        (("--actor", "eve@example.com"), "There is no user"),
        (("--org", "Nobody"), "There is no organisation"),
    ],
)
def test_contradictory_options_are_refused_with_a_reason(
    busy: Deskwire, options: tuple[str, ...], words: str
) -> None:
    refused = busy("audit", "list", *options)
    assert refused.exit_code != 0
    assert words in refused.stderr


def test_a_backup_has_the_trail_and_a_restore_brings_it_back(busy: Deskwire, tmp_path: Path) -> None:
    before = lines(busy("audit", "export"))
    copy, other = str(tmp_path / "copy"), str(tmp_path / "other")
    good(busy("backup", copy))
    good(busy("restore", copy, "--data", other))
    assert lines(busy("audit", "export", "--data", other)) == before
    good(busy("check", "--data", other))
