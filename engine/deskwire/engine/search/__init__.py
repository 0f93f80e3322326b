"""The search over conversations, contacts and tickets: words, the index that is made of them, and what is found."""
