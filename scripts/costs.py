"""Print what each extra costs on a machine: what is downloaded, and the room it takes on the disk.

The wheels of the base package, and those that each extra adds to it, are downloaded into a scratch
folder, and what they unpack to is counted in blocks of 4 KiB. Run it with `make costs`; the table
is that of docs/start/install.md.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import tomlkit

from scripts.resolve import ROOT, NotResolvedError, Platform, declared, resolve

PLATFORMS = {
    "x86_64": Platform("3.12", "x86_64", 36),
    "JetPack 6": Platform("3.10", "aarch64", 35),
    "JetPack 7": Platform("3.12", "aarch64", 39),
}
BLOCK = 4096


def unpacked(wheel: Path) -> int:
    """Return the bytes that the files of a wheel take on a disk."""
    with zipfile.ZipFile(wheel) as archive:
        return sum(-(-info.file_size // BLOCK) * BLOCK for info in archive.infolist())


def fetch(platform: Platform, name: str, version: str, folder: Path) -> Path:
    """Download one wheel, unless it is there, and return where it is."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--python-version", platform.python]
    for tag in platform.tags:
        command += ["--platform", tag]
    place = folder / f"{name}-{version}"
    if not place.exists():
        command += ["--dest", str(place), f"{name}=={version}"]
        subprocess.run(command, check=True)
    return next(place.glob("*.whl"))


def cost(platform: Platform, extra: str, folder: Path) -> dict[str, tuple[int, int]]:
    """Return {package: (bytes to download, bytes on the disk)} of the base and an extra.

    Raises:
        NotResolvedError: The extra, or a part of it, has no wheel there.
    """
    found = {}
    extras = (extra,) if extra else ()
    for name, version in resolve(platform, declared(extras)).items():
        wheel = fetch(platform, name, version, folder)
        found[name] = (wheel.stat().st_size, unpacked(wheel))
    return found


def cell(packages: dict[str, tuple[int, int]]) -> str:
    """Return megabytes to download and on the disk."""
    down, disk = (sum(size[index] for size in packages.values()) / 1e6 for index in (0, 1))
    return f"{down:,.0f} / {disk:,.0f}" if disk >= 10 else f"{down:.1f} / {disk:.1f}"


def main() -> int:
    """Print a row for each extra, as megabytes downloaded and on the disk."""
    project = tomlkit.parse((ROOT / "pyproject.toml").read_text(encoding="utf-8")).unwrap()
    extras = [name for name in project["project"]["optional-dependencies"] if name != "dev"]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extra", nargs="*", default=extras, help="those to measure; all")
    parser.add_argument("--on", choices=PLATFORMS, default="JetPack 6", help="the machine")
    asked = parser.parse_args()
    platform = PLATFORMS[asked.on]
    print(f"| extra | {asked.on}: MB to download / on the disk |\n|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        base = cost(platform, "", Path(scratch))
        print(f"| none | {cell(base)} |", flush=True)
        for extra in asked.extra:
            try:
                both = cost(platform, extra, Path(scratch))
            except NotResolvedError:
                told = "no wheel"
            else:
                told = cell({name: size for name, size in both.items() if name not in base})
            print(f"| `{extra}` | {told} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
