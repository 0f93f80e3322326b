"""The program: its nursery tree, and the parts that it builds from the settings."""
