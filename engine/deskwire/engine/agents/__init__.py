"""The streams of agents: all events of a project, ephemeral events, and presence."""
