"""What the program does not need itself, each part as a package of others would add it.

Nothing imports from here: each part is registered by entry points of ``pyproject.toml`` alone.
docs/reference/plugins.md describes their groups.
"""
