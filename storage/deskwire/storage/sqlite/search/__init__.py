"""The search index: a file beside the database, in which words lead to conversations."""
