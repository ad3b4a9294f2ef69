"""Another version of the ai.onnx operators, by onnx's version converter, weights never loaded.

Result: ``{"path", "from", "to", "changed": {OPERATOR: NODES}, "added", "removed", "initializers",
"notes": [...], "remarks": [...]}``; notes say what could not be converted, remarks what was
noteworthy when the file was written.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.conversion.request import ConversionRequest
from dld_tui.core.errors import InputError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.files.writer import write_bytes
from dld_tui.core.params import param
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.opset_conversion import Conversion


@dataclass(frozen=True)
class Request(ConversionRequest):
    """Which model, where to, and to which version."""

    to: int = param(
        label="Version",
        help="The version of the ai.onnx operators to convert to.",
        minimum=1,
        spellings=("--to",),
        metavar="N",
    )
    skeleton: bool = param(
        False,
        label="Skeleton",
        help="Both files are models whose payloads are cut out, and stay so.",
        internal=True,
    )


def run(request: Request) -> Iterator[Event]:
    """Convert.

    Raises:
        InputError: The model cannot be opened.
        ConversionError: It cannot be converted; says what stands in the way.
        SaveError: The result cannot be written.
    """
    from dld_tui.core.document.opset_conversion import ConversionError

    yield Progress(0, None, stage="Opening the model")
    try:
        yield from _run(request)
    except ConversionError as error:
        where = None if request.skeleton else str(request.model)
        raise ConversionError(error.message, where=where) from None


def _run(request: Request) -> Iterator[Event]:
    if request.skeleton:
        data = _read(request.model)
        yield Progress(0, None, stage="Converting")
        report, data = _convert(data, request.to)
        write_bytes(request.output, data)
        yield Finished({"path": str(request.output), **report.to_json(), "remarks": []})
        return
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.serialise import skeleton_bytes
    from dld_tui.core.files.model_set import plan_model

    with contextlib.closing(Document.open(request.model)) as document:
        yield Progress(0, None, stage="Converting")
        report, data = _convert(skeleton_bytes(document), request.to)
        yield Progress(0, None, stage="Writing the result")
        plan = plan_model(
            data,
            document.blobs,
            request.output,
            external=document.external,
            spill=document.spill,
        )
        remarks: list[JSON] = [*plan.write()]
    yield Finished({"path": str(request.output), **report.to_json(), "remarks": remarks})


def _convert(data: bytes, version: int) -> tuple[Conversion, bytes]:
    import onnx
    from google.protobuf.message import DecodeError

    from dld_tui.core.document.opset_conversion import convert_opset

    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError as error:
        raise InputError(f"not an ONNX protobuf: {error}") from None
    report = convert_opset(model, version)
    return report, model.SerializeToString()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from None
