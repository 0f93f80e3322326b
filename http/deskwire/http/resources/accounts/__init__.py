"""Organisations, projects, members, users and the audit trail."""
