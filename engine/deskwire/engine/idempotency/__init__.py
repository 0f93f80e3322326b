"""Idempotency keys: a repeated request is executed once (decisions 1)."""
