"""The log: configured once, written by its own thread, without credentials."""
