"""`deskwire secret rotate` on a data directory that no server has."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from deskwire.engine.accounts.credentials import Tokens
from deskwire.engine.core.clock import milliseconds
from deskwire.program.secret_file import installation_secrets
from tests.commands.admin.conftest import Deskwire, good, listed


@pytest.fixture
def secret(deskwire: Deskwire, tmp_path: Path) -> Path:
    """Return the secret's file of a directory with an organisation and a user."""
    good(deskwire("org", "create", "Acme"))
    good(deskwire("user", "create", "ada@example.com", "--one-time"))
    good(deskwire("token", "create", "--user", "ada@example.com"))
    return tmp_path / "data" / "secret"


def test_rotation_sets_a_new_secret_and_accepts_the_old_for_a_day(deskwire: Deskwire, secret: Path) -> None:
    before = secret.read_text().strip()
    token = good(deskwire("token", "create", "--user", "ada@example.com"))
    answer = listed(deskwire("secret", "rotate", "--json"))
    assert milliseconds(answer["formerUntil"]) - milliseconds(answer["rotatedAt"]) == 86_400_000
    assert answer["sealedAnew"] == 0
    after = installation_secrets(secret.parent, None)
    assert after.known == (after.current, before)
    assert before not in json.dumps(answer)
    assert after.current not in json.dumps(answer)
    assert Tokens(after).identity(token)
    assert secret.stat().st_mode & 0o777 == 0o600


def test_command_shows_the_end_of_the_old_secret_in_words(deskwire: Deskwire, secret: Path) -> None:
    said = deskwire("secret", "rotate", "--overlap", "0")
    assert good(said) == ""
    assert installation_secrets(secret.parent, None).current not in said.output
    assert "until" in said.stderr
    assert "earlier backups" in said.stderr


def test_two_rotations_in_one_overlap_keep_both_old_ones(deskwire: Deskwire, secret: Path) -> None:
    first = secret.read_text().strip()
    good(deskwire("secret", "rotate"))
    second = installation_secrets(secret.parent, None).current
    good(deskwire("secret", "rotate"))
    assert installation_secrets(secret.parent, None).known[1:] == (second, first)


def test_secret_from_the_settings_is_refused_with_a_remedy(
    deskwire: Deskwire, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = secret.read_text()
    monkeypatch.setenv("DESKWIRE_SECRET", "a secret of the settings, which is long enough")
    refused = deskwire("secret", "rotate")
    assert refused.exit_code == 1
    assert "DESKWIRE_SECRET_PREVIOUS" in refused.stderr
    assert secret.read_text() == before


def test_database_that_can_not_be_opened_leaves_the_secret_unchanged(
    deskwire: Deskwire, secret: Path
) -> None:
    before = secret.read_text()
    with closing(sqlite3.connect(secret.parent / "deskwire.sqlite3")) as connection, connection:
        connection.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('deskwire', 'm9999', '')"
        )
    refused = deskwire("secret", "rotate")
    assert refused.exit_code == 1
    assert "newer" in refused.stderr
    assert secret.read_text() == before


def test_rotation_needs_a_data_directory(deskwire: Deskwire, tmp_path: Path) -> None:
    refused = deskwire("secret", "rotate")
    assert refused.exit_code == 1
    assert "There is no Deskwire" in refused.stderr
    assert not (tmp_path / "data").exists()


def test_a_file_that_is_cut_short_is_refused(deskwire: Deskwire, secret: Path) -> None:
    secret.write_text(f"{secret.read_text().strip()}\nformer short")
    refused = deskwire("secret", "rotate")
    assert refused.exit_code == 1
    assert "damaged" in refused.stderr
