"""Arguments as trtexec and Polygraphy take them, brought to one value an option.

Both the command line of ``dld build`` and pasted commands pass through :func:`plain_arguments`;
what it leaves is what the declaration of the settings knows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dld_tui.core.errors import UsageError
from dld_tui.core.tensorrt.shape_texts import MOST_PROFILES, with_profile
from dld_tui.core.tensorrt.values import mebibytes

SHAPE_OPTIONS = frozenset(
    (
        "--min-shapes", "--minShapes", "--trt-min-shapes", "--opt-shapes", "--optShapes",
        "--trt-opt-shapes", "--max-shapes", "--maxShapes", "--trt-max-shapes",
    )
)  # fmt: skip
_NAMED = re.compile(r"[^-].*:.*")
_WORD = re.compile(r"\+?[A-Za-z]\w*|-[A-Z_]{3,}")
_NUMBERS = re.compile(r"\d+\.\d+")
_LIBRARY = re.compile(r"[^-].*\.(so|dll)[\d.]*")
_SEVERAL = {
    "--trt-min-shapes": _NAMED,
    "--trt-opt-shapes": _NAMED,
    "--trt-max-shapes": _NAMED,
    "--input-shapes": _NAMED,
    "--pool-limit": _NAMED,
    "--memory-pool-limit": _NAMED,
    "--layer-precisions": _NAMED,
    "--tactic-sources": _WORD,
    "--preview-features": _WORD,
    "--compute-capabilities": _NUMBERS,
    "--plugins": _LIBRARY,
    "--tiling-optimization-level": _WORD,
}
"""Polygraphy's options that take several values, and what these look like."""
_EMPTY = {"--tactic-sources": "NONE"}
"""What an option without a value means."""
_TILING = {"none": "0", "fast": "1", "moderate": "2", "full": "3"}
_BYTES = re.compile(r"[\d.]+(?:[eE][+-]?\d+)?")


def plain_arguments(arguments: Sequence[str]) -> list[str]:
    """Return arguments with one value an option, as ``--option=value``.

    ``--profile=N`` goes into the shapes that follow it, ``--onnx=MODEL`` becomes the model, lists
    of Polygraphy become options that come again, and its sizes in bytes say so.

    Raises:
        UsageError: ``--profile`` has no number, or a size cannot be read.
    """
    plain: list[str] = []
    profile: int | None = None
    waiting = list(arguments)
    while waiting:
        argument = waiting.pop(0)
        if argument == "--":
            return [*plain, argument, *waiting]
        option, equals, value = argument.partition("=")
        values = [value] if equals else _following(option, waiting)
        if option in ("--profile", "--onnx") and not values and waiting:
            values = [waiting.pop(0)]
        if option == "--profile":
            profile = _profile(values)
        elif option == "--onnx" and values:
            plain += values
        elif option in SHAPE_OPTIONS and profile is not None and values:
            plain += [f"{option}={with_profile(profile, value)}" for value in values]
        elif values:
            plain += [f"{option}={_plain(option, value)}" for value in values]
        else:
            plain.append(argument)
    return plain


def _following(option: str, waiting: list[str]) -> list[str]:
    """Take the values after an option that takes several; empty for other options."""
    form = _SEVERAL.get(option)
    if form is None:
        if option in SHAPE_OPTIONS and waiting and not waiting[0].startswith("--"):
            return [waiting.pop(0)]
        return []
    found = []
    while waiting and form.fullmatch(waiting[0]):
        found.append(waiting.pop(0))
    if not found and option in _EMPTY:
        found.append(_EMPTY[option])
    return found


def _profile(values: Sequence[str]) -> int:
    text = values[0] if values else ""
    if not text.isdecimal() or len(text) > 4 or int(text) >= MOST_PROFILES:
        raise UsageError(f"--profile {text!r} is not a number from 0 to {MOST_PROFILES - 1}")
    return int(text)


def _plain(option: str, value: str) -> str:
    if option in ("--pool-limit", "--memory-pool-limit"):
        # Polygraphy counts bytes where trtexec counts mebibytes.
        pool, _, size = value.rpartition(":")
        return f"{pool}:{size}B" if _BYTES.fullmatch(size) else value
    if option == "--workspace" and not _BYTES.fullmatch(value):
        return repr(mebibytes(value))
    if option in ("--tilingOptimizationLevel", "--tiling-optimization-level"):
        return _TILING.get(value.lower(), value)
    return value
