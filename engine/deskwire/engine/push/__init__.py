"""Web push: notifications for agents who have closed the desk, sent by the push services of their browsers."""
