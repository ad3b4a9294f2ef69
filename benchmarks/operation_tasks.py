"""What becomes of onnx's backend models in commands that write models: whether they load and agree.

Drawn by chance from the models that onnx brings, those of old exporters and of expanded functions
included. A model counts if a session with default options loads and runs it. A result that a
command writes with exit status 0 has to load and run so, too, and to give the same values.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import onnx
from onnx import numpy_helper

from benchmarks import harness, opset_tasks

OUTCOMES = ("right", "unchanged", "refused", "wrong", "unloadable")
_SEED = 40
_LIMIT_S = 240
_INEXACT = ("channels", "qdq-pooling", "qdq-residual", "qdq-scales", "without-quantization")
"""Rules that round otherwise, or change the shapes of a model, on purpose."""


@dataclass(frozen=True)
class Case:
    """A model with inputs, and what it gives for them."""

    name: str
    model: onnx.ModelProto
    feeds: Mapping[str, Any]
    outputs: list[Any]


def cases(number: int) -> list[Case]:
    """Return models that are drawn by chance, the same ones at each call."""
    found = [*_stored(), *_expanded()]
    random.Random(_SEED).shuffle(found)
    chosen: list[Case] = []
    for name, model, feeds in found:
        if len(chosen) == number:
            break
        try:
            outputs = _run(model, feeds)
        except Exception:  # noqa: BLE001 - what ONNX Runtime does not take is no case
            continue
        chosen.append(Case(name, model, feeds, outputs))
    return chosen


def _stored() -> Iterator[tuple[str, onnx.ModelProto, dict[str, Any]]]:
    data = Path(onnx.__file__).parent / "backend/test/data"
    for path in sorted(data.glob("*/*/model.onnx")):
        tensors = sorted(path.parent.glob("test_data_set_0/input_*.pb"))
        model = onnx.load(path)
        weights = {tensor.name for tensor in model.graph.initializer}
        names = [info.name for info in model.graph.input if info.name not in weights]
        if not tensors or len(names) != len(tensors) or _is_random(model):
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
        if len(names) == len(values) and not _is_random(case.model):
            yield case.name, case.model, dict(zip(names, values, strict=True))


def _is_random(model: onnx.ModelProto) -> bool:
    operators = {node.op_type for node in model.graph.node}
    return bool(operators & {"RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial"})


def _run(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """Return the outputs in a session with default options."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    taken = {info.name for info in session.get_inputs()}
    return list(session.run(None, {name: feeds[name] for name in feeds if name in taken}))


def table(number: int, only: Collection[str] = ()) -> Counter[str]:
    """Print what became of the models, and why some were refused; return the outcomes.

    Args:
        number: How many models are drawn.
        only: The names of operations; all by default.
    """
    chosen = cases(number)
    names = [name for name in OPERATIONS if not only or name in only]
    counts: dict[str, Counter[str]] = {name: Counter() for name in names}
    reasons: Counter[str] = Counter()
    tasks = [(name, case) for case in chosen for name in names]
    with ThreadPoolExecutor(2) as pool:
        for (name, case), (outcome, why) in zip(
            tasks, pool.map(lambda task: _outcome(*task), tasks), strict=True
        ):
            counts[name][outcome] += 1
            if outcome == "refused":
                reasons[f"{name}: {why}"] += 1
            elif outcome in ("wrong", "unloadable"):
                print(f"{name} of {case.name}: {outcome} {why}", flush=True)
    print(f"{len(chosen)} models")
    print(f"| operation | {' | '.join(OUTCOMES)} |\n|---|{'---|' * len(OUTCOMES)}")
    for name, found in counts.items():
        print(f"| {name} | {' | '.join(str(found[outcome]) for outcome in OUTCOMES)} |")
    for why, count in reasons.most_common():
        print(f"| {why} | {count} |")
    return sum(counts.values(), Counter())


def _outcome(name: str, case: Case) -> tuple[str, str]:
    """Return what became of one model, and why."""
    with tempfile.TemporaryDirectory() as folder:
        model, output = Path(folder) / "model.onnx", Path(folder) / "out.onnx"
        onnx.save(case.model, model)
        chance = random.Random(f"{_SEED}{name}{case.name}")
        words = OPERATIONS[name](case, Path(folder), chance)
        command = [sys.executable, "-m", "dld_tui", *words]
        put = {"MODEL": str(model), "OUT": str(output)}
        ended = subprocess.run(
            [put.get(word, word) for word in command], capture_output=True, text=True,
            timeout=_LIMIT_S, check=False, env=harness.environment(),
        )  # fmt: skip
        if ended.returncode or not output.exists():
            if "nothing to replace" in ended.stdout or "0 applied" in ended.stdout:
                return "unchanged", ""
            lines = (ended.stderr or ended.stdout).strip().splitlines() or ["without a word"]
            return "refused", lines[-1].replace(folder, "")[:160]
        result = onnx.load(output)
    if result.SerializeToString() == case.model.SerializeToString():
        return "unchanged", ""
    return _judged(case, result)


def _judged(case: Case, result: onnx.ModelProto) -> tuple[str, str]:
    feeds, expected = case.feeds, case.outputs
    names = [info.name for info in case.model.graph.output]
    got = [info.name for info in result.graph.output]
    weights = {tensor.name for tensor in result.graph.initializer}
    inputs = {info.name for info in result.graph.input} - weights
    if got[: len(names)] != names or not inputs <= {*feeds}:  # a part
        try:
            feeds, expected = _of_part(case, inputs, got)
        except Exception as error:  # noqa: BLE001 - a tensor that the model cannot give
            return "unchanged", str(error)
    try:
        outputs = _run(result, feeds)
    except Exception as error:  # noqa: BLE001 - that is what is asked
        return "unloadable", " ".join(str(error).split())[:160]
    same = opset_tasks.agree(outputs[: len(expected)], expected)
    return ("right", "") if same else ("wrong", "")


def _of_part(case: Case, inputs: set[str], outputs: list[str]) -> tuple[dict[str, Any], list[Any]]:
    """Return what the model itself gives at the borders of a part of it."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    wanted = [*sorted(inputs - {*case.feeds}), *outputs]
    own = {info.name for info in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name not in own)
    names = [info.name for info in model.graph.output]
    values = dict(zip(names, _run(model, case.feeds), strict=True))
    feeds = {name: case.feeds[name] if name in case.feeds else values[name] for name in inputs}
    return feeds, [values[name] for name in outputs]


# --- the operations -----------------------------------------------------------------------------


def _rewrite(case: Case, folder: Path, chance: random.Random) -> list[str]:
    from dld_tui.core.document.rewrite.rule import own_rules

    rules = [rule.name for rule in own_rules() if rule.name not in _INEXACT]
    return ["rewrite", "MODEL", *rules, "-o", "OUT"]


def _convert(words: list[str], case: Case, folder: Path, chance: random.Random) -> list[str]:
    return ["convert", *words[:1], "MODEL", *words[1:], "-o", "OUT"]


def _extract(case: Case, folder: Path, chance: random.Random) -> list[str]:
    count = len(case.model.graph.node)
    first = chance.randrange(count)
    last = min(count, first + chance.randint(1, 4))
    words = [word for at in range(first, last) for word in ("--nodes", f"#{at}")]
    return ["extract", "MODEL", *words, "-o", "OUT"]


def _edit(case: Case, folder: Path, chance: random.Random) -> list[str]:
    """Return a replay of edits that change no value."""
    nodes = case.model.graph.node
    at = chance.randrange(len(nodes))
    node, scope = f"#{at}", dict[str, Any](scope=[])
    made = next(name for name in nodes[at].output if name)
    edits = [
        {"edit": "insert_node", **scope, "value": made, "op_type": "Identity"},
        {"edit": "make_function", **scope, "nodes": [node], "name": "Part"},
        {"edit": "set_model_field", "field": "ir_version", "value": 10},
        {"edit": "rename_node", **scope, "node": node, "name": "renamed"},
        {"edit": "rename_value", **scope, "value": made, "name": "renamed"},
        {"edit": "add_output", **scope, "name": made},
    ]
    if made in {info.name for info in case.model.graph.output}:
        edits = edits[:4]
    script = folder / "script.jsonl"
    chosen = chance.sample(edits, 2)
    script.write_text("\n".join(map(json.dumps, chosen)))
    return ["edit", "MODEL", str(script), "-o", "OUT"]


OPERATIONS: dict[str, Callable[[Case, Path, random.Random], list[str]]] = {
    "rewrite": _rewrite,
    "sanitize": partial(_convert, ["sanitize"]),
    "sanitize --no-verify": partial(_convert, ["sanitize", "--no-verify"]),
    "extract": _extract,
    "edit script": _edit,
}
