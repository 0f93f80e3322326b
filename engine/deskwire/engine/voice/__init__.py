"""Voice replies: turns a recording and a ticket into a text to send."""
