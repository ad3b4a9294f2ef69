"""The timing cache: measured tactics, kept from build to build."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.backends.tensorrt_library import Library
from dld_tui.core.errors import DldError
from dld_tui.core.files.writer import write_pieces
from dld_tui.core.paths import cache_dir, ensure
from dld_tui.core.tensorrt.facts import LibraryFacts
from dld_tui.core.tensorrt.settings import BuildSettings

if TYPE_CHECKING:
    import tensorrt as trt

_LARGEST = 1 << 30


@dataclass
class TimingCache:
    """The timing cache of one build."""

    path: Path
    state: str
    """``new``, ``used``, ``refused`` (of another version or device) or ``none``."""
    entries_before: int | None = None
    """None where the library does not tell."""
    entries_after: int | None = None
    cache: trt.ITimingCache | None = None

    def facts(self) -> dict[str, str | int | None]:
        """Return what the record of a build keeps."""
        return {
            "path": str(self.path),
            "state": self.state,
            "entries_before": self.entries_before,
            "entries_after": self.entries_after,
        }


def cache_path(settings: BuildSettings, facts: LibraryFacts, device: str) -> Path:
    """Return the file: the one that was given, else one a library version and device."""
    if settings.timing_cache is not None:
        return settings.timing_cache
    name = re.sub(r"[^A-Za-z0-9.]+", "-", f"{facts.module}-{facts.version}-{device}").strip("-")
    return cache_dir() / "tensorrt" / f"{name[:160]}.timing"


def attach(
    config: trt.IBuilderConfig, settings: BuildSettings, library: Library, device: str
) -> TimingCache | None:
    """Give a build its timing cache; None when it is to have none or the library keeps none."""
    facts = library.facts
    keeps = "IBuilderConfig.create_timing_cache" in facts.has and facts.module != "tensorrt_rtx"
    if settings.no_timing_cache or not keeps:
        return None
    path = cache_path(settings, facts, device)
    data = _read(path)
    state = "used" if data else "new"
    cache = config.create_timing_cache(data)
    if cache is None or not config.set_timing_cache(cache, False):
        state = "refused"
        cache = config.create_timing_cache(b"")
        config.set_timing_cache(cache, False)
    return TimingCache(path, state, _entries(cache, facts), cache=cache)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError:
        return b""
    return data if len(data) <= _LARGEST else b""


def _entries(cache: trt.ITimingCache, facts: LibraryFacts) -> int | None:
    return len(cache.queryKeys()) if "ITimingCache.queryKeys" in facts.has else None


def save(
    timing: TimingCache, config: trt.IBuilderConfig, settings: BuildSettings, library: Library
) -> str:
    """Write the cache of a build that is done, together with what another build wrote meanwhile.

    Returns:
        Why it could not be written; empty when it was. The engine is good in any case.
    """
    facts = library.facts
    cache = config.get_timing_cache() or timing.cache
    if cache is None:
        return "the library gives no timing cache"
    timing.entries_after = _entries(cache, facts)
    try:
        other = _read(timing.path)
        if other and timing.state != "refused" and "ITimingCache.combine" in facts.has:
            found = config.create_timing_cache(other)
            if found is not None:
                cache.combine(found, False)
        if settings.timing_cache is None:
            ensure(timing.path.parent)
        write_pieces(timing.path, [bytes(cache.serialize())])
    except (OSError, DldError) as error:
        return f"the timing cache cannot be kept: {error}"
    return ""
