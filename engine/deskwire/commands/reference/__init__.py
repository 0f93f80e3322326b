"""Reference documents, generated from the code that they describe."""
