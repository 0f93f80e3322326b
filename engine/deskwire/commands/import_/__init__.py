"""`deskwire import`: a file of histories sent to a running service, a part at a time, each until it is acknowledged."""
