"""Making one plan of the files that were found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dld_tui.core.errors import InputError
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.plan.archive import text_of_file
from dld_tui.core.plan.file_set import file_name
from dld_tui.core.plan.folding import fold, profile_indices
from dld_tui.core.plan.layer_forms import RawPlan, find_layers, modes_of, read_bindings
from dld_tui.core.plan.layers import read_layers
from dld_tui.core.plan.macs import with_weights
from dld_tui.core.plan.metadata_files import (
    CONFIGURATIONS,
    device_of,
    io_modes,
    model_of,
    read_metadata,
)
from dld_tui.core.plan.model import EngineLayer, EnginePlan, EngineTensor
from dld_tui.core.plan.parts import Parts, note_choice
from dld_tui.core.plan.profile_file import (
    Joined,
    LayerProfile,
    join_profile,
    profile_of_rows,
    rows_of_file,
)
from dld_tui.core.plan.timing_choice import timing_of
from dld_tui.core.plan.trtexec_log import Tactics, TrtexecLog, read_log
from dld_tui.core.plan.values import objects_of
from dld_tui.core.types import JSON

_METADATA = ("profile.metadata", "build.metadata", "metadata", "build", *CONFIGURATIONS)
_NAMES_ONLY = (
    "names only: the engine was built without detailed profiling; rebuild it with"
    " --profilingVerbosity=detailed to see shapes, types and tactics"
)
_PROFILE_ONLY = (
    "names and times only: give the layer information (trtexec --exportLayerInfo) to see shapes,"
    " types and tactics"
)


def assemble(parts: Parts) -> EnginePlan:
    """Return the plan.

    Raises:
        InputError: A file cannot be read, or is something else.
    """
    raw, profile = _layers_of(parts)
    found = read_layers(raw.layers, str(parts.graph))
    parts.notes += raw.notes + found.oddities.notes()
    if profile is None and parts.roles.get("profile"):
        joined = _best_profile(parts, found.layers)
    else:
        joined = _joined(found.layers, profile)
    parts.notes += joined.notes
    _read_metadata(parts)
    _read_logs(parts)
    timing = timing_of(parts, joined.total_ms)
    if found.names_only:
        parts.notes.append(_NAMES_ONLY if parts.files.get("graph") else _PROFILE_ONLY)
    joined.layers = _with_tactics(joined.layers, parts.tactics)
    layers, index, count = _of_one_profile(parts, joined.layers)
    modes = io_modes(parts.metadata) | (parts.log.modes if parts.log is not None else {})
    told = raw.bindings or tuple(EngineTensor(name, None, "", "", "") for name in modes)
    bindings = _bindings(
        tuple(replace(one, mode=one.mode or modes.get(one.name, "")) for one in told), layers
    )
    return EnginePlan(
        path=str(parts.path),
        title=_title(parts.path),
        layers=tuple(
            map(with_weights, fold(layers, frozenset(tensor.name for tensor in bindings)))
        ),
        all_layers=joined.layers,
        bindings=bindings,
        names_only=found.names_only,
        passes=joined.passes,
        total_ms=joined.total_ms,
        timing=timing,
        device=device_of(parts.metadata),
        metadata=parts.metadata,
        model_path=model_of(parts.metadata),
        notes=tuple(parts.notes),
        files=parts.files,
        profile_count=max(raw.profile_count, count),
        profile_index=index,
        log=parts.log,
    )


def _with_tactics(
    layers: tuple[EngineLayer, ...], logs: Sequence[Tactics]
) -> tuple[EngineLayer, ...]:
    """Return layers with the names of their tactics, where a log of the build tells them."""
    if not logs:
        return layers
    found = []
    for layer in layers:
        name = ""
        if layer.tactic_value and not layer.tactic:
            name = next(
                filter(None, (log.name(layer.name, layer.tactic_value) for log in logs)), ""
            )
        found.append(replace(layer, tactic=name) if name else layer)
    return tuple(found)


def _title(path: Path) -> str:
    parts = file_name(path.name)
    return (parts.stem if parts and parts.stem else path.name) or str(path)


def _layers_of(parts: Parts) -> tuple[RawPlan, LayerProfile | None]:
    """Return the layers and, where the same file has it, their profile."""
    kind = _kind(parts.graph)
    text = text_of_file(parts.graph)
    if kind is FileKind.TRTEXEC_LOG:
        parts.files["log"] = str(parts.graph)
        return _of_log(parts, read_log(text))
    if kind is FileKind.ENGINE_PROFILE:
        parts.files["profile"] = str(parts.graph)
        listed = rows_of_file(text, str(parts.graph))
        profile = profile_of_rows(listed.rows, listed.notes("profile"))
        if not profile.rows:
            raise InputError("the layer profile has no layer", where=str(parts.graph))
        return RawPlan([row.name for row in profile.rows]), profile
    if kind not in (None, FileKind.ENGINE_LAYERS):
        raise InputError(
            f"is {kind.title}, not layer information",
            where=str(parts.graph),
            hint="Give the file of trtexec --exportLayerInfo",
        )
    parts.files["graph"] = str(parts.graph)
    return find_layers(text, str(parts.graph)), None


def _kind(path: Path) -> FileKind | None:
    """Return what a file is; None when only reading it whole can tell."""
    try:
        return recognise(path)
    except InputError:
        return None


def _of_log(parts: Parts, log: TrtexecLog) -> tuple[RawPlan, LayerProfile | None]:
    parts.log = log
    parts.tactics.append(log.tactics)
    parts.metadata.update(log.metadata)
    if log.runs > 1:
        parts.notes.append(f"the log is of {log.runs} runs: the last is shown")
    if log.is_trtexec and not log.status:
        parts.notes.append("the log ends before the run does")
    bindings, _, _ = read_bindings(log.bindings or None)
    profile = profile_of_rows(objects_of(log.profile)) if len(log.profile) > 1 else None
    layers: list[JSON] = list(log.layers)
    if not layers and profile is not None:
        layers = [row.name for row in profile.rows]
    if not layers:
        parts.notes.append(
            "the log has no layers: trtexec prints them with --dumpLayerInfo, their times with"
            " --dumpProfile"
        )
    return RawPlan(layers, bindings), profile


def _joined(layers: list[EngineLayer], profile: LayerProfile | None) -> _Timed:
    if profile is None:
        return _Timed(tuple(layers), None, None, [])
    return _timed(join_profile(layers, profile), profile)


@dataclass
class _Timed:
    layers: tuple[EngineLayer, ...]
    total_ms: float | None
    passes: int | None
    notes: list[str]


def _timed(found: Joined, profile: LayerProfile) -> _Timed:
    return _Timed(
        found.layers, found.total_ms, profile.passes if found.matched else None, found.notes
    )


def _best_profile(parts: Parts, layers: list[EngineLayer]) -> _Timed:
    """Join the candidate that fits most layers."""
    candidates = []
    problems: list[str] = []
    for path in parts.roles["profile"]:
        try:
            listed = rows_of_file(text_of_file(path), str(path))
        except InputError as error:
            if len(parts.roles["profile"]) == 1:
                raise
            problems.append(str(error))
            continue
        profile = profile_of_rows(listed.rows, listed.notes("profile"))
        candidates.append((join_profile(layers, profile), profile, path))
    if not candidates:
        return _Timed(tuple(layers), None, None, problems)
    # Ties are won by the first: the one whose name fits best.
    best, profile, path = max(candidates, key=lambda item: (item[0].matched, -item[0].left))
    parts.files["profile"] = str(path)
    parts.sums = {path: found.sum_ms for _, found, path in candidates}
    note_choice(parts, "profile", path, [item[2] for item in candidates])
    timed = _timed(best, profile)
    timed.notes[:0] = problems
    return timed


def _read_metadata(parts: Parts) -> None:
    roles = [("metadata", path) for path in parts.roles.get("given", [])]
    roles += [(role, path) for role in _METADATA for path in parts.roles.get(role, [])[:1]]
    for role, path in roles:
        given = path in parts.roles.get("given", [])
        own = file_name(path.name)
        try:
            found = read_metadata(text_of_file(path), str(path), own.role if own else role)
        except InputError as error:
            if given:
                raise
            parts.notes.append(str(error))
            continue
        parts.files[own.role if own and given else role] = str(path)
        for key, value in found.items():
            parts.metadata.setdefault(key, value)


def _read_logs(parts: Parts) -> None:
    """Take from the logs of TREx's set what its metadata files do not say."""
    for path in parts.roles.get("log", []):
        if str(path) in parts.files.values():
            continue
        try:
            log = read_log(text_of_file(path))
        except InputError as error:
            parts.notes.append(str(error))
            continue
        parts.log = parts.log or log
        parts.tactics.append(log.tactics)
        parts.files.setdefault("log", str(path))
        for key, value in log.metadata.items():
            parts.metadata.setdefault(key, value)


def _of_one_profile(
    parts: Parts, layers: tuple[EngineLayer, ...]
) -> tuple[tuple[EngineLayer, ...], int, int]:
    """Return the layers of one optimization profile, which it is, and how many there are."""
    indices = profile_indices(layers)
    count = max(indices, default=0) + 1
    wanted = parts.profile_index
    if count == 1 and not wanted:
        return layers, 0, 0
    if wanted is None:
        pairs = zip(indices, layers, strict=True)
        timed = [index for index, layer in pairs if layer.time_ms is not None]
        wanted = max(sorted(set(timed)), key=timed.count) if timed else 0
    kept = tuple(layer for index, layer in zip(indices, layers, strict=True) if index == wanted)
    if not kept:
        raise InputError(
            f"there is no optimization profile {wanted}: they are 0 to {count - 1}",
            where=str(parts.path),
        )
    parts.notes.append(
        f"the engine has {count} optimization profiles: the layers of profile {wanted} are shown"
    )
    return kept, wanted, count


def _bindings(
    bindings: tuple[EngineTensor, ...], layers: Sequence[EngineLayer]
) -> tuple[EngineTensor, ...]:
    inputs = {tensor.name: tensor for layer in layers for tensor in layer.inputs}
    outputs = {tensor.name: tensor for layer in layers for tensor in layer.outputs}
    return modes_of(bindings, inputs, outputs)


def fitting_graph(profile_path: Path, graphs: Sequence[Path]) -> Path:
    """Return the layer information whose layers a profile fits best; the first of equals."""
    if len(graphs) == 1:
        return graphs[0]
    profile = profile_of_rows(rows_of_file(text_of_file(profile_path), str(profile_path)).rows)

    def fit(graph: Path) -> tuple[int, int, int]:
        try:
            layers = read_layers(find_layers(text_of_file(graph), str(graph)).layers).layers
        except InputError:
            return 0, 0, 0
        found = join_profile(layers, profile)
        return found.matched, -found.left, -len(layers)

    return max(graphs, key=fit)
