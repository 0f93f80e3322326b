"""Language models: the interface, and its implementation over HTTP."""
