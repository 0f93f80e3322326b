"""The end that was asked for of a machine credential, and the credential that an endpoint belongs to (ADR 70).

An endpoint belongs to the machine that was the last to create, change or enable it, as far as the audit trail says.
"""

from typing import Final

SQL: Final = """
ALTER TABLE machine_credentials ADD COLUMN own_expires_at INTEGER;
UPDATE machine_credentials SET own_expires_at = expires_at;
ALTER TABLE endpoints ADD COLUMN credential TEXT;
UPDATE endpoints SET credential = (
    SELECT CASE a.actor_type WHEN 'machine' THEN a.actor END FROM audit a
    WHERE a.object = endpoints.id AND a.action IN ('webhook.created', 'webhook.changed', 'webhook.enabled')
    ORDER BY a.position DESC LIMIT 1);
"""
