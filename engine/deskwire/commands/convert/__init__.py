"""`deskwire convert`: exports of Chatwoot, Intercom and Zendesk as the lines that `deskwire import` takes (ADR 12)."""
