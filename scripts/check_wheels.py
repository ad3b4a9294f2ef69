"""Show that every dependency resolves to wheels for Jetson: aarch64, Python 3.10 and 3.12.

Prints one row for each direct dependency and fails when a set does not resolve, unless the reason
is known and written below. Nothing is downloaded but metadata. Run it with `make wheels`.
"""

from __future__ import annotations

import sys

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts.resolve import NotResolvedError, Platform, declared, resolve

PLATFORMS = {
    "JetPack 6 (Python 3.10)": Platform("3.10", "aarch64", 35),
    "JetPack 7 (Python 3.12)": Platform("3.12", "aarch64", 39),
}
SETS = (
    "cpu", "gpu", "keyring", "parquet", "excel", "pictures", "agents", "polygraphy", "simplify",
    "fast",
)  # fmt: skip
KNOWN = {
    ("3.10", "onnxruntime-gpu"): "no such wheel for Python 3.10: NVIDIA publishes Jetson builds "
    "of onnxruntime-gpu elsewhere (docs/start/install.md)",
}


def resolve_set(platform: Platform, extra: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the versions found, and {name: reason} of known exceptions that were left out."""
    requirements = declared((extra,))
    excused: dict[str, str] = {}
    for requirement in list(requirements):
        name = canonicalize_name(Requirement(requirement).name)
        if (platform.python, name) not in KNOWN:
            continue
        try:  # an exception that is no longer needed must not hide behind its own note
            resolve(platform, [requirement])
        except NotResolvedError:
            excused[name] = KNOWN[platform.python, name]
            requirements.remove(requirement)
    return resolve(platform, requirements), excused


def main() -> int:
    """Resolve the base package with each extra on each platform and print the table."""
    columns: list[dict[str, str]] = []
    notes: set[str] = set()
    failures = []
    for title, platform in PLATFORMS.items():
        column: dict[str, str] = {}
        for extra in SETS:
            print(f"{title}: base + {extra} …", file=sys.stderr)
            try:
                versions, excused = resolve_set(platform, extra)
            except NotResolvedError as error:
                failures.append(f"{title}, base + {extra}: {error}")
                continue
            column |= versions | dict.fromkeys(excused, "none (1)")
            notes |= set(excused.values())
        columns.append(column)
    direct = {canonicalize_name(Requirement(line).name): None for line in sorted(declared(SETS))}
    print(f"{'package':<20}" + "".join(f"{title:>26}" for title in PLATFORMS))
    for name in direct:
        print(f"{name:<20}" + "".join(f"{column.get(name, '–'):>26}" for column in columns))
    counts = (f"{len(column)} packages" for column in columns)
    print(f"{'with theirs':<20}" + "".join(f"{count:>26}" for count in counts))
    for note in sorted(notes):
        print(f"(1) {note}")
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
