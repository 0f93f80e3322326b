"""The search index: a separate file that maps words to conversations."""
