"""The streams of agents: all events of a project, what passes without being stored, and who is there."""
