"""The version of an installed library, without loading it."""

from __future__ import annotations

from importlib import metadata

DEFAULT_VERSION = "10.16"
"""The last version whose types are weak; taken where nothing is installed."""
RTX_VERSION = "11"
"""The version of TensorRT that TensorRT-RTX is most like."""


def trtexec_version(library: str) -> str:
    """Return the version of trtexec that goes with a library, such as ``10.13.0``.

    Args:
        library: As in the settings of a build.
    """
    if library == "tensorrt_rtx":
        return RTX_VERSION
    for name in ("tensorrt", "tensorrt-cu13", "tensorrt-cu12"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return DEFAULT_VERSION
