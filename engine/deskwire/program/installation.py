"""Checks that the installation's secret belongs to the database.

With another secret, the service would seem to run but could sign no webhook. So such a start is refused, with advice.
"""

from __future__ import annotations

from typing import Final

import structlog

from deskwire.config.config import Config
from deskwire.engine.core.encryption import DecryptionFailed, Encryption
from deskwire.engine.core.secret import Secrets
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Reader, Store
from deskwire.program.errors import StartError
from deskwire.program.secret_file import installation_secrets, present_secrets
from deskwire.storage.sqlite.backup.manifest import ANY_SECRET, secret_id
from deskwire.storage.sqlite.directory import SECRET_FILE

log: Final = structlog.get_logger(__name__)

_WITHOUT: Final = (
    "Without it, no webhook can be signed until its secret is rotated, everyone has to sign in again, and links to files become "
    "invalid. To continue without it, start once with --new-secret."
)


async def settled_secrets(config: Config, store: Store, *, new_secret: bool) -> Secrets:
    """Return the installation's secrets after checking them against the database.

    Args:
        new_secret: accept the present secret, or a new one, even if the database belongs to another.

    Raises StartError if the secret is missing or wrong, SecretError if it can't be used.
    """
    present = present_secrets(config.data_dir, config.secret, config.secret_previous)
    claimed, sealed = await store.read(InlineQuery(_known))
    reason = _refusal_reason(config, present, claimed, sealed)
    if reason is not None and not new_secret:
        raise StartError(reason)
    if reason is not None:
        log.warning("secret.replaced", reason=reason)
    secrets = present or installation_secrets(config.data_dir, config.secret, config.secret_previous)
    current = secret_id(secrets.current)
    if claimed != current:
        await store.write(lambda tx: tx.set_secret_id(current))
    return secrets


def _known(reader: Reader) -> tuple[str | None, list[bytes]]:
    return reader.secret_id(), [each.sealed_secret for each in reader.endpoints()]


def _refusal_reason(
    config: Config, present: Secrets | None, claimed: str | None, sealed: list[bytes]
) -> str | None:
    """Return why the secrets don't belong to the database; None if they do, as far as that can be checked."""
    path = config.data_dir / SECRET_FILE
    if present is None:
        if claimed == ANY_SECRET or (claimed is None and not sealed):
            return None
        wanted = "" if claimed is None else f" (its id is {claimed})"
        return f"The installation's secret {path} is missing{wanted}. Put its copy back, or set DESKWIRE_SECRET to it. {_WITHOUT}"
    ids = [secret_id(each) for each in present.known]
    if claimed in (ANY_SECRET, *ids) or (
        claimed is None and (not sealed or _opens_any(Encryption(present), sealed))
    ):
        return None
    where = "DESKWIRE_SECRET" if config.secret is not None else str(path)
    reason = "it can't decrypt the webhooks' secrets" if claimed is None else f"that has the id {claimed}"
    return (
        f"The secret in {where} (its id is {ids[0]}) is not the one of this database: {reason}. Set it back to that one; to "
        f"replace a secret, give the old one as DESKWIRE_SECRET_PREVIOUS, or run `deskwire secret rotate`. {_WITHOUT}"
    )


def _opens_any(sealing: Encryption, sealed: list[bytes]) -> bool:
    for each in sealed:
        try:
            sealing.open_bytes(each)
        except DecryptionFailed:
            continue
        return True
    return False
