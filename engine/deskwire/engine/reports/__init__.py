"""Reports: figures about a project's conversations, computed from what is stored at the moment they are asked for."""
