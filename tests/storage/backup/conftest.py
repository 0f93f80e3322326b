"""A data directory with all kinds of objects, and the commands run in this process."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest
import trio

from deskwire.engine.accounts.identity.oidc.requests import OidcRequest
from deskwire.engine.accounts.invitations import Invitation
from deskwire.engine.accounts.links import LINK_LIFETIME_MS, OneTimeLink
from deskwire.engine.conversations.conversation import Author, Conversation, Mention, Message
from deskwire.engine.conversations.drafts import DraftWrite, draft_key, write_draft
from deskwire.engine.conversations.held_messages import HeldMessage, hold_message
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.values import replace
from deskwire.engine.mail.content import invitation_mail
from deskwire.engine.mail.ports import Mail
from deskwire.engine.ports import Transaction
from deskwire.engine.uploads.ports import FileContent
from deskwire.engine.uploads.upload import Upload
from deskwire.storage.files import DiskFiles
from deskwire.storage.sqlite.backup import make as backups
from deskwire.storage.sqlite.backup import restore as restores
from tests.support.builders import NOON, PROJECT, create, endpoint, post, running

SECRET: Final = "the secret of this installation, long enough"
TOTP: Final = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
FILE: Final = b"the bytes of an upload"
CONTENT: Final = FileContent(PROJECT.rowid, sha256(FILE).hexdigest())
Edit = Callable[[list[tuple[tarfile.TarInfo, bytes]]], object]


async def fill(directory: Path) -> str:
    """Make a data directory with a conversation, an upload, and pending deliveries; return the conversation's id."""
    async with running(directory) as engine:
        sealed = Encryption(Secrets(SECRET)).seal("whsec_x")
        await engine.store.write(lambda tx: tx.insert_endpoint(replace(endpoint(), sealed_secret=sealed)))
        command = create(message=post(text="Where is my order?"))
        receipt = await engine.directory.create(PROJECT, command)
        await engine.directory.ask(PROJECT, command.conversation_id, post("agent", "On its way."))
        state = receipt.state
        assert state is not None
        await engine.store.write(lambda tx: _upload(tx, state.rowid))
        await engine.store.write(lambda tx: _write(tx, state))
        await engine.store.write(_let_in)
        await engine.store.write(lambda tx: tx.hide_setup(PROJECT, hidden=True))
    draft = DiskFiles(directory)
    draft.clear_drafts()
    file = draft.draft()
    file.write(FILE)
    file.finish()
    file.keep(CONTENT)
    (directory / "secret").write_text(f"{SECRET}\n")
    return command.conversation_id


def _upload(tx: Transaction, conversation: int) -> None:
    upload = Upload(
        new_id("upl", NOON), PROJECT.rowid, "a.txt", "text/plain", len(FILE), CONTENT.sha256, NOON
    )
    tx.insert_upload(upload, 1 << 30)
    assert not tx.attach_uploads(PROJECT.rowid, conversation, [upload.id])


def _write(tx: Transaction, state: Conversation) -> None:
    """Store a draft, a held message and a mention of an agent; the message is held for a long time."""
    user = tx.insert_user(new_id("usr", NOON), "grace@example.org", "Grace", None, NOON)
    place = draft_key(state, user.rowid, internal=True)
    write_draft(tx, place, DraftWrite("She called twice.", (), 0), NOON)
    of = (PROJECT.rowid, 0, state.id, user.rowid, user.id, user.name)
    until = NOON + 10 * 366 * 86_400_000
    held = HeldMessage(new_id("msg", NOON), *of, False, "Soon", (), None, {"close": True}, until, NOON)
    hold_message(tx, PROJECT, replace(held, scheduled=True, unless_replied=True), None)
    mentions = (Mention("user", user.id, user.name),)
    note = Message(new_id("msg", NOON), Author("agent"), "@Grace", NOON, internal=True, mentions=mentions)
    tx.insert_message(state.rowid, note, None)
    tx.insert_mentions(PROJECT.rowid, state.rowid, note.id, [user.rowid], NOON)
    tx.follow(PROJECT.rowid, state.rowid, [user.rowid], NOON)


def _let_in(tx: Transaction) -> None:
    """Store an authenticator app, an invitation with its mail, a link for a new password, and a sign-in at a provider."""
    sealing = Encryption(Secrets(SECRET))
    user = tx.user_by_email("grace@example.org")
    assert user is not None
    tx.put_pending_totp(user.rowid, sealing.seal(TOTP), NOON)
    tx.confirm_totp(user.rowid, 1, NOON)
    until = NOON + LINK_LIFETIME_MS
    invitation = tx.insert_invitation(
        Invitation(
            new_id("inv", NOON), PROJECT.organisation, "ada@example.org", None, "agent", user.id, NOON, until
        )
    )
    tx.insert_link(OneTimeLink("invitation", bytes(32), NOON, until, invitation=invitation.rowid))
    tx.insert_link(OneTimeLink("password", bytes(31), NOON, until, user=user.rowid, generation=0))
    content = invitation_mail("Demo", "Grace", "https://desk.example/desk/link#x", until)
    tx.insert_mail(
        Mail(
            new_id("eml", NOON),
            "invitation",
            invitation.email,
            NOON,
            until,
            until,
            content.sealed(sealing),
            invitation.rowid,
        )
    )
    tx.insert_oidc_request(
        OidcRequest(bytes(32), bytes(32), "oidc", "sign_in", "/desk", None, NOON, NOON + 600_000)
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Make a data directory that no server has open."""
    directory = tmp_path / "data"
    trio.run(fill, directory)
    return directory


def back_up(
    directory: Path, target: Path, *, with_secret: bool = True, force: bool = False
) -> backups.Backup:
    """Make a backup."""
    order = backups.BackupRequest(
        directory, target, Secrets(SECRET), with_secret, force, "0.1.0", "2026-11-21T12:00:00.000Z"
    )
    return backups.back_up(order)


def restore(
    source: Path,
    directory: Path,
    *,
    secret: str | None = None,
    new_secret: bool = False,
    skip_pending: bool = False,
) -> restores.Restored:
    """Restore a backup."""
    secrets = None if secret is None else Secrets(secret)
    order = restores.RestoreRequest(
        source, directory, secrets, secret is not None, new_secret, skip_pending, NOON
    )
    return restores.restore(order)


def rewritten(source: Path, edit: Edit) -> Path:
    """Copy an archive, and let `edit` change the members."""
    with tarfile.open(source) as archive:
        parts = [(each, _content(archive, each)) for each in archive.getmembers()]
    edit(parts)
    target = source.with_name("altered.tar")
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as archive:
        for member, content in parts:
            archive.addfile(member, io.BytesIO(content))
    size = sum(512 + -(-member.size // 512) * 512 for member, _ in parts)
    target.write_bytes(
        target.read_bytes()[:size] + bytes(1024)
    )  # without the filling of tarfile's last record
    return target


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert file is not None
    return file.read()


def names(parts: Sequence[tuple[tarfile.TarInfo, bytes]]) -> list[str]:
    """Return the names of an archive's members."""
    return [member.name for member, _ in parts]


def left(directory: Path) -> set[str]:
    """Return the names in a directory."""
    return {each.name for each in directory.iterdir()}
