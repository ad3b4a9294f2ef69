"""Put the weights of an ONNX model into an engine that was built for it.

The engine that was given is not changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.events import Event, Finished, Log, Progress
from dld_tui.core.params import FIRST_PAGE, like, param
from dld_tui.core.tensorrt.run_settings import RunSettings
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.types import JSON


def _refitted(values: Mapping[str, JSON]) -> str:
    engine = values.get("engine")
    return f"{Path(engine).stem if isinstance(engine, str) else 'ENGINE'}-refit.engine beside it"


@dataclass(frozen=True)
class Request:
    """Which engine, and whose weights."""

    engine: Path = param(
        label="Engine",
        help="The engine; it must be refittable.",
        kind="file",
        positional=True,
        metavar="ENGINE",
    )
    model: Path = param(
        label="Model",
        help="The ONNX model with the weights.",
        kind="file",
        positional=True,
        metavar="MODEL",
    )
    output: Path | None = param(
        None,
        label="Output",
        help="Write the refitted engine here. By default ENGINE-refit.engine beside the engine.",
        spellings=("--output", "-o"),
        kind="output",
        default_path=lambda request: request.target,
        metavar="FILE",
        empty=_refitted,
    )
    trust: bool = like(RunSettings, "trust")
    library: str = like(BuildSettings, "library")
    device: str = like(BuildSettings, "device", page=FIRST_PAGE)
    plugins: tuple[str, ...] = param(
        (),
        label="Plugins",
        help="Plugin library that the engine needs. Loading it runs its code.",
        spellings=("--plugins",),
        runs_code=True,
        metavar="FILE",
    )

    @property
    def target(self) -> Path:
        """Where the new engine goes."""
        if self.output is not None:
            return self.output
        return self.engine.with_name(f"{self.engine.stem}-refit{self.engine.suffix}")


@dataclass(frozen=True)
class Result:
    """The new engine."""

    engine: Path
    bytes: int
    """Of the engine."""
    weights: int
    """Those that are new."""
    library: str

    @property
    def text(self) -> str:
        """What was done, in one line. Untrusted text."""
        count = fmt.plural(self.weights, "weight")
        return f"{self.engine}: {count} refitted; the engine has {fmt.size(self.bytes)}"


def run(request: Request) -> Iterator[Event]:
    """Load the engine, refit it and write it.

    Raises:
        UsageError: The engine is not trusted.
        InputError: The engine cannot be refitted, or the model lacks its weights.
        UnavailableError: There is no working library or GPU.
        ActivityError: The library refuses, or the memory is full.
        SaveError: The output cannot be written.
    """
    from dld_tui.backends.tensorrt.cuda import Cuda, select_device
    from dld_tui.backends.tensorrt.library import find_library
    from dld_tui.backends.tensorrt.log import BuildLog
    from dld_tui.backends.tensorrt.runtime import Engine, refit, refitted_bytes, trusted_bytes
    from dld_tui.core.files import permission
    from dld_tui.core.files.writer import write_bytes
    from dld_tui.core.tensorrt.trtexec_arguments import device_text

    data, header = trusted_bytes(request.engine, request.trust)
    if not request.model.is_file():
        raise InputError("the file does not exist", where=str(request.model))
    yield Progress(0, None, stage="Loading TensorRT")
    select_device(device_text(request.device))  # before anything of CUDA
    library = find_library(request.library)
    yield Log(f"Refitting with {library.capabilities.title} an engine of {header.text}")
    log_lines: list[Log] = []
    with contextlib.closing(Cuda(request.device)) as cuda:
        machine = cuda.environment()
        device = f"{machine['gpu']}, compute capability {machine['gpu_compute_capability']}"
        yield Progress(0, None, stage="Loading the engine")
        log = BuildLog(None, log_lines.append)
        engine = Engine(library, data, log, str(request.engine), device, request.plugins)
        yield Progress(0, None, stage="Refitting")
        count = refit(engine, request.model)
        yield from log_lines
        refitted = refitted_bytes(engine)
        del engine
    yield Progress(0, None, stage="Writing the engine")
    path = permission.place(request.target.absolute())
    write_bytes(path, refitted)
    yield Finished(Result(path, len(refitted), count, library.capabilities.title))
