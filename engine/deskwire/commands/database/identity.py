"""The identity of an installation by its settings. The module needs PostgreSQL's driver."""

from __future__ import annotations

from deskwire.config.config import Config
from deskwire.config.locations import place_of
from deskwire.engine.core.secret import Secrets
from deskwire.program.secret_file import installation_secrets
from deskwire.storage.postgres.admin.installation import InstallationIdentity
from deskwire.storage.sqlite.backup.manifest import secret_id


def identity_of(config: Config, secrets: Secrets | None = None) -> InstallationIdentity:
    """Return the identity that all nodes and commands on the database share. Raises SecretError."""
    known = secrets or installation_secrets(config.data_dir, config.secret, config.secret_previous)
    return InstallationIdentity([secret_id(each) for each in known.known], place_of(config.uploads_at))
