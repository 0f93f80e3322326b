"""Who works here and for whom: organisations, their projects and members, and what lets them in."""
