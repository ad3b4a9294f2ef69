"""The start page, and what every page can open."""
