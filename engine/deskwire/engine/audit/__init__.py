"""The audit trail: who did what, to which object, when and from where. What it records is stored with what was done."""
