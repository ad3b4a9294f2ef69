"""What changed between two versions of an operator, beyond what their schemas say.

Each function takes a node (:class:`.step.OpsetStep`) over one version of its operator: :data:`UP`
from the version before, :data:`DOWN` back to it. What the schemas say (attributes that come and
go, their defaults, numbers of inputs, types) needs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dld_tui.core.conversion.opset_steps import (
    normalization,
    operands,
    pooling,
    sampling,
    semantics,
    types,
)
from dld_tui.core.conversion.opset_steps.step import Rule

_TOLD_TO_BROADCAST = (
    "Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less",
)  # fmt: skip
"""Operators that broadcast only where an attribute says so, before opset 7."""
_REDUCTIONS = tuple(
    f"Reduce{name}"
    for name in ("Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
)
_SOFTMAX = ("Softmax", "LogSoftmax", "Hardmax")
_RECURRENT = ("LSTM", "GRU", "RNN")
_AXIS_11 = (
    "ArgMax", "ArgMin", "Concat", "Flatten", "Split", "Squeeze", "Unsqueeze", "ReduceSum", "Gather",
    *_REDUCTIONS, *_SOFTMAX, "Compress", "TopK", "Slice",
)  # fmt: skip


def _all(names: Iterable[str], since: int, rule: Rule) -> dict[tuple[str, int], Rule]:
    return {(name, since): rule for name in names}


UP: Mapping[tuple[str, int], Rule] = {
    ("GlobalLpPool", 2): pooling.whole_number_up,
    ("LpPool", 2): pooling.whole_number_up,
    ("Pad", 2): operands.pad_names_up,
    ("Split", 2): operands.split_input_up,
    ("GRU", 3): semantics.direction_up,
    ("Concat", 4): semantics.axis_up,
    ("Reshape", 5): operands.reshape_up,
    ("Cast", 6): types.cast_up,
    ("Tile", 6): operands.tile_up,
    **_all(_TOLD_TO_BROADCAST, 7, semantics.broadcast_up),
    ("PRelu", 7): semantics.slope_up,
    ("Gemm", 7): semantics.gemm_up,
    ("BatchNormalization", 7): normalization.test_mode_up,
    ("Dropout", 7): normalization.test_mode_up,
    ("Upsample", 7): sampling.upsample_scales_up,
    ("BatchNormalization", 9): normalization.spatial_up,
    ("Upsample", 9): sampling.upsample_input_up,
    ("Scan", 9): semantics.no_scan,
    ("Slice", 10): operands.slice_up,
    ("TopK", 10): operands.top_k_up,
    ("Upsample", 10): sampling.upsample_to_resize,
    ("Dropout", 10): normalization.mask_up,
    ("Resize", 11): sampling.resize_up,
    ("Pad", 11): operands.pad_up,
    ("Clip", 11): operands.clip_up,
    ("Scatter", 11): semantics.scatter_to_elements,
    ("Dropout", 12): normalization.ratio_up,
    **_all(("Squeeze", "Unsqueeze", "ReduceSum"), 13, operands.axes_up),
    ("Split", 13): operands.split_up,
    **_all(_SOFTMAX, 13, normalization.softmax_up),
    ("Resize", 13): sampling.resize_inputs_up,
    ("BatchNormalization", 14): normalization.training_up,
    ("RoiAlign", 16): sampling.roi_align_up,
    **_all(_REDUCTIONS, 18, operands.axes_up),
    ("Split", 18): operands.split_parts_up,
    ("AveragePool", 19): pooling.average_pool,
    ("GridSample", 20): sampling.grid_sample_up,
    ("DFT", 20): operands.dft_up,
    ("GroupNormalization", 21): normalization.group_norm_up,
}
"""By operator and the version that a node comes to."""


DOWN: Mapping[tuple[str, int], Rule] = {
    ("BatchNormalization", 7): normalization.test_mode_down,
    ("Upsample", 9): sampling.upsample_input_down,
    ("Scan", 9): semantics.no_scan,
    ("Constant", 9): types.number_down,
    **_all(("Max", "Min", "Mean", "Sum"), 8, semantics.same_shapes_down),
    ("Slice", 10): operands.slice_down,
    ("TopK", 10): operands.top_k_down,
    ("Resize", 10): sampling.resize_to_upsample,
    ("Dropout", 10): normalization.mask_down,
    **_all(_AXIS_11, 11, semantics.axis_down),
    ("TopK", 11): operands.top_k_order_down,
    ("Gemm", 11): semantics.bias_down,
    ("Resize", 11): sampling.resize_down,
    ("Pad", 11): operands.pad_down,
    ("Clip", 11): operands.clip_down,
    ("OneHot", 11): semantics.one_hot_down,
    ("ScatterElements", 11): semantics.elements_to_scatter,
    ("DepthToSpace", 11): semantics.column_row_depth_down,
    ("Constant", 11): types.sparse_down,
    ("Dropout", 12): normalization.ratio_down,
    ("Constant", 12): types.constant_down,
    ("Pow", 12): types.exponent_down,
    **_all(("Squeeze", "Unsqueeze", "ReduceSum"), 13, operands.axes_down),
    ("Split", 13): operands.split_down,
    **_all(_SOFTMAX, 13, normalization.softmax_down),
    ("Resize", 13): sampling.resize_inputs_down,
    **_all(("QuantizeLinear", "DequantizeLinear"), 13, types.one_scale_down),
    ("BatchNormalization", 14): normalization.training_down,
    ("Trilu", 14): operands.trilu_down,
    ("Reshape", 14): operands.allow_zero_down,
    **_all(_RECURRENT, 14, semantics.layout_down),
    ("Shape", 15): operands.shape_down,
    ("RoiAlign", 16): sampling.roi_align_down,
    **_all(_REDUCTIONS, 18, operands.axes_down),
    ("Split", 18): operands.split_parts_down,
    ("Pad", 18): operands.pad_axes_down,
    ("Resize", 18): sampling.resize_axes_down,
    **_all(("ScatterElements", "ScatterND"), 18, semantics.reduction_down),
    ("Pad", 19): operands.pad_wrap_down,
    ("Resize", 19): sampling.resize_modes_down,
    ("AveragePool", 19): pooling.average_pool_down,
    ("MaxPool", 10): pooling.max_pool_down,
    ("LpPool", 18): pooling.lp_pool_down,
    ("AveragePool", 10): pooling.whole_windows_down,
    **_all(("ArgMax", "ArgMin"), 12, semantics.last_index_down),
    ("Mod", 10): semantics.mod_down,
    ("Equal", 11): semantics.equal_down,
    ("BitwiseNot", 18): semantics.bitwise_not_down,
    ("OptionalGetElement", 18): semantics.optional_value_down,
    ("OptionalHasElement", 18): semantics.has_value_down,
    **_all(("Cast", "CastLike", "QuantizeLinear"), 19, types.float8_only_down),
    **_all(("Cast", "CastLike"), 24, types.float8_only_down),
    ("GridSample", 20): sampling.grid_sample_down,
    ("DFT", 20): operands.dft_down,
    ("GroupNormalization", 21): normalization.group_norm_down,
    **_all(("QuantizeLinear", "DequantizeLinear"), 21, types.blocks_down),
    **_all(("QuantizeLinear", "DequantizeLinear"), 23, types.precision_down),
}
"""By operator and the version that a node leaves."""
