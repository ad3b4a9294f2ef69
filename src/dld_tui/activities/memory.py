"""What memory a run of a model needs, of the graph that ONNX Runtime makes of it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.activities.profile_onnxruntime import Request as Profile
from dld_tui.core.cost.memory import MemoryPlan
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.inputs.settings import InputSettings
from dld_tui.core.params import FIRST_PAGE, like, param

if TYPE_CHECKING:
    from dld_tui.core.cost.scratch import Processor
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope
    from dld_tui.core.document.types.value_types import ValueType

Result = MemoryPlan
_MOST_ROUNDS = 5
"""How often shapes are inferred: each inference from values gives ONNX Runtime more to infer
from."""


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


def run(request: Request) -> Iterator[Event]:
    """Create a session, and plan the memory of its run; nothing is run.

    Raises:
        InputError: The model cannot be read.
        UsageError: A shape is malformed, or does not match.
        UnavailableError: ONNX Runtime or the provider is missing.
        ActivityError: No session can be created for it.
    """
    from dld_tui.backends.onnxruntime.runtime import version
    from dld_tui.backends.onnxruntime.session import Session
    from dld_tui.core.cost.memory import memory_plan
    from dld_tui.core.cost.nodes import ModelCosts
    from dld_tui.core.document.document import Document
    from dld_tui.core.inputs.guess import guess_inputs, specs_for
    from dld_tui.core.inputs.propagation import declare_inputs, follow_shapes
    from dld_tui.core.inputs.shapes import parse_shapes

    asked = Profile(
        model=request.model, provider=request.provider, device_id=request.device_id,
        optimization_level=request.optimization_level,
    ).session_settings()  # fmt: skip
    yield Progress(0, 3, stage="Making a session")
    with tempfile.TemporaryDirectory(prefix="dld-") as name:
        path = Path(name) / "optimized.onnx"
        session = Session(request.model, replace(asked, quiet=True, optimized_path=path))
        with contextlib.closing(Document.open(request.model)) as document:
            given = parse_shapes(request.shape, document.main.inputs)
            specs = specs_for(session.inputs, document)
            shapes = dict(guess_inputs(specs, document, given).shapes)
            originals = {_wiring(scope) for scope in document.scopes()}
        del session
        with contextlib.closing(Document.open(path)) as document:
            yield Progress(1, 3, stage="Inferring shapes")
            declared = _dimension_names(document)
            _note_types(document)
            kinds = _kinds_of(document)
            open_shapes = _of_open_shape(document)
            planned = {
                at: _as_planned(kind, declared) for at, kind in kinds.items()
                if at not in open_shapes
            }  # fmt: skip
        with contextlib.closing(Document.open(path)) as document:
            for scope in document.scopes():  # declared for any size, and now there are numbers
                scope.records.get("value_info", []).clear()
            sizes = declare_inputs(document, shapes)
            for _ in range(_MOST_ROUNDS):
                _note_types(document)
                branches: dict[Node, str] = {}
                sizes = follow_shapes(document, shapes, branches) | sizes
                if not _open_sizes(document):
                    break
            yield Progress(2, 3, stage="Counting the memory")

            def kind(scope: Scope, name: str) -> ValueType | None:
                return planned.get((scope.path, name))

            def in_order(scope: Scope) -> bool:
                # ONNX Runtime saves a subgraph that it has not changed in the order of the file.
                return scope is document.main or _wiring(scope) not in originals

            processor = _processor(request.threads) if request.provider == "CPU" else None
            planning = partial(
                memory_plan, ModelCosts(document, sizes, branches), in_order=in_order, kinds=kind,
                processor=processor,
            )  # fmt: skip
            plan, without_reuse = planning(), planning(reuses=False)
    yield Finished(
        replace(
            plan,
            without_reuse=without_reuse.total - without_reuse.weights,
            graph=f"ONNX Runtime {version()}, {request.provider}, optimization"
            f" {request.optimization_level}",
            shapes=tuple(f"{name}:{'x'.join(map(str, shapes[name]))}" for name in shapes),
        )
    )


def _wiring(scope: Scope) -> tuple[tuple[str, ...], ...]:
    """Return the operators of a graph with their inputs and outputs, in the order of the file."""
    return tuple((node.domain, node.op_type, *node.inputs, "", *node.outputs)
                 for node in scope.nodes)  # fmt: skip


_LEVEL2_CACHE_SIZE = 191
"""``_SC_LEVEL2_CACHE_SIZE`` of the GNU C library, which ONNX Runtime uses, too."""


def _processor(threads: int) -> Processor:
    """Return what this machine's processor means for the scratch memory of kernels."""
    from dld_tui.core.cost.scratch import Processor
    from dld_tui.core.machine.environment import physical_cores, usable_threads

    try:
        cache = os.sysconf(_LEVEL2_CACHE_SIZE)
    except (AttributeError, ValueError, OSError):
        cache = 0
    return Processor(threads or physical_cores() or usable_threads(), max(cache, 0))


def _kinds_of(document: Document) -> dict[tuple[Sequence[str], str], ValueType]:
    """Return the types of all values by the places of their scopes and their names."""
    return {
        (scope.path, name): kind
        for scope in document.scopes()
        for node in scope.nodes
        for name in node.outputs
        if (kind := scope.value_type(name)) is not None
    }


def _dimension_names(document: Document) -> set[str]:
    """Return the names of the dimensions that the types in a file declare."""
    kinds = (
        scope.value_type(name)
        for scope in document.scopes()
        for names in (scope.inputs, scope.outputs, *(node.outputs for node in scope.nodes))
        for name in names
    )
    return {dim for kind in kinds if kind for dim in kind.dims or () if isinstance(dim, str)}


_OF_SEQUENCES = frozenset({"ConcatFromSequence", "SequenceAt"})
_BY_ANOTHER_INPUT = frozenset({"ConstantOfShape", "Expand", "Reshape", "Shape", "Size", "Tile"})
"""Operators whose output has a shape that does not follow from that of their first input."""


def _of_open_shape(document: Document) -> set[tuple[Sequence[str], str]]:
    """Return the values whose shapes follow from what is in a sequence.

    ONNX Runtime does not infer these, whatever is in the sequence.
    """
    names: set[tuple[Sequence[str], str]] = set()
    for scope in document.scopes():
        for node in scope.nodes:
            follows = any((scope.path, name) in names for name in node.inputs)
            if node.op_type in _OF_SEQUENCES or (follows and node.op_type not in _BY_ANOTHER_INPUT):
                names.update((scope.path, name) for name in node.outputs)
    return names


def _as_planned(kind: ValueType, declared: set[str]) -> ValueType:
    """Return a type as ONNX Runtime infers it, which invents no names for dimensions."""
    if kind.dims is None:
        return kind
    dims = (None if isinstance(dim, str) and dim not in declared else dim for dim in kind.dims)
    return replace(kind, dims=tuple(dims))


def _open_sizes(document: Document) -> bool:
    """Return whether a value of the main graph has no shape in numbers."""
    main = document.main
    kinds = (main.value_type(name) for node in main.nodes for name in node.outputs if name)
    return not all(map(_in_numbers, kinds))


def _in_numbers(kind: ValueType | None) -> bool:
    return kind is not None and kind.dims is not None and all(isinstance(d, int) for d in kind.dims)


def _joined(node: Node) -> ValueType | None:
    """Return the type of a joined sequence; inference does not look at what is in it."""
    scope = node.scope
    sequence = scope.producer(node.inputs[0])
    if sequence is None or sequence.op_type != "SequenceConstruct":
        return None
    kinds = [scope.value_type(name) for name in sequence.inputs]
    shapes = [[*kind.dims] for kind in kinds if kind is not None and kind.dims is not None]
    axis, stacks = (node.attribute(name) for name in ("axis", "new_axis"))
    if kinds[0] is None or len(shapes) < len(kinds) or axis is None:
        return None
    dims, at = shapes[0], int(axis.value)
    if stacks is not None and stacks.value:
        dims.insert(at % (len(dims) + 1), len(shapes))
    else:
        sizes = [shape[at] for shape in shapes]
        numbers = [size for size in sizes if isinstance(size, int)]
        dims[at] = sum(numbers) if len(numbers) == len(sizes) else None
    return replace(kinds[0], dims=tuple(dims))


def _note_types(document: Document) -> None:
    """Record the types that follow from declared and from recorded ones."""
    import onnx

    from dld_tui.backends.onnxruntime.types import contrib_types
    from dld_tui.core.document.serialise import snapshot
    from dld_tui.core.document.types.inference import infer, store_types
    from dld_tui.core.document.types.value_types import type_proto_of
    from dld_tui.core.files.proto_fields import set_text

    model = onnx.ModelProto.FromString(b"".join(snapshot(document, doubtful=True)))
    joined = {
        node.outputs[0]: kind
        for node in document.main.nodes
        if node.op_type == "ConcatFromSequence" and (kind := _joined(node)) is not None
    }
    for name, kind in {**document.main.inferred, **joined}.items():
        if _in_numbers(kind) and document.main.producer(name) is not None:
            proto = type_proto_of(kind)
            if proto is not None:
                info = model.graph.value_info.add()
                set_text(info, "name", name)
                info.type.CopyFrom(proto)
    store_types(document, infer(model, extra_types=contrib_types).model)
