"""`deskwire import`: sends a file of conversations to a running service in acknowledged batches."""
