"""The nodes of one installation: who is there, who does what only one may do, and when all have forgotten something."""
