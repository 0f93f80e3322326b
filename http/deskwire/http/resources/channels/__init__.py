"""Channels of a project, and the public settings of a channel."""
