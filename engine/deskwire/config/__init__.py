"""The settings: one frozen value, read once from the command line and the environment."""
