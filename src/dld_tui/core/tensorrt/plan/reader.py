"""Opening an engine plan from the files that describe it.

::

    plan = open_plan("resnet.onnx.engine.graph.json")
    plan.layers           # tuple[EngineLayer], constants and NoOps folded
    plan.total_ms         # from resnet.onnx.engine.profile.json beside it
    plan.notes            # problems of reading and matching
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from itertools import pairwise
from math import fsum
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.files.recognise import MAGICS, EngineHeader, FileKind, engine_header, recognise
from dld_tui.core.files.source import Source
from dld_tui.core.foreign import objects_of
from dld_tui.core.model.document.parts.ep_context import engine_beside
from dld_tui.core.process.interpreter import collector_paused
from dld_tui.core.report.formats.trtexec_files import LayerRows, warm_up_beside, warm_up_ms
from dld_tui.core.statistics import share_percent
from dld_tui.core.tensorrt.plan.engine_plan import (
    EngineLayer,
    EnginePlan,
    EngineTensor,
    Tactics,
    TimingSummary,
    TrtexecLog,
)
from dld_tui.core.tensorrt.plan.file_set import (
    CONFIGURATIONS,
    FileName,
    FileSet,
    archive_set,
    device_of,
    file_name,
    find_set,
    io_modes,
    model_of,
    read_metadata,
    text_of_file,
)
from dld_tui.core.tensorrt.plan.layer_work import above_roof, with_traffic, with_weights
from dld_tui.core.tensorrt.plan.layers import (
    NoLayersError,
    RawPlan,
    find_layers,
    fold,
    modes_of,
    profile_indices,
    read_bindings,
    read_layers,
    with_dla_kinds,
)
from dld_tui.core.tensorrt.plan.trtexec_log import (
    OF_BUILD,
    JoinedProfile,
    agree,
    join_profile,
    loads_engine,
    profile_of_rows,
    read_log,
    rows_of_file,
    summary_doubts,
    timing_of_rows,
    timing_of_summary,
    with_summary,
)
from dld_tui.core.types import JSON

_CHOOSE = {"profile": "--profile", "timing": "--timing", "metadata": "--metadata"}


@dataclass
class Parts:
    """The files of a plan, and their content."""

    path: Path
    graph: Path
    profile_index: int | None = None
    roles: dict[str, list[Path]] = field(default_factory=dict)
    """Candidates by role, the likeliest first."""
    notes: list[str] = field(default_factory=list)
    timing_given: bool = False
    """The timing file was named by the user, so nothing speaks against it."""
    sums: dict[Path, float] = field(default_factory=dict)
    """Milliseconds of all rows of the profiles beside it, by file."""
    files: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, JSON] = field(default_factory=dict)
    log: TrtexecLog | None = None
    tactics: list[Tactics] = field(default_factory=list)
    """Names of tactics from the logs of the engine."""
    timings: dict[Path, tuple[TimingSummary | None, list[str]]] = field(default_factory=dict)
    """Times of the timing files that were read, and notes."""

    def times_in(self, path: Path) -> tuple[TimingSummary | None, list[str]]:
        """Return the times of a timing file (None without valid ones), and notes.

        Raises:
            InputError: It cannot be read, or is something else.
        """
        if path not in self.timings:
            listed = rows_of_file(text_of_file(path), str(path))
            beside = warm_up_beside(path)
            warm_up = warm_up_ms(self.metadata) if beside is None else beside
            computed, notes = timing_of_rows(listed.rows, warm_up)
            self.timings[path] = computed, [*listed.notes("timing file"), *notes]
        return self.timings[path]


def note_choice(parts: Parts, role: str, chosen: Path, candidates: Sequence[Path]) -> None:
    """Say which of several files of a role was taken, and how to take another."""
    if len(candidates) > 1:
        option = _CHOOSE[role]
        parts.notes.append(
            f"{len(candidates)} {role} files lie beside it: {chosen.name} was taken;"
            f" {option} takes another"
        )


_TOO_FAR = 10.0
"""An inference and the sum of its layers do not differ by more, though launching takes time."""
_CLEARLY = 1.1
"""The least ratio of times at which their order distinguishes engines."""
_MOST_RANKED = 8


def timing_of(parts: Parts, total_ms: float | None) -> TimingSummary | None:
    """Return the times of whole inferences, of the files that are of this engine."""
    summary = _own_summary(parts)
    log = parts.log
    printed: TimingSummary | None
    if log is not None and summary == log.sections.get("performance_summary"):
        printed = timing_of_summary(summary, log.percentiles, "log")
        parts.notes += summary_doubts(summary, log.percentiles)
    else:
        printed = timing_of_summary(summary)
        parts.notes += summary_doubts(summary)
    path = _timing_file(parts)
    if path is None:
        return printed
    computed, notes = parts.times_in(path)
    parts.notes += notes
    if computed is None:
        return printed
    parts.files["timing"] = str(path)
    compute = computed.compute.median if computed.compute is not None else 0.0
    if total_ms and compute and not 1 / _TOO_FAR < compute / total_ms < _TOO_FAR:
        parts.notes.append(
            f"an inference takes {fmt.milliseconds(compute)} ms and the layers"
            f" {fmt.milliseconds(total_ms)} ms: {path.name} probably belongs to another engine"
        )
    return with_summary(computed, printed) if printed is not None else computed


def _own_summary(parts: Parts) -> JSON:
    """Return the performance summary of the metadata if it is of this engine only."""
    summary = parts.metadata.get("performance_summary")
    of = parts.files.get("profile.metadata")
    if summary is None or of is None or len(parts.roles.get("graph", [])) < 2:
        return summary
    own, other = file_name(parts.graph.name), file_name(Path(of).name)
    if own is not None and other is not None and own.infix == other.infix:
        return summary
    # It is kept where a timing file that was paired with the engine says the same.
    path = _timing_file(parts, quiet=True)
    if path is not None:
        computed, _ = parts.times_in(path)
        printed = timing_of_summary(summary)
        if computed is not None and printed is not None and agree(computed, printed):
            return summary
    parts.notes.append(
        f"{Path(of).name} may belong to another engine beside it: its times are left out"
    )
    return None


def _timing_file(parts: Parts, *, quiet: bool = False) -> Path | None:
    """Return the timing file of this engine, among those of several engines.

    With as many profiles as timing files, the slower engine has the slower inferences: this pairs
    them if both differ clearly. Otherwise, only a name or the user can tell.
    """
    candidates = parts.roles.get("timing", [])
    if not candidates:
        return None
    rivals = len(parts.roles.get("graph", []))
    if parts.timing_given or (len(candidates) == 1 and rivals < 2):
        return candidates[0]
    own = file_name(parts.graph.name)
    names = [file_name(path.name) for path in candidates]
    same = [
        path
        for path, name in zip(candidates, names, strict=True)
        if own is not None and name is not None and name.infix == own.infix
    ]
    if len(same) == 1 and (own is None or own.infix or rivals < 2):
        if not quiet:
            note_choice(parts, "timing", same[0], candidates)
        return same[0]
    chosen = _by_rank(parts, candidates)
    if quiet:
        return chosen
    count = fmt.plural(len(candidates), "timing file")
    if chosen is None:
        lie = "lies" if len(candidates) == 1 else "lie"
        parts.notes.append(
            f"{count} {lie} beside {fmt.plural(max(rivals, 1), 'engine')}, and nothing tells which"
            " belong together: --timing takes one"
        )
    else:
        parts.notes.append(
            f"{count} lie beside it: {chosen.name} was taken, as its inferences rank like the"
            " layers' times; --timing takes another"
        )
    return chosen


def _by_rank(parts: Parts, candidates: Sequence[Path]) -> Path | None:
    """Return the timing whose place among the timings is that of the profile among the profiles."""
    own = parts.files.get("profile")
    medians: dict[Path, float] = {}
    for path in candidates[:_MOST_RANKED]:
        try:
            computed, _ = parts.times_in(path)
        except InputError:
            return None
        if computed is None or computed.compute is None:
            return None
        medians[path] = computed.compute.median
    if own is None or len(medians) != len(parts.sums) or len(medians) != len(candidates):
        return None
    for values in (sorted(medians.values()), sorted(parts.sums.values())):
        if any(high < low * _CLEARLY for low, high in pairwise(values)):
            return None
    place = sorted(parts.sums, key=lambda path: parts.sums[path]).index(Path(own))
    return sorted(medians, key=lambda path: medians[path])[place]


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
    layer_list = read_layers(raw.layers, str(parts.graph))
    parts.notes += raw.notes + layer_list.oddities.notes()
    if profile is None and parts.roles.get("profile"):
        joined = _best_profile(parts, layer_list.layers)
    else:
        joined = _joined(layer_list.layers, profile)
    parts.notes += joined.notes
    _read_metadata(parts)
    _read_logs(parts)
    timing = timing_of(parts, joined.total_ms)
    if layer_list.names_only:
        parts.notes.append(_NAMES_ONLY if parts.files.get("graph") else _PROFILE_ONLY)
    joined.layers = _with_tactics(joined.layers, parts.tactics)
    layers, index, count = _of_one_profile(parts, joined.layers)
    modes = io_modes(parts.metadata) | (parts.log.modes if parts.log is not None else {})
    listed = raw.bindings or tuple(EngineTensor(name, None, "", "", "") for name in modes)
    bindings = _bindings(
        tuple(
            replace(binding, mode=binding.mode or modes.get(binding.name, "")) for binding in listed
        ),
        layers,
    )
    folded = fold(layers, frozenset(tensor.name for tensor in bindings))
    kept = with_dla_kinds(tuple(with_traffic(with_weights(layer)) for layer in folded))
    total_ms = joined.total_ms
    if total_ms is not None and len(kept) < len(joined.layers):
        total_ms = fsum(layer.time_ms or 0.0 for layer in kept)
        if total_ms != joined.total_ms:  # layers of other profiles took time, too
            kept = tuple(_as_part(layer, total_ms) for layer in kept)
    device = device_of(parts.metadata)
    too_fast = above_roof(kept, device)
    parts.notes += [too_fast] if too_fast else []
    return EnginePlan(
        path=str(parts.path),
        title=_title(parts.path),
        layers=kept,
        all_layers=joined.layers,
        bindings=bindings,
        names_only=layer_list.names_only,
        passes=joined.passes,
        total_ms=total_ms,
        timing=timing,
        device=device,
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
    """Return layers with the names of their tactics from a log of the build."""
    if not logs:
        return layers
    with_tactics = []
    for layer in layers:
        name = ""
        if layer.tactic_value and not layer.tactic:
            name = next(
                filter(None, (log.name(layer.name, layer.tactic_value) for log in logs)), ""
            )
        with_tactics.append(replace(layer, tactic=name) if name else layer)
    return tuple(with_tactics)


def _title(path: Path) -> str:
    parts = file_name(path.name)
    return (parts.stem if parts and parts.stem else path.name) or str(path)


def _layers_of(parts: Parts) -> tuple[RawPlan, LayerRows | None]:
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
    """Return the role of a file; None if it must be read completely to tell."""
    try:
        return recognise(path)
    except InputError:
        return None


def _of_log(parts: Parts, log: TrtexecLog) -> tuple[RawPlan, LayerRows | None]:
    parts.log = log
    parts.tactics.append(log.tactics)
    parts.metadata.update(log.metadata)
    if log.runs > 1:
        parts.notes.append(f"the log is of {log.runs} runs: the last is shown")
    if log.is_trtexec and not log.status:
        parts.notes.append("the log ends before the run does")
    parts.notes += log.doubts
    bindings, _, _ = read_bindings(log.bindings or None)
    rows = objects_of(log.profile)
    profile = profile_of_rows(rows) if any("name" in row for row in rows) else None
    layers: list[JSON] = list(log.layers)
    if not layers and profile is not None:
        layers = [row.name for row in profile.rows]
    if not layers:
        parts.notes.append(
            "the log has no layers: trtexec prints them with --dumpLayerInfo, their times with"
            " --dumpProfile"
        )
    return RawPlan(layers, bindings), profile


def _as_part(layer: EngineLayer, total_ms: float) -> EngineLayer:
    """Return a layer with its share of the time of those that are shown."""
    return replace(layer, percent=share_percent(layer.time_ms, total_ms))


def _joined(layers: list[EngineLayer], profile: LayerRows | None) -> _LayerTimes:
    if profile is None:
        return _LayerTimes(tuple(layers), None, None, [])
    return _timed(join_profile(layers, profile), profile)


@dataclass
class _LayerTimes:
    layers: tuple[EngineLayer, ...]
    total_ms: float | None
    passes: int | None
    notes: list[str]


def _timed(joined: JoinedProfile, profile: LayerRows) -> _LayerTimes:
    return _LayerTimes(
        joined.layers, joined.total_ms, profile.passes if joined.matched else None, joined.notes
    )


def _best_profile(parts: Parts, layers: list[EngineLayer]) -> _LayerTimes:
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
        return _LayerTimes(tuple(layers), None, None, problems)
    # Ties are won by the first: the one whose name fits best.
    best, profile, path = max(candidates, key=lambda item: (item[0].matched, -item[0].left))
    parts.files["profile"] = str(path)
    parts.sums = {path: profile_.sum_ms for _, profile_, path in candidates}
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
            metadata = read_metadata(text_of_file(path), str(path), own.role if own else role)
        except InputError as error:
            if given:
                raise
            parts.notes.append(str(error))
            continue
        parts.files[own.role if own and given else role] = str(path)
        unknown = OF_BUILD if loads_engine(metadata) else ()
        for key, value in metadata.items():
            if key not in unknown:
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
        parts.notes += log.doubts
        parts.tactics.append(log.tactics)
        parts.files.setdefault("log", str(path))
        for key, value in log.metadata.items():
            parts.metadata.setdefault(key, value)


def _of_one_profile(
    parts: Parts, layers: tuple[EngineLayer, ...]
) -> tuple[tuple[EngineLayer, ...], int, int]:
    """Return the layers of one optimization profile, its number, and the number of profiles."""
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
        joined = join_profile(layers, profile)
        return joined.matched, -joined.left, -len(layers)

    return max(graphs, key=fit)


_HEAD = 64
_ZIP = b"PK\x03\x04"
_BELONGS = ("profile", "timing", "metadata", "build.metadata", "profile.metadata", "build")
_ABOUT = {
    **dict.fromkeys(_BELONGS[2:5], "tells about an engine"),
    "build": "tells how an engine was built",
}
_METADATA_SUFFIX = ("metadata", "build.metadata", "profile.metadata", "build", *CONFIGURATIONS)


def open_plan(
    path: str | Path,
    *,
    profile: Path | None = None,
    timing: Path | None = None,
    metadata: Sequence[Path] = (),
    beside: bool = True,
    profile_index: int | None = None,
) -> EnginePlan:
    """Open an engine plan.

    Args:
        path: Layer information of any form; one of the other files of a set (TREx's, or this
            program's) or the engine itself, with the layer information beside it; a layer
            profile alone; a ``.tea`` archive; or a log of trtexec.
        profile: Layer times (``trtexec --exportProfile``).
        timing: Inference times (``trtexec --exportTimes``).
        metadata: Metadata files of TREx.
        beside: Use the other files of the set beside `path` as well; files given by
            name take precedence.
        profile_index: The optimization profile to show; None is that of the times,
            else the first.

    Raises:
        InputError: A file cannot be read, or is of another kind.
    """
    target = Path(path)
    head = _head(target)
    if engine_header(head) is None and _holds_engine(target):
        target = engine_beside(target)
        head = _head(target)
    header = engine_header(head)
    archived = head.startswith(_ZIP)
    files = archive_set(target) if archived else find_set(target) if beside else FileSet()
    graph = _graph(target, files, header, archived)
    parts = Parts(path=target, graph=graph, profile_index=profile_index)
    if header is not None:
        parts.notes.append(f"the engine was written by {header.text}")
    own = file_name(target.name)
    if own is not None and own.role == "profile" and graph != target:
        profile = profile or target
    parts.roles["profile"] = [profile] if profile else files.of("profile")
    parts.roles["timing"] = [timing] if timing else files.of("timing")
    parts.timing_given = timing is not None
    parts.roles["graph"] = files.of("graph")
    for role in _METADATA_SUFFIX:
        parts.roles[role] = files.of(role)
    parts.roles["given"] = list(metadata)
    parts.roles["log"] = files.of("profile.log") + files.of("build.log")
    alone = _ABOUT.get(own.role) if own is not None and graph == target else None
    try:
        with collector_paused():  # it would walk over all layers again and again
            return assemble(parts)
    except NoLayersError as error:
        if alone is None:
            raise
        raise InputError(
            f"{alone}; its layers are in another file, which does not lie beside it",
            where=str(target),
            hint="Put the file of trtexec --exportLayerInfo, or that of dld build, beside it",
        ) from error


def _holds_engine(target: Path) -> bool:
    """Return whether a file is a model, of which a provider may have compiled an engine."""
    try:
        return recognise(target) is FileKind.ONNX
    except InputError:
        return False


def _head(target: Path) -> bytes:
    source = Source.open(target)
    try:
        return source.read(0, min(_HEAD, source.size))
    finally:
        source.close()


def _is_build_log(target: Path, own: FileName) -> bool:
    """Return whether a file is the log of a build by this program, which has no layers."""
    if not own.role.endswith(".log"):
        return False
    try:
        return recognise(target) is not FileKind.TRTEXEC_LOG
    except InputError:
        return True


def _graph(target: Path, file_set: FileSet, header: EngineHeader | None, archived: bool) -> Path:
    """Return the file with the layers: `target` itself, or the one beside it."""
    graphs = file_set.of("graph")
    if header is None and not archived:
        own = file_name(target.name)
        belongs = own is not None and (own.role in _BELONGS or _is_build_log(target, own))
        if not belongs or not graphs:
            return target
        return fitting_graph(target, graphs) if own and own.role == "profile" else graphs[0]
    if graphs:
        return graphs[0]
    made_by = header.text if header else "TREx"
    raise InputError(
        f"this is an engine written by {made_by}; its layers are read from its layer information",
        where=str(target),
        hint=f"Put that beside it as {target.stem}.trt.json (dld build writes it, and"
        " trtexec --exportLayerInfo); where this engine can be loaded, dld profile tensorrt"
        f" {target.name} reads its layers",
    )


_PLANS = frozenset({FileKind.ENGINE_LAYERS, FileKind.ENGINE_METADATA, FileKind.TRTEXEC_LOG})


_ARCHIVE = b"PK\x03\x04"


_DATABASE = b"SQLi"


def is_plan(path: Path) -> bool:
    """Return whether a file is read as an engine plan: layer information, a set of files, a log.

    Raises:
        InputError: The file cannot be read, or is of an unknown kind.
    """
    source = Source.open(path)
    try:
        head = source.read(0, min(4, source.size))
    finally:
        source.close()
    if head == _DATABASE:
        return False  # a report, whole or not
    return head == _ARCHIVE or head in MAGICS or recognise(path) in _PLANS
