"""The form of the search index, which both databases have: words that lead to conversations, in blocks."""
