"""Commands that copy a data directory, put a copy in its place, and look whether one is well."""
