"""Backups and rotations of the secret: which secret a backup needs, and that it opens with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.secret import Secrets
from deskwire.program.secret_file import installation_secrets, secrets_in
from deskwire.storage.sqlite.backup import make as backups
from deskwire.storage.sqlite.backup import restore as restores
from deskwire.storage.sqlite.backup.snapshot import CopyError
from deskwire.storage.sqlite.check import check
from tests.storage.backup.conftest import SECRET, back_up
from tests.support.builders import NOON

NEW = "another secret of this installation, long enough"


def rotated() -> Secrets:
    """Return the secrets after a rotation."""
    return Secrets(SECRET).rotated(NEW, wall_clock(), 60_000)


def restored(source: Path, directory: Path, secrets: Secrets | None) -> Secrets:
    """Restore a backup and return the directory's secrets; everything in it opens with them."""
    restores.restore(
        restores.RestoreRequest(source, directory, secrets, secrets is not None, False, False, NOON)
    )
    found = installation_secrets(directory, None)
    assert not check(directory, found, contents=True, settled_s=0).problems
    return found


@pytest.mark.parametrize("with_secret", [True, False])
def test_a_backup_made_after_a_rotation_needs_the_new_secret_alone(
    tmp_path: Path, data: Path, with_secret: bool
) -> None:
    """This also holds for an interrupted rotation, after which stored values are sealed under the old secret."""
    order = backups.BackupRequest(
        data, tmp_path / "b.tar", rotated(), with_secret, False, "0.1.0", "2026-11-21T12:00:00.000Z"
    )
    made = backups.back_up(order)
    found = restored(made.path, tmp_path / "new", None if with_secret else Secrets(NEW))
    assert found.known == (NEW,)
    assert check(data, Secrets(NEW), contents=False).problems, "the data itself was left as it was"


def test_a_backup_made_before_a_rotation_opens_with_the_secrets_file_of_after(
    tmp_path: Path, data: Path
) -> None:
    source = back_up(data, tmp_path / "b.tar", with_secret=False).path
    file = tmp_path / "secret"
    file.write_text(rotated().written())
    assert restored(source, tmp_path / "new", secrets_in(file)).known == (NEW, SECRET)


def test_a_backup_made_before_a_rotation_does_not_open_without_the_old_secret(
    tmp_path: Path, data: Path
) -> None:
    source = back_up(data, tmp_path / "b.tar", with_secret=False).path
    with pytest.raises(CopyError, match="is not the one that was given"):
        restored(source, tmp_path / "new", Secrets(NEW))
    assert not (tmp_path / "new").exists()


def test_a_backup_with_its_own_old_secret_opens_without_another(tmp_path: Path, data: Path) -> None:
    source = back_up(data, tmp_path / "b.tar").path
    assert restored(source, tmp_path / "new", None).known == (SECRET,)
    with pytest.raises(CopyError, match="is not the one in the backup"):
        restored(source, tmp_path / "other", Secrets(NEW))
