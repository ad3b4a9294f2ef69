"""Quantization by ONNX Runtime on a file, run by :mod:`.library_file`; it loads the whole model."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx

from dld_tui.core.inputs.folder import load_input_sets, set_folders
from dld_tui.core.inputs.shapes import InputSpec

INSTALL = "pip install 'dld-tui[cpu]'"
_METHODS = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile"}
_ONE_FILE = 1 << 30
"""Bytes of a model from which the weights of the result go to a file of their own."""


def missing() -> list[str]:
    """Return the modules that are needed and not installed."""
    return [name for name in ("onnxruntime",) if importlib.util.find_spec(name) is None]


def main() -> None:
    """Quantize the model of the first argument; write the second; options are the third."""
    from onnxruntime import quantization

    source, target, text = sys.argv[1:4]
    options = json.loads(text)
    types = quantization.QuantType
    shared: dict[str, Any] = {
        "op_types_to_quantize": options["ops"] or None,
        "nodes_to_exclude": options["exclude"] or None,
        "per_channel": options["per_channel"],
        "reduce_range": options["reduce_range"],
        "weight_type": types.from_string(_type(options["weights"])),
        "use_external_data_format": Path(source).stat().st_size + _data(source) > _ONE_FILE,
    }
    if options["dynamic"]:
        quantization.quantize_dynamic(source, target, **shared)
        _tidy(target)
        return
    quantization.quantize_static(
        source,
        target,
        _reader(quantization, Path(options["calibration"]), options["inputs"]),
        quant_format=quantization.QuantFormat.QDQ,
        activation_type=types.from_string(_type(options["activations"])),
        calibrate_method=getattr(quantization.CalibrationMethod, _METHODS[options["method"]]),
        **shared,
    )
    _tidy(target)


def _tidy(target: str) -> None:
    """Remove the mark that tells the library that it has inferred shapes."""
    model = onnx.load(target, load_external_data=False)
    kept = [entry for entry in model.metadata_props if entry.key != "onnx.infer"]
    if len(kept) < len(model.metadata_props):
        del model.metadata_props[:]
        model.metadata_props.extend(kept)
        onnx.save(model, target)


def _type(name: str) -> str:
    return f"Q{name.replace('uint', 'UInt').replace('int', 'Int', not name.startswith('u'))}"


def _data(source: str) -> int:
    return sum(path.stat().st_size for path in Path(source).parent.glob(f"{Path(source).name}.*"))


def _reader(quantization: Any, folder: Path, inputs: list[dict[str, Any]]) -> Any:
    specs = [
        InputSpec(one["name"], one["dtype"], None if one["dims"] is None else tuple(one["dims"]))
        for one in inputs
    ]

    def feeds() -> Iterator[dict[str, Any]]:
        for one in set_folders(folder):  # one set in memory at a time
            yield dict(load_input_sets(one, specs)[0].values)

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.left = feeds()

        def get_next(self) -> dict[str, Any] | None:
            return next(self.left, None)

        def rewind(self) -> None:
            self.left = feeds()

    return Reader()
