"""dld-tui: open, inspect, edit, check, build and profile neural networks in a terminal."""

__version__ = "0.1.0"
