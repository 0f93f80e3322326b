"""Tasks and what they wait for: one result, a lock, a time; and how far a failure reaches."""
