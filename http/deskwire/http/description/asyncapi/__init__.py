"""Events as an AsyncAPI 3.0 document: webhooks, the realtime stream, the agents' stream and customers' streams."""
