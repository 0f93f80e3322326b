"""Reports: figures about a project's conversations, computed from the rows stored at the moment they are asked for."""
