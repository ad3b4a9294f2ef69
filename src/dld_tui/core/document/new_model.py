"""New models: their operator sets, inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.operators.registry import DEFAULT_OPSET
from dld_tui.core.params import param
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.types.value_types import ValueType

_VALUES = "NAME:float32[N,3,224,224]"
_ML = "ai.onnx.ml"


@dataclass(frozen=True)
class NewModel:
    """The settings of a new model."""

    opset: int = param(
        DEFAULT_OPSET,
        label="Opset",
        help=(
            "Version of ai.onnx. TensorRT 10.0 supports 9 to 20, 10.15 up to 24, 11 up to 25; "
            "ONNX Runtime supports 7 and newer, up to the latest at its release."
        ),
        spellings=("--opset",),
        minimum=1,
    )
    contrib: bool = param(
        False,
        label="Contrib",
        help="Also import ONNX Runtime's com.microsoft operators.",
        spellings=("--contrib",),
    )
    ml: bool = param(
        False,
        label="Classic ML",
        help="Also import ai.onnx.ml operators: trees, linear models, encoders.",
        spellings=("--ml",),
    )
    name: str = param("main", label="Graph name", help="The graph's name.", spellings=("--name",))
    inputs: tuple[str, ...] = param(
        (),
        label="Inputs",
        help="Inputs with their types, such as x:float32[N,3,224,224]; ? is an unknown dimension.",
        spellings=("--input",),
        metavar=_VALUES,
    )
    outputs: tuple[str, ...] = param(
        (),
        label="Outputs",
        help="Outputs with their types; no node produces them yet.",
        spellings=("--output",),
        metavar=_VALUES,
    )


def opsets_of(request: NewModel) -> dict[str, int]:
    """Return the operator sets that a new model imports, ``""`` being ai.onnx.

    Raises:
        UsageError: The opset is newer than what is known here.
    """
    from dld_tui.core.operators.registry import importable_version, least_ir_version, newest_opset

    newest = newest_opset() or 1
    if request.opset > newest:
        raise UsageError(f"--opset is {request.opset}; the newest that is known is {newest}")
    opsets = {"": request.opset}
    if request.ml:
        opsets[_ML] = importable_version(_ML, least_ir_version(opsets))
    if request.contrib:
        opsets["com.microsoft"] = 1
    return opsets


def new_document(request: NewModel) -> Document:
    """Return a new document.

    Raises:
        UsageError: A setting makes no sense; names its flag.
    """
    from dld_tui.core.document.document import Document
    from dld_tui.core.files.proto_fields import set_text

    taken: set[str] = set()
    inputs = [_value("--input", text, taken) for text in request.inputs]
    outputs = [_value("--output", text, taken) for text in request.outputs]
    document = Document.new(opsets_of(request))
    set_text(document.model.graph, "name", request.name)
    _declare(document, "input", inputs)
    _declare(document, "output", outputs)
    return document


def _value(flag: str, text: str, taken: set[str]) -> tuple[str, ValueType | None]:
    from dld_tui.core.document.types.value_types import parse_type

    name, colon, kind = text.rpartition(":")
    if not colon:
        name, kind = text, ""
    if not name:
        raise UsageError(f"{flag} {visible(text)!r} is not a value", hint=f"Write {_VALUES}")
    if name in taken:
        raise UsageError(f"{flag} gives the name {visible(name)!r} twice")
    taken.add(name)
    try:
        return name, parse_type(kind)
    except DldError as error:
        raise UsageError(f"{flag} {visible(text)!r}: {error.message}", hint=error.hint) from None


def _declare(document: Document, side: str, values: Sequence[tuple[str, ValueType | None]]) -> None:
    import onnx

    from dld_tui.core.document.edits.subgraphs import declare

    for name, value_type in values:
        info = onnx.ValueInfoProto()
        declare(info, name, value_type)
        document.main.records[side].append(info)
