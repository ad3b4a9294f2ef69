"""A module whose ``main`` crashes as a library does."""

from __future__ import annotations

import os


def main() -> None:
    """End this process by a signal."""
    os.abort()
