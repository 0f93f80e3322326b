"""The tables, a module for each group: its queries and its changes."""
