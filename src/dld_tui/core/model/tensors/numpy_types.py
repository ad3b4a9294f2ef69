"""The NumPy type of each element type of ONNX, by the names of :mod:`.value_types`."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

PLAIN = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
"""Types that NumPy has, by the same name."""
EXTENDED = {
    **{name: name for name in ("bfloat16", "int2", "int4", "uint2", "uint4")},
    "float4e2m1": "float4_e2m1fn",
    "float6e2m3": "float6_e2m3fn",
    "float6e3m2": "float6_e3m2fn",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
}
"""Types that the ml_dtypes package has, with its names."""


@lru_cache(maxsize=64)
def numpy_type(dtype: str) -> np.dtype[Any] | None:
    """Return the NumPy type of an element type: object for strings.

    None where there is no such type, or a newer ml_dtypes has it.
    """
    import numpy as np

    if dtype == "string":
        return np.dtype(object)
    if dtype in PLAIN:
        return np.dtype(dtype)
    if dtype not in EXTENDED:
        return None
    import ml_dtypes

    kind = getattr(ml_dtypes, EXTENDED[dtype], None)
    return None if kind is None else np.dtype(kind)
