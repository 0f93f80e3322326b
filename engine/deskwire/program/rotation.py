"""Replaces the installation's secret while the service runs (ADR 25).

First the file is written with the new and the previous secrets. Then all sealed data is encrypted with the new secret in one
transaction. If the process ends in between, the next start has all the secrets it needs and finishes the rotation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import structlog
import trio

from deskwire.config.config import Config
from deskwire.engine.core.clock import Clock, iso, wall_clock
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.errors import Conflict, Unavailable
from deskwire.engine.core.secret import Secrets
from deskwire.engine.ports import Store, Transaction
from deskwire.program.secret_file import new_secret, write_private
from deskwire.storage.sqlite.backup.manifest import secret_id
from deskwire.storage.sqlite.directory import SECRET_FILE

log: Final = structlog.get_logger(__name__)

_SECOND_MS: Final = 1_000


class Rotation:
    """Replaces the secret of one process on the data directory.

    Args:
        secrets: shared by the whole process; a rotation changes them in place.
        directory: the directory of the secret's file; None if the secret comes from the settings.
        kept_s: seconds that responses are stored for idempotent requests; finding one needs the secret of its time.
    """

    def __init__(
        self, store: Store, secrets: Secrets, directory: Path | None, clock: Clock, kept_s: float
    ) -> None:
        self._store = store
        self._secrets = secrets
        self._directory = directory
        self._clock = clock
        self._kept_ms = int(kept_s * _SECOND_MS)
        self._sealing = Encryption(secrets)
        self._in_file = secrets.previous
        self._one_at_a_time = trio.Lock()

    @classmethod
    def of(cls, config: Config, store: Store, secrets: Secrets) -> Rotation:
        """Return the rotation for the configured data directory and secret."""
        directory = config.data_dir if config.secret is None else None
        return cls(store, secrets, directory, wall_clock, config.idempotency_s)

    async def settle(self) -> None:
        """Encrypt sealed data with the current secret, and remove previous secrets that are no longer needed.

        Previous secrets stay in memory, because data read earlier may still have to be decrypted.

        Raises SecretError if the file can't be written.
        """
        if not self._in_file:
            return
        async with self._one_at_a_time:
            await self._renew()
            left = self._secrets.without_expired(self._clock(), self._kept_ms)
            if left.previous != self._in_file and self._directory is not None:
                await self._write(left)
                log.info("secret.former_forgotten", left=len(left.previous))

    async def run(self, interval_s: float) -> None:
        """Settle periodically until cancelled."""
        while True:
            await trio.sleep(interval_s)
            await self.settle()

    async def rotate(self, overlap_s: int) -> dict[str, Any]:
        """Generate a new secret; signatures of the old one are accepted for `overlap_s`. Return a summary.

        Raises Conflict (`secret_in_settings`), or Unavailable if the disk fails; then nothing has changed, or the next start
        completes the rotation.
        """
        if self._directory is None:
            raise Conflict(
                "The secret comes from DESKWIRE_SECRET. Set that to a new one and DESKWIRE_SECRET_PREVIOUS to the old one, "
                "restart, and remove the old one when its overlap ends.",
                code="secret_in_settings",
            )
        async with self._one_at_a_time:
            now = self._clock()
            after = self._secrets.rotated(new_secret(), now, overlap_s * _SECOND_MS)
            await self._write(after)
            self._secrets.become(after)
            until = iso(after.previous[0].until)
            log.info("secret.rotated", former_until=until)
            return {"rotatedAt": iso(now), "formerUntil": until, "sealedAnew": await self._renew()}

    async def _renew(self) -> int:
        def renew(tx: Transaction) -> int:
            tx.set_secret_id(secret_id(self._secrets.current))
            return tx.renew_seals(self._sealing.renewed)

        return await self._store.write(renew)

    async def _write(self, secrets: Secrets) -> None:
        assert self._directory is not None
        path = self._directory / SECRET_FILE
        try:
            await trio.to_thread.run_sync(write_private, path, secrets.written())
        except OSError as error:
            raise Unavailable(f"{path} can't be written: {error}", code="storage_failed") from error
        self._in_file = secrets.previous
