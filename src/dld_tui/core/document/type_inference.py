"""Types and shapes of all values, as the onnx package infers them.

It is native code that can end the process on a bad model: call this in a child process.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from dld_tui.core.document.labels import Labels, Remark
from dld_tui.core.document.places import bodies, scope_at
from dld_tui.core.document.values import value_type_of
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.errors import ActivityError, InputError
from dld_tui.core.files.external import ExternalFiles
from dld_tui.core.files.tensors import (
    dense_tensors,
    entries_of,
    is_external,
    payload_length,
    set_inline,
)
from dld_tui.core.files.wire import THRESHOLD

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document


def take_in_small_data(model: onnx.ModelProto, home: Path) -> None:
    """Put small external data into a model: onnx computes sizes from what is inline only.

    Args:
        model: The model, whose payloads may be cut out.
        home: The model's file: data files are found in its folder.
    """
    with contextlib.closing(ExternalFiles(home)) as files:
        for tensor in dense_tensors(model):
            if not is_external(tensor):
                continue
            length = payload_length(tensor)
            if length is not None and length < THRESHOLD:
                with contextlib.suppress(InputError):  # missing or refused: a check tells
                    set_inline(tensor, files.blob(entries_of(tensor), expected=length).read())


def infer_types(model: onnx.ModelProto, path: Path | None) -> tuple[onnx.ModelProto, list[Remark]]:
    """Return a copy of a model with ``value_info`` for all values that onnx can tell of.

    Args:
        model: The model, whose payloads may be cut out; it gets imports that it lacks.
        path: How errors name it.

    Returns:
        The copy, and what does not fit together in the model.

    Raises:
        ActivityError: Inference refuses the model as a whole; it says why.
    """
    used = {node.domain for _, body in bodies(model) for node in body.node}
    imported = {entry.domain for entry in model.opset_import}
    # One node of a domain that is not imported would end it for all the others.
    for domain in sorted(used - {"", "ai.onnx"} - imported):
        model.opset_import.add(domain=domain, version=1)
    labels = Labels(model)
    remarks: list[Remark] = []
    for strict in (True, False):  # only the strict way tells its errors, and then nothing else
        try:
            return onnx.shape_inference.infer_shapes(
                model, check_type=False, strict_mode=strict, data_prop=True
            ), remarks
        # The seam: C++ errors of several classes without a common base.
        except Exception as error:  # noqa: BLE001
            remarks = labels.remarks(str(error))
    why = remarks[0].message if remarks else "the model is inconsistent"
    raise ActivityError(
        f"shape inference stopped: {why}", where=None if path is None else str(path)
    )


def take_types(document: Document, inferred: onnx.ModelProto) -> None:
    """Give a document the types that inference found in a copy of it, functions left out."""
    for place, body in bodies(inferred):
        scope = scope_at(document, place)
        if scope is None or scope.is_function or not isinstance(body, onnx.GraphProto):
            continue
        for info in (*body.value_info, *body.output):
            if (known := value_type_of(info.type)) is not None:
                scope.inferred[text_of(info.name)] = known
