"""What ``bench_tensor_edit`` measures in processes of their own: cells of a large tensor."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

WEIGHT = "layers.1.weight"


def _places(count: int, cells: int) -> list[int]:
    """Return places all over a tensor, in no order."""
    import numpy as np

    found: list[int] = np.random.RandomState(0).randint(0, count, cells).tolist()
    return found


def document_cells(path: str, target: str, cells: str) -> dict[str, float]:
    """Set cells of a tensor one at a time, take them all back, make them again, and save."""
    from dld_tui.core.document import Document
    from dld_tui.core.document.serialise import save

    document = Document.open(path)
    address: Any = {"initializer": WEIGHT}
    tensor = document.main.initializer(WEIGHT)
    assert tensor is not None
    places = _places(tensor.element_count, int(cells))
    start = time.perf_counter()
    for number, place in enumerate(places):
        document.apply("set_elements", scope=[], tensor=address, start=place, values=[number])
    edited = time.perf_counter()
    for _ in places:
        document.undo()
    undone = time.perf_counter()
    for _ in places:
        document.redo()
    redone = time.perf_counter()
    save(document, Path(target))
    done = time.perf_counter()
    tensor = document.main.initializer(WEIGHT)
    assert tensor is not None
    assert tensor.read(places[-1], 1)[0] == len(places) - 1
    document.close()
    return {
        "ms": (edited - start) * 1000 / len(places),
        "undo_ms": (undone - edited) * 1000 / len(places),
        "save_ms": (done - redone) * 1000,
    }


def onnx_cells(path: str, target: str, cells: str) -> dict[str, float]:
    """Do the same with onnx and numpy: the tensor to an array, the cell, and back."""
    import onnx
    from onnx import numpy_helper

    model = onnx.load(path)
    tensor = next(t for t in model.graph.initializer if t.name == WEIGHT)
    count = 1
    for dim in tensor.dims:
        count *= dim
    places = _places(count, int(cells))
    start = time.perf_counter()
    for number, place in enumerate(places):
        array = numpy_helper.to_array(tensor).copy()
        array.reshape(-1)[place] = number
        tensor.CopyFrom(numpy_helper.from_array(array, WEIGHT))
    edited = time.perf_counter()
    onnx.save(model, target)
    done = time.perf_counter()
    return {"ms": (edited - start) * 1000 / len(places), "save_ms": (done - edited) * 1000}


def document_look(path: str) -> dict[str, float]:
    """Show parts of a tensor as the editor does, plan a conversion, count a histogram."""
    from dld_tui.core.document import Document
    from dld_tui.core.tensors.elements import plan_conversion
    from dld_tui.core.tensors.inspection import TensorWindow, tensor_histogram

    document = Document.open(path)
    tensor = document.main.initializer(WEIGHT)
    assert tensor is not None
    window = TensorWindow(tensor)
    height, width = window.size(window.plane())
    start = time.perf_counter()
    for step in range(100):
        plane = window.plane() if step % 2 else window.plane(1, 0)  # the second one is transposed
        window.cells(plane, step * (height - 50) // 100, 50, width // 2, 20)
    looked = time.perf_counter()
    plan_conversion(tensor, "float16")
    planned = time.perf_counter()
    tensor_histogram(tensor)
    done = time.perf_counter()
    return {
        "ms": (looked - start) * 1000 / 100,
        "plan_ms": (planned - looked) * 1000,
        "histogram_ms": (done - planned) * 1000,
    }


def numpy_look(path: str) -> dict[str, float]:
    """Count what a conversion loses and a histogram the usual way, on the whole array."""
    import numpy as np
    import onnx
    from onnx import numpy_helper

    model = onnx.load(path)
    array = numpy_helper.to_array(next(t for t in model.graph.initializer if t.name == WEIGHT))
    start = time.perf_counter()
    half = array.astype(np.float16)
    back = half.astype(np.float64)
    wide = array.astype(np.float64)
    int((np.isfinite(wide) & ~np.isfinite(back)).sum())
    int(((wide != 0) & (back == 0)).sum())
    int((wide != back).sum())
    float(np.abs(wide - back).max())
    planned = time.perf_counter()
    np.histogram(wide, 64)
    float(wide.mean()), float(wide.std())
    done = time.perf_counter()
    return {"plan_ms": (planned - start) * 1000, "histogram_ms": (done - planned) * 1000}
