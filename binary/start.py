"""Where the single executable begins. As a script, `deskwire/__main__.py` would have its neighbour `http` found first."""

from deskwire.__main__ import main

main()
