"""The program: its nursery tree, and how its parts are made from the settings."""
