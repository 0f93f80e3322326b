"""The operator's commands: organisations, projects, users, keys and tokens.

A running server executes a command that arrives on the control socket of its data directory. Without a server, the
command runs in its own process.
"""
