"""Write what execution providers support, of their published tables, to a data file of the package.

Get the pages of :data:`SOURCES` into a folder, and the folders providers/cuda and contrib_ops/cuda
of ONNX Runtime's source into its folder cuda; adjust versions and dates here, and run::

    python3 scripts/provider_tables.py FOLDER

Types are interned: a row holds the number of a set. What a note demands becomes data where one of
:data:`_DEMANDS` reads it; the rest stays a note.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "src/dld_tui/core/model/operators/data/provider_tables.json"
NOTICE = (
    "Facts of the published tables that each entry names, compacted by scripts/provider_tables.py."
    " ONNX Runtime and its QNN provider: Copyright (c) Microsoft Corporation, MIT License."
    " ONNX-TensorRT: Copyright (c) NVIDIA Corporation and ONNX contributors, Apache License 2.0."
)
_ORT = "https://github.com/microsoft/onnxruntime/blob/main/"
_DOCS = "https://onnxruntime.ai/docs/execution-providers/"
_TENSORRT = "https://github.com/onnx/onnx-tensorrt/blob/main/docs/operators.md"


@dataclass(frozen=True)
class Source:
    """A page, and the providers that it is about."""

    page: str
    version: str
    date: str
    url: str
    licence: str
    providers: tuple[dict[str, Any], ...]


SOURCES = (
    Source(
        "OperatorKernels.md", "ONNX Runtime 1.30.0", "2026-08-18", f"{_ORT}docs/OperatorKernels.md",
        "MIT",
        (
            {"name": "CPU", "widens": ["float16"]},
            {"name": "CUDA"},
            {"name": "Dml", "title": "DirectML"},
        ),
    ),
    Source(
        "operators.md", "ONNX-TensorRT 10.15", "2026-01", _TENSORRT, "Apache-2.0",
        (
            {"name": "Tensorrt", "title": "TensorRT", "whole_bodies": True,
             "excluded": ["NonMaxSuppression", "NonZero", "RoiAlign"],
             "include": "--provider-option trt_op_types_to_exclude="},
            {"name": "NvTensorRTRTX", "title": "TensorRT-RTX", "whole_bodies": True},
        ),
    ),
    Source(
        "OpenVINO-ExecutionProvider.md", "ONNX Runtime's documentation", "2026-03-04",
        f"{_DOCS}OpenVINO-ExecutionProvider.html", "MIT",
        ({"name": "OpenVINO", "column": 1}, {"name": "OpenVINO GPU", "column": 2}),
    ),
    Source(
        "QNN-ExecutionProvider.md", "ONNX Runtime QNN 2.3.0", "2026-06",
        f"{_DOCS}QNN-ExecutionProvider.html", "MIT", ({"name": "QNN", "fixed_shapes": True},),
    ),
    Source(
        "coreml_supported_mlprogram_ops.md", "ONNX Runtime 1.30.0", "2026-06-08",
        f"{_ORT}tools/ci_build/github/apple/coreml_supported_mlprogram_ops.md", "MIT",
        ({"name": "CoreML", "title": "CoreML (MLProgram)", "bodies": False},),
    ),
)  # fmt: skip
_INTERNAL = re.compile(r"com\.microsoft\.(?:nchwc|dml)|com\.ms\.internal\.\w+")
"""Domains that only ONNX Runtime's optimizations make."""
_SPELLINGS = {
    "Argmax": "ArgMax", "HardMax": "Hardmax", "LogSoftMax": "LogSoftmax", "splits": "split",
}  # fmt: skip
_DTYPES = {
    "float": "float32", "double": "float64", "FP32": "float32", "FP16": "float16",
    "BF16": "bfloat16", "DOUBLE": "float64", "FP8": "float8e4m3fn", "FP4": "float4e2m1",
    "float or float16": "float32 float16", "fp32": "float32",
}  # fmt: skip


class Types:
    """Sets of element types by number."""

    def __init__(self) -> None:
        self.sets: list[str] = []

    def number(self, names: Iterator[str]) -> int:
        """Return the number of a set."""
        text = " ".join(sorted({_DTYPES.get(name, name.lower()) for name in names}))
        if text not in self.sets:
            self.sets.append(text)
        return self.sets.index(text)


def kernels(text: str, provider: str, types: Types) -> dict[str, Any]:
    """Return first and last version, and types by constraint, of each kernel of a provider."""
    title = rf"^## Operators implemented by {provider}ExecutionProvider\n"
    section = re.search(rf"{title}(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section is not None, provider
    domain, name = "", ""
    rows: dict[str, Any] = {}
    for line in section[1].splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) < 4 or cells[0] in ("Op Name", "---------"):
            continue
        if match := re.search(r"Operator Domain:\*\* \*(.+?)\*", cells[0]):
            domain = match[1]
            continue
        name = cells[0] or name
        if _INTERNAL.fullmatch(domain) or name.startswith("Memcpy"):
            continue
        key = name if domain == "ai.onnx" else f"{domain}:{name}"
        rows.setdefault(key, []).append([*_versions(cells[2]), _constraints(cells[3], types)])
    return rows


def _versions(text: str) -> tuple[int, int | None]:
    if text.endswith("+"):
        return int(text[:-1]), None
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    return numbers[0], numbers[-1]


def _constraints(text: str, types: Types) -> dict[str, int]:
    return {
        match[1]: types.number(map(_plain, re.split(r",\s*", match[2].strip())))
        for match in re.finditer(r"\*\*(\w+)\*\* = (.*?)(?=<br|\Z)", text)
    }


def _plain(name: str) -> str:
    """Return ``seq(float32)`` of ``seq(tensor(float))``."""
    return re.sub(r"tensor\((\w+)\)", lambda match: _DTYPES.get(match[1], match[1]), name)


_KERNEL = re.compile(r"ONNX_OPERATOR_\w*KERNEL\w*\(\s*(\w+),\s*(\w+)")
_MEMORY = re.compile(r"\.(Input|Output)MemoryType\(OrtMemTypeCPU\w*,\s*(\d+)\)")


def host_values(folder: Path) -> dict[str, list[list[int]]]:
    """Return inputs and outputs in host memory of the kernels of a provider, from its source."""
    found: dict[str, list[set[int]]] = {}
    for path in sorted(folder.rglob("*.cc")):
        text = re.sub(r"//[^\n]*", "", path.read_text(errors="replace"))
        text = text.replace("\\\n", "\n")
        for block in re.split(r"(?=\bONNX_OPERATOR_\w*KERNEL\w*\()", text):
            match = _KERNEL.match(block)
            if match and match[2] in ("kOnnxDomain", "kMSDomain"):
                name = match[1] if match[2] == "kOnnxDomain" else f"com.microsoft:{match[1]}"
                for side, index in _MEMORY.findall(block):
                    sides = found.setdefault(name, [set(), set()])
                    sides[side == "Output"].add(int(index))
    reductions = found.pop("name", None)  # the parameter of a macro
    if reductions is not None:
        kinds = [
            "L1",
            "L2",
            "LogSum",
            "LogSumExp",
            "Max",
            "Mean",
            "Min",
            "Prod",
            "Sum",
            "SumSquare",
        ]
        found.update({f"Reduce{kind}": reductions for kind in kinds})
    return {name: [sorted(side) for side in sides] for name, sides in sorted(found.items())}


_ASIDE = re.compile(
    r"`seed` value is ignored by TensorRT|\S+(?:, \w+)* supported since [\d.]+|HTP backend only"
    r"|Produced by ORT's .*|Provides 16-bit .*|this ask for a .*|Lowered to .*"
    r"|3D and 5D support can be added if needed|`q_num_heads` and .*|Not supported|TensorRT's .*"
    r"|`position_ids` must be INT64|.* may be a constant initializer or .*|Decomposed into .*"
    r"|kernel_shape must have default values|`axis` dimension of input must .*"
    r"|Only support for transA == 0.*"
)
"""Parts of notes that demand nothing of a node."""
_RANKS = {"2D": [4], "2D or 3D": [4, 5], "1D/2D": [3, 4], "1D or 2D": [3, 4], "4D": [4]}


def _names(text: str) -> list[str]:
    text = re.sub(r"\b(?:and|or|if|provided|inputs?)\b", " ", text, flags=re.IGNORECASE)
    return [_SPELLINGS.get(name, name) for name in re.findall(r"\w+", text)]


_DEMANDS = (
    (r"(?:Weights? and bias|Weight and bias) (?:must|should) be constant",
     lambda m: {"constant": ["W", "B"]}),
    (r"Bias if provided must be constant", lambda m: {"constant": ["B"]}),
    (r"(?:If provided, |Inputs? )?([\w/`, ]+?) (?:must|should) be (?:a build-time constant"
     r"|an initializer|constant(?: initializers)?|resolvable to a constant)",
     lambda m: {"constant": _names(m[1])}),
    (r"(?:Only )?(2D or 3D|1D/2D|2D)(?: Conv| Pool(?:ing)?)(?: is supported| only)?(?: currently)?",
     lambda m: {"rank": _RANKS[m[1]]}),
    (r"`input` must have (1D or 2D) spatial dimensions", lambda m: {"rank": _RANKS[m[1]]}),
    (r"(?:Input must be )?4D input", lambda m: {"rank": [4]}),
    (r"((?:`\w+ ?`(?:, | and )?)+) must be 4D",
     lambda m: {"ranks": {name: [4] for name in _names(m[1])}}),
    (r"Input rank up to (\d+)", lambda m: {"rank": list(range(int(m[1]) + 1))}),
    (r"`dilations` must be empty or all ones", lambda m: {"attributes": {"dilations": [1]}}),
    (r"`?(\w+)`?(?: attribute)? must be (-?\d+)", lambda m: {"attributes": {m[1]: [int(m[2])]}}),
    (r"`(\w+_zero_point)` must be (?:zero|0)", lambda m: {"values": {m[1]: [0, 0]}}),
    (r"`K` input must be less than (\d+)", lambda m: {"values": {"K": [0, int(m[1]) - 1]}}),
    (r"`is_training` must be an initializer and evaluate to False",
     lambda m: {"constant": ["training_mode"], "values": {"training_mode": [0, 0]}}),
    (r"(For bidirectional \w+, .*)",
     lambda m: {"note": m[1], "note_if": {"direction": ["bidirectional"]}}),
    (r"(When `scales` is a tensor input, `axes` .*)",
     lambda m: {"note": m[1], "note_if": {"axes": None}}),
    (r"(If 'mode' is 'CRD' .*)", lambda m: {"note": m[1], "note_if": {"mode": ["CRD"]}}),
    (r"p == 2", lambda m: {"attributes": {"p": [2]}}),
    (r"`reduction` other than `none` is not supported",
     lambda m: {"attributes": {"reduction": ["none"]}}),
    (r"Supported resize transformation modes: (.*)",
     lambda m: {"attributes": {"coordinate_transformation_mode": _names(m[1])}}),
    (r"Supported resize modes: (.*)", lambda m: {"attributes": {"mode": _names(m[1])}}),
    (r"Supported nearest modes: (.*)", lambda m: {"attributes": {"nearest_mode": _names(m[1])}}),
    (r"Supported aspect ratio policy: (.*)",
     lambda m: {"attributes": {"keep_aspect_ratio_policy": _names(m[1])}}),
    (r"Antialiasing is not supported", lambda m: {"attributes": {"antialias": [0]}}),
    (r"padding_type of SAME_UPPER/SAME_LOWER is not supported",
     lambda m: {"attributes": {"auto_pad": ["NOTSET", "VALID"]}}),
    (r"output_padding must have default values", lambda m: {"attributes": {"output_padding": [0]}}),
    (r"output_shape is not supported", lambda m: {"without": ["output_shape"]}),
    (r"((?:`\w+`(?:, | and |, and )?)+) (?:inputs|outputs|attributes) are unsupported",
     lambda m: {"without": _names(m[1])}),
    (r"`(\w+)` output tensor unsupported", lambda m: {"without": [m[1]]}),
    (r"Only the first output `\w+` is supported", lambda m: {"one_output": True}),
    (r"(?:Both inputs must be|Only supports cases when both inputs are"
     r"|`X`/`Y` branches must be) (\w+(?: or \w+)?)",
     lambda m: {"dtypes": m[1]}),
    (r"`input` must have static dimensions", lambda m: {"fixed": True}),
)  # fmt: skip
"""Patterns of sentences, and what they demand: constant inputs, ranks, values of attributes and of
constant inputs; inputs, outputs and attributes that must be left out; types, fixed shapes; and
notes that hold for some values of an attribute only."""


def entry(note: str, types: Types) -> dict[str, Any]:
    """Return what a note demands, and what is left of it."""
    found: dict[str, Any] = {}
    rest = []
    for sentence in re.split(r"\s*<br ?/?>\s*|(?<=[\w`)])\.\s+", note.strip()):
        sentence = sentence.strip(" .").replace("\\", "")
        if not sentence or _ASIDE.fullmatch(sentence):
            continue
        for pattern, demand in _DEMANDS:
            if match := re.fullmatch(pattern, sentence, re.IGNORECASE):
                for key, value in demand(match).items():
                    if key == "dtypes":
                        found["types"] = types.number(
                            iter(_DTYPES.get(str(value), str(value)).split())
                        )
                    elif isinstance(value, dict):
                        found.setdefault(key, {}).update(value)
                    elif isinstance(value, list):
                        found[key] = found.get(key, []) + value
                    else:
                        found[key] = value
                break
        else:
            rest.append(re.sub(r"\[(.*?)\]\(.*?\)", r"\1", sentence))
    if rest:
        found.pop("note_if", None)
        found["note"] = ". ".join(rest)
    return found


def operators(text: str, column: int, types: Types) -> dict[str, Any]:
    """Return what each listed operator demands."""
    rows = {}
    for line in text.splitlines():
        row = line.strip().removeprefix("|").removesuffix("|")
        cells = [cell.strip() for cell in row.split("|")]
        if not line.startswith("|") or len(cells) < 2 or not re.match(r"[a-zA-Z]", cells[0]):
            continue
        if match := re.fullmatch(r"(ai\.onnx|com\.microsoft)[:.](\w+)", cells[0]):  # QNN and CoreML
            domain, name, note, listed = *match.groups(), cells[1], ""
        elif re.fullmatch(r"Yes|No", cells[-1]) and len(cells) == 3:  # OpenVINO
            if cells[column] == "No" or "_" in cells[0] or cells[0][0].islower():
                continue
            domain, name, note, listed = "ai.onnx", cells[0], "", ""
        elif cells[1] in ("Y", "N"):  # TensorRT
            if cells[1] == "N":
                continue
            domain, name, listed = "ai.onnx", cells[0], cells[2]
            note = cells[3] if len(cells) > 3 else ""
        else:
            continue
        name = _SPELLINGS.get(name, name)
        demands = entry(note, types)
        if listed:
            demands["types"] = types.number(iter(re.findall(r"\w+", listed)))
        rows[name if domain == "ai.onnx" else f"{domain}:{name}"] = demands
    return rows


def main(folder: Path) -> None:
    """Write the file and say what it holds."""
    types = Types()
    tables = []
    for source in SOURCES:
        text = (folder / source.page).read_text(encoding="utf-8")
        if source.page == "QNN-ExecutionProvider.md":
            text = text.split("## Supported ONNX operators")[1].split("\n## ")[0]
        for provider in source.providers:
            about = {key: value for key, value in provider.items() if key != "column"}
            is_of_kernels = source.page == "OperatorKernels.md"
            rows = (
                kernels(text, provider["name"], types)
                if is_of_kernels
                else operators(text, provider.get("column", 1), types)
            )
            if provider["name"] == "CUDA":
                host = host_values(folder / "cuda")
                about["host"] = {name: row for name, row in host.items() if name in rows}
            tables.append({
                **about, "version": source.version, "date": source.date, "url": source.url,
                "licence": source.licence, "kernels" if is_of_kernels else "operators": rows,
            })  # fmt: skip
            print(f"{provider['name']}: {len(rows)} operators")
            if not is_of_kernels:
                for name, row in rows.items():
                    if "note" in row:
                        print(f"    {name}: {row['note']}")
    lines = ",\n".join(
        json.dumps(table, ensure_ascii=False, separators=(",", ":")) for table in tables
    )
    head = json.dumps({"notice": NOTICE, "types": types.sets}, ensure_ascii=False)[:-1]
    TARGET.write_text(f'{head}, "providers": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
