"""The search over conversations, contacts and tickets."""
