"""What is measured in a process of its own: ``python -m benchmarks.tasks NAME ARGUMENT...``.

Each task imports its library before the clock starts, does one thing, and returns milliseconds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.accuracy_tasks import plain_runs, residual_model, tensor_errors
from benchmarks.build_tasks import encoder_model, our_build, plain_build
from benchmarks.convert_tasks import (
    onnxruntime_fp16,
    own_fp16,
    own_sanitize,
    polygraphy_sanitize,
)
from benchmarks.edit_tasks import document_edits, protobuf_edits
from benchmarks.graph_tasks import dot_layout, graph_prepare
from benchmarks.import_tasks import json_import, profile_import, trace_import
from benchmarks.lint_tasks import document_lint, onnx_lint, polygraphy_lint
from benchmarks.plan_tasks import json_plan_open, plan_html, plan_open
from benchmarks.precision_tasks import precision_trials
from benchmarks.report_tasks import (
    json_report_open,
    json_report_write,
    report_open,
    report_write,
)
from benchmarks.tensor_tasks import document_cells, document_look, numpy_look, onnx_cells


def document_open(path: str) -> dict[str, float]:
    """Open a model as a document and look one value up, which builds the index."""
    from dld_tui.core.document import Document

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
    from dld_tui.core.document import Document
    from dld_tui.core.document.serialise import save

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


def document_diff(old: str, new: str) -> dict[str, float]:
    """Open two models as documents and compare them."""
    from dld_tui.core.compare.diff import diff_documents
    from dld_tui.core.document import Document

    start = time.perf_counter()
    first, second = Document.open(old), Document.open(new)
    opened = time.perf_counter()
    found = diff_documents(first, second)
    done = time.perf_counter()
    return {
        "ms": (done - start) * 1000,
        "open_ms": (opened - start) * 1000,
        "changes": len(list(found.all_changes())),
    }


def onnx_diff(old: str, new: str) -> dict[str, float]:
    """Load two models with onnx and compare their nodes and weights by name."""
    import onnx

    start = time.perf_counter()
    graphs = onnx.load(old).graph, onnx.load(new).graph
    opened = time.perf_counter()
    before, after = (
        {
            **{node.name: node.SerializeToString() for node in graph.node},
            **{tensor.name: tensor.SerializeToString() for tensor in graph.initializer},
        }
        for graph in graphs
    )
    changes = sum(before.get(name) != data for name, data in after.items())
    changes += sum(name not in after for name in before)
    done = time.perf_counter()
    return {"ms": (done - start) * 1000, "open_ms": (opened - start) * 1000, "changes": changes}


def send_over_ssh(config: str, file: str, directory: str) -> dict[str, float]:
    """Send a file to a target."""
    from benchmarks import ssh_tasks  # brings asyncssh, which the others shall not measure

    return ssh_tasks.send_over_ssh(config, file, directory)


def start_over_ssh(config: str, model: str) -> dict[str, float]:
    """Start a job on a target, and here."""
    from benchmarks import ssh_tasks

    return ssh_tasks.start_over_ssh(config, model)


TASKS: dict[str, Callable[..., dict[str, float]]] = {
    task.__name__: task
    for task in (
        bare_session,
        document_cells,
        document_diff,
        document_edits,
        document_look,
        document_lint,
        document_open,
        document_save,
        dot_layout,
        graph_prepare,
        json_import,
        json_plan_open,
        json_report_open,
        json_report_write,
        numpy_look,
        onnx_cells,
        onnx_diff,
        onnx_ir_open,
        onnx_lint,
        onnx_open,
        onnx_save,
        onnxruntime_fp16,
        our_build,
        own_fp16,
        own_sanitize,
        plain_runs,
        residual_model,
        tensor_errors,
        plain_build,
        plan_html,
        plan_open,
        precision_trials,
        protobuf_parse,
        polygraphy_lint,
        polygraphy_sanitize,
        profile_import,
        protobuf_edits,
        report_open,
        report_write,
        encoder_model,
        send_over_ssh,
        start_over_ssh,
        trace_import,
    )
}


def peak_mb() -> float:
    """Return the largest resident size of this process so far, in MB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("this system has no VmHWM in /proc/self/status")


def main(arguments: list[str]) -> None:
    """Run one task and print what it measured as JSON."""
    name, *rest = arguments
    measured = TASKS[name](*rest)
    print(json.dumps({**measured, "peak_mb": peak_mb()}))


if __name__ == "__main__":
    main(sys.argv[1:])
