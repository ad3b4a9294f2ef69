"""What becomes of models in commands that write models: whether they load and agree.

Drawn by chance from the models that onnx brings, those of old exporters and of expanded functions
included, and from folders of others. A model counts if a session with default options loads it.
A result that a command writes with exit status 0 has to load so, too, and where the model runs, to
give the values that it must give, optimised or not (:mod:`benchmarks.operation_child`).
"""

from __future__ import annotations

import json
import random
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from benchmarks import harness, opset_tasks
from benchmarks.operation_child import (
    Operation,
    Subject,
    appended,
    batched,
    part,
    prepended,
    retyped,
    same_values,
)

OUTCOMES = (
    "right", "loads", "unchanged", "refused", "told", "noise", "false alarm", "wrong", "unloadable",
    "not asked", "no end",
)  # fmt: skip
_SEED = 40
_LIMIT_S = 120.0
_NEWEST = 26
_INEXACT = ("channels", "qdq-pooling", "qdq-residual", "qdq-scales", "without-quantization")
"""Rules that round otherwise, or change the shapes of a model, on purpose."""
_LARGEST = 8 << 20


@dataclass(frozen=True)
class Case:
    """A model, and a file of what it is fed if there is one."""

    name: str
    path: Path
    feeds: Path | None = None


def _own(folder: Path) -> Iterator[Case]:
    """Write the models of onnx's tests that have inputs, and yield them."""
    for name, model, feeds in [*_stored(), *_expanded()]:
        path, fed = folder / f"{name}.onnx", folder / f"{name}.npz"
        onnx.save(model, path)
        np.savez(fed, **feeds)
        yield Case(name, path, fed)


def _stored() -> Iterator[tuple[str, onnx.ModelProto, dict[str, Any]]]:
    data = Path(onnx.__file__).parent / "backend/test/data"
    for path in sorted(data.glob("*/*/model.onnx")):
        tensors = sorted(path.parent.glob("test_data_set_0/input_*.pb"))
        model = onnx.load(path)
        weights = {tensor.name for tensor in model.graph.initializer}
        names = [info.name for info in model.graph.input if info.name not in weights]
        if not tensors or len(names) != len(tensors):
            continue
        try:
            values = [numpy_helper.to_array(onnx.load_tensor(one)) for one in tensors]
        except Exception:  # noqa: BLE001 - sequences and maps
            continue
        yield path.parent.name, model, dict(zip(names, values, strict=True))


def _expanded() -> Iterator[tuple[str, onnx.ModelProto, dict[str, Any]]]:
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        every = sorted(collect_testcases(None), key=lambda case: case.name)
    for case in every:
        if case.model is None or not case.data_sets or len(case.model.graph.node) < 3:
            continue
        names = [info.name for info in case.model.graph.input]
        values = [opset_tasks.fed(value) for value in case.data_sets[0][0]]
        if len(names) == len(values) and all(isinstance(one, np.ndarray) for one in values):
            yield case.name, case.model, dict(zip(names, values, strict=True))


def table(
    number: int, only: Collection[str] = (), places: Sequence[Path] = (), log: Path | None = None,
    share: int | None = None,
) -> Counter[str]:  # fmt: skip
    """Print what became of the models, and why some were refused; return the outcomes.

    Args:
        number: How many models are drawn.
        only: The names of operations; all by default.
        places: Models, and folders of models; onnx's own if there are none.
        log: A file that keeps what became of each; what is in it is not done again.
        share: How many operations, drawn by chance, each model gets besides those that are in the
            log; all by default.
    """
    names = [name for name in (*OPERATIONS, *PEERS) if name in (only or OPERATIONS)]
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    reasons: dict[str, Counter[str]] = defaultdict(Counter)
    left, asked = number, _Asked(log)
    with harness.work_folder() as folder:
        for case in _drawn(folder, places):
            if not left:
                break
            if asked.of(case, "")["outcome"] not in ("runs", "loads"):
                continue
            left -= 1
            chance = random.Random(f"{_SEED} {case.name}")
            drawn = names if share is None else chance.sample(names, min(share, len(names)))
            for name in names:
                if name not in drawn and not asked.knows(case, name):
                    continue
                row = asked.of(case, name)
                outcome = row["outcome"]
                counts[name][outcome] += 1
                if outcome == "refused":
                    reasons[name][row["why"]] += 1
                elif outcome not in ("right", "loads", "unchanged", "not asked", "told", "noise"):
                    print(f"{name} of {case.name}: {outcome}: {row.get('why')}", flush=True)
    asked.close()
    print(f"{number - left} models")
    print(f"| operation | {' | '.join(OUTCOMES)} |\n|---|{'---|' * len(OUTCOMES)}")
    for operation, found in counts.items():
        print(f"| {operation} | {' | '.join(str(found[outcome]) for outcome in OUTCOMES)} |")
    for operation, found in reasons.items():
        for why, count in found.most_common():
            print(f"| {operation} | {why} | {count} |")
    return sum(counts.values(), Counter())


class _Asked:
    """What became of each model, remembered in a file."""

    def __init__(self, log: Path | None) -> None:
        self._child = harness.Child("benchmarks.operation_child", _LIMIT_S)
        self._log = log
        lines = log.read_text().splitlines() if log is not None and log.exists() else []
        rows = map(json.loads, lines)
        self._known: dict[tuple[str, str], Any] = {(r["model"], r["operation"]): r for r in rows}

    def knows(self, case: Case, operation: str) -> bool:
        """Return whether it is known what becomes of a model by an operation."""
        return (case.name, operation) in self._known

    def of(self, case: Case, operation: str) -> Any:
        """Return what becomes of a model by an operation; empty for whether it loads and runs."""
        key = (case.name, operation)
        if key not in self._known:
            begun = time.monotonic()
            fed = str(case.feeds) if case.feeds else None
            answer = self._child.ask(path=str(case.path), feeds=fed, operation=operation)
            self._known[key] = row = {"model": case.name, "operation": operation, **answer}
            row.setdefault("outcome", "no end")
            row["seconds"] = round(time.monotonic() - begun, 2)
            if self._log is not None:
                with self._log.open("a") as file:
                    file.write(json.dumps(row) + "\n")
        return self._known[key]

    def close(self) -> None:
        """End the process."""
        self._child.close()


def _drawn(folder: Path, places: Sequence[Path]) -> Iterator[Case]:
    """Yield models with their inputs, if they have some, in an order of chance: of each in turn."""
    chance = random.Random(_SEED)
    strata: list[list[Case]] = []
    for place in places:
        files = [place] if place.is_file() else sorted(place.rglob("[!.]*.onnx"))
        small = [file for file in files if file.stat().st_size <= _LARGEST]
        strata.append([Case(str(file.relative_to(place.parent)), file) for file in small])
    if not strata:
        strata.append(list(_own(folder)))
    for stratum in strata:
        chance.shuffle(stratum)
    while any(strata):
        for stratum in strata:
            if stratum:
                yield stratum.pop()


def _convert(words: list[str], model: Subject, folder: Path, chance: random.Random) -> list[str]:
    quick = ["--no-measure"] if words[0] in _MEASURED else []
    return ["convert", *words[:1], "MODEL", *words[1:], *quick, "-o", "OUT"]


_MEASURED = ("opset", "fp16", "bf16", "quantize", "shape", "sanitize")
"""Conversions that measure the latency of their results, which is not judged here."""


def _opset(up: bool, model: Subject, folder: Path, chance: random.Random) -> list[str] | None:
    versions = [entry.version for entry in model.model.opset_import if entry.domain in ("", _AI)]
    if not versions:
        return None
    found = range(max(versions) + 1, _NEWEST + 1) if up else range(7, max(versions))
    if not found:
        return None
    return _convert(["opset", "--to", str(chance.choice(found))], model, folder, chance)


_AI = "ai.onnx"


def _rewrite(apart: bool, model: Subject, folder: Path, chance: random.Random) -> list[str]:
    """Apply all rules that keep values; those that undo others by themselves."""
    from dld_tui.core.model.rewrite.rule import own_rules

    names = [rule.name for rule in own_rules() if rule.name not in _INEXACT]
    rules = [name for name in names if name.endswith("-apart") == apart]
    return ["rewrite", "MODEL", *rules, "-o", "OUT"]


def _extract(model: Subject, folder: Path, chance: random.Random) -> list[str]:
    count = len(model.model.graph.node)
    first = chance.randrange(count) if count else 0
    last = min(count, first + chance.randint(1, 4))
    words = [word for at in range(first, last) for word in ("--nodes", f"#{at}")]
    return ["extract", "MODEL", *words, "-o", "OUT"]


def _edit(model: Subject, folder: Path, chance: random.Random) -> list[str] | None:
    """Return a replay of edits that change no value."""
    nodes = model.model.graph.node
    if not nodes:
        return None
    at = chance.randrange(len(nodes))
    node, scope = f"#{at}", dict[str, Any](scope=[])
    made = next((name for name in nodes[at].output if name), None)
    if made is None:
        return None
    edits = [
        {"edit": "insert_node", **scope, "value": made, "op_type": "Identity"},
        {"edit": "make_function", **scope, "nodes": [node], "name": "Part"},
        {"edit": "set_model_field", "field": "ir_version", "value": 10},
        {"edit": "rename_node", **scope, "node": node, "name": "renamed"},
        {"edit": "rename_value", **scope, "value": made, "name": "renamed"},
        {"edit": "add_output", **scope, "name": made},
    ]
    if made in {info.name for info in model.model.graph.output}:
        edits = edits[:4]
    script = folder / "script.jsonl"
    chosen = chance.sample(edits, 2)
    script.write_text("\n".join(map(json.dumps, chosen)))
    return ["edit", "MODEL", str(script), "-o", "OUT"]


def _infos(model: Subject) -> list[onnx.ValueInfoProto]:
    weights = {tensor.name for tensor in model.model.graph.initializer}
    return [info for info in model.model.graph.input if info.name not in weights]


def _shape(model: Subject, folder: Path, chance: random.Random) -> list[str] | None:
    shapes = [info.type.tensor_type.shape.dim for info in _infos(model)]
    if not any(shapes):
        return None
    if any(dims and dims[0].dim_value > 0 for dims in shapes):
        return _convert(["shape", "--dim", "batch=N"], model, folder, chance)
    fed = [len(one) for one in (model.feeds or {}).values() if one.ndim]
    return _convert(["shape", "--dim", f"batch={fed[0] if fed else 2}"], model, folder, chance)


def _io(model: Subject, folder: Path, chance: random.Random) -> list[str] | None:
    infos = [*_infos(model), *model.model.graph.output]
    types = {info.type.tensor_type.elem_type for info in infos}
    words = ["--floats", "float16"] if onnx.TensorProto.FLOAT in types else []
    words += ["--integers", "int32"] if onnx.TensorProto.INT64 in types else []
    return _convert(["io", *words, "--of", "both"], model, folder, chance) if words else None


def _prepend(model: Subject, folder: Path, chance: random.Random) -> list[str] | None:
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
    names = [
        info.name
        for info in _infos(model)
        if info.type.tensor_type.elem_type in floats and len(info.type.tensor_type.shape.dim) == 4
    ]
    if not names:
        return None
    words = ["--input", chance.choice(names), "--dtype", "uint8", "--scale", "1/255"]
    return ["prepend", "MODEL", *words, "-o", "OUT"]


def _append(model: Subject, folder: Path, chance: random.Random) -> list[str] | None:
    names = [
        name
        for name, one in zip(model.names, model.outputs, strict=False)
        if isinstance(one, np.ndarray) and one.dtype.kind == "f" and one.ndim and one.size
    ]
    if not names:
        return None
    return ["append", "MODEL", "--step", "softmax", "--of", chance.choice(names), "-o", "OUT"]


_CLEAN = ("--constants-to-initializers", "--share-weights", "--weights-off-inputs",
          "--remove-unused", "--clear-docs", "--clear-shapes", "--sort")  # fmt: skip


def _exact(*words: str) -> Operation:
    return Operation(partial(_convert, [*words]), same_values)


def _opset_by_onnx(
    up: bool, model: Subject, folder: Path, chance: random.Random
) -> list[str] | None:
    words = _opset(up, model, folder, chance)
    return words and ["onnx", "MODEL", "OUT", words[words.index("--to") + 1]]


OPERATIONS: dict[str, Operation] = {
    "opset up": Operation(partial(_opset, True), same_values),
    "opset down": Operation(partial(_opset, False), same_values),
    "fp16": Operation(partial(_convert, ["fp16"]), retyped(25)),
    "bf16": Operation(partial(_convert, ["bf16", "--keep-io-types"]), retyped(15)),
    "quantize": Operation(partial(_convert, ["quantize", "--dynamic"]), retyped(8)),
    "dequantize": _exact("dequantize"),
    "shape": Operation(_shape, batched),
    "external": _exact("external", "--threshold", "0"),
    "sanitize": _exact("sanitize"),
    "sanitize --no-verify": _exact("sanitize", "--no-verify"),
    "rewrite": Operation(partial(_rewrite, False), same_values),
    "rewrite apart": Operation(partial(_rewrite, True), same_values),
    "extract": Operation(_extract, part),
    "clean": _exact("clean", *_CLEAN),
    "io": Operation(_io, retyped()),
    "prepend": Operation(_prepend, prepended),
    "append": Operation(_append, appended),
    "edit script": Operation(_edit, same_values),
}
PEERS: dict[str, Operation] = {
    "opset up by onnx": Operation(partial(_opset_by_onnx, True), same_values),
    "opset down by onnx": Operation(partial(_opset_by_onnx, False), same_values),
    "fp16 by onnxruntime": Operation(lambda *_: ["float16", "MODEL", "OUT"], retyped(25)),
    "quantize by onnxruntime": Operation(
        lambda *_: ["quantize_dynamic", "MODEL", "OUT"], retyped(8)
    ),
    "sanitize by onnxslim": Operation(lambda *_: ["onnxslim", "MODEL", "OUT"], same_values),
    "sanitize by onnxsim": Operation(lambda *_: ["onnxsim", "MODEL", "OUT"], same_values),
}
"""What programs of others make of the models; asked only by name."""
