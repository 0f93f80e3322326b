"""A client of a running service for commands: its public API and a server key, nothing else."""
