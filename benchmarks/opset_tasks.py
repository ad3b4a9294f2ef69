"""Conversions between opsets, drawn from onnx's node models, beside onnx's version converter.

Each node model has inputs and the outputs that the specification gives for them. It is taken as it
is, with all inputs but the first as initializers, behind and before other nodes, with dimensions
of unknown size, or in a branch of an If. A result is run by ONNX Runtime without optimisation and
with default options, and by onnx's reference evaluator, where they have a kernel of that version;
each must give these outputs, or those that it gives for the model.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, version_converter

OUTCOMES = ("exact", "refused", "wrong", "unloadable", "not judged")
FORMS = ("lone", "constant", "among others", "unknown sizes", "branch")
_TARGETS = range(7, 27)
_SEED = 40
_IR_VERSION = 10
"""One that ONNX Runtime takes, whatever the version of onnx."""
_RANDOM = ("bernoulli", "training_dropout", "train")
"""In names of models whose outputs are random, or another call gives others."""


@dataclass(frozen=True)
class Case:
    """A node model with inputs and outputs."""

    name: str
    model: onnx.ModelProto
    version: int
    feeds: Mapping[str, Any]
    outputs: list[Any]
    before: dict[str, list[Any] | None] = field(default_factory=dict)
    """What each runtime gives for the model; None where it cannot run it."""


def cases() -> list[Case]:
    """Return onnx's node models of ai.onnx."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collected = sorted(collect_testcases(None), key=lambda case: case.name)
    found = []
    for case in collected:
        model = case.model
        if model is None or "_expanded" in case.name or any(w in case.name for w in _RANDOM):
            continue
        if [entry.domain for entry in model.opset_import] != [""] or not case.data_sets:
            continue
        model.ir_version = min(model.ir_version, _IR_VERSION)
        inputs, outputs = case.data_sets[0]
        feeds = {info.name: value for info, value in zip(model.graph.input, inputs, strict=False)}
        feeds = {name: fed(value) for name, value in feeds.items()}
        version = int(model.opset_import[0].version)
        found.append(Case(case.name, model, version, feeds, list(outputs)))
    return found


def drawn(number: int) -> Iterator[tuple[Case, str, int]]:
    """Yield cases, in some form, and opsets to convert to, the same ones at each call."""
    known = cases()
    chance = random.Random(_SEED)
    while number:
        case, name = chance.choice(known), chance.choice(FORMS)
        to = chance.choice([to for to in _TARGETS if to != case.version])
        formed = form(case, name)
        if formed is not None:
            number -= 1
            yield formed, name, to


def form(case: Case, name: str) -> Case | None:
    """Return a case in another form; None where it has none."""
    if name == "lone":
        return case
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    model.ir_version = max(model.ir_version, 4)
    graph, feeds = model.graph, dict(case.feeds)
    if name == "constant":
        kept = graph.input[:1]
        for info in graph.input[1:]:
            value = feeds.get(info.name)
            if not isinstance(value, np.ndarray) or not info.type.HasField("tensor_type"):
                kept.append(info)
                continue
            tensor = numpy_helper.from_array(value, info.name)
            if tensor.data_type != info.type.tensor_type.elem_type:
                kept.append(info)
                continue
            graph.initializer.append(tensor)
            feeds.pop(info.name)
        if len(kept) == len(graph.input):
            return None
        del graph.input[:]
        graph.input.extend(kept)
    elif name == "unknown sizes":
        number = 0
        for info in graph.input:
            if info.type.HasField("tensor_type"):
                for dim in info.type.tensor_type.shape.dim:
                    dim.dim_param = f"d{number}"
                    number += 1
        if not number:
            return None
        for info in graph.output:
            if info.type.HasField("tensor_type"):
                for dim in info.type.tensor_type.shape.dim:
                    dim.ClearField("dim_value")
    elif name == "among others":
        if not _put_among(graph):
            return None
    else:
        inner = onnx.GraphProto(name="branch", node=graph.node, initializer=graph.initializer)
        for info in graph.output:
            inner.output.add(name=info.name, type=info.type)
        if any(not info.type.HasField("tensor_type") for info in graph.output):
            return None
        other = onnx.GraphProto()
        other.CopyFrom(inner)
        renamed = {name for node in other.node for name in node.output if name}
        for node in other.node:
            for at, name in enumerate(node.output):
                if name in renamed:
                    node.output[at] = f"other_{name}"
            for at, name in enumerate(node.input):
                if name in renamed:
                    node.input[at] = f"other_{name}"
        for info in other.output:
            info.name = f"other_{info.name}"
        results = [f"result_{info.name}" for info in graph.output]
        condition = numpy_helper.from_array(np.array(True), "condition")
        call = helper.make_node("If", ["condition"], results, then_branch=inner, else_branch=other)
        del graph.node[:], graph.initializer[:]
        graph.node.append(call)
        graph.initializer.append(condition)
        for info, result in zip(graph.output, results, strict=True):
            info.name = result
    return Case(case.name, model, case.version, feeds, case.outputs)


def _put_among(graph: onnx.GraphProto) -> bool:
    """Put nodes before and behind those of a graph."""
    before, behind = [], []
    names = {}
    for info in graph.input:
        if info.type.HasField("tensor_type"):
            names[info.name] = f"before_{info.name}"
            before.append(helper.make_node("Identity", [info.name], [names[info.name]]))
    for node in graph.node:
        for at, name in enumerate(node.input):
            node.input[at] = names.get(name, name)
    for info in graph.output:
        if info.type.HasField("tensor_type"):
            result = f"behind_{info.name}"
            behind.append(helper.make_node("Identity", [info.name], [result]))
            info.name = result
    nodes = [*before, *graph.node, *behind]
    del graph.node[:]
    graph.node.extend(nodes)
    return bool(before or behind)


def fed(value: Any) -> Any:
    """Return an input as ONNX Runtime takes it."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def table(number: int) -> Counter[str]:
    """Print what became of conversions, and why ours were refused; return the outcomes of ours."""
    ours: dict[str, Counter[str]] = {"down": Counter(), "up": Counter()}
    theirs: dict[str, Counter[str]] = {"down": Counter(), "up": Counter()}
    reasons: Counter[str] = Counter()
    operators: set[str] = set()
    for case, name, to in drawn(number):
        direction = "up" if to > case.version else "down"
        operators.update(node.op_type for node in case.model.graph.node)
        outcome, why = outcome_of(case, to, by_us)
        ours[direction][outcome] += 1
        theirs[direction][outcome_of(case, to, by_onnx)[0]] += 1
        if outcome == "refused":
            reasons[why] += 1
        elif outcome in ("wrong", "unloadable"):
            print(
                f"{case.name} ({name}), opset {case.version} to {to}: {outcome} {why}", flush=True
            )
    print(f"{number} conversions of {len(operators)} operators")
    print(f"| direction | by | {' | '.join(OUTCOMES)} |\n|---|---|{'---|' * len(OUTCOMES)}")
    for direction in ours:
        for by, counts in (("dld", ours[direction]), ("onnx's converter", theirs[direction])):
            cells = " | ".join(str(counts[outcome]) for outcome in OUTCOMES)
            print(f"| {direction} | {by} | {cells} |")
    for why, count in reasons.most_common():
        print(f"| {why} | {count} |")
    return ours["down"] + ours["up"]


def by_us(model: onnx.ModelProto, to: int) -> onnx.ModelProto:
    """Convert as ``dld convert opset`` does."""
    from dld_tui.core.conversion.opset import convert_opset

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    convert_opset(copy, to)
    return copy


def by_onnx(model: onnx.ModelProto, to: int) -> onnx.ModelProto:
    """Convert by onnx's converter."""
    from dld_tui.core.process.child import Limits, compute

    def convert() -> bytes:
        return bytes(version_converter.convert_version(model, to).SerializeToString())

    return onnx.ModelProto.FromString(compute(convert, Limits(20, 2 << 30)))


def outcome_of(
    case: Case, to: int, convert: Callable[[onnx.ModelProto, int], onnx.ModelProto]
) -> tuple[str, str]:
    """Return what became of a conversion, and why."""
    from dld_tui.core.errors import DldError
    from dld_tui.core.process.child import CrashError, LimitError, RefusedError

    try:
        result = convert(case.model, to)
    except DldError as error:
        return "refused", error.message.partition(": node ")[0]
    except (CrashError, LimitError, RefusedError) as error:
        return "refused", str(error)
    is_judged, doubts = False, ""
    for name, run in _RUNTIMES.items():
        if name not in case.before:
            try:
                case.before[name] = run(case.model, case.feeds)
            except Exception:  # noqa: BLE001 - a runtime may not have its version
                case.before[name] = None
    right = [case.outputs, *(before for before in case.before.values() if before is not None)]
    for name, run in _RUNTIMES.items():
        before = case.before[name]
        outcome, why = "", ""
        try:
            after = run(result, case.feeds)
        except Exception as error:  # noqa: BLE001 - the same
            text = " ".join(str(error).split())
            if before is None or any(words in text for words in _WITHOUT_KERNEL):
                continue
            outcome, why = "unloadable", f"in {name}: {text[:160]}"
        else:
            if any(agree(after, one) for one in right):
                is_judged = True
            elif before is not None:
                outcome, why = "wrong", f"in {name}"
        if outcome and (not is_judged or name != _EVALUATOR):
            return outcome, why
        if outcome:
            doubts = f"{outcome} {why}"
    return ("exact" if is_judged else "not judged"), doubts


_EVALUATOR = "the reference evaluator"
"""Has faults of its own: where ONNX Runtime gives the values, its others are told apart."""
_WITHOUT_KERNEL = (
    "Could not find an implementation", "Failed to find kernel", "No implementation for operator",
    "No registered implementation",
)  # fmt: skip


def _by_onnxruntime(
    model: onnx.ModelProto, feeds: Mapping[str, Any], *, optimised: bool
) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, dict(feeds)))


def _by_reference(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    from onnx.reference import ReferenceEvaluator

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = list(ReferenceEvaluator(model).run(None, dict(feeds)))
    if any(node.op_type == "Loop" for node in model.graph.node):  # scalars of scans get an axis
        return [value.ravel() if np.shape(value)[1:] == (1,) else value for value in found]
    return found


_RUNTIMES: Mapping[str, Callable[[onnx.ModelProto, Mapping[str, Any]], list[Any]]] = {
    "ONNX Runtime without optimisation": partial(_by_onnxruntime, optimised=False),
    "ONNX Runtime": partial(_by_onnxruntime, optimised=True),
    _EVALUATOR: _by_reference,
}


def agree(found: list[Any], expected: list[Any]) -> bool:
    """Return whether outputs are equal but for rounding."""
    return len(found) == len(expected) and all(map(same, found, expected))


def same(found: Any, expected: Any) -> bool:
    """Return whether two outputs are equal but for rounding."""
    if isinstance(found, list) or isinstance(expected, list):
        return agree(list(found), list(expected))
    if found is None or expected is None:
        return found is expected
    one, two = np.asarray(found), np.asarray(expected)
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    if one.dtype.kind in "OUSb":
        return bool((one == two).all())
    limit = 1e-5 if one.dtype.kind == "f" and one.dtype.itemsize >= 4 else 1e-2
    close = partial(np.allclose, rtol=max(limit, 1e-4), atol=limit, equal_nan=True)
    return bool(close(one.astype(np.float64), two.astype(np.float64)))
