"""What :mod:`tests.support.model_transcripts` makes of models in their transcripts by conversions.

``> opset`` converts to another opset, ``> half`` to a type of 16 bits, ``> precisions`` adds the
casts that the precisions of nodes need. What is made is valid, and computes nearly the same.
``> cut`` takes each node away by itself, or some of them, and keeps the others, ``> recast`` stores
weights in another type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from dld_tui.core.codec import encode
from dld_tui.core.conversion import retyping
from dld_tui.core.conversion.accuracy_criteria import BF16, FP16
from dld_tui.core.conversion.fp16 import Fp16Options, fp16_steps
from dld_tui.core.conversion.opset import convert_opset
from dld_tui.core.conversion.reduction import extract_kept, node_labels
from dld_tui.core.conversion.result import conversion_notes, range_lines
from dld_tui.core.conversion.retyping import retyped
from dld_tui.core.conversion.tensor_casting import CastSelection, convert_tensors, losses
from dld_tui.core.errors import DldError
from dld_tui.core.events import result_of
from dld_tui.core.model.document import Document
from dld_tui.core.model.shapes.inference import infer_types, store_types
from tests.support.model_lines import changes
from tests.support.recorded import fields_of
from tests.support.sessions import bytes_of


def _to_opset(document: Document, to: int) -> Iterator[str]:
    before, made = (onnx.ModelProto.FromString(bytes_of(document)) for _ in range(2))
    try:
        found = convert_opset(made, to)
    except DldError:
        assert made == before, "a refused conversion leaves a trace"
        raise
    yield from (f"{note.kind} {note.text}" for note in conversion_notes(found))
    yield from changes(before, made)


def _halved(document: Document, to: str = "float16", **options: Any) -> Iterator[str]:
    given: dict[str, Any] = {
        key: tuple(one) if isinstance(one, list) else one for key, one in options.items()
    }
    narrow = FP16 if to == "float16" else BF16
    made = result_of(fp16_steps(document, Fp16Options(narrow=narrow, **given)))
    with closing(made.document) as copy:
        yield f"nodes {made.nodes}, casts {made.casts}, weights {made.weights}"
        yield from [f"inlined {made.inlined}"] if made.inlined else []
        yield from (f"kept {count}: {why}" for why, count in made.kept.items())
        yield from range_lines(made.losses, to, all_losses=True)
        yield from (f"note: {note}" for note in made.notes)
        yield from _made(document, copy)


def _retyped(document: Document, specs: Sequence[str] = ()) -> Iterator[str]:
    found = retyped(document, specs)
    with closing(found.document) as copy:
        yield from found.lines()
        yield from (f"remark: {text}" for text in found.remarks)
        yield from (json.dumps(encode(loss)) for loss in retyping.losses(found))
        yield from _made(document, copy)
        again = retyped(copy).plan
        assert not again.relinks, "twice adds something"


def _recast(document: Document, to: str, casts: bool = True, **chosen: Any) -> Iterator[str]:
    given: dict[str, Any] = {
        key: tuple(one) if isinstance(one, list) else one for key, one in chosen.items()
    }
    selection = CastSelection(**given)
    yield from map(fields_of, losses(document, to, selection))
    *_, made = convert_tensors(document, to, selection, casts=casts)
    with closing(made.document) as copy:
        yield from (f"note: {note}" for note in made.notes)
        yield from _made(document, copy)


def _cut(document: Document, *gone: str) -> Iterator[str]:
    before = onnx.ModelProto.FromString(bytes_of(document))
    store_types(document, infer_types(onnx.ModelProto.FromString(bytes_of(document)), None)[0])
    labels = node_labels(document, document.main.nodes)
    for names in [gone] if gone else [(label,) for label in labels.values()]:
        yield f"without {', '.join(names)}"
        part = extract_kept(document, {one for one in labels if labels[one] not in names})
        if part is None:
            yield "nothing: a type is not known"
            continue
        with closing(part.document) as smaller:
            after = onnx.ModelProto.FromString(bytes_of(smaller))
        try:
            onnx.checker.check_model(after, full_check=True)
        except onnx.checker.ValidationError:
            yield "? onnx's checker does not take it"
        yield from changes(before, after)


def _made(document: Document, copy: Document) -> Iterator[str]:
    before, after = (onnx.ModelProto.FromString(bytes_of(one)) for one in (document, copy))
    try:
        onnx.checker.check_model(after, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        yield "? onnx's checker does not take it"
        yield from changes(before, after)
        return
    with np.errstate(all="ignore"):
        results = [ReferenceEvaluator(model).run(None, _feeds(model)) for model in (before, after)]
    for old, new in zip(*results, strict=True):
        assert old.shape == new.shape
        np.testing.assert_allclose(np.asarray(new, np.float64), old, rtol=2e-2, atol=2e-2)
    yield from changes(before, after)


def _feeds(model: onnx.ModelProto) -> dict[str, Any]:
    feeds, defaults = {}, {tensor.name for tensor in model.graph.initializer}
    for info in model.graph.input:
        if info.name in defaults:
            continue
        kind = info.type.tensor_type
        sizes = [dim.dim_value or 2 for dim in kind.shape.dim]
        values = np.linspace(-2, 3, int(np.prod(sizes))).reshape(sizes)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        feeds[info.name] = (np.ones(sizes) if dtype.kind in "bi" else values).astype(dtype)
    return feeds


LOOKS: dict[str, Callable[..., Iterable[str]]] = {
    "cut": _cut, "half": _halved, "opset": _to_opset, "precisions": _retyped, "recast": _recast
}  # fmt: skip
