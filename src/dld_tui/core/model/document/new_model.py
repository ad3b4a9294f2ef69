"""The settings of new models, and what these import."""

from __future__ import annotations

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.model.operators.registry import DEFAULT_OPSET
from dld_tui.core.params import param

VALUES = "NAME:float32[N,3,224,224]"
"""How a value and its type are written."""
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
        metavar=VALUES,
    )
    outputs: tuple[str, ...] = param(
        (),
        label="Outputs",
        help="Outputs with their types; no node produces them yet.",
        spellings=("--output",),
        metavar=VALUES,
    )


def opsets_of(request: NewModel) -> dict[str, int]:
    """Return the operator sets that a new model imports, ``""`` being ai.onnx.

    Raises:
        UsageError: The opset is newer than what is known here.
    """
    from dld_tui.core.model.operators.registry import (
        importable_version,
        least_ir_version,
        newest_opset,
    )

    newest = newest_opset() or 1
    if request.opset > newest:
        raise UsageError(f"--opset is {request.opset}; the newest that is known is {newest}")
    opsets = {"": request.opset}
    if request.ml:
        opsets[_ML] = importable_version(_ML, least_ir_version(opsets))
    if request.contrib:
        opsets["com.microsoft"] = 1
    return opsets
