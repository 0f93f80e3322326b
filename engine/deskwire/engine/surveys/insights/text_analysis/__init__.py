"""Text analysis of comments: language, phrases, sentiment. Frozen: no further work is planned."""
