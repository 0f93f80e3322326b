"""Provisioning by the operator: organisations, projects, users, keys and tokens from the command line.

An order is carried out by the process that has the data directory: by the server, which is asked through a socket in
that directory, or by the command itself when no server runs.
"""
