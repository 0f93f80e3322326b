"""The customers who sent uploads and survey responses from their own browsers."""

from typing import Final

SQL: Final = """
-- The id of the contact, as text, because the row outlives the contact until it expires.
ALTER TABLE uploads ADD COLUMN contact TEXT;
CREATE INDEX uploads_by_contact ON uploads (contact) WHERE contact IS NOT NULL;
-- The contact's id at that time and the id that its client gave the response, so that it is stored once.
ALTER TABLE survey_responses ADD COLUMN client_key TEXT;
CREATE UNIQUE INDEX survey_responses_by_client_key ON survey_responses (survey, client_key) WHERE client_key IS NOT NULL;
"""
