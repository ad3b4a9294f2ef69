"""What is measured of opening, saving, converting and running a model, ours and a peer's.

Each of these functions runs in a process of its own (:mod:`benchmarks.task`).
"""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path
from typing import Any


def document_open(path: str) -> dict[str, float]:
    """Open a model as a document and look one value up, which builds the index."""
    from dld_tui.core.model.document import Document

    start, worked = time.perf_counter(), time.thread_time()
    document = Document.open(path)
    opened = time.perf_counter()
    main = document.main
    name = main.nodes[-1].outputs[0]
    assert main.producer(name) is main.nodes[-1]
    assert not main.consumers(name)
    indexed, done = time.perf_counter(), time.thread_time()
    return {
        "ms": (indexed - start) * 1000,
        "processor_ms": (done - worked) * 1000,
        "open_ms": (opened - start) * 1000,
        "nodes": len(main.nodes),
    }


def protobuf_parse(path: str) -> dict[str, float]:
    """Parse the bytes of a model with protobuf alone: no Python object of any node is made."""
    import onnx

    data = Path(path).read_bytes()
    model = onnx.ModelProto()
    start, worked = time.perf_counter(), time.thread_time()
    model.ParseFromString(data)
    done = time.thread_time()
    return {"ms": (time.perf_counter() - start) * 1000, "processor_ms": (done - worked) * 1000}


def onnx_open(path: str) -> dict[str, float]:
    """Load a model with onnx."""
    import onnx

    start = time.perf_counter()
    model = onnx.load(path)
    done = time.perf_counter()
    return {"ms": (done - start) * 1000, "nodes": len(model.graph.node)}


def onnx_ir_open(path: str) -> dict[str, float]:
    """Load a model with onnx-ir and index its values by name."""
    import onnx_ir

    start = time.perf_counter()
    model = onnx_ir.load(path)
    loaded = time.perf_counter()
    producers: dict[str, Any] = {}
    consumers: dict[str, list[Any]] = {}
    for node in model.graph:
        for value in node.outputs:
            producers[value.name or ""] = node
            consumers[value.name or ""] = list(value.uses())
    done = time.perf_counter()
    return {
        "ms": (done - start) * 1000,
        "open_ms": (loaded - start) * 1000,
        "nodes": len(producers),
    }


def document_save(path: str, target: str) -> dict[str, float]:
    """Open a document, rename a node and save it to another file, flushed to the disk."""
    from dld_tui.core.model.document import Document
    from dld_tui.core.model.document.serialise import save

    document = Document.open(path)
    node = document.main.nodes[0]
    document.apply("rename_node", scope=[], node=node.ref, name="renamed")
    start = time.perf_counter()
    save(document, Path(target))
    done = time.perf_counter()
    document.close()
    return {"ms": (done - start) * 1000, "bytes": Path(target).stat().st_size}


def onnx_save(path: str, target: str) -> dict[str, float]:
    """Load a model with onnx, rename a node and save it to another file."""
    import onnx

    model = onnx.load(path)
    model.graph.node[0].name = "renamed"
    start = time.perf_counter()
    onnx.save(model, target)
    done = time.perf_counter()
    return {"ms": (done - start) * 1000, "bytes": Path(target).stat().st_size}


def bare_session(
    path: str, inputs: str, iterations: str, warm_up: str, threads: str
) -> dict[str, float]:
    """Run a model in a plain loop, as anyone would write it, and return the median latency."""
    import statistics

    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = int(threads)
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    feeds = {
        name: random.standard_normal(dims).astype(np.float32)
        for name, dims in json.loads(inputs).items()
    }
    for _ in range(int(warm_up)):
        session.run(None, feeds)
    times = []
    for _ in range(int(iterations)):
        start = time.perf_counter()
        session.run(None, feeds)
        times.append((time.perf_counter() - start) * 1000)
    return {"ms": statistics.median(times)}


def own_fp16(path: str, output: str) -> dict[str, float]:
    """Convert to float16 with the activity, the trial of the result in a child included."""
    from dld_tui.activities.convert.fp16 import Request, run

    Path(output).unlink(missing_ok=True)  # of the peer: nothing is overwritten
    start = time.perf_counter()
    for _ in run(Request(Path(path), Path(output))):
        pass
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
    return {"ms": (time.perf_counter() - start) * 1000, "child_mb": child}


def onnxruntime_fp16(path: str, output: str) -> dict[str, float]:
    """Convert to float16 as ONNX Runtime's documentation does."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    start = time.perf_counter()
    onnx.save(convert_float_to_float16(onnx.load(path)), output)
    return {"ms": (time.perf_counter() - start) * 1000}
