"""Write what ONNX Runtime takes: IR and operator set versions, operators, CPU kernels.

Asked of the installed package; `dld check` warns by it, also where ONNX Runtime is not installed.
Run it with the newest version: .venv/bin/python scripts/onnxruntime_facts.py
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import onnxruntime  # noqa: TID251 - build tool, not product
from onnx import TensorProto, helper
from onnxruntime.capi import onnxruntime_pybind11_state as state  # noqa: TID251

OUTPUT = Path(__file__).resolve().parents[1] / "src/dld_tui/core/operators/data/onnxruntime.json"
NOTICE = (
    "What ONNX Runtime {version} takes, from its registries by scripts/onnxruntime_facts.py."
    " Copyright (c) Microsoft Corporation, MIT License; the text of the licence is in"
    " contrib_operators.json."
)
_ANY_VERSION = 2**31 - 1


def main() -> int:
    """Write the file."""
    types: dict[str, int] = {}
    facts = {
        "notice": NOTICE.format(version=onnxruntime.__version__),
        "version": onnxruntime.__version__,
        "ir": _refused(_model(ir=99), r"max supported IR version: (\d+)"),
        "opsets": {
            domain: _refused(
                _model(domain), r"Current official support for domain .* till opset (\d+)"
            )
            for domain in ("", "ai.onnx.ml", "com.microsoft")
        },
        "operators": _operators(),
        "kernels": _kernels(types),
        "types": list(types),
    }
    OUTPUT.write_text(_text(facts), encoding="utf-8")
    print(f"{OUTPUT}: {OUTPUT.stat().st_size} bytes")
    return 0


def _model(domain: str = "", ir: int = 8) -> bytes:
    info = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    other = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [info], [other])
    imports = {"": 17}
    if ir < 99:
        imports[domain] = 999
    sets = [helper.make_opsetid(name, version) for name, version in imports.items()]
    model = helper.make_model(graph, opset_imports=sets)
    model.ir_version = ir
    return model.SerializeToString()


def _refused(model: bytes, pattern: str) -> int:
    try:
        onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    except Exception as error:
        match = re.search(pattern, str(error))
        if match is not None:
            return int(match[1])
        raise
    raise RuntimeError("it takes any version")


def _operators() -> dict[str, dict[str, dict[str, list[str]]]]:
    """Return attribute names by domain, operator and the version since which they hold."""
    found: dict[str, dict[str, dict[str, list[str]]]] = {}
    for schema in state.get_all_operator_schema():
        if schema.domain in ("", "ai.onnx.ml"):
            versions = found.setdefault(schema.domain, {}).setdefault(schema.name, {})
            versions[str(schema.since_version)] = sorted(schema.attributes)
    return {domain: dict(sorted(names.items())) for domain, names in found.items()}


def _kernels(types: dict[str, int]) -> dict[str, dict[str, list[Any]]]:
    found: dict[str, dict[str, list[Any]]] = {}
    for kernel in state.get_all_opkernel_def():
        if kernel.provider != "CPUExecutionProvider" or kernel.domain not in (
            "", "ai.onnx.ml", "com.microsoft"
        ):  # fmt: skip
            continue
        first, last = kernel.version_range
        taken = {
            name: [types.setdefault(kind, len(types)) for kind in kinds]
            for name, kinds in kernel.type_constraints.items()
        }
        last = None if last >= _ANY_VERSION else last
        rows = found.setdefault(kernel.domain, {}).setdefault(kernel.op_name, [])
        rows.append([first, last, taken])
    return {domain: dict(sorted(names.items())) for domain, names in found.items()}


def _text(facts: dict[str, Any]) -> str:
    """Return JSON with an operator a line."""
    parts = []
    for key, value in facts.items():
        if key in ("operators", "kernels"):
            domains = []
            for domain, names in value.items():
                rows = [f"{json.dumps(name)}:{_compact(row)}" for name, row in names.items()]
                domains.append(f"{json.dumps(domain)}:{{\n" + ",\n".join(rows) + "}")
            parts.append(f"{json.dumps(key)}:{{" + ",\n".join(domains) + "}")
        else:
            parts.append(f"{json.dumps(key)}:{_compact(value)}")
    return "{" + ",\n".join(parts) + "}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    sys.exit(main())
