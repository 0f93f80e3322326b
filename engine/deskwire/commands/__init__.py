"""The commands of `deskwire`, a folder for each family."""
