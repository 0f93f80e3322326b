"""The search over conversations, contacts and tickets: words, the index built from them, and the hits."""
