"""dld-tui: open, inspect, edit, check, build and profile neural networks in a terminal."""

__version__ = "1.0.0rc1"
