"""The format of the search index on both databases: postings of conversations in blocks."""
