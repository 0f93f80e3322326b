"""The SQLite store behind the ports of `deskwire.engine`."""
