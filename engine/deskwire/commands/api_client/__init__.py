"""A running service as commands reach it: by its public API alone, with a server key."""
