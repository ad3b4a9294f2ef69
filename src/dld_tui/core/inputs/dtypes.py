"""NumPy types for ONNX element types."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dld_tui.core.errors import ActivityError

AnyArray: TypeAlias = "npt.NDArray[np.generic]"

_PLAIN = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "bool": np.bool_,
    "complex64": np.complex64,
    "complex128": np.complex128,
    "string": np.object_,
}
_EXTENDED = {
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
}


def numpy_dtype(dtype: str) -> np.dtype[np.generic]:
    """Return the NumPy type of an ONNX element type such as ``bfloat16``.

    Raises:
        ActivityError: There is none that arrays can be made of.
    """
    if dtype in _PLAIN:
        return np.dtype(_PLAIN[dtype])
    if dtype in _EXTENDED:
        import ml_dtypes

        extended: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, _EXTENDED[dtype]))
        return extended
    raise ActivityError(f"inputs of type {dtype} cannot be made here")


def is_extended(dtype: str) -> bool:
    """Return whether NumPy itself does not know the type, so that libraries take it as bytes."""
    return dtype in _EXTENDED
