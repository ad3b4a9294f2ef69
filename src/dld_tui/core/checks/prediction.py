"""Predicts what runtimes refuse in a model, by type and shape inference and rules on their result.

It is native code in part, which can end the process on a bad model: call :func:`predict` in a
child process. Terminal and command both take what it finds from the activity ``infer_shapes``.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from dld_tui.core import fmt
from dld_tui.core.checks.calls import Call, Dims, Operand, calls
from dld_tui.core.checks.findings import (
    Finding,
    Prediction,
    name_of,
    predicted_findings,
    without_repeats,
)
from dld_tui.core.checks.kernel_rules import check_kernel
from dld_tui.core.checks.operands import Problems, check_operands, check_signature, has_right_types
from dld_tui.core.document.document import Document
from dld_tui.core.document.locations import Labels, LocatedMessage, bodies
from dld_tui.core.document.types.inference import Inference, TypeSource, infer
from dld_tui.core.errors import ActivityError
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.operators.inlining import inline_local_functions, inline_operators
from dld_tui.core.types import plain_domain

_OWN = "dld_tui.core.operators"
_HALF = (TensorProto.FLOAT16,)


@dataclass(frozen=True)
class Facts:
    """What the newest known version of ONNX Runtime takes."""

    version: str
    ir: int
    """The newest IR version."""
    opsets: dict[str, int]
    """The newest released version of each operator set."""
    operators: dict[str, dict[str, dict[str, list[str]]]]
    """Attributes by domain, operator and the version since which they hold."""
    kernels: dict[str, dict[str, list[Any]]]
    types: list[str]

    def since(self, domain: str, op_type: str, version: int) -> int | None:
        """Return the version that introduced an operator's form in `version`, or None."""
        known = self.operators.get(domain, {}).get(op_type)
        if known is None:
            return None
        return max((int(since) for since in known if int(since) <= version), default=None)


@lru_cache(maxsize=1)
def facts() -> Facts:
    """Return the facts of the data file."""
    text = resources.files(_OWN).joinpath("data/onnxruntime.json").read_text("utf-8")
    data = json.loads(text)
    data.pop("notice", None)
    return Facts(**data)


def title() -> str:
    """Return the runtime and version that the facts describe, for messages."""
    return f"ONNX Runtime {facts().version}"


def unknown_to_runtime(call: Call) -> str | None:
    """Return what ONNX Runtime does not support in a call; None when it supports it.

    It is None for operators that nothing knows, too, if their operator set is known: that is a
    finding of its own.
    """
    known = facts()
    if call.op_type == "Constant":
        return None  # is taken for a constant, whatever its operator set
    if call.domain not in known.kernels:
        name = name_of(call.domain)
        return f"{title()} has no operator set {name}: it needs a library of custom operators"
    if call.domain not in known.operators or not call.version:
        return None
    from dld_tui.core.operators.registry import schema_for

    ours = schema_for(call.op_type, call.domain, call.version)
    if ours is None:
        return None
    if ours.deprecated and has_kernel(call) is False and not is_function(call):
        return f"{title()} refuses it: it is deprecated in opset {call.version}"
    since = known.since(call.domain, call.op_type, call.version)
    if since is None:
        return f"{title()} does not know it"
    attributes = known.operators[call.domain][call.op_type][str(since)]
    mine = {attribute.name for attribute in ours.attributes}
    for proto in call.node.attribute:
        name = text_of(proto.name)
        if name in mine and name not in attributes:
            return f"{title()} does not know its attribute {name_of(name)}"
    return None


def has_kernel(call: Call) -> bool | None:
    """Return whether the CPU provider computes a call; None when that is not known.

    Unknown types are taken to fit. Where there is no kernel for float16, ONNX Runtime casts to
    float32 and back, if the operator is not defined by others.
    """
    known = facts()
    rows = known.kernels.get(call.domain, {}).get(call.op_type)
    if call.domain not in known.kernels or call.op_type == "Constant":
        return None
    since = known.since(call.domain, call.op_type, call.version)
    if call.domain == "com.microsoft":
        since = 1
    if since is None:
        return None
    if rows is None:
        return False
    fitting = [row for row in rows if _fits_version(since, row[0], row[1])]
    types = _types_by_name(call)
    if types is None:
        return bool(fitting)
    if any(_fits(row[2], types, known.types) for row in fitting):
        return True
    as_single = {
        name: [TensorProto.FLOAT if kind in _HALF else kind for kind in kinds]
        for name, kinds in types.items()
    }
    if as_single == types or is_function(call):
        return False
    return any(_fits(row[2], as_single, known.types) for row in fitting)


def _fits_version(since: int, first: int, last: int | None) -> bool:
    """As KernelRegistry::VerifyKernelDef of ONNX Runtime compares them."""
    return first == since or (last is not None and first < since <= last)


def _types_by_name(call: Call) -> dict[str, list[int]] | None:
    """Return element types of operands by type variable and by formal name; 0 for unknown ones."""
    from dld_tui.core.operators.registry import schema_for

    schema = schema_for(call.op_type, call.domain, call.version)
    if schema is None:
        return None
    types: dict[str, list[int]] = {}
    for formals, names in ((schema.inputs, call.node.input), (schema.outputs, call.node.output)):
        for index, name in enumerate(names):
            if not formals or not name:
                continue
            formal = formals[min(index, len(formals) - 1)]
            operand = call.names.operand(text_of(name))
            kind = operand.dtype if operand.kind == "tensor_type" else 0
            types.setdefault(formal.type_name, []).append(kind)
            if formal.name != formal.type_name:
                types.setdefault(formal.name, []).append(kind)
    return types


def _fits(taken: dict[str, list[int]], types: dict[str, list[int]], texts: list[str]) -> bool:
    for name, numbers in taken.items():
        accepted = {texts[number] for number in numbers}
        for kind in types.get(name, ()):
            if kind and f"tensor({_type_text(kind)})" not in accepted:
                return False
    return True


def _type_text(kind: int) -> str:
    from dld_tui.core.document.types.value_types import tensor_type

    full = tensor_type(kind) or ""
    return full.removeprefix("tensor(").removesuffix(")")


def types_text(call: Call) -> str:
    """Return the element types of the inputs of a call, for a message."""
    kinds = [call.input(index).dtype for index in range(len(call.node.input))]
    named = dict.fromkeys(_type_text(kind) for kind in kinds if kind)
    return ", ".join(named)


def is_function(call: Call) -> bool:
    """Return whether the operator is defined by others, so that no kernel of its own is needed.

    As ONNX Runtime has it: by operators that are the same in the opset of the model.
    """
    return _is_function(call.op_type, call.version, call.domain)


@lru_cache(maxsize=256)
def _is_function(op_type: str, version: int, domain: str) -> bool:
    try:
        schema: Any = onnx.defs.get_schema(op_type, version, domain)  # its stub lacks much
    except onnx.defs.SchemaError:
        return False
    if schema.has_context_dependent_function:
        return True
    since = max((v for v in schema.function_opset_versions if v <= version), default=None)
    if since is None:
        return False
    body = onnx.FunctionProto.FromString(schema.get_function_with_opset_version(since))
    return all(_is_same(node.op_type, since, version) for node in body.node if not node.domain)


def _is_same(op_type: str, first: int, second: int) -> bool:
    try:
        versions = {onnx.defs.get_schema(op_type, v).since_version for v in (first, second)}
    except onnx.defs.SchemaError:
        return False
    return len(versions) == 1


_MICROSOFT, _ML = "com.microsoft", "ai.onnx.ml"
_MOST_ROUNDS = 12
"""What one makes is known when the next one is looked at: layers of them take a round each."""
_LARGE = 20_000
"""Nodes from which on only one round is made."""


def add_types(inference: Inference) -> None:
    """Add the known types of such values to an inferred model, and infer again."""
    rounds = 1 if len(inference.model.graph.node) > _LARGE else _MOST_ROUNDS
    for _ in range(rounds):
        added = _new_types(inference.model)
        if not added:
            return
        inference.model.graph.value_info.extend(added)
        again = infer(inference.model, inference)
        inference.model, inference.messages = again.model, again.messages


def _new_types(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    imports = {plain_domain(text_of(e.domain)): int(e.version) for e in model.opset_import}
    declared = {
        text_of(info.name)
        for info in (*model.graph.value_info, *model.graph.output)
        if info.type.tensor_type.HasField("shape") or not info.type.HasField("tensor_type")
    }
    if all(text_of(name) in declared for node in model.graph.node for name in node.output):
        return []
    added = []
    for call in calls(model.graph, imports):
        rule = _MADE.get((call.domain, call.op_type))
        if rule is None or all(text_of(name) in declared for name in call.node.output):
            continue
        for name, operand in zip(call.node.output, rule(call), strict=False):
            is_known = operand is not None and operand.dims is not None and operand.dtype
            if name and operand is not None and is_known and text_of(name) not in declared:
                dims = list(operand.dims or ())
                added.append(helper.make_tensor_value_info(name, operand.dtype, dims))
                declared.add(text_of(name))
    return added


_Made = list["Operand | None"]
_HIGHEST_RANK = 64


def _as_first(call: Call) -> _Made:
    return [call.input(0)]


def _float(dims: Dims | None) -> Operand:
    return Operand(TensorProto.FLOAT, dims, "tensor_type")


def _product(call: Call) -> Dims | None:
    a, b = call.dims(0), call.dims(1)
    if not a or not b or len(a) < 2 or len(b) < 2:
        return None
    if len(b) == 2:
        return (*a[:-1], b[-1])
    return (*a[:-1], b[-1]) if a[:-2] == b[:-2] else None


def _matmul_to_float(call: Call) -> _Made:
    return [_float(_product(call))]


def _fused_matmul(call: Call) -> _Made:
    if any(call.attribute(name, 0) for name in ("transA", "transB", "transBatchA", "transBatchB")):
        return [None]
    return [Operand(call.input(0).dtype, _product(call), "tensor_type")]


def _lstm(call: Call) -> _Made:
    x, hidden = call.dims(0), call.attribute("hidden_size")
    if x is None or len(x) != 3 or not isinstance(hidden, int):
        return []
    ways = 2 if call.attribute("direction", "forward") == "bidirectional" else 1
    state = _float((ways, x[1], hidden))
    return [_float((x[0], ways, x[1], hidden)), state, state]


def _quantized(call: Call) -> _Made:
    zero = call.input(2)
    dtype = zero.dtype or TensorProto.UINT8
    return [Operand(dtype, call.dims(0), "tensor_type")]


def _dequantized(call: Call) -> _Made:
    return [Operand(call.input(1).dtype or TensorProto.FLOAT, call.dims(0), "tensor_type")]


def _classes(*labels: str) -> Callable[[Call], _Made]:
    def made(call: Call) -> _Made:
        count = next((len(values) for name in labels if (values := call.attribute(name))), None)
        strings = bool(call.attribute(labels[-1]))
        rows = call.dim(0, 0) if call.rank(0) == 2 else 1 if call.rank(0) == 1 else None
        kind = TensorProto.STRING if strings else TensorProto.INT64
        return [Operand(kind, (rows,), "tensor_type"), _float((rows, count))]

    return made


def _reshaped(call: Call) -> _Made:
    return [Operand(call.input(0).dtype, _reshaped_dims(call), "tensor_type")]


def _reshaped_dims(call: Call) -> Dims | None:
    """Return the output shape of a Reshape; ONNX's inference knows fewer shapes."""
    wanted, dims = call.value(1), call.dims(0)
    if wanted is None or wanted.ndim != 1 or dims is None:
        size = call.dim(1, 0) if call.rank(1) == 1 else None
        return None if size is None or size > _HIGHEST_RANK else (None,) * size
    sizes = [int(size) for size in wanted]
    keeps = call.attribute("allowzero", 0) != 1
    if sizes.count(-1) > 1 or min(sizes, default=0) < -1 or (keeps and 0 in sizes[len(dims) :]):
        return (None,) * len(sizes)
    reshaped_dims = [dims[at] if keeps and size == 0 else size for at, size in enumerate(sizes)]
    if -1 in reshaped_dims:
        have, need = _count(dims), _count(size for size in reshaped_dims if size != -1)
        reshaped_dims[reshaped_dims.index(-1)] = have // need if have is not None and need else None
    return tuple(reshaped_dims)


def _count(dims: Iterable[int | None]) -> int | None:
    known = list(dims)
    return None if None in known else math.prod(dim or 0 for dim in known)


_MADE: dict[tuple[str, str], Callable[[Call], _Made]] = {
    ("", "Reshape"): _reshaped,
    (_ML, "Scaler"): lambda call: [_float(call.dims(0))],
    (_ML, "Normalizer"): lambda call: [_float(call.dims(0))],
    (_ML, "LinearClassifier"): _classes("classlabels_ints", "classlabels_strings"),
    (_ML, "TreeEnsembleClassifier"): _classes("classlabels_int64s", "classlabels_strings"),
    **{
        (_MICROSOFT, name): _as_first
        for name in (
            "BiasGelu", "FastGelu", "Gelu", "QuickGelu", "SkipLayerNormalization",
            "SkipSimplifiedLayerNormalization",
        )
    },
    ("", "SimplifiedLayerNormalization"): _as_first,
    (_MICROSOFT, "MatMulIntegerToFloat"): _matmul_to_float,
    (_MICROSOFT, "DynamicQuantizeMatMul"): _matmul_to_float,
    (_MICROSOFT, "FusedMatMul"): _fused_matmul,
    (_MICROSOFT, "DynamicQuantizeLSTM"): _lstm,
    (_MICROSOFT, "QuantizeLinear"): _quantized,
    (_MICROSOFT, "DequantizeLinear"): _dequantized,
}  # fmt: skip


INFERENCE = "onnx:shape-inference"
NOT_INFERRED = "onnx:inference-limit"
_OF_OPERATORS = ("runtime-operator", "no-kernel")
_DEEPEST_FUNCTION = 5
_MOST_SAID = 200
"""The most findings of one rule."""


def predict(
    model: onnx.ModelProto, extra_types: TypeSource | None = None, *, errors: bool = True
) -> tuple[onnx.ModelProto, list[Prediction]]:
    """Return a model with inferred types, and the predictions.

    Args:
        model: The model, whose payloads may be cut out. It is changed.
        extra_types: As for :func:`~dld_tui.core.document.types.inference.infer`.
        errors: Make predictions, which takes most of the time.
    """
    imported = _imports(model)
    for domain, newest in facts().opsets.items() if imported else ():
        if domain not in imported:  # as ONNX Runtime fills them in
            model.opset_import.add(domain=domain, version=newest)
    inference = infer(model, extra_types=extra_types)
    inferred = inference.model
    if not errors:
        return inferred, []
    predictions = _told_by(inference)
    whole = _inlined(inference) if model.functions else inference
    if whole is not inference:
        predictions += _told_by(whole)
    whole = _without_declarations(whole, extra_types)
    add_types(whole)
    predictions += _told_by(whole)
    predictions += _check_versions(whole.model)
    predictions += _check_calls(whole, predictions)
    return inferred, _once(predictions)


_NEWER = ("NegativeLogLikelihoodLoss", "in unification between")
"""By operator: onnx's messages on shapes that ONNX Runtime does not check; rules here do."""


def _told_by(inference: Inference) -> list[Prediction]:
    held = [*inference.held.values()]
    return [
        Prediction(NOT_INFERRED if remark in held else INFERENCE, remark)
        for remark in inference.messages
        if not all(part in remark.message for part in _NEWER)
    ]


def _inlined(inference: Inference) -> Inference:
    """Return a model with all function calls inlined, and inferred types."""
    imported = _imports(inference.model)
    for function in inference.model.functions:
        for entry in function.opset_import:
            domain = plain_domain(text_of(entry.domain))
            if domain not in imported:
                imported[domain] = int(entry.version)
                inference.model.opset_import.add(domain=entry.domain, version=entry.version)
            # ONNX Runtime takes the nodes in the model's version; onnx leaves such calls alone.
            entry.version = imported[domain]
    try:
        flat = inline_local_functions(inference.model)
    # The seam: the inliner is native code that refuses what is wrong in its own ways.
    except Exception:  # noqa: BLE001
        return inference
    del flat.graph.value_info[:]
    return infer(flat, inference)


def _without_declarations(inference: Inference, extra_types: TypeSource | None) -> Inference:
    """Infer again from inputs and weights alone: other declared types may be wrong."""
    model = onnx.ModelProto()
    model.CopyFrom(inference.model)
    for _, body in bodies(model):
        if isinstance(body, onnx.GraphProto):
            del body.value_info[:]
            for info in body.output:
                if info.type.HasField("tensor_type"):
                    info.type.tensor_type.ClearField("shape")
    return infer(model, inference, extra_types)


def _imports(model: onnx.ModelProto) -> dict[str, int]:
    return {plain_domain(text_of(e.domain)): int(e.version) for e in model.opset_import}


def _check_versions(model: onnx.ModelProto) -> list[Prediction]:
    known = facts()
    problems = []
    if model.ir_version > known.ir:
        problems.append(f"IR version {model.ir_version}: {title()} takes {known.ir} at most")
    entries = [(plain_domain(text_of(e.domain)), int(e.version)) for e in model.opset_import]
    for domain, version in dict.fromkeys(entries):
        newest = known.opsets.get(domain)
        if newest is not None and version > newest:
            name = domain or "ai.onnx"
            problems.append(f"Opset {version} of {name}: {title()} takes {newest} at most")
    return [Prediction("runtime-version", LocatedMessage(text)) for text in problems]


def _check_calls(inference: Inference, known: list[Prediction]) -> list[Prediction]:
    blamed = {_place(entry.remark) for entry in known}
    predictions: list[Prediction] = []
    functions: dict[tuple[str, str], None] = {}
    verdicts: dict[tuple[object, ...], _Verdict] = {}
    local = {(text_of(f.domain), text_of(f.name)) for f in inference.model.functions}
    for call in calls(inference.model.graph, _imports(inference.model)):
        if (call.domain, call.op_type) in local:
            continue
        verdict = verdicts.get(key := call.key())
        if verdict is None:
            verdict = verdicts[key] = _verdict(call)
        rules = (check_operands, check_kernel, _too_large) if verdict.is_typed and call.runs else ()
        for rule, message in (*verdict.problems, *_problems_of(call, rules)):
            remark = _remark(inference.labels, call, message)
            if _place(remark) not in blamed:
                predictions.append(Prediction(rule, remark))
        if verdict.unknown is not None:
            remark = _remark(inference.labels, call, verdict.unknown)
            predictions.append(Prediction("runtime-operator", remark))
        elif verdict.has_kernel is False and not verdict.has_wrong_types:
            if verdict.is_function:
                functions[call.domain, call.op_type] = None
            else:
                predictions.append(_no_kernel(inference.labels, call))
    if functions:
        predictions += _check_functions(inference, list(functions))
    return predictions


def _problems_of(call: Call, rules: Iterable[Callable[[Call], Problems]]) -> list[tuple[str, str]]:
    """Return the problems that rules find in a call; a rule that raises adds none."""
    problems: list[tuple[str, str]] = []
    for rule in rules:
        with contextlib.suppress(IndexError, TypeError, ValueError, ZeroDivisionError):
            problems.extend(rule(call))
    return problems


_MOST_ELEMENTS = 1 << 40
"""Elements that no memory holds."""


def _too_large(call: Call) -> Problems:
    """Yield outputs that are larger than any memory."""
    for name in call.node.output:
        dims = call.names.operand(text_of(name)).dims or ()
        if math.prod(dim or 0 for dim in dims) >= _MOST_ELEMENTS:
            yield "operand-shape", f"Its output {fmt.shape(dims)} does not fit into any memory"


@dataclass(frozen=True)
class _Verdict:
    """What depends on the operator and the types of its operands only: few differ in a model."""

    problems: list[tuple[str, str]]
    unknown: str | None
    has_kernel: bool | None
    is_function: bool
    has_wrong_types: bool
    """Whether the operator takes no such operands: that no kernel does says the same again."""
    is_typed: bool
    """Whether all attributes are of the types that the operator takes; another rule tells."""


def _verdict(call: Call) -> _Verdict:
    problems = list(check_signature(call))
    return _Verdict(
        problems,
        unknown_to_runtime(call),
        has_kernel(call),
        is_function(call),
        any(rule == "input-type" for rule, _ in problems),
        has_right_types(call),
    )


def _check_functions(inference: Inference, functions: list[tuple[str, str]]) -> list[Prediction]:
    """Look for kernels of the nodes in the definitions of operators without a kernel."""
    model = inference.model
    lacking: list[Call] = []
    inlined: list[Call] = []
    for _ in range(_DEEPEST_FUNCTION):
        try:
            flat = inline_operators(model, functions)
        # The seam: the inliner is native code that refuses what is wrong in its own ways.
        except Exception:  # noqa: BLE001
            return []
        model = infer(flat, inference).model
        inlined = list(calls(model.graph, _imports(model)))
        lacking = [call for call in inlined if has_kernel(call) is False]
        inner = [(call.domain, call.op_type) for call in lacking if is_function(call)]
        if not inner:
            break
        functions = inner
    conflicts = [
        Prediction(rule, _remark(inference.labels, call, message))
        for call in inlined
        for rule, message in check_signature(call)
        if rule == "type-conflict"
    ]
    return [*conflicts, *(_no_kernel(inference.labels, call) for call in lacking)]


def _no_kernel(labels: Labels, call: Call) -> Prediction:
    types = types_text(call)
    of = f" of {types}" if types else ""
    text = f"{title()} has no CPU kernel for it{of} in opset {call.version}"
    return Prediction("no-kernel", _remark(labels, call, text))


def _remark(labels: Labels, call: Call, message: str) -> LocatedMessage:
    place = labels.place_in(text_of(call.node.name))
    text = f"{name_of(call.op_type)}: {message}"
    return LocatedMessage(text) if place is None else LocatedMessage(text, place[0], place[1])


def _place(remark: LocatedMessage) -> str:
    return f"{remark.place} {remark.index}"


def _once(predictions: list[Prediction]) -> list[Prediction]:
    """Leave out repeated predictions on a node, and those beyond the limit of a rule."""
    unique: dict[tuple[str, str, str], Prediction] = {}
    for entry in predictions:
        is_placed = entry.rule == INFERENCE and entry.remark.place is not None
        text = "" if is_placed else entry.remark.message  # it says the same in other words
        unique.setdefault((entry.rule, text, _place(entry.remark)), entry)
    counts: dict[str, int] = {}
    kept: list[Prediction] = []
    for entry in _by_operator(list(unique.values())):
        counts[entry.rule] = counts.get(entry.rule, 0) + 1
        if counts[entry.rule] <= _MOST_SAID:
            kept.append(entry)
    return kept


def _by_operator(predictions: list[Prediction]) -> list[Prediction]:
    """Merge predictions that hold for every call of an operator into one on the first node."""
    same: dict[tuple[str, str], list[Prediction]] = {}
    for entry in predictions:
        text = entry.remark.message if entry.rule in _OF_OPERATORS else f"{len(same)}"
        same.setdefault((entry.rule, text), []).append(entry)
    return [
        entries[0]
        if len(entries) == 1
        else replace(
            entries[0],
            remark=replace(
                entries[0].remark,
                message=f"{entries[0].remark.message} (and {len(entries) - 1} more)",
            ),
        )
        for entries in same.values()
    ]


def all_findings(document: Document, home: Path | None = None) -> list[Finding]:
    """Return all findings of a document, worked out in this very process.

    For processes that may end: see above. Types that are inferred are noted in the document.
    """
    from dld_tui.core.checks import check
    from dld_tui.core.checks.findings import by_severity
    from dld_tui.core.document.serialise import skeleton_bytes
    from dld_tui.core.document.types.inference import inline_small_data, store_types

    model = onnx.ModelProto.FromString(skeleton_bytes(document))
    home = home or document.path
    if home is not None:
        inline_small_data(model, home)
    inferred, predictions = predict(model)
    document.forget_types()  # those of before a conversion may be other ones
    with contextlib.suppress(KeyError):
        store_types(document, inferred)
    findings = predicted_findings(document, predictions)
    known = check(document)
    return by_severity([*known, *without_repeats(findings, known)])


# --- whether a result is as sound as its model was ------------------------------------------------

_NO_FAULT = {"tensor-without-data"}
"""Errors that a conversion may cause on purpose: a model without weights."""


def require_sound(before: Document, after: Document) -> None:
    """Refuse a result with kinds of errors that its original model does not have.

    Predictions count, too; call it only in a process that may end, as for :func:`all_findings`.

    Args:
        before: The model that was converted.
        after: The result.

    Raises:
        ActivityError: The result has new errors.
    """
    errors = _errors(all_findings(after, after.path or before.path))
    if not errors:
        return
    known = {finding.rule for finding in _errors(all_findings(before))} | _NO_FAULT
    added = [finding for finding in errors if finding.rule not in known]
    if added:
        more = f" (and {len(added) - 1} more)" if added[1:] else ""
        raise ActivityError(f"the result is not valid: {_described(added[0])}{more}")


def _described(finding: Finding) -> str:
    name = name_of(finding.node.ref) if finding.node is not None else ""
    return finding.message if name in finding.message else f"{name}: {finding.message}"


def _errors(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level == "error"]
