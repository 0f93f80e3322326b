"""`deskwire deliveries` and `deskwire redeliver`: the delivery log for operators, through the API (ADR 12)."""
