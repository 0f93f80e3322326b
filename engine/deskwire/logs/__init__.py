"""The log: set up once, written by a thread of its own, kept free of credentials."""
