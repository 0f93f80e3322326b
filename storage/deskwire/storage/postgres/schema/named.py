"""Events beyond the contract, for those who name their type, and endpoints that ask for what agents write for agents.

Programs from before would show such an event to every consumer: none may run beside it.
"""

from __future__ import annotations

from typing import Final

SQL: Final = """
ALTER TABLE endpoints ADD COLUMN internal smallint NOT NULL DEFAULT 0;
CREATE CONSTRAINT TRIGGER begin_epoch_of_internal AFTER UPDATE OF internal ON endpoints
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION begin_epoch();
"""
