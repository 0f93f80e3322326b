"""The words of comments: languages, phrases, how they sound."""
