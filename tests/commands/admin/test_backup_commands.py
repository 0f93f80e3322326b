"""`deskwire backup`, `restore` and `check` as an operator types them."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from tests.commands.admin.conftest import Deskwire, good, listed
from tests.storage.backup.conftest import SECRET, fill


@pytest.fixture
def shop(deskwire: Deskwire, tmp_path: Path) -> Deskwire:
    """Return commands on a directory with conversations, an upload and a webhook."""
    trio.run(fill, tmp_path / "data")
    return deskwire


def test_backup_restores_into_another_directory_and_passes_the_check(shop: Deskwire, tmp_path: Path) -> None:
    backup, new = str(tmp_path / "b.tar"), str(tmp_path / "new")
    made = shop("backup", backup, "--with-secret")
    assert good(made).startswith(f"The backup {backup} is complete and verified:")
    assert good(shop("restore", backup, "--data", new)).startswith(f"{new} is restored to its state at ")
    assert good(shop("check", "--data", new, "--files")).startswith(f"{new} has no problems:")


def test_contents_of_a_backup_are_printed_as_json(shop: Deskwire, tmp_path: Path) -> None:
    said = listed(shop("backup", str(tmp_path / "b.tar"), "--with-secret", "--json"))
    assert (said["rows"]["messages"], said["files"], said["secret"], said["problems"]) == (3, 1, True, 0)
    done = listed(shop("restore", str(tmp_path / "b.tar"), "--data", str(tmp_path / "new"), "--json"))
    assert (done["sealed"], done["lastEvent"], done["skippedDeliveries"]) == (True, said["lastEvent"], 0)


def test_backup_reports_that_it_lacks_the_secret_and_restore_requires_it(
    shop: Deskwire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup, new = str(tmp_path / "b.tar"), tmp_path / "new"
    assert "keep a separate copy of it" in shop("backup", backup).stderr
    refused = shop("restore", backup, "--data", str(new))
    assert refused.exit_code == 1
    assert "--secret-file" in refused.stderr
    monkeypatch.setenv("DESKWIRE_SECRET", SECRET)
    good(shop("restore", backup, "--data", str(new)))
    assert not (new / "secret").exists()
    monkeypatch.delenv("DESKWIRE_SECRET")
    secret = str(tmp_path / "data" / "secret")
    good(
        shop("restore", backup, "--data", str(tmp_path / "other"), "--secret-file", secret, "--skip-pending")
    )
    assert (tmp_path / "other" / "secret").read_text().strip() == SECRET


def test_restore_without_the_secret_warns_that_the_backup_is_unverified(
    shop: Deskwire, tmp_path: Path
) -> None:
    good(shop("backup", str(tmp_path / "b.tar")))
    done = shop("restore", str(tmp_path / "b.tar"), "--data", str(tmp_path / "new"), "--new-secret")
    assert done.exit_code == 0
    assert "changes to the backup can't be detected" in done.stderr


def test_a_check_prints_every_problem_and_fails(shop: Deskwire, tmp_path: Path) -> None:
    (tmp_path / "data" / "secret").unlink()
    for path in (tmp_path / "data" / "uploads").glob("1/*/*"):
        path.unlink()
    found = shop("check")
    assert found.exit_code == 1
    assert [line.partition(":")[0] for line in found.stdout.splitlines()] == ["secret_missing", "upload_file"]
    told = shop("check", "--json")
    assert told.exit_code == 1
    assert '"ok": false' in told.stdout


def test_a_check_makes_no_secret_and_no_directory(deskwire: Deskwire, tmp_path: Path) -> None:
    good(deskwire("org", "create", "Acme"))
    good(deskwire("check"))
    assert not (tmp_path / "data" / "secret").exists()
    for command in (("check",), ("backup", str(tmp_path / "b.tar"))):
        refused = deskwire(*command, "--data", str(tmp_path / "nothing"))
        assert refused.exit_code == 1
        assert "no Deskwire" in refused.stderr
        assert not (tmp_path / "nothing").exists()


def test_refusal_has_its_reason_and_status_one(shop: Deskwire, tmp_path: Path) -> None:
    backup = tmp_path / "b.tar"
    backup.write_text("no backup")
    for command, reason in (
        (("backup", str(backup)), "--force"),
        (("restore", str(backup), "--data", str(tmp_path / "new")), "cut short"),
        (("restore", str(tmp_path / "none.tar"), "--data", str(tmp_path / "new")), "no backup"),
        (("restore", str(backup)), "not empty"),
        (
            ("restore", str(backup), "--data", str(tmp_path / "new"), "--secret-file", "nowhere"),
            "can't be read",
        ),
    ):
        refused = shop(*command)
        assert refused.exit_code == 1, command
        assert reason in refused.stderr, command
    assert not (tmp_path / "new").exists()
