"""The API as an OpenAPI 3.1 document, made from the route table, the models and the registries (ADR 23)."""
