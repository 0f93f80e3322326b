"""`deskwire demo`: replay support chats through the API and check every event that comes out."""
