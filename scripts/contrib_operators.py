"""Write the schemas of ONNX Runtime's own operators to a data file of the package.

Those are the operators of com.microsoft, and those of ai.onnx that the ONNX standard does not have,
or has only in later versions.

Needs onnxruntime; run it after a new release of it, and read the difference before committing::

    python3 scripts/contrib_operators.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
from onnxruntime import __version__ as runtime_version
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "src/dld_tui/core/model/operators/data/contrib_operators.json"
DOMAIN = "com.microsoft"
INTERNAL = ("MemcpyFromHost", "MemcpyToHost")
"""ONNX Runtime adds them itself; no model has them."""
NOTICE = (
    "Operator schemas of ONNX Runtime {version}, taken from its registry by"
    " scripts/contrib_operators.py. Copyright (c) Microsoft Corporation. Licensed under the MIT"
    " License: Permission is hereby granted, free of charge, to any person obtaining a copy of this"
    ' software and associated documentation files (the "Software"), to deal in the Software without'
    " restriction, including without limitation the rights to use, copy, modify, merge, publish,"
    " distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the"
    " Software is furnished to do so, subject to the following conditions: The above copyright"
    " notice and this permission notice shall be included in all copies or substantial portions of"
    ' the Software. THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR'
    " IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A"
    " PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE"
    " LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR"
    " OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER"
    " DEALINGS IN THE SOFTWARE."
)


def main() -> None:
    """Write the file and say what it holds."""
    schemas = [s for s in runtime.get_all_operator_schema() if _is_own(s)]
    schemas.sort(key=lambda schema: (schema.domain, schema.name, schema.since_version))
    rows = ",\n".join(json.dumps(_row(schema), ensure_ascii=False) for schema in schemas)
    notice = json.dumps(NOTICE.format(version=runtime_version))
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(f'{{"notice": {notice},\n"operators": [\n{rows}\n]}}\n', encoding="utf-8")
    print(f"{TARGET.name}: {len(schemas)} operators, {TARGET.stat().st_size:,} bytes")


def _is_own(schema: Any) -> bool:
    if schema.domain == DOMAIN:
        return True
    if schema.domain or schema.name in INTERNAL:
        return False
    return not onnx.defs.has(schema.name, schema.since_version, "")


def _row(schema: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": schema.name,
        "domain": "" if schema.domain == DOMAIN else "ai.onnx",
        "since": schema.since_version,
        "doc": (schema.doc or "").strip("\n").rstrip(),
        "inputs": [_formal(item) for item in schema.inputs],
        "outputs": [_formal(item) for item in schema.outputs],
        "attributes": [
            _attribute(item)
            for item in sorted(schema.attributes.values(), key=lambda a: (not a.required, a.name))
        ],
        "types": {
            item.type_param_str: [_short(name) for name in item.allowed_type_strs]
            for item in schema.type_constraints
        },
        "arity": [schema.min_input, schema.max_input, schema.min_output, schema.max_output],
    }
    if schema.deprecated:
        row["deprecated"] = True
    return {key: value for key, value in row.items() if value or key == "doc"}


def _formal(item: Any) -> list[Any]:
    """Return [name, description, type name, option, homogeneous], without the usual last ones."""
    option = item.option.name.lower()
    fields = [item.name, item.description.strip(), _short(item.typeStr)]
    if not item.isHomogeneous:
        return [*fields, option, False]
    return fields if option == "single" else [*fields, option]


def _attribute(item: Any) -> list[Any]:
    """Return [name, kind, required, description] and the default where there is one."""
    fields = [item.name, item.type.name.lower(), item.required, item.description.strip()]
    default = onnx.AttributeProto.FromString(item._default_value)
    if not default.type:
        return fields
    value = onnx.helper.get_attribute_value(default)
    if isinstance(value, bytes):
        value = value.decode()
    elif not isinstance(value, (int, float)):
        value = [entry.decode() if isinstance(entry, bytes) else entry for entry in value]
    return [*fields, value]


def _short(type_name: str) -> str:
    """Return ``float`` for ``tensor(float)``; other types are kept."""
    inner = type_name.removeprefix("tensor(").removesuffix(")")
    return inner if type_name == f"tensor({inner})" and "(" not in inner else type_name


if __name__ == "__main__":
    main()
