"""``dld`` and ``python -m dld_tui``."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line of this process and return its exit status."""
    try:
        from dld_tui.cli.main import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:  # while Python was still importing
        sys.stderr.write("dld: cancelled\n")
        if "--json" in sys.argv:
            error = '{"message": "cancelled", "where": null, "hint": null}'
            sys.stdout.write(f'{{"error": {error}, "status": 130}}\n')
        return 130


if __name__ == "__main__":
    sys.exit(main())
