"""What all commands share: the form of their help, their common options, their output, and their questions."""
