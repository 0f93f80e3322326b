"""Administration of a shared database: checks at start, partitions, vacuums, restores."""
