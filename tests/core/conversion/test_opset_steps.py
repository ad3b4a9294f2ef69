"""What is written for each operator in another version, as a whole: opset_steps.txt.

A heading there, such as ``== 18 13  y = ReduceSum(x, b)``, is a case: from opset 18 to 13, with
operands from below. Where ONNX Runtime runs both versions, they compute the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime

from dld_tui.core.conversion.opset import ConversionError, convert_opset
from tests.core.conversion.test_opset_lowering import REFUSED, WRITTEN
from tests.core.conversion.test_opset_raising import EXPECTED, old_model
from tests.support import models
from tests.support.model_lines import model_text
from tests.support.recorded import Recorded

INPUTS = {
    "x": "float[2, 3, 4]", "i": "float[1, 4, 4, 6]", "f": "float[3, n]", "w": "float",
    "t": "int64[2]", "k": "int64[3]", "x4": "float[2, 3, 4, 2]", "g": "float[1, 2, 2, 2]",
    "u1": "float[1, 1, 5]", "q9": "float[2, 3]", "w4": "float[4]", "w2": "float[2]",
    "j": "float[m, n, o, p]", "jj": "float[m, o, p, r]", "b44": "float[1, 4]", "sh": "int64[r]",
    "n3": "float[1, 1, n]", "sc": "float[c]", "sk": "float[m]", "u8a": "uint8[3, 4]",
    "x5": "float[1, 1, 2, 2, 2]", "g5": "float[1, 2, 2, 2, 3]", "x7": "float[1, 1, 7]",
}  # fmt: skip
WEIGHTS = {
    "a": "int64[2] {0, -1}", "b": "int64[1] {1}", "b4": "float[1, 4] {0, 1, 3, 3}",
    "c": "float[3] {1, 2, 3}", "d": "float[3] {0.5, 0.25, 2}", "e": "int64[0] {}",
    "f4": "float[2] {1, 1}", "gr": "float[1, 6, 2]", "gw": "float[1, 6, 4]",
    "h": "float[4] {1, 1, 0.5, 0.5}", "i83": "int8[3] {0, 1, -2}", "k1": "float[4] {1, 2, 3, 4}",
    "k3": "int64[2, 3, 4]", "kk": "int64[3, 1] {0, 0, 0}", "lr": "float[1, 8, 2]",
    "lw": "float[1, 8, 4]", "m1": "float {-0.5}", "mm": "int64[2] {6, 4}",
    "o": "float[4] {1, 1, 1.5, 2}", "one": "int64 {1}", "one1": "int64[1] {1}",
    "one5": "float[1] {0.5}", "p": "float[4] {1, 2, 3, 4}", "p2": "float[2, 2] {1, 2, 3, 4}",
    "q": "int64[6] {0, 1, 0, 2, 0, 0}", "r": "float[2] {1, 3}",
    "r2": "float[2] {2, 1.5}", "r8": "float[8] {0, 0, 0, 0, 1, 1, 1, 1}", "rr": "float[1, 2, 2]",
    "rw": "float[1, 2, 4]", "s": "float[4] {1, 1, 2, 2}", "t2": "int64[2] {-1, 1}",
    "t3": "int64[2] {8, 30}", "three": "int64[1] {3}", "three3": "int64[3] {1, 2, 1}",
    "two": "int64[1] {2}", "two2": "float[2, 2] {1, 0, 0, 1}", "u8": "uint8[1] {3}",
    "v": "float[1] {2.5}", "v1": "float {0.5}", "yes": "bool {1}", "z": "double {0.1}",
    "hs": "float[4] {1, 1, 0.5, 2}", "ones": "float[4] {1, 1, 1, 1}", "r4": "float[4] {0, 0, 1, 1}",
    "e0": "float[0] {}", "z4": "int64[4] {1, 4, 8, 12}", "t7": "int64[2] {5, 5}",
    "ol": "float[4] {1, 1, 1.5, 1.3}", "two5": "float[1] {2.5}", "m9": "int64[1] {-9}",
    "m5": "int64[1] {-2}", "m1a": "int64[1] {-1}", "three3a": "int64[1] {3}",
    "t2a": "int64[1] {2}", "nan": "float {nan}", "inf": "float {-inf}", "big": "double {1e300}",
    "r0": "float[2, 3, 4]", "u3": "uint8[3] {1, 0, 250}", "h0": "float[2, 1, 2]",
    "z1": "double {0.1}", "zz": "int64[4] {1, 4, 6, 9}", "c4": "int64[2] {1, 3}",
    "s31": "int64[1] {31}", "i16": "int16[3] {1, 0, -2}",
}  # fmt: skip
FILE = Path(__file__).with_name("opset_steps.txt")


def row_model(row: str) -> tuple[onnx.ModelProto, int]:
    """Return a model of the operands that a row names, and the version that it goes to."""
    from_, to, body = row.split(None, 2)
    words = set(re.findall(r"\w+", re.sub(r"<.*?>", "", body)))
    inputs = [f"{kind} {name}" for name, kind in INPUTS.items() if name in words]
    weights = []
    for name, text in WEIGHTS.items():
        if name in words:
            kind, _, values = text.partition(" {")
            count = int(np.prod([int(size) for size in re.findall(r"(?<=[\[ ])\d+", kind)]))
            own = ", ".join(str(number % 3) for number in range(count))
            weights.append(f"{kind} {name} = {{{values or own + '}'}")
    text = f"""<ir_version: 8, opset_import: ["" : {from_}]>
        g ({", ".join(inputs)}) => (y) <{", ".join(weights)}> {{ {body} }}"""
    return models.parse(text), int(to)


def computed(model: onnx.ModelProto) -> npt.NDArray[np.generic] | None:
    """Return what ONNX Runtime computes, or None where it cannot run the model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        dice, feeds = np.random.default_rng(0), {}
        for one in session.get_inputs():
            shape = [size if isinstance(size, int) else 4 for size in one.shape]
            floats = dice.uniform(-3, 3, shape).astype(np.float32)
            feeds[one.name] = floats if "float" in one.type else np.arange(1, 1 + shape[0])
        return np.asarray(session.run(["y"], feeds)[0])
    except Exception:  # noqa: BLE001  # it knows neither all versions nor all types
        return None


def test_what_is_written(recorded: Recorded) -> None:
    cases = {name: (models.parse(text), to) for name, (text, to) in WRITTEN.items()}
    cases |= {name: (models.parse(text), to) for name, (text, to) in REFUSED.items()}
    cases |= {name: (old_model(*case[:3]), 21) for name, case in EXPECTED.items()}
    cases |= {
        row: row_model(row) for row in re.findall(r"(?m)^== (\d+ +\d+ .*)$", FILE.read_text())
    }
    found, differ = {}, []
    for name, (model, to) in cases.items():
        before = computed(model)
        try:
            report = convert_opset(model, to)
        except ConversionError as error:
            found[name] = f"refused: {error.message}"
            continue
        counts = (report.changed, report.added, report.removed, report.initializers)
        found[name] = "\n".join(
            [str([dict(one) if isinstance(one, Mapping) else one for one in counts]),
             *report.unconverted, model_text(model)]
        )  # fmt: skip
        after = computed(model)
        if before is None or after is None or "Dropout" in name:
            continue
        if not np.allclose(before, after, 1e-4, 1e-5, equal_nan=True):
            differ.append(name)
    assert not differ
    recorded(FILE.stem, found)
