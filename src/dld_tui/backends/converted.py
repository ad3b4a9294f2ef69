"""Whether ONNX Runtime can still load and run a model that was converted.

Large weights are stood in for by zeros, so that neither time nor memory goes into them: what is
found are types that do not fit and operators without an implementation, which is what conversions
can get wrong.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path

import onnx
from onnx import helper

from dld_tui.backends.onnxruntime import Session
from dld_tui.backends.onnxruntime_options import SessionSettings
from dld_tui.core import fmt
from dld_tui.core.document.document import Document
from dld_tui.core.document.serialise import skeleton_bytes
from dld_tui.core.document.values import value_type_of
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.errors import ActivityError, DldError, UnavailableError, UsageError
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.files.tensors import payload_length
from dld_tui.core.files.view import discard_view, external_view
from dld_tui.core.inputs.guess import Guess, specs_for
from dld_tui.core.inputs.search import candidate_guesses
from dld_tui.core.inputs.shapes import parse_shapes
from dld_tui.core.inputs.trials import first_that_runs
from dld_tui.core.text import visible

_SETTINGS = SessionSettings(
    optimization_level="disabled", quiet=True, config={"session.disable_prepacking": "1"}
)
_LARGE, _MANY = 1 << 16, 64 << 20
"""Bytes of weights, and of all of them, from which nodes make them."""
_SINCE = 9
_MADE = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE,
         onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.INT32,
         onnx.TensorProto.INT64)  # fmt: skip
"""What ConstantOfShape makes, since version 9 of the operators."""


def verify(
    original: Document,
    result: Document,
    title: Path,
    shapes: Sequence[str] = (),
    hint: str | None = None,
) -> Generator[Event, None, list[str]]:
    """Load and run a converted model; return what could not be found out, for people.

    Yields what it does, and which shapes it guessed.

    Args:
        original: The model before: what it cannot do either is no fault of the conversion.
        result: The model after.
        title: The file that errors name.
        shapes: Of inputs, ``NAME:1x3x224x224``; what is open is guessed.
        hint: What can be done when it fails.

    Raises:
        ActivityError: The result cannot be loaded or run, but the original can; names the node
            where ONNX Runtime does.
    """
    yield Progress(0, None, stage="Trying the result with ONNX Runtime")
    try:
        why, guess = _run(result, title, shapes)
    except UsageError:
        raise
    except UnavailableError as error:
        return [f"not verified: {error.message}"]
    except DldError as error:
        try:
            _run(original, title, shapes)
        except DldError as before:
            return [f"not verified, as the original cannot be run either: {before.message}"]
        named = None if ": " in (error.where or "") else _misdeclared(result)
        raise ActivityError(
            f"the converted model cannot be used: {named or error.message}",
            where=error.where,
            hint=hint or error.hint,
            details=error.details,
        ) from error
    for remark in guess.remarks if guess is not None else ():
        yield Log(f"Tried with {remark}")
    return [f"loaded but not run: {why}"] if why else []


def _misdeclared(result: Document) -> str | None:
    """Return which weight is not of the type that is declared, which ONNX Runtime does not say."""
    main = result.main
    for name in ("input", "value_info", "output"):
        for record in main.records[name]:
            tensor = main.initializer(text_of(record.name))
            declared = value_type_of(record.type)
            if tensor is None or declared is None or declared.dtype in (None, "", tensor.dtype):
                continue
            users = [
                f"{use.node.op_type} {visible(use.node.ref)}" for use in main.users(tensor.name)
            ]
            return (
                f"weight {visible(tensor.name)!r}{f' of node {users[0]}' if users else ''} is"
                f" {tensor.dtype}, and declared {declared.dtype}"
            )
    return None


def _run(document: Document, title: Path, shapes: Sequence[str]) -> tuple[str, Guess | None]:
    """Load and run a model; return why it was not run, if so, and with which inputs it was."""
    view = external_view(
        skeleton_bytes(document), document.blobs, external=document.external, values=False
    )
    try:
        is_large = _lighten(view)
        session = Session(view, _SETTINGS, title)
        if is_large:
            return f"it has more than {fmt.size(_MANY)} of weights", None
        if any(spec.container for spec in session.inputs):
            return "an input is not a tensor", None
        specs = specs_for(session.inputs, document)
        guesses = candidate_guesses(
            specs, document, parse_shapes(shapes, [spec.name for spec in specs])
        )
        guess, _ = first_that_runs(
            guesses, 0, lambda feeds: session.run_unread(session.feed(dict(feeds)))
        )
        return "", guess
    finally:
        discard_view(view)


def _lighten(view: Path) -> bool:
    """Let nodes make the zeros of many large weights, and return whether that was done.

    ONNX Runtime copies initializers when it loads a model, and would hold all of them.
    """
    model = onnx.ModelProto.FromString(view.read_bytes())
    graph = model.graph
    large = [t for t in graph.initializer if (payload_length(t) or 0) >= _LARGE]
    opset = next((e.version for e in model.opset_import if e.domain in ("", "ai.onnx")), 0)
    if sum(payload_length(t) or 0 for t in large) < _MANY or opset < _SINCE:
        return False
    given = {record.name for record in (*graph.input, *graph.output)}
    made = []
    for tensor in large:
        if tensor.data_type not in _MADE or tensor.name in given:
            continue
        shape = helper.make_tensor(
            f"{tensor.name}.shape", onnx.TensorProto.INT64, [len(tensor.dims)], tensor.dims
        )
        zero = helper.make_tensor("", tensor.data_type, [1], [0])
        made.append(helper.make_node("ConstantOfShape", [shape.name], [tensor.name], value=zero))
        tensor.CopyFrom(shape)
    nodes = [*made, *graph.node]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    view.write_bytes(model.SerializeToString())
    return True
