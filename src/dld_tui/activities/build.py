"""Build a TensorRT engine from a model.

The engine is written completely or not at all. Beside ``NAME.engine`` are ``NAME.trt.json`` (its
layers, if the library can load it here), ``NAME.build.json`` (how it was built) and
``NAME.build.log`` (all messages of the library), which also exists after a failure.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.core.codec import encode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.events import Event, Finished, Log, Progress, result_of
from dld_tui.core.model.inputs.guessed_input import GuessedInput
from dld_tui.core.notes import NoteKind
from dld_tui.core.params import to_json
from dld_tui.core.report.startup import Stage
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.backends.tensorrt.builder import BuiltEngine
    from dld_tui.backends.tensorrt.library import Library
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.identity import ModelIdentity
    from dld_tui.core.model.document.metadata import Profile


@dataclass(frozen=True)
class Request(BuildSettings):
    """What to build, and how."""


_PACKAGES = ("dld-tui", "onnx", "tensorrt", "tensorrt-rtx-cu13", "tensorrt-rtx-cu12")


@dataclass(frozen=True)
class Result:
    """The result of a build. Fields may be added, never renamed."""

    engine: Path
    bytes: int
    seconds: float
    library: str
    layer_info: Path | None
    layer_info_problem: str
    """Why there is none."""
    record: Path
    log: Path
    timing_cache: dict[str, Any] | None
    warnings: int
    remarks: list[str]
    guess: list[GuessedInput] | None
    """Guesses about the shapes."""
    stages: tuple[Stage, ...] = ()
    """What the seconds went to; empty for results of earlier versions. Untrusted text."""


def run(request: Request) -> Iterator[Event]:
    """Build, and write the engine and the files beside it.

    Raises:
        UsageError: The library does not support a setting, or an input has no range.
        InputError: The model cannot be read.
        UnavailableError: There is no working library, or it does not support the device.
        ActivityError: The model cannot be built; names the node if the library does.
        SaveError: The engine cannot be written.
    """
    from dld_tui.backends.tensorrt.builder import build
    from dld_tui.backends.tensorrt.cuda import select_device
    from dld_tui.backends.tensorrt.library import find_library
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.tensorrt.availability import require_available
    from dld_tui.core.tensorrt.profiles import profiles_for

    yield Progress(0, None, stage="Loading TensorRT")
    select_device(request.device)  # before anything of CUDA
    library = find_library(request.library)
    yield Log(f"Building with {library.capabilities.title}")
    require_available(request, library.capabilities)
    yield Progress(0, None, stage="Reading the model")
    with (
        contextlib.closing(open_document(request.model)) as document,
        ThreadPoolExecutor(1) as beside,
    ):
        identity = beside.submit(_identity, request.model, document)  # its hash takes a while
        chosen = profiles_for(document, request)
        profiles = chosen.ranges
        for remark in chosen.remarks:
            yield Log(remark, NoteKind.WARNING)
        log = request.log_path
        built = yield from build(library, document, request, profiles, request.engine_path, log)
        yield Progress(0, None, stage="Reading the layers")
        layers, problem = _layer_information(request, library)
        if problem:
            yield Log(f"The layers are not written: {problem}", NoteKind.WARNING)
        record = request.engine_path.with_suffix(".build.json")
        _record(record, request, library, identity.result(), profiles, built)
    yield Finished(
        Result(
            engine=built.path.absolute(),
            bytes=built.bytes,
            seconds=round(built.seconds, 3),
            library=library.capabilities.title,
            layer_info=None if layers is None else layers.absolute(),
            layer_info_problem=problem,
            record=record.absolute(),
            log=log.absolute(),
            timing_cache=built.timing_cache,
            warnings=built.warnings,
            remarks=built.remarks,
            guess=None if chosen.guess is None else chosen.guess.recorded,
            stages=tuple(built.stages),
        )
    )


def _layer_information(request: Request, library: Library) -> tuple[Path | None, str]:
    """Write the layers of the engine; return the file, or None and the reason."""
    from dld_tui.backends.tensorrt.log import BuildLog
    from dld_tui.backends.tensorrt.runtime import Engine
    from dld_tui.core.files.writer import write_pieces

    if request.verbosity == "none":
        return None, "the engine says nothing of its layers (--verbosity none)"
    if library.capabilities.no_driver:
        return None, f"they are read from a loaded engine, and {library.capabilities.no_driver}"
    path = request.layer_info_path
    log = BuildLog(None, lambda _: None)
    plugins = request.all_plugins
    try:
        data = request.engine_path.read_bytes()
        where = str(request.engine_path)
        engine = Engine(library, data, log, where, "", plugins, request.dla_core)
        write_pieces(path, [engine.layer_information().encode()])
    except (DldError, OSError) as error:
        return None, error.message if isinstance(error, DldError) else str(error)
    return path, ""


def _identity(model: Path, document: Document) -> ModelIdentity:
    from dld_tui.core.model.document.identity import identify

    return result_of(identify(model, document))


def _record(
    path: Path,
    request: Request,
    library: Library,
    model: ModelIdentity,
    profiles: list[Profile],
    built: BuiltEngine,
) -> None:
    """Write how the engine was built."""
    from dld_tui.core.files.writer import write_pieces
    from dld_tui.core.machine.environment import environment
    from dld_tui.core.model.document.metadata import profiles_json

    capabilities = library.capabilities
    record: dict[str, JSON] = {
        "format": "dld-tui engine build",
        "version": 1,
        "engine": {"path": str(built.path.absolute()), "bytes": built.bytes},
        "model": encode(model),
        "library": {
            "name": capabilities.module,
            "version": capabilities.version,
            "path": capabilities.path,
        },
        "strongly_typed": built.strong,
        "settings": to_json(request),
        "profiles": profiles_json(profiles),
        "device": encode(built.device),
        "environment": {**environment(_PACKAGES)},
        "seconds": round(built.seconds, 3),
        "stages": list[JSON](encode(stage) for stage in built.stages),
        "timing_cache": built.timing_cache,
        "retyping": built.retyping,
        "remarks": list[JSON](built.remarks),
        "warnings": built.warnings,
        "log_tail": list[JSON](built.tail),
    }
    write_pieces(path, [json.dumps(record, indent=1, default=str).encode()])
