"""The parts that all commands share: the form of their help, common options, output, and questions."""
