"""The operation of a database that nodes share: before it is opened, while it is checked, and behind a restore."""
