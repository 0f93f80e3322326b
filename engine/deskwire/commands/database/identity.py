"""The identity of an installation by its settings. The module needs PostgreSQL's driver."""

from __future__ import annotations

from deskwire.config.locations import place_of
from deskwire.config.settings import Config
from deskwire.engine.core.secret import Secrets
from deskwire.program.secret_file import installation_secrets
from deskwire.storage.postgres.operating.installation import Identity
from deskwire.storage.sqlite.backup.manifest import secret_id


def identity_of(config: Config, secrets: Secrets | None = None) -> Identity:
    """Return the identity that all nodes and commands on the database share. Raises SecretError."""
    known = secrets or installation_secrets(config.data_dir, config.secret, config.secret_previous)
    return Identity([secret_id(each) for each in known.known], place_of(config.uploads_at))
