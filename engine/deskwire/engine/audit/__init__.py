"""The audit trail: actor, action, object, time and origin of each change. A record is stored in the commit of its change."""
