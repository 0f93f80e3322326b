"""Language models: the port, and the one implementation."""
