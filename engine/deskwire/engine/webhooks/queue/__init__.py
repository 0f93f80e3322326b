"""The deliveries of one endpoint that wait for an attempt; no I/O."""
