"""The settings: one frozen value, read from the command line and the environment."""
