"""The models that the package onnx carries as tests of backends, with their inputs and outputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.core.model.shapes.size import UNKNOWN, Size
from dld_tui.core.model.shapes.value import NOTHING, Value, of_array, sequence


@dataclass(frozen=True)
class Case:
    """A model with what goes in and what must come out."""

    name: str
    model: onnx.ModelProto
    """Without declared shapes of outputs and values."""
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]


@cache
def backend_cases() -> tuple[Case, ...]:
    """Return all cases, those of single operators first."""
    from onnx.backend.test.case import base
    from onnx.backend.test.loader import load_model_tests
    from onnx.reference.ops import op_pool_common

    with pytest.MonkeyPatch.context() as quick, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the reference implementations
        quick.setattr(base, "process_snippet", lambda *_: ("", ""))  # the source for their pages
        quick.setattr(op_pool_common, "pool", _pooled)
        tests = [
            test
            for kind in ("node", "simple", "pytorch-converted", "pytorch-operator")
            for test in load_model_tests(kind=kind)
        ]
    return tuple(case for test in tests if (case := _case(test)) is not None)


def _pooled(
    padded: Any, x_shape: Any, kernel: Any, strides: Any, out_shape: Any, *_: Any, **__: Any
) -> Any:
    """Return what a pool makes, without its numbers: no rule tells them, and they take long."""
    return np.zeros([*x_shape[:2], *out_shape], padded.dtype)


def _case(test: Any) -> Case | None:
    if test.model is not None:
        if not test.data_sets:
            return None
        model = onnx.ModelProto.FromString(test.model.SerializeToString())
        given, made = test.data_sets[0]
    else:
        folder = Path(test.model_dir)
        model = onnx.load(folder / "model.onnx")
        data = folder / "test_data_set_0"
        lists = (("input", model.graph.input), ("output", model.graph.output))
        try:
            given, made = (
                [_tensor(data / f"{kind}_{at}.pb") for at in range(len(infos))]
                for kind, infos in lists
            )
        except (OSError, TypeError, ValueError):
            return None  # of sequences
    del model.graph.value_info[:]
    for info in model.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    inputs = {info.name: item for info, item in zip(model.graph.input, given, strict=False)}
    outputs = {info.name: item for info, item in zip(model.graph.output, made, strict=False)}
    return Case(test.name, model, inputs, outputs)


def _tensor(path: Path) -> Any:
    return numpy_helper.to_array(onnx.TensorProto.FromString(path.read_bytes()))


def shape_of(item: Any) -> tuple[int, ...]:
    """Return the shape of a tensor of a case."""
    return tuple(item.dims) if isinstance(item, onnx.TensorProto) else np.asarray(item).shape


def known(item: Any) -> Value:
    """Return what is known of a tensor, or of a sequence of tensors, that is fed."""
    if item is None:
        return NOTHING
    if isinstance(item, list):
        return sequence([known(one) for one in item])
    if isinstance(item, onnx.TensorProto) or np.asarray(item).dtype.names is not None:
        return Value(shape_of(item))
    return of_array(item)


def tensors(item: Any) -> list[Any]:
    """Return the tensors of an output."""
    return item if isinstance(item, list) else [item]


def claims(value: Value, item: Any) -> Iterator[tuple[Value, tuple[int, ...]]]:
    """Yield what is known of each tensor of an output, with its shape in a run."""
    if item is None:
        return
    if not isinstance(item, list):
        yield value, shape_of(item)
    elif value.items is not None and len(value.items) == len(item):
        yield from zip(value.items, map(shape_of, item), strict=True)
    else:
        for one in item:
            yield Value(value.dims), shape_of(one)


def fits(dims: tuple[Size, ...] | None, shape: tuple[int, ...]) -> bool:
    """Return whether each size that is a number is that of a run."""
    if dims is None:
        return True
    return len(dims) == len(shape) and all(
        not isinstance(size, int) or size == actual
        for size, actual in zip(dims, shape, strict=True)
    )


def less_known(value: Value) -> Iterator[Value]:
    """Yield a value of which less is known: nothing, the rank, all but one size, the shape."""
    yield NOTHING
    if value.is_sequence:
        yield Value(value.dims, is_sequence=True)
        yield Value(is_sequence=True)
    elif value.dims is not None:
        yield Value((UNKNOWN,) * len(value.dims))
        yield Value(value.dims)
        for at in range(len(value.dims)):
            yield Value((*value.dims[:at], UNKNOWN, *value.dims[at + 1 :]))
        if value.elements:
            yield Value(value.dims, (UNKNOWN,) * len(value.elements))
