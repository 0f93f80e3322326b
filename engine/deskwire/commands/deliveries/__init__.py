"""`deskwire deliveries` and `deskwire redeliver`: the delivery log for operators (ADR 3)."""
