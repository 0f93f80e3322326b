"""Events as an AsyncAPI 3.0 document: webhooks, the realtime stream and the agents' stream."""
