"""``dld`` and ``python -m dld_tui``."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line of this process and return its exit status."""
    try:
        from dld_tui.cli.main import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:  # while Python was still importing
        return 130


if __name__ == "__main__":
    sys.exit(main())
