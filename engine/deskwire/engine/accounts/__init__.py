"""Accounts: organisations, their projects and members, roles, server keys and sign-in."""
