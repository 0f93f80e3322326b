"""The audit trail: who did what, to which object, when and from where. A record is stored in the commit of its change."""
