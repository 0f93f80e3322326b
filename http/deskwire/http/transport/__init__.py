"""Connections of clients: bytes, slots and turns, below any protocol."""
