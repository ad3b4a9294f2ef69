"""Versions of TensorRT's libraries, and what goes with them."""

from __future__ import annotations

from importlib import metadata

import pytest

from dld_tui.core.tensorrt.capabilities import (
    DEFAULT_VERSION,
    RTX_VERSION,
    LibraryCapabilities,
    newest_opset,
    trtexec_version,
)


@pytest.mark.parametrize(
    ("module", "version", "numbers", "opset"),
    [
        ("tensorrt", "7.2.3", (7, 2, 3), None), ("tensorrt", "8.0.1.6", (8, 0, 1, 6), 13),
        ("tensorrt", "8.5", (8, 5), 17), ("tensorrt", "9.3", (9, 3), 19),
        ("tensorrt", "10.13.3", (10, 13, 3), 20), ("tensorrt", "10.14", (10, 14), 23),
        ("tensorrt", "11.4", (11, 4), 24), ("tensorrt", "12.0", (12, 0), 25),
        ("tensorrt", "10.x", (), None), ("tensorrt_rtx", "10.14", (10, 14), None),
    ],
)  # fmt: skip
def test_the_newest_opset(
    module: str, version: str, numbers: tuple[int, ...], opset: int | None
) -> None:
    library = LibraryCapabilities("auto", module, version)
    assert library.version_numbers == numbers
    assert newest_opset(library) == opset


def test_the_version_of_trtexec_is_that_of_the_first_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed = {"tensorrt-cu12": "10.12", "tensorrt-cu13": "10.13", "tensorrt": "10.14"}

    def version(name: str) -> str:
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(metadata, "version", version)
    for expected in ("10.14", "10.13", "10.12", DEFAULT_VERSION):
        assert trtexec_version("auto") == trtexec_version("tensorrt") == expected
        assert trtexec_version("tensorrt_rtx") == RTX_VERSION
        if installed:
            installed.popitem()
