"""A module whose ``main`` never ends."""

from __future__ import annotations

import signal


def main() -> None:
    """Wait until this process is killed."""
    while True:
        signal.pause()
