"""What the definitions of surveys and of workflows have in common: their rules, and checks of any JSON."""
