"""Shapes before a run, next to those of onnx's inference and of onnx-shape-inference.

onnx-shape-inference (Apache-2.0) is no dependency: ``pip install --no-deps --target DIR
onnx-shape-inference onnx-ir sympy mpmath``, then ``PYTHONPATH=DIR python -m
benchmarks.bench_shapes``. Compared are the test models that the package onnx carries, with the
outputs that they must have. All three are given the shapes and, where they can take them, the
elements of small inputs.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeAlias

import onnx
from onnx import helper, numpy_helper

from dld_tui.core.document.document import Document
from dld_tui.core.shapes.evaluation import Evaluation
from dld_tui.core.tensors.value_types import value_type_of
from tests.support.backend_cases import Case, backend_cases, known, shape_of

Shapes: TypeAlias = "dict[str, tuple[object, ...] | None]"
_SMALL = 256
"""Elements of an input that is given as a constant."""


def with_inputs(case: Case) -> onnx.ModelProto:
    """Return the model with the shapes of its inputs, small integer ones as constants."""
    model = onnx.ModelProto.FromString(case.model.SerializeToString())
    inputs = list(model.graph.input)
    del model.graph.input[:]
    for info in inputs:
        item: Any = case.inputs.get(info.name)
        is_tensor = info.type.HasField("tensor_type") and item is not None
        if is_tensor and not isinstance(item, onnx.TensorProto) and item.dtype.kind in "ib" and (
            item.size <= _SMALL
        ):  # fmt: skip
            model.graph.initializer.append(numpy_helper.from_array(item, info.name))
            continue
        if is_tensor:
            kind = info.type.tensor_type.elem_type
            info = helper.make_tensor_value_info(info.name, kind, shape_of(item))
        model.graph.input.append(info)
    return model


def ours(case: Case, path: Path) -> Shapes:
    """Return our shapes of the outputs."""
    onnx.save(case.model, path)
    with closing(Document.open(path)) as document:
        evaluation = Evaluation(document, {n: known(item) for n, item in case.inputs.items()})
        return {name: evaluation.value(document.main, name).dims for name in case.outputs}


def of_onnx(case: Case, _: Path) -> Shapes:
    """Return those of onnx's inference."""
    inferred = onnx.shape_inference.infer_shapes(with_inputs(case), data_prop=True)
    told = {info.name: value_type_of(info.type) for info in inferred.graph.output}
    return {name: kind.dims if kind is not None else None for name, kind in told.items()}


def of_peer(case: Case, _: Path) -> Shapes:
    """Return those of onnx-shape-inference."""
    import onnx_ir as ir
    from onnx_shape_inference import infer_symbolic_shapes  # type: ignore[import-not-found]

    model = infer_symbolic_shapes(ir.from_proto(with_inputs(case)))
    return {
        value.name: None if value.shape is None else tuple(value.shape)
        for value in model.graph.outputs
    }


def main() -> None:
    """Print a table."""
    sides: dict[str, Callable[[Case, Path], Shapes]] = {"dld": ours, "onnx": of_onnx}
    with suppress(ImportError):
        import onnx_shape_inference  # noqa: F401

        sides["onnx-shape-inference"] = of_peer
    print(f"{'':22}{'right':>8}{'unknown':>9}{'wrong':>7}{'failed':>8}{'seconds':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for side, infer in sides.items():
            right = unknown = wrong = failed = 0
            begin = time.perf_counter()
            for case in backend_cases():
                try:
                    shapes = infer(case, Path(folder) / "m.onnx")
                except Exception:  # noqa: BLE001 - the peers have errors of their own
                    failed += 1
                    continue
                for name, item in case.outputs.items():
                    if item is None or isinstance(item, list):
                        continue
                    dims, actual = shapes.get(name), shape_of(item)
                    if dims is None or not all(isinstance(size, int) for size in dims):
                        unknown += 1
                    elif dims == actual:
                        right += 1
                    else:
                        wrong += 1
            seconds = time.perf_counter() - begin
            print(f"{side:22}{right:8}{unknown:9}{wrong:7}{failed:8}{seconds:9.1f}")


if __name__ == "__main__":
    main()
