"""Element types of tensors, and a tensor of each."""

from __future__ import annotations

import onnx

from dld_tui.core.model.tensors.elements import Array, encode_elements, require_dtype
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import dtype_name

DTYPES = [
    dtype_name(number)
    for name, number in onnx.TensorProto.DataType.items()
    if name not in ("UNDEFINED", "STRING")
]


def tensor_of(values: Array, dtype: str) -> Tensor:
    proto = onnx.TensorProto(data_type=require_dtype(dtype), dims=[len(values)])
    proto.raw_data = encode_elements(values, dtype)
    return Tensor(proto, None)
