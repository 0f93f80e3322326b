"""The end that was asked for of a machine credential, and the credential that an endpoint belongs to (ADR 70)."""

from typing import Final

from deskwire.storage.postgres.schema.types import typed

SQL: Final = typed("""
ALTER TABLE machine_credentials ADD COLUMN own_expires_at bigint;
UPDATE machine_credentials SET own_expires_at = expires_at;
ALTER TABLE endpoints ADD COLUMN credential TEXT;
UPDATE endpoints SET credential = (
    SELECT CASE a.actor_type WHEN 'machine' THEN a.actor END FROM audit a
    WHERE a.object = endpoints.id AND a.action IN ('webhook.created', 'webhook.changed', 'webhook.enabled')
    ORDER BY a.position DESC LIMIT 1);
""")
"""An older program holds none of the rules that these are for, so none may run beside this schema."""
