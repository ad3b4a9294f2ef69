"""Choosing tactics by a selector or the timing cache, and the cache itself.

Which of the two a library has is told by :func:`dld_tui.core.tensorrt.tactics.reason_against`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.backends.tensorrt.library import Library
from dld_tui.backends.tensorrt.log import BuildLog
from dld_tui.backends.tensorrt.network import builder_for
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, DldError, InputError
from dld_tui.core.files.writer import write_pieces
from dld_tui.core.process.paths import cache_dir, ensure
from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.tensorrt.tactics import (
    Choices,
    Tactic,
    TensorForm,
    by_time,
    parse_replay,
    replay_text,
)
from dld_tui.core.text import clip, visible

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

    def description(self) -> dict[str, str | int | None]:
        """Return what the record of a build keeps."""
        return {
            "path": str(self.path),
            "state": self.state,
            "entries_before": self.entries_before,
            "entries_after": self.entries_after,
        }


def cache_path(settings: BuildSettings, capabilities: LibraryCapabilities, device: str) -> Path:
    """Return the file: the one that was given, else one a library version and device."""
    if settings.timing_cache is not None:
        return settings.timing_cache
    name = re.sub(
        r"[^A-Za-z0-9.]+", "-", f"{capabilities.module}-{capabilities.version}-{device}"
    ).strip("-")
    return cache_dir() / "tensorrt" / f"{name[:160]}.timing"


def attach(
    config: trt.IBuilderConfig, settings: BuildSettings, library: Library, device: str
) -> TimingCache | None:
    """Give a build its timing cache; None when it is to have none or the library keeps none."""
    capabilities = library.capabilities
    keeps = (
        "IBuilderConfig.create_timing_cache" in capabilities.has
        and capabilities.module != "tensorrt_rtx"
    )
    if settings.no_timing_cache or not keeps:
        return None
    path = cache_path(settings, capabilities, device)
    data = _read(path)
    state = "used" if data else "new"
    cache = config.create_timing_cache(data)
    if cache is None or not config.set_timing_cache(cache, False):
        state = "refused"
        cache = config.create_timing_cache(b"")
        config.set_timing_cache(cache, False)
    return TimingCache(path, state, _entries(cache, capabilities), cache=cache)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError:
        return b""
    return data if len(data) <= _LARGEST else b""


def _entries(cache: trt.ITimingCache, capabilities: LibraryCapabilities) -> int | None:
    return len(cache.queryKeys()) if "ITimingCache.queryKeys" in capabilities.has else None


def save(
    timing: TimingCache, config: trt.IBuilderConfig, settings: BuildSettings, library: Library
) -> str:
    """Write the cache of a build that is done, together with what another build wrote meanwhile.

    Returns:
        Why it could not be written; empty when it was. The engine is good in any case.
    """
    capabilities = library.capabilities
    cache = config.get_timing_cache() or timing.cache
    if cache is None:
        return "the library gives no timing cache"
    timing.entries_after = _entries(cache, capabilities)
    try:
        other = _read(timing.path)
        if other and timing.state != "refused" and "ITimingCache.combine" in capabilities.has:
            present = config.create_timing_cache(other)
            if present is not None:
                cache.combine(present, False)
        if settings.timing_cache is None:
            ensure(timing.path.parent)
        write_pieces(timing.path, [bytes(cache.serialize())], overwrite=True)
    except (OSError, DldError) as error:
        return f"the timing cache cannot be kept: {error}"
    return ""


if TYPE_CHECKING:
    import tensorrt as trt
else:
    from dld_tui.backends.tensorrt.library import trt

_NAMED = 3
"""Layers that a message names, at most."""


@dataclass
class TacticSelection:
    """The tactics of one build: those to take, and what was offered and taken."""

    forced: Choices = field(default_factory=dict)
    offers: dict[str, tuple[Tactic, ...]] = field(default_factory=dict)
    taken: dict[str, Tactic] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    """Layers to which the tactic that was asked for is not offered. Untrusted text."""
    unknown: list[str] = field(default_factory=list)
    """Layers that the choices do not name. Untrusted text."""
    error: BaseException | None = None
    """What went wrong in a call of the library, through which it must not be raised."""

    def problem(self) -> str:
        """Return which layers did not get what was asked for; empty when all did."""
        lost = [
            name for name, tactic in self.forced.items() if self.taken.get(name, tactic) != tactic
        ]
        layers = list(dict.fromkeys([*self.missing, *lost]))
        if not layers:
            return ""
        names = fmt.listed([clip(visible(name), 60) for name in layers], _NAMED)
        return f"the library does not offer the tactic of the replay for {names}"


def selector_of(selection: TacticSelection) -> trt.IAlgorithmSelector:
    """Return the selector of a build. It must live as long as the build."""

    class Selector(trt.IAlgorithmSelector):
        """Asked for each layer, then told what was taken."""

        def __init__(self) -> None:
            trt.IAlgorithmSelector.__init__(self)

        def select_algorithms(
            self, context: trt.IAlgorithmContext, choices: list[trt.IAlgorithm]
        ) -> list[int]:
            """Return the tactics to choose from, by their numbers."""
            every = list(range(len(choices)))
            try:
                return _selected(selection, context, choices) or every
            except Exception as error:  # noqa: BLE001 - the library calls
                selection.error = error
                return every

        def report_algorithms(
            self, contexts: list[trt.IAlgorithmContext], choices: list[trt.IAlgorithm]
        ) -> None:
            """Keep what was taken."""
            try:
                for context, choice in zip(contexts, choices, strict=True):
                    selection.taken[context.name] = _tactic_of(context, choice)
            except Exception as error:  # noqa: BLE001 - the library calls
                selection.error = error

    return Selector()


def _selected(
    selection: TacticSelection, context: trt.IAlgorithmContext, choices: Sequence[trt.IAlgorithm]
) -> list[int]:
    """Keep what is offered; return what is to be taken of it, nothing when it is all the same."""
    name = context.name
    offered = [_tactic_of(context, choice) for choice in choices]
    selection.offers[name] = by_time([*selection.offers.get(name, ()), *offered])
    wanted = selection.forced.get(name)
    if wanted is None:
        if selection.forced:
            selection.unknown.append(name)
        return []
    if wanted not in offered:
        selection.missing.append(name)
        return []
    return [offered.index(wanted)]


def _tactic_of(context: trt.IAlgorithmContext, algorithm: trt.IAlgorithm) -> Tactic:
    variant = algorithm.algorithm_variant
    taken, outputs = context.num_inputs, context.num_outputs
    forms = [_form(algorithm.get_algorithm_io_info(at)) for at in range(taken + outputs)]
    return Tactic(
        int(variant.tactic),
        int(variant.implementation),
        tuple(forms[:taken]),
        tuple(forms[taken:]),
        ms=float(algorithm.timing_msec),
    )


def _form(info: trt.IAlgorithmIOInfo) -> TensorForm:
    # The last two came with 8.6.
    vectorized, components = (
        getattr(info, name, None) for name in ("vectorized_dim", "components_per_element")
    )
    return TensorForm(info.dtype.name, tuple(map(int, info.strides)), vectorized, components)


def selection_for(settings: BuildSettings) -> TacticSelection | None:
    """Return what the settings of a build say of tactics; None when they say nothing.

    Raises:
        InputError: The replay file cannot be read.
    """
    if settings.tactic_replay is None:
        return None if settings.save_tactics is None else TacticSelection()
    path = settings.tactic_replay
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"it cannot be read: {error}", where=str(path)) from None
    return TacticSelection(parse_replay(text, str(path)))


def conclude(selection: TacticSelection, settings: BuildSettings, is_built: bool) -> list[str]:
    """Check that a build took what it was to take, and write what it took.

    Returns:
        Remarks. Fit for a terminal.

    Raises:
        ActivityError: It did not, or the library told what cannot be understood.
        SaveError: The file cannot be written.
    """
    if selection.error is not None:
        raise ActivityError(
            f"choosing tactics failed: {visible(str(selection.error))}"
        ) from selection.error
    if is_built and settings.tactic_replay is not None and (problem := selection.problem()):
        raise ActivityError(
            problem,
            where=str(settings.tactic_replay),
            hint="The model, the settings or the library are not those of the replay",
        )
    if is_built and settings.save_tactics is not None:
        write_pieces(settings.save_tactics, [replay_text(selection.taken).encode()])
    if settings.tactic_replay is not None and selection.unknown:
        count = len(set(selection.unknown))
        return [
            f"{count:,} of the layers are not in the tactic replay: the library chose their tactics"
        ]
    return []


class CacheEditor:
    """Reads and edits timing caches.

    Raises:
        UnavailableError: The library makes no builder here.
    """

    def __init__(self, library: Library) -> None:
        self._log = BuildLog(None, lambda _: None)
        self._title = library.capabilities.title
        self._builder = builder_for(self._log, library, where="")
        self._config = self._builder.create_builder_config()
        self._config.set_flag(trt.BuilderFlag.EDITABLE_TIMING_CACHE)

    def entries(self, path: Path) -> dict[str, Tactic]:
        """Return the tactics of a cache by the text of their keys.

        Raises:
            InputError: It is no timing cache of this library.
        """
        cache = self._read(path)
        entries = {}
        for key in cache.queryKeys():
            value = cache.query(key)
            entries[str(key)] = Tactic(int(value.tacticHash), ms=float(value.timingMSec))
        return entries

    def edit(self, path: Path, choices: Choices, out: Path) -> list[str]:
        """Write a cache in which layers have other tactics.

        Returns:
            The keys that could not be changed, mostly none.

        Raises:
            InputError: It is no timing cache of this library.
            SaveError: The new one cannot be written.
        """
        cache = self._read(path)
        missing = []
        for text, tactic in choices.items():
            key = trt.TimingCacheKey.parse(text)
            old = cache.query(key)
            if int(old.tacticHash) == tactic.tactic:
                continue
            time = 0.0 if tactic.ms is None else tactic.ms
            if not cache.update(key, trt.TimingCacheValue(tactic.tactic, time)):
                missing.append(text)
        write_pieces(out, [bytes(cache.serialize())])
        return missing

    def _read(self, path: Path) -> trt.ITimingCache:
        try:
            cache = self._config.create_timing_cache(path.read_bytes())
        except OSError as error:
            raise InputError(f"it cannot be read: {error}", where=str(path)) from None
        if cache is None:
            raise InputError(f"is not a timing cache of {self._title}", where=str(path))
        return cache
