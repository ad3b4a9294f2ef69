"""What ``bench_import`` measures in processes of their own: profiles that other programs wrote."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

KERNELS = 170
_PASS_US = 20_000


def write_profile(path: Path, size: int) -> int:
    """Write a profile as ONNX Runtime 1.31 does, of about `size` bytes; return its real size."""
    first = [_kernel(number) for number in range(KERNELS)]
    with path.open("w", encoding="utf-8") as file:
        file.write("[\n")
        comma, start = "", 0
        while file.tell() < size:
            for number, (head, tail) in enumerate(first):
                file.write(f"{comma}{head}{start + 100 * number + 10}{tail}")
                comma = ",\n"
            file.write(
                f'{comma}{{"cat" : "Session","pid" :1,"tid" :1,"dur" :{_PASS_US - 500},'
                f'"ts" :{start},"ph" : "X","name" :"model_run","args" : {{}}}}'
            )
            start += _PASS_US
        file.write("\n]\n")
    return path.stat().st_size


def _kernel(number: int) -> tuple[str, str]:
    shapes = [{"float": [1, 64, 56, 56]}, {"float": [64, 64, 3, 3]}, {"float": [64]}]
    arguments = {
        "op_name": "Conv", "provider": "CPUExecutionProvider", "node_index": str(number),
        "input_type_shape": shapes, "output_type_shape": shapes[:1],
        "parameter_size": "147712", "activation_size": "802816", "output_size": "802816",
        "thread_scheduling_stats": "",
    }  # fmt: skip
    head = '{"cat" : "Node","pid" :1,"tid" :1,"dur" :80,"ts" :'
    name = f"/layer{number}/conv/Conv_kernel_time"
    return head, f',"ph" : "X","name" :"{name}","args" : {json.dumps(arguments)}}}'


def profile_import(path: str) -> dict[str, float]:
    """Open a profile as a report."""
    from dld_tui.core.report.report import open_report

    told = 0

    def progress(done: int, total: int) -> None:
        nonlocal told
        told += 1

    start = time.perf_counter()
    with open_report(path, progress) as report:
        took = time.perf_counter() - start
        assert len(report.layers) == KERNELS
        return {"ms": took * 1000, "passes": len(report.passes), "told": told}


def trace_import(path: str) -> dict[str, float]:
    """Open the same as a Chrome trace of no known program."""
    from dld_tui.core.report.formats.chrome_trace import report_from_trace

    start = time.perf_counter()
    with report_from_trace(path) as report:
        took = time.perf_counter() - start
        assert len(report.layers) == KERNELS
        return {"ms": took * 1000}


def json_import(path: str) -> dict[str, float]:
    """Load the JSON at once and sum the time of each kernel: what a script does."""
    start = time.perf_counter()
    with open(path, encoding="utf-8") as file:
        events: list[dict[str, Any]] = json.load(file)
    times: dict[str, list[int]] = {}
    for event in events:
        if event["cat"] == "Node":
            times.setdefault(event["name"], []).append(event["dur"])
    found = {name: sum(values) / len(values) for name, values in times.items()}
    took = time.perf_counter() - start
    assert len(found) == KERNELS
    return {"ms": took * 1000}
