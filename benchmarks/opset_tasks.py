"""Conversions between opsets, drawn from onnx's node models, beside onnx's version converter.

Each node model has inputs and the outputs that the specification gives for them. A result is run by
ONNX Runtime without optimisation, and by onnx's reference evaluator where ONNX Runtime cannot run
the model or has no kernel of that version, and compared with these outputs, or with those of the
model where the runtime gives others for it.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import version_converter

OUTCOMES = ("exact", "refused", "wrong", "unloadable", "not judged")
_TARGETS = range(7, 27)
_SEED = 40
_RANDOM = ("bernoulli", "training_dropout", "train")
"""In names of models whose outputs are random, or another call gives others."""


@dataclass(frozen=True)
class Drawn:
    """One conversion to try."""

    name: str
    model: onnx.ModelProto
    version: int
    to: int
    feeds: Mapping[str, Any]
    outputs: list[Any]


def drawn(number: int) -> list[Drawn]:
    """Return conversions that are drawn by chance, the same ones at each call."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = sorted(collect_testcases(None), key=lambda case: case.name)
    found = []
    for case in cases:
        model = case.model
        if model is None or "_expanded" in case.name or any(w in case.name for w in _RANDOM):
            continue
        if [entry.domain for entry in model.opset_import] != [""] or not case.data_sets:
            continue
        inputs, outputs = case.data_sets[0]
        feeds = {info.name: value for info, value in zip(model.graph.input, inputs, strict=False)}
        feeds = {name: _fed(value) for name, value in feeds.items()}
        version = int(model.opset_import[0].version)
        targets = [to for to in _TARGETS if to != version]
        found.append((case.name, model, version, targets, feeds, list(outputs)))
    chance = random.Random(_SEED)
    chosen = []
    for _ in range(number):
        name, model, version, targets, feeds, outputs = chance.choice(found)
        chosen.append(Drawn(name, model, version, chance.choice(targets), feeds, outputs))
    return chosen


def _fed(value: Any) -> Any:
    """Return an input as ONNX Runtime takes it."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def table(number: int) -> Counter[str]:
    """Print what became of conversions, and why ours were refused; return the outcomes of ours."""
    ours: dict[str, Counter[str]] = {"down": Counter(), "up": Counter()}
    theirs: dict[str, Counter[str]] = {"down": Counter(), "up": Counter()}
    reasons: Counter[str] = Counter()
    operators: set[str] = set()
    for one in drawn(number):
        direction = "up" if one.to > one.version else "down"
        operators.update(node.op_type for node in one.model.graph.node)
        outcome, why = _outcome(one, _by_us)
        ours[direction][outcome] += 1
        theirs[direction][_outcome(one, _by_onnx)[0]] += 1
        if outcome == "refused":
            reasons[why] += 1
        elif outcome in ("wrong", "unloadable"):
            print(f"{one.name}, opset {one.version} to {one.to}: {outcome} {why}", flush=True)
    print(f"{number} conversions of {len(operators)} operators")
    print(f"| direction | by | {' | '.join(OUTCOMES)} |\n|---|---|{'---|' * len(OUTCOMES)}")
    for direction in ours:
        for by, counts in (("dld", ours[direction]), ("onnx's converter", theirs[direction])):
            cells = " | ".join(str(counts[outcome]) for outcome in OUTCOMES)
            print(f"| {direction} | {by} | {cells} |")
    for why, count in reasons.most_common():
        print(f"| {why} | {count} |")
    return ours["down"] + ours["up"]


def _by_us(model: onnx.ModelProto, to: int) -> onnx.ModelProto:
    from dld_tui.core.conversion.opset import convert_opset

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    convert_opset(copy, to)
    return copy


def _by_onnx(model: onnx.ModelProto, to: int) -> onnx.ModelProto:
    from dld_tui.core.child import Limits, compute

    def convert() -> bytes:
        return bytes(version_converter.convert_version(model, to).SerializeToString())

    return onnx.ModelProto.FromString(compute(convert, Limits(20, 2 << 30)))


def _outcome(
    one: Drawn, convert: Callable[[onnx.ModelProto, int], onnx.ModelProto]
) -> tuple[str, str]:
    from dld_tui.core.child import CrashError, LimitError, RefusedError
    from dld_tui.core.errors import DldError

    try:
        result = convert(one.model, one.to)
    except DldError as error:
        return "refused", error.message.partition(": node ")[0]
    except (CrashError, LimitError, RefusedError) as error:
        return "refused", str(error)
    why = ""
    for run in (_by_onnxruntime, _by_reference):
        before = None
        try:
            before = run(one.model, one.feeds)
        except Exception:  # noqa: BLE001 - a runtime may not have its version
            pass
        try:
            after = run(result, one.feeds)
        except Exception as error:  # noqa: BLE001 - the same
            text = " ".join(str(error).split())
            if before is None or any(words in text for words in _WITHOUT_KERNEL):
                continue
            return "unloadable", text[:160]
        if _agree(after, one.outputs) or (before is not None and _agree(after, before)):
            return "exact", ""
        why = why or (f"in {run.__name__.removeprefix('_by_')}" if before is not None else "")
    return ("wrong", why) if why else ("not judged", "")


_WITHOUT_KERNEL = (
    "Could not find an implementation", "Failed to find kernel", "No implementation for operator",
    "No registered implementation",
)  # fmt: skip


def _by_onnxruntime(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, dict(feeds)))


def _by_reference(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    from onnx.reference import ReferenceEvaluator

    return list(ReferenceEvaluator(model).run(None, dict(feeds)))


def _agree(found: list[Any], expected: list[Any]) -> bool:
    return len(found) == len(expected) and all(map(_same, found, expected))


def _same(found: Any, expected: Any) -> bool:
    if isinstance(found, list) or isinstance(expected, list):
        return _agree(list(found), list(expected))
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
