"""A wheel of a few bytes, to be installed in tests without any network."""

from __future__ import annotations

import zipfile
from pathlib import Path


def write_wheel(folder: Path, name: str = "tinymod", version: str = "1.5") -> Path:
    """Write a wheel that holds one module, part of it in its data folder."""
    info = f"{name}-{version}.dist-info"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", "value = 1\n")
        wheel.writestr(f"{name}-{version}.data/purelib/{name}/more.py", "value = 2\n")
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    return path
