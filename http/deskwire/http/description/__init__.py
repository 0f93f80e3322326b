"""Descriptions of the API that the service itself serves: OpenAPI, AsyncAPI and the page of error codes."""
