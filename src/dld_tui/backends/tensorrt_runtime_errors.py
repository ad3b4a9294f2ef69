"""What a TensorRT library says when it cannot load or run an engine, as one line that helps."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dld_tui.core.errors import ActivityError, DldError, InputError, UnavailableError
from dld_tui.core.files.engine_header import EngineHeader
from dld_tui.core.text import visible

_LONGEST = 300
_PLACE = re.compile(r"^\s*(?:\w+: )?(?:IRuntime::|IExecutionContext::)?\w*:?\s*Error Code \d+: ")
_SOURCE = re.compile(r"\s*\((?:In|at) [^()]*\.(?:cpp|h):\d+\)\s*$|\[[\w./]+\.(?:cpp|h)::[^\]]*\]")
_CAPABILITIES = re.compile(r"[Ss]upported compute capabilit\w*:\s*(None|[\d., >]*\d)")
_NEVER = re.compile(r"does not support this compute capability|SM \S+ is not supported")
_PLUGIN = re.compile(
    r"could not find plugin:?\s*(\S+)|[Pp]lugin creator not found.*?[Nn]ame:? ?(\S+)"
    r"|Cannot deserialize plugin (?:layer |with type )?['\"]?([\w:]+)"
    r"|(IPluginCreator) not found",
)
_MEMORY = re.compile(
    r"[Oo]ut ?[Oo]f ?[Mm]emory|OUT_OF_MEMORY|std::bad_alloc|failed to allocate|bad_alloc"
)
_VERSION = re.compile(
    r"not compatible with this version|[Vv]ersion tag does not match|expecting library version"
    r"|[Ss]erialization.{0,40}(?:assertion|version).{0,60}(?:failed|does not match)"
)
_DEVICE = re.compile(
    r"incompatible device|different (?:GPU|device)|generated on.{0,40}device"
    r"|[Cc]ompute capabilit|platform.{0,30}(?:mismatch|does not match)"
)
_DAMAGED = re.compile(
    r"[Mm]agic tag|truncated|[Dd]eserializ.{0,40}(?:fail|error)|corrupt|[Cc]hecksum|size.*mismatch"
)


def loading_problem(
    errors: Iterable[str], header: EngineHeader | None, library: str, device: str, where: str
) -> DldError:
    """Return why an engine was not loaded.

    Args:
        errors: What the library said. Foreign text.
        header: What the engine says of itself.
        library: Which one it is, such as ``TensorRT 10.13.0``.
        device: Of the machine, such as ``compute capability 9.0``; empty when unknown.
        where: The file.
    """
    said = list(errors)
    text = "\n".join(said)
    made_with = header.text if header is not None else "an unknown library"
    if found := _CAPABILITIES.search(text):
        return _unsupported(found[1], bool(_NEVER.search(text)), library, device, where)
    if _VERSION.search(text):
        return InputError(
            f"the engine was built by {made_with}, but this is {library}",
            where=where,
            hint="Build it again with this version, or as version compatible",
        )
    if plugin := _PLUGIN.search(text):
        name = next((part for part in plugin.groups() if part), "")
        known = f" {visible(name)}" if name and name != "IPluginCreator" else ""
        return UnavailableError(
            f"a plugin is missing{known}", where=where, hint="Give its library with --plugins FILE"
        )
    if _MEMORY.search(text):
        return out_of_memory(where)
    if _DEVICE.search(text):
        gpu = f", not for this one ({device})" if device else ""
        return InputError(
            f"the engine was built for another GPU{gpu}; it is of {made_with}",
            where=where,
            hint="Build it again on this GPU, or as hardware compatible",
        )
    if _DAMAGED.search(text):
        return InputError(
            f"the engine is damaged or of another library: it is of {made_with}",
            where=where,
            details=text,
        )
    return ActivityError(
        f"{library} does not load the engine{_reason(said)}", where=where, details=text or None
    )


def _unsupported(listed: str, never: bool, library: str, device: str, where: str) -> DldError:
    """Return the error of TensorRT-RTX, whose engines name the compute capabilities they run on."""
    gpu = f" ({device})" if device else ""
    numbers = ", ".join(listed.replace(",", " ").split()).replace("None", "none")
    if never:
        return UnavailableError(
            f"{library} does not run on this GPU{gpu}; supported compute capabilities of the"
            f" engine: {numbers}",
            where=where or None,
            hint="Use a GPU that it supports, or TensorRT",
        )
    return InputError(
        f"the engine does not run on this GPU{gpu}; its supported compute capabilities: {numbers}",
        where=where,
        hint="Build it again for this GPU, see --compute-capability",
    )


def running_problem(errors: Iterable[str], doing: str, where: str) -> DldError:
    """Return why an engine does not do what was asked of it."""
    said = list(errors)
    text = "\n".join(said)
    if _MEMORY.search(text):
        return out_of_memory(where)
    return ActivityError(f"{doing} failed{_reason(said)}", where=where, details=text or None)


def out_of_memory(where: str) -> ActivityError:
    """Return the error of a GPU whose memory is full."""
    return ActivityError(
        "the GPU has not enough memory for the engine",
        where=where,
        hint="Use a smaller batch or profile, or end other programs on the GPU",
    )


def _reason(said: list[str]) -> str:
    """Return what was said last but for the places in the library's sources."""
    for text in reversed(said):
        plain = _SOURCE.sub("", _PLACE.sub("", text)).strip()
        if plain:
            return f": {visible(plain).rstrip('.')[:_LONGEST]}"
    return ""
