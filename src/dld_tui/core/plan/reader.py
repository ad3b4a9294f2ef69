"""Opening an engine plan from whatever files describe it.

::

    plan = open_plan("resnet.onnx.engine.graph.json")
    plan.layers           # tuple[EngineLayer], constants and NoOps folded
    plan.total_ms         # from resnet.onnx.engine.profile.json, which lies beside it
    plan.notes            # what could not be read or joined
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dld_tui.core.collector import collector_paused
from dld_tui.core.errors import CorruptFileError, InputError
from dld_tui.core.files.engine_header import EngineHeader, engine_header
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.files.source import Source
from dld_tui.core.plan.archive import archive_set
from dld_tui.core.plan.assembly import assemble, fitting_graph
from dld_tui.core.plan.file_set import FileName, FileSet, file_name, find_set
from dld_tui.core.plan.layer_forms import NO_LAYERS
from dld_tui.core.plan.metadata_files import CONFIGURATIONS
from dld_tui.core.plan.model import EnginePlan
from dld_tui.core.plan.parts import Parts

_HEAD = 64
_ZIP = b"PK\x03\x04"
_BELONGS = ("profile", "timing", "metadata", "build.metadata", "profile.metadata", "build")
_ABOUT = {
    **dict.fromkeys(_BELONGS[2:5], "tells about an engine"),
    "build": "tells how an engine was built",
}
_METADATA = ("metadata", "build.metadata", "profile.metadata", "build", *CONFIGURATIONS)


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
            program's) or the engine itself, beside which the layer information lies; a layer
            profile alone; a ``.tea`` archive; or a log of trtexec.
        profile: Layer times (``trtexec --exportProfile``).
        timing: Inference times (``trtexec --exportTimes``).
        metadata: Metadata files of TREx.
        beside: Take the other files of the set that lie beside `path`, too; what is given by
            name comes first.
        profile_index: The optimization profile to show; None is the one that the times are of,
            else the first.

    Raises:
        InputError: A file cannot be read, or is something else.
    """
    target = Path(path)
    head = _head(target)
    header = engine_header(head)
    archived = head.startswith(_ZIP)
    found = archive_set(target) if archived else find_set(target) if beside else FileSet()
    graph = _graph(target, found, header, archived)
    parts = Parts(path=target, graph=graph, profile_index=profile_index)
    if header is not None:
        parts.notes.append(f"the engine was written by {header.text}")
    own = file_name(target.name)
    if own is not None and own.role == "profile" and graph != target:
        profile = profile or target
    parts.roles["profile"] = [profile] if profile else found.of("profile")
    parts.roles["timing"] = [timing] if timing else found.of("timing")
    parts.timing_given = timing is not None
    parts.roles["graph"] = found.of("graph")
    for role in _METADATA:
        parts.roles[role] = found.of(role)
    parts.roles["given"] = list(metadata)
    parts.roles["log"] = found.of("profile.log") + found.of("build.log")
    alone = _ABOUT.get(own.role) if own is not None and graph == target else None
    try:
        with collector_paused():  # it would walk over all layers again and again
            return assemble(parts)
    except CorruptFileError as error:
        if alone is None or error.message != NO_LAYERS:
            raise
        raise InputError(
            f"{alone}; its layers are in another file, which does not lie beside it",
            where=str(target),
            hint="Put the file of trtexec --exportLayerInfo, or that of dld build, beside it",
        ) from error


def _head(target: Path) -> bytes:
    source = Source.open(target)
    try:
        return source.read(0, min(_HEAD, source.size))
    finally:
        source.close()


def _is_build_log(target: Path, own: FileName) -> bool:
    """Tell whether a file is the log of a build by this program, which has no layers."""
    if not own.role.endswith(".log"):
        return False
    try:
        return recognise(target) is not FileKind.TRTEXEC_LOG
    except InputError:
        return True


def _graph(target: Path, found: FileSet, header: EngineHeader | None, archived: bool) -> Path:
    """Return the file with the layers: `target` itself, or the one beside it."""
    graphs = found.of("graph")
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
        " trtexec --exportLayerInfo)",
    )
