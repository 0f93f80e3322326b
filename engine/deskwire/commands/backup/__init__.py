"""Commands that back up, restore and check a data directory."""
