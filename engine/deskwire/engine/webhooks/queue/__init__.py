"""Queues of one endpoint's deliveries, in memory and without I/O."""
