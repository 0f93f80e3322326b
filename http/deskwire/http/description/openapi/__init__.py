"""The API as an OpenAPI 3.1 document, generated from the route table, models and registries (ADR 23)."""
