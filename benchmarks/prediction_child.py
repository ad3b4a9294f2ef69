"""A process that says of model after model what ONNX Runtime does with it, or what we say of it.

Reads one JSON object a line, answers each with one; when it dies, its parent starts another.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dld_tui.core.events import Event, Finished


def runtime_verdict(path: str, feeds: str | None) -> dict[str, Any]:
    """Load and run a model: ``ok``, ``load``, ``run`` or ``kernel``, and what was said.

    What fails with some values and runs with ones cannot be foreseen: it runs.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - the seam: errors of C++
        return _refused("load", error)
    if feeds is None:
        return {"verdict": "ok", "ran": False}
    data = np.load(feeds, allow_pickle=True)
    types = json.loads(str(data["types of inputs"]))
    values = {}
    for info in session.get_inputs():
        if info.name in types:
            array = data[info.name]
            number = types[info.name]
            if number:  # a type that numpy has not: its bits, and the number of the type
                value = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, number)
                values[info.name] = value
            else:
                values[info.name] = array
    is_odd = any(types.values()) or any(_is_odd(info.type) for info in session.get_outputs())
    try:
        _run(session, values, is_odd)
    except Exception as error:  # noqa: BLE001
        ones = {
            name: np.ones_like(value)
            if isinstance(value, np.ndarray) and value.dtype.kind in "fiu"
            else value
            for name, value in values.items()
        }
        try:
            _run(session, ones, is_odd)
        except Exception:  # noqa: BLE001
            return _refused("run", error)
    return {"verdict": "ok", "ran": True}


def _run(session: Any, values: dict[str, Any], is_odd: bool) -> None:
    import onnxruntime

    if is_odd:
        given = {
            name: onnxruntime.OrtValue.ortvalue_from_numpy(value)
            if isinstance(value, np.ndarray)
            else value
            for name, value in values.items()
        }
        session.run_with_ort_values([info.name for info in session.get_outputs()], given)
    else:
        session.run(None, values)


def _is_odd(kind: str) -> bool:
    """Return whether numpy has no such type."""
    return any(part in kind for part in ("float8", "bfloat16", "int4", "int2", "float4"))


def _refused(stage: str, error: Exception) -> dict[str, Any]:
    kind = type(error).__name__
    text = str(error)[:1000]
    if "language-pack" in text:
        stage = "machine"  # which lacks a locale: not the model's fault
    elif kind == "NotImplemented" or "NOT_IMPLEMENTED" in text:
        stage = "kernel"
    return {"verdict": stage, "text": f"{kind}: {text}"}


def our_errors(path: str) -> dict[str, Any]:
    """Return the errors that ``dld check --run`` has of a model, without its worker processes."""
    from dld_tui.activities import infer_shapes
    from dld_tui.activities.check import full as check_full
    from dld_tui.core.checks import check
    from dld_tui.core.checks.decoders import decoder_findings
    from dld_tui.core.checks.findings import findings_of, joined
    from dld_tui.core.errors import DldError
    from dld_tui.core.model.document import Document

    model = Path(path)
    try:
        document = Document.open(model)
    except DldError as error:
        return {"errors": [["unreadable", error.message]]}
    try:
        inferred = _result(infer_shapes.run(infer_shapes.Request(model)))
        asked = _result(
            check_full.run(check_full.Request(model, onnx=False, runtime=True, run=True))
        )
        told = findings_of(document, [*inferred.errors, *asked.findings])
        found = joined(told, asked.runtime, [*check(document), *decoder_findings(document)])
    finally:
        document.close()
    return {
        "errors": [[f.rule, f.message] for f in found if f.level == "error"],
        "kernels": [[f.rule, f.message] for f in found if f.rule == "no-kernel"],
        "runs": [[f.rule, f.message] for f in found if f.rule == "onnxruntime:run"],
    }


def _result(events: Iterator[Event]) -> Any:
    *_, end = events
    assert isinstance(end, Finished)
    return end.result


def main() -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    for line in sys.stdin:
        request = json.loads(line)
        if request["ask"] == "runtime":
            answer = runtime_verdict(request["path"], request["feeds"])
        else:
            answer = our_errors(request["path"])
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
