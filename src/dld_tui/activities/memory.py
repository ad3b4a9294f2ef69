"""What memory a run of a model needs: of ONNX Runtime's graph, and measured in one run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.model.cost.memory import MemoryPlan
from dld_tui.core.model.inputs.settings import InputSettings
from dld_tui.core.params import FIRST_PAGE, like, param

if TYPE_CHECKING:
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.inputs.guess import Guess

Result = MemoryPlan
_STAGES = 4


@dataclass(frozen=True)
class Request:
    """Which model, and how it is run."""

    model: Path = param(
        label="Model", help="The ONNX model.", kind="file", positional=True, metavar="MODEL"
    )
    provider: str = like(Profile, "provider")
    optimization_level: str = like(Profile, "optimization_level", page=FIRST_PAGE)
    threads: int = like(Profile, "threads", page=FIRST_PAGE)
    device_id: int = like(Profile, "device_id", page=FIRST_PAGE)
    shape: tuple[str, ...] = like(InputSettings, "shape")
    measure: bool = param(
        True,
        label="Measure",
        help="Run the model on the CPU and measure what its allocator hands out.",
        spellings=("--measure",),
    )


def run(request: Request) -> Iterator[Event]:
    """Create a session, predict the memory of its run, and run it.

    Raises:
        InputError: The model cannot be read.
        UsageError: A shape is malformed, or does not match.
        UnavailableError: ONNX Runtime or the provider is missing.
        ActivityError: No session can be created for it.
    """
    from onnx import ModelProto

    from dld_tui.backends.onnxruntime.arena import measured_memory
    from dld_tui.backends.onnxruntime.limits import limit_trials, naming, with_node
    from dld_tui.backends.onnxruntime.runtime import version
    from dld_tui.backends.onnxruntime.session import Session
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.model.document.serialise import skeleton_bytes
    from dld_tui.core.model.inputs.guess import guess_inputs, specs_for
    from dld_tui.core.model.inputs.shapes import parse_shapes
    from dld_tui.core.model.operators.native import too_wide

    settings = replace(
        Profile(
            model=request.model, provider=request.provider, device_id=request.device_id,
            optimization_level=request.optimization_level, threads=request.threads,
        ).session_settings(),
        quiet=True,
    )  # fmt: skip
    yield Progress(0, _STAGES, stage="Making a session")
    with contextlib.closing(open_document(request.model)) as document:
        if why := too_wide(ModelProto.FromString(skeleton_bytes(document))):
            raise ActivityError(why, where=str(request.model))
        if settings.providers == ("CPU",):
            limit_trials(document, shapes=request.shape)
    with temporary_folder("memory") as folder:
        path = folder / "optimized.onnx"
        with contextlib.closing(open_document(request.model)) as document:
            with naming(document):
                session = Session(request.model, replace(settings, optimized_path=path))
            given = parse_shapes(request.shape, document.main.inputs)
            guess = guess_inputs(specs_for(session.inputs, document), document, given)
        del session
        yield Progress(1, _STAGES, stage="Counting the memory")
        plan = _plan(path, guess)
    yield Progress(2, _STAGES, stage="Measuring a run")
    measured, why = None, ""
    if request.measure and request.provider != "CPU":
        why = f"memory is measured on the CPU, not on {request.provider}"
    elif request.measure:
        try:
            with contextlib.closing(open_document(request.model)) as document, naming(document):
                measured = measured_memory(request.model, settings, guess.values(0))
                yield Progress(3, _STAGES, stage="Measuring a run without reuse of buffers")
                unshared = measured_memory(
                    request.model, replace(settings, reuse_memory=False), guess.values(0)
                )
            measured = replace(measured, without_reuse=unshared.in_use)
        except ActivityError as error:
            why = with_node(error)
    yield Finished(
        replace(
            plan,
            graph=f"ONNX Runtime {version()}, {request.provider}, optimization"
            f" {request.optimization_level}",
            shapes=tuple(
                f"{name}:{'x'.join(map(str, shape))}" for name, shape in guess.shapes.items()
            ),
            measured=measured,
            not_measured=why,
        )
    )


def _plan(path: Path, guess: Guess) -> MemoryPlan:
    """Return what a run of an optimised graph needs."""
    import onnx

    from dld_tui.backends.onnxruntime.types import contrib_types
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.model.cost.memory import memory_plan
    from dld_tui.core.model.cost.nodes import ModelCosts
    from dld_tui.core.model.document.serialise import snapshot
    from dld_tui.core.model.edits.inputs_outputs import declare_inputs
    from dld_tui.core.model.shapes.inference import infer, store_types
    from dld_tui.core.model.shapes.noting import follow_shapes

    with contextlib.closing(open_document(path)) as document:
        for scope in document.scopes():  # declared for any size, and now there are numbers
            scope.records.get("value_info", []).clear()
        sizes = declare_inputs(document, guess.shapes)
        model = onnx.ModelProto.FromString(b"".join(snapshot(document)))
        store_types(document, infer(model, extra_types=contrib_types).model)
        branches: dict[Node, str] = {}
        sizes = follow_shapes(document, guess.shapes, branches) | sizes
        return memory_plan(ModelCosts(document, sizes, branches), keeps_constants=True)
