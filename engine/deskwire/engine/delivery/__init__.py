"""Signed webhooks: from a pending row to a receiver's answer, in order, within bounds (contract 6.2 to 6.4)."""
