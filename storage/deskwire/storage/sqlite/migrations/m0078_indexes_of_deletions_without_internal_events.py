"""Events of deletions and erasures by index, without the internal events that have no conversation.

A returning customer's panel reads its contact's events. Every start of a customer's session has left an entry that this read
passed, so that the panels of a busy website took quadratic time after a restart.
"""

from typing import Final

SQL: Final = """
DROP INDEX deletions_by_conversation;
CREATE INDEX deletions_by_conversation ON events (json_extract(CAST(body AS TEXT), '$.data.conversation.id'))
    WHERE conversation IS NULL AND internal = 0;
DROP INDEX deletions_by_contact;
CREATE INDEX deletions_by_contact ON events (json_extract(CAST(body AS TEXT), '$.data.conversation.contact.userId'))
    WHERE conversation IS NULL AND internal = 0;
CREATE INDEX erasures_by_contact ON events (json_extract(CAST(body AS TEXT), '$.data.contact.userId'))
    WHERE conversation IS NULL AND internal = 0;
"""
