"""``dld convert``: one command a modification of a whole model."""

from __future__ import annotations

from dld_tui.cli.lazy import LazyGroup
from dld_tui.cli.table import CommandInfo

command = LazyGroup(
    (
        CommandInfo("fp16", "Convert to float16.", "dld_tui.cli.convert_fp16"),
        CommandInfo("bf16", "Convert to bfloat16.", "dld_tui.cli.convert_bf16"),
        CommandInfo(
            "precisions", "Cast to the precisions of layers.", "dld_tui.cli.convert_precisions"
        ),
        CommandInfo(
            "sanitize", "Fold constants, remove what is unused.", "dld_tui.cli.convert_sanitize"
        ),
        CommandInfo("tensors", "Convert weights to another type.", "dld_tui.cli.convert_tensors"),
        CommandInfo(
            "opset", "Convert to another version of the operators.", "dld_tui.cli.convert_opset"
        ),
        CommandInfo("shape", "Make dimensions dynamic or fixed.", "dld_tui.cli.convert_shape"),
        CommandInfo("quantize", "Quantize weights and values.", "dld_tui.cli.convert_quantize"),
        CommandInfo("external", "Move weights to a data file.", "dld_tui.cli.convert_external"),
        CommandInfo("inline", "Move weights into the model.", "dld_tui.cli.convert_inline"),
        CommandInfo("strip", "Take the weights out.", "dld_tui.cli.convert_strip"),
        CommandInfo("restore", "Put the weights back.", "dld_tui.cli.convert_restore"),
    ),
    name="convert",
    help="Modify a whole model.",
    no_args_is_help=False,
)
