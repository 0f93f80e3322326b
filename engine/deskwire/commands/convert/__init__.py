"""`deskwire convert`: turns exports of Chatwoot, Intercom and Zendesk into lines for `deskwire import` (ADR 3)."""
