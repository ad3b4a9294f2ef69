"""Write requirements/constraints.txt: exact versions for the development environment.

Resolves the base package with its `cpu` and `dev` extras once for each supported Python, and
merges the answers. A version that holds for all of them stands alone; one that does not gets an
environment marker. Run it with `make lock`.
"""

from __future__ import annotations

import sys
from collections import defaultdict

from scripts.resolve import ROOT, NotResolvedError, Platform, declared, resolve

PYTHONS = ("3.10", "3.11", "3.12", "3.13")
EXTRAS = ("cpu", "dev")
HEADER = f"""\
# Exact versions that the tests run with. Written by `make lock`; do not edit by hand.
# Linux x86_64, Python {PYTHONS[0]} to {PYTHONS[-1]}, extras: {", ".join(EXTRAS)}.
"""


def marker(pythons: list[str]) -> str:
    """Return the environment marker that selects a run of neighbouring Python versions."""
    parts = []
    if pythons[0] != PYTHONS[0]:
        parts.append(f'python_version >= "{pythons[0]}"')
    if pythons[-1] != PYTHONS[-1]:
        after = PYTHONS[PYTHONS.index(pythons[-1]) + 1]
        parts.append(f'python_version < "{after}"')
    return f"; {' and '.join(parts)}" if parts else ""


def constraint_lines(resolved: dict[str, dict[str, str]]) -> list[str]:
    """Return the lines of the file for {python: {name: version}}."""
    pythons_of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for python in PYTHONS:
        for name, version in resolved[python].items():
            pythons_of[name, version].append(python)
    by_name_then_python = sorted(pythons_of.items(), key=lambda row: (row[0][0], row[1]))
    return [
        f"{name}=={version}{marker(pythons)}" for (name, version), pythons in by_name_then_python
    ]


def main() -> int:
    """Resolve, and write the file only when every Python has an answer."""
    resolved = {}
    for python in PYTHONS:
        print(f"Python {python} …", file=sys.stderr)
        try:
            resolved[python] = resolve(Platform(python, "x86_64", 31), declared(EXTRAS))
        except NotResolvedError as error:
            print(f"Python {python}: {error}", file=sys.stderr)
            return 1
    path = ROOT / "requirements" / "constraints.txt"
    path.write_text(HEADER + "\n".join(constraint_lines(resolved)) + "\n", encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
