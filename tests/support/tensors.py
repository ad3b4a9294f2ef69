"""A model with tensors of many kinds, and its pages in the real app."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dld_tui.screens.tensors.conversion import TensorPlace
from dld_tui.screens.tensors.tensor_editor import TensorScreen
from tests.support.workspace import NARROW, Session, opened

VOLUME = np.arange(3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5)


def tensors() -> list[onnx.TensorProto]:
    """Return one initializer of each kind that is shown in its own way."""
    missing = TensorProto(name="gone", data_type=TensorProto.FLOAT, dims=[4])
    missing.data_location = TensorProto.EXTERNAL
    missing.external_data.add(key="location", value="gone.bin")
    arrays: dict[str, np.ndarray[Any, Any]] = {
        "w": np.array([1, 2, 3, 4], np.float32),
        "volume": VOLUME,
        "matrix": np.array([[1, -2], [0, 127]], np.int8),
        "words": np.array([b"one", b"two"], object),
        "odd": np.array([1.5, np.nan, np.inf, 0], np.float32),
        "brain": np.array([0.5, 1.5], ml_dtypes.bfloat16),
        "scalar": np.array(7, np.int64),
        "empty": np.zeros((0, 4), np.float32),
        "mask": np.array([True, False]),
    }
    made = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    made.append(helper.make_tensor("nibbles", TensorProto.INT4, [3], [-8, 0, 7]))
    made.append(helper.make_tensor("eight", TensorProto.FLOAT8E4M3FN, [2], [0.5, 448]))
    return [*made, missing]


def write_tensors(folder: Path) -> Path:
    """Write a model: `w` is used twice, nothing else of the initializers is."""
    value = numpy_helper.from_array(np.array([5, 6, 7, 8], np.float32))
    nodes = [
        helper.make_node("Add", ["x", "w"], ["a"], name="first"),
        helper.make_node("Constant", [], ["k"], name="const", value=value),
        helper.make_node("Mul", ["a", "k"], ["b"], name="second"),
        helper.make_node("Sub", ["b", "w"], ["y"], name="last"),
    ]
    float4 = helper.make_tensor_type_proto(TensorProto.FLOAT, ["N", 4])
    graph = helper.make_graph(
        nodes, "g", [helper.make_value_info("x", float4)], [helper.make_value_info("y", float4)],
        tensors(),
    )  # fmt: skip
    sparse = helper.make_sparse_tensor(
        helper.make_tensor("thin", TensorProto.FLOAT, [2], [1, 2]),
        helper.make_tensor("", TensorProto.INT64, [2], [3, 7]),
        [10],
    )
    graph.sparse_initializer.append(sparse)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=10)
    path = folder / "tensors.onnx"
    path.write_bytes(model.SerializeToString())
    return path


@asynccontextmanager
async def editor(
    folder: Path, name: str, size: tuple[int, int] = NARROW
) -> AsyncIterator[tuple[Session, TensorScreen]]:
    """Open the editor of an initializer and wait until it is there."""
    async with opened(write_tensors(folder), size) as session:
        session.screen.editing.show_tensor(TensorPlace(session.screen.document.main, name))
        page = await session.front(TensorScreen)
        await session.until(lambda: page.focused is page.grid)
        await session.pilot.pause()
        yield session, page
