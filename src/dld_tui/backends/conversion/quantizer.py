"""Quantization of a document by ONNX Runtime, in a separate process (:mod:`.quantization`)."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx

from dld_tui.backends.conversion import quantization
from dld_tui.backends.conversion.library_file import by_library
from dld_tui.backends.onnxruntime.types import contrib_types, has_inference
from dld_tui.core import fmt
from dld_tui.core.conversion.body_weights import (
    BodyWeights,
    WeightType,
    body_weights,
    channel_axis,
    dynamic_reasons,
    quantize_body_weights,
    reason_lines,
    static_reasons,
    without_channels,
)
from dld_tui.core.conversion.copies import (
    copy_of,
    infer,
    inline_calls,
    lift_constants,
    make_dense,
    relink,
    relink_users,
)
from dld_tui.core.conversion.opset import convert_opset
from dld_tui.core.conversion.quantization_plan import QdqInsertion, QuantizationPlan
from dld_tui.core.conversion.request import QuantizationSettings
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, InputError, UnavailableError, UsageError
from dld_tui.core.events import Event, Progress
from dld_tui.core.files.proto_fields import set_text, text_of
from dld_tui.core.files.source import open_error
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.opset_imports import ensure_ir
from dld_tui.core.model.document.scope import INITIALIZERS_WITHOUT_INPUTS, Scope
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.document.transactions import SetLinks, SetText, Splice, Transaction
from dld_tui.core.model.document.traversal import nodes_called, topological_order
from dld_tui.core.model.edits.casting import FreshNames
from dld_tui.core.model.edits.nodes import free_node_name
from dld_tui.core.model.inputs.feeds import InputSet, load_input_sets, set_folders
from dld_tui.core.model.inputs.shapes import InputSpec
from dld_tui.core.model.operators import registry
from dld_tui.core.model.operators.categories import REARRANGING, WEIGHTED
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import type_proto_of
from dld_tui.core.process.confinement import require_allowed
from dld_tui.core.process.installation import install_hint
from dld_tui.core.text import clip, visible
from dld_tui.core.text.names import UNNAMED

_Shapes: TypeAlias = "tuple[tuple[int, ...], ...]"
_Place: TypeAlias = "tuple[tuple[str, ...], str]"
_AXES_SINCE = 13
"""The version of the operators from which DequantizeLinear can have a scale for each channel."""
_HALVES_SINCE = 19
"""The version of QuantizeLinear and DequantizeLinear that takes float16."""
_SINCE = 10
"""The version of the operators that has QuantizeLinear and DequantizeLinear."""
_TYPES_SINCE = {"fp8": 19, "int16": 21, "uint16": 21}
"""The version in which they have a type."""
_STORED_ONLY = ("Conv", "ConvTranspose", "Gemm", "LSTM")
"""Operators whose second input has to be an initializer."""
_BIAS_INPUT = 2
"""Of Conv, ConvTranspose, Gemm and normalizations."""
_ENDINGS = ("_scale", "_zero_point", "_quantized", "_QuantizeLinear_Output",
            "_QuantizeLinear_Input", "_DequantizeLinear_Output")  # fmt: skip
"""What the library appends to the name of a value."""
_BETWEEN = REARRANGING | {"Cast"}
"""What may be between an initializer and the weight of a node."""
_BEHIND_LOGITS = REARRANGING | {"Add", "Cast", "Div", "Mul", "Tanh"}
"""What may be between the last product of a model of language and its output."""
_WAY_OUT = "Sanitize the model first, or leave nodes as they are: --exclude NAME"


@dataclass(frozen=True)
class QuantizedCopy:
    """What one quantization has made."""

    document: Document
    plan: QuantizationPlan | None
    """Of static quantization, which tensors nodes ask for, and their scales."""
    bodies: BodyWeights = field(default_factory=BodyWeights)
    """Of static quantization, the weights in bodies."""
    infinite: Sequence[str] = ()
    """Of static quantization, values with scales that are no numbers: nothing was quantized."""
    close: Callable[[], None] = lambda: None
    """Closes the document, and removes its files, before the quantizer is closed."""

    def points(self) -> list[QdqInsertion]:
        """Return the tensors that are quantized."""
        return [*(self.plan.points() if self.plan is not None else ()), *self.bodies.points]


class Quantizer:
    """Quantizes one model, in one or several ways. Use it as a context manager.

    Args:
        document: The model; it stays unchanged, and open until this is closed.
        settings: Of the quantization.

    Raises:
        UsageError: An excluded node does not exist.
        InputError: The file of excluded nodes or a weight cannot be read, or the type of an input
            is unknown.
        UnavailableError: ONNX Runtime is not installed.
        ActivityError: The model has no operators that can be quantized.
    """

    def __init__(self, document: Document, settings: QuantizationSettings) -> None:
        if absent := quantization.missing():
            raise UnavailableError(f"{absent[0]} is not installed", hint=install_hint("cpu"))
        # ONNX Runtime's module for weights of few bits imports it, and its package does not ask.
        if settings.weights_only and importlib.util.find_spec("onnx_ir") is None:
            raise UnavailableError(
                "onnx_ir is not installed", hint="Install it with: pip install onnx-ir"
            )
        self._settings = settings
        self._document = document
        self._stack = contextlib.ExitStack()
        self._calibrated = self._stack.enter_context(temporary_folder("ranges"))
        self.notes: list[str] = []
        """Preparations of the model, and nodes that cannot be quantized."""
        self.sets = 0
        """The number of calibration input sets."""
        self._shapes: set[_Shapes] = set()
        self.prepared = copy_of(document)
        """The prepared copy for ONNX Runtime's quantizer; each node has a name."""
        self._stack.callback(self.prepared.close)
        try:
            if "" not in self.prepared.opset_imports:
                raise ActivityError(
                    "the model uses no ai.onnx operators: there is nothing to quantize"
                )
            _require_weights(document)
            self._specs = _inputs(document)
            self._prepare()
            self._excluded = [*dict.fromkeys(self._resolved(excluded_names(settings)))]
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Quantizer:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove temporary files."""
        self._stack.close()

    def _prepare(self) -> None:
        prepared = self.prepared
        _import_once(prepared)
        inlined = inline_calls(prepared)
        self._names = _named(prepared)
        """The names of the nodes by scope and ref, as they were before constants were lifted."""
        prepared = self._raise_opset(prepared)
        lifted = lift_constants(prepared)
        if dense := make_dense(prepared):
            self.notes.append(f"{fmt.plural(dense, 'sparse initializer')} made dense")
        self._passed = _take_passed(prepared)
        if not self._settings.weights_only:
            _separate_roles(prepared)
        _separate_names(prepared)
        _forget_weight_types(prepared)
        if inlined:
            calls = fmt.plural(inlined, "call")
            self.notes.append(f"{calls} of local functions replaced by the nodes of the function")
        if lifted:
            self.notes.append(f"{fmt.plural(lifted, 'Constant node')} made initializers")
        settings = self._settings
        if not settings.weights_only:
            _declare_types(prepared, self._document.path)
        self._refused = [] if settings.weights_only else _refused_by_library(prepared)
        float_nodes = dict(_stay_in_float(prepared)) if settings.weights_only else {}
        for why in dict.fromkeys(float_nodes.values()):
            first, *others = [
                visible(node.name) for node, reason in float_nodes.items() if reason == why
            ]
            more = f" and {len(others)} more stay" if others else " stays"
            self.notes.append(self._as_given(f"{first}{more} in floating point: {why}"))
        if settings.weights_only and not settings.lm_head:
            heads = [node for node in _makes_logits(prepared) if node not in float_nodes]
            self._refused = [node.name for node in heads]
            if self._refused:
                name = self._as_given(visible(self._refused[0]))
                self.notes.append(
                    f"{name} makes the logits and stays in floating point (--lm-head quantizes it)"
                )
        self._refused += self._of_other_types()
        if settings.dynamic and settings.per_channel:
            self._refused += (node.name for node in without_channels(prepared))
        self._per_channel = settings.per_channel
        is_static = not (settings.dynamic or settings.weights_only)
        if settings.per_channel and is_static and not _has_axes(self.prepared):
            self._per_channel = False
            self.notes.append(
                "a scale for each tensor, as DequantizeLinear has one for each channel from opset"
                f" {_AXES_SINCE}: dld convert opset --to {_AXES_SINCE}"
            )

    def _raise_opset(self, prepared: Document) -> Document:
        """Return the prepared copy in an opset that has what the settings ask for.

        The library would leave that to onnx's adapters, which convert less.
        """
        settings, before = self._settings, prepared.opset_imports[""]
        types = () if settings.weights_only else (settings.weights, settings.activations)
        needed = max(_TYPES_SINCE.get(name, _SINCE) for name in types) if types else 0
        if before >= needed:
            return prepared
        model = onnx.ModelProto.FromString(skeleton_bytes(prepared))
        needed = convert_opset(model, max(needed, _AXES_SINCE)).to
        self.prepared = Document(
            model, blobs=prepared.blobs.reopened(), external=prepared.external.reopened()
        )
        self._stack.callback(self.prepared.close)
        self.notes.append(f"converted from opset {before} to {needed}, which quantization needs")
        return self.prepared

    def _of_other_types(self) -> list[str]:
        """Return the names of nodes with values of types that the library does not look at."""
        prepared, settings = self.prepared, self._settings
        opset = prepared.opset_imports.get("", 0)
        types: tuple[str, ...]
        if settings.weights_only:
            types, why = ("float64",), "blocks of weights are for float32 and float16"
        elif settings.dynamic:
            types, why = ("float16", "bfloat16"), "DynamicQuantizeLinear takes float32 only"
        elif opset < _HALVES_SINCE:
            types = ("float16", "bfloat16")
            why = f"QuantizeLinear takes that from opset {_HALVES_SINCE} on (dld convert opset)"
        else:
            return []
        tensors = [tensor for scope in prepared.scopes() for tensor in scope.initializers]
        if all(tensor.dtype not in types for tensor in tensors):
            return []
        infer(prepared, self._document.path)
        blocking = {
            node.name: known.dtype
            for scope in prepared.main.walk()
            for node in scope.nodes
            for name in (*node.inputs, *node.outputs)
            if (known := scope.value_type(name)) is not None and known.dtype in types
        }
        if blocking:
            nodes, dtypes = (
                fmt.plural(len(blocking), "node"),
                " and ".join(sorted({*filter(None, blocking.values())})),
            )
            self.notes.append(f"{nodes} with {dtypes} values stay as they are: {why}")
        return [*blocking]

    def _resolved(self, names: Sequence[str]) -> Iterator[str]:
        """Yield the names of nodes in the prepared copy.

        Raises:
            UsageError: The node does not exist.
        """
        known = dict.fromkeys(self._names.values())
        for name in names:
            if name in known:
                yield name
            elif ((), name) in self._names:
                yield self._names[(), name]
            elif "*" in name and (
                fitting := [candidate for candidate in known if fnmatchcase(candidate, name)]
            ):
                yield from fitting
            elif any(scope.nodes_named(name) for scope in self._document.functions):
                pattern = re.compile(f"{re.escape(name)}(_[0-9]+)?")  # as inlining names them
                yield from (candidate for candidate in known if pattern.fullmatch(candidate))
            elif makers := nodes_called(list(self.prepared.main.walk()), name):
                yield from (node.name for node in makers)
            else:
                raise UsageError(f"no node is named {name!r}", hint="See dld inspect --nodes")

    def check_calibration(self) -> Iterator[Event]:
        """Read every set once, so that what does not fit is named before anything is done.

        Raises:
            InputError: An input cannot be read, or does not fit; names the file.
        """
        settings = self._settings
        if settings.calibration is None or settings.dynamic or settings.weights_only:
            return
        for self.sets, path in enumerate(set_folders(settings.calibration), start=1):
            (input_set,) = load_input_sets(path, self._specs)
            self._shapes.add(
                tuple(shape for spec in self._specs for shape in _shapes(input_set, spec))
            )
            yield Progress(self.sets, None, "sets", "Reading the calibration inputs")

    def quantize(
        self,
        method: str,
        ops: Sequence[str],
        kept: Collection[Node] = (),
        changed: Mapping[str, Any] | None = None,
    ) -> Generator[Event, None, QuantizedCopy]:
        """Quantize.

        Args:
            method: The calibration method.
            ops: Operators to quantize; empty for all supported ones.
            kept: Further nodes to leave unquantized: of a copy of the original with inlined
                functions, or of :attr:`prepared`.
            changed: Settings to override: ``weights``, ``activations``, ``reduce_range``.

        Returns:
            The result; it is closed together with this object.

        Raises:
            ActivityError: The library failed.
        """
        names = [self._names.get(_place(node), node.name) for node in kept]
        options = replace(self._options(method, ops, names), **(changed or {}))
        quantized = yield from self._by_library(options, "Quantizing", self.sets)
        while quantized.infinite:
            self._leave_out(quantized.infinite)
            options = replace(self._options(method, ops, names), **(changed or {}))
            quantized = yield from self._by_library(options, "Quantizing", self.sets)
        if self._settings.dynamic or self._settings.weights_only:
            return quantized
        kept_names = {*self._excluded, *names}
        return replace(
            quantized,
            bodies=quantize_body_weights(
                quantized.document, _weight_type(options), ops, kept_names
            ),
        )

    def _leave_out(self, values: Sequence[str]) -> None:
        """Exclude the nodes around tensors that no scale can represent.

        Raises:
            ActivityError: All of them are excluded already.
        """
        main = self.prepared.main
        nodes = {
            node.name
            for name in values
            for node in (*filter(None, [main.producer(name)]), *(u.node for u in main.users(name)))
        }
        shown = clip(visible(values[0]), 80, keep="middle")
        if nodes <= {*self._refused}:
            raise ActivityError(
                f"{shown!r} becomes infinite or NaN with these inputs", hint=_WAY_OUT
            )
        self._refused += nodes
        self.notes.append(
            f"{fmt.plural(len(nodes), 'node')} that make or take infinite values stay as they are:"
            f" {fmt.listed([shown, *values[1:]], 1)}"
        )

    def plan(self, ops: Sequence[str]) -> Generator[Event, None, QuantizationPlan]:
        """Return the plan of a static quantization of the main graph; nothing is calibrated.

        Raises:
            ActivityError: The library failed.
        """
        options = replace(self._options("minmax", ops, ()), points_only=True)
        quantized = yield from self._by_library(options, "Finding what would be quantized", 0)
        assert quantized.plan is not None
        return quantized.plan

    def points(self, ops: Sequence[str]) -> Generator[Event, None, list[QdqInsertion]]:
        """Return the tensors that a static quantization would quantize, as :meth:`plan` does."""
        plan = yield from self.plan(ops)
        weight_type = _weight_type(self._options("minmax", ops, ()))
        bodies, _ = body_weights(self.prepared, weight_type, ops, self._excluded)
        return [*plan.points(), *bodies.points]

    def unquantized(self, quantized: QuantizedCopy, ops: Sequence[str]) -> list[str]:
        """Return lines on nodes with weights that stay in floating point, with the reasons."""
        if self._settings.weights_only:
            return []
        if self._settings.dynamic:
            flat = [*without_channels(quantized.document)] if self._settings.per_channel else []
            reasons = [*dynamic_reasons(quantized.document, ops, self._excluded, flat)]
        else:
            reasons = [
                *static_reasons(self.prepared, ops, self._excluded),
                *quantized.bodies.reasons,
            ]
        return [*map(self._as_given, reason_lines(reasons))]

    def _as_given(self, text: str) -> str:
        """Return a text in which nodes without a name are called as everywhere, not as here."""
        for (_, ref), name in self._names.items():
            if name.startswith(UNNAMED) and name in text:
                given = visible(ref).replace("\\", "\\\\")
                text = re.sub(rf"\b{re.escape(name)}\b", given, text)
        return text

    @property
    def folder(self) -> Path | None:
        """Where the model is, so that its weights can be referred to."""
        return self._document.path.parent if self._document.path is not None else None

    def _ranges(self, method: str, ops: Sequence[str]) -> str:
        """Return the file of the ranges that every quantization by this method starts from.

        They depend on no other setting: whichever nodes stay in floating point, and whatever the
        types are, the same model is calibrated.
        """
        key = f"{method} {' '.join(ops)}"
        name = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return str(self._calibrated / f"{name}.json")

    def _by_library(
        self, options: quantization.Options, stage: str, sets: int
    ) -> Generator[Event, None, QuantizedCopy]:
        stack = self._stack.enter_context(contextlib.ExitStack())
        try:
            result = yield from by_library(
                self.prepared, quantization.__name__, options, stage, stack, sets
            )
        except ActivityError as error:
            text = self._as_given(error.message)
            raise ActivityError(text, hint=_WAY_OUT, details=error.details) from error
        assert result.path is not None
        _make_valid(result)
        for at, record in self._passed:
            Splice(result.main, "output", at, [], [record]).do()
        file = quantization.plan_file(result.path)
        if not file.exists():
            return QuantizedCopy(result, None, close=stack.close)
        try:
            report = json.loads(file.read_text(encoding="utf-8"))
        finally:
            file.unlink()
        return QuantizedCopy(
            result, QuantizationPlan.from_json(report), infinite=report.get("infinite", []),
            close=stack.close,
        )  # fmt: skip

    def _options(
        self, method: str, ops: Sequence[str], kept: Sequence[str]
    ) -> quantization.Options:
        settings = self._settings
        folder = settings.calibration
        return quantization.Options(
            dynamic=settings.dynamic, weights_only=settings.weights_only,
            points_only=False, runtime=settings.runtime, weights=settings.weights,
            block=settings.block, format=settings.stored_as,
            rounding=settings.rounding, activations=settings.activations,
            per_channel=self._per_channel, reduce_range=settings.reduce_range,
            keep_activations=_has_captured_activation(self.prepared),
            inputs=[*self._specs], is_uniform=len(self._shapes) == 1,
            calibration="" if folder is None else str(folder.absolute()),
            method=method, ranges=self._ranges(method, ops), ops=[*ops],
            exclude=[*self._excluded, *self._refused, *kept],
        )  # fmt: skip


def _weight_type(options: quantization.Options) -> WeightType:
    return WeightType(options.weights, options.per_channel, options.reduce_range)


def _declare_types(prepared: Document, path: Path | None) -> None:
    """Declare the output types of operators that onnx does not know.

    The library infers the type of each weight's product with onnx, which stops at such operators.
    """
    versions = prepared.opset_imports
    untyped = [
        (scope, name)
        for scope in prepared.main.walk()
        for node in scope.nodes
        if not has_inference(node.domain, node.op_type, versions.get(node.domain))
        for name in node.outputs
        if name and name not in scope.named("value_info") and name not in scope.named("output")
    ]
    if not untyped:
        return
    infer(prepared, path, contrib_types)
    for scope, name in untyped:
        value_type = scope.inferred.get(name)
        proto = type_proto_of(value_type) if value_type is not None else None
        if proto is not None:
            info = onnx.ValueInfoProto(type=proto)
            set_text(info, "name", name)
            Splice(scope, "value_info", len(scope.records["value_info"]), [], [info]).do()


def _make_valid(result: Document) -> None:
    """Fix what ONNX Runtime accepts and the format does not.

    The library puts nodes after those that use their outputs in subgraphs, and adds initializers
    that are no inputs, as required before version 4 of the format.
    """
    ensure_ir(Transaction("quantize", {}), result, INITIALIZERS_WITHOUT_INPUTS)
    order = topological_order(result.main)
    if order is not None and order != [*result.main.nodes]:
        Splice(result.main, "node", 0, [*result.main.nodes], order).do()


def excluded_names(settings: QuantizationSettings) -> list[str]:
    """Return the names of the excluded nodes, including those of the file.

    Raises:
        InputError: The file cannot be read.
        UsageError: An agent may not read it.
    """
    if settings.exclude_from is None:
        return [*settings.exclude]
    require_allowed(settings.exclude_from)
    try:
        text = settings.exclude_from.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise open_error(settings.exclude_from, error) from error
    return [*settings.exclude, *(line for line in text.splitlines() if line.strip())]


def _refused_by_library(prepared: Document) -> list[str]:
    """Return the names of nodes that the library cannot quantize, and fails at.

    They have weights that are no initializers, or they only share the name with an operator that
    it knows: it does not look at domains, and takes ai.onnx's Attention for com.microsoft's.
    """
    main = prepared.main
    stored = main.named("initializer")
    return [
        node.name
        for node in main.nodes
        if (node.op_type in _STORED_ONLY and len(node.inputs) > 1 and node.inputs[1] not in stored)
        or node.domain not in ("", registry.CONTRIB_DOMAIN)
        or (node.op_type == "Attention" and node.domain == "")
    ]


def _stay_in_float(prepared: Document) -> Iterator[tuple[Node, str]]:
    """Yield products with stored weights that the library does not look at, and why."""
    for scope in prepared.main.walk():
        for node in scope.nodes:
            if node.domain or node.op_type not in ("MatMul", "Gemm") or len(node.inputs) < 2:
                continue
            through, kind = _stored_behind(scope, node.inputs[1])
            if kind is None or kind.dtype not in ("float32", "float16"):
                continue
            if node.op_type == "Gemm":
                yield node, "only MatMul can have blocks (dld rewrite gemm-apart makes one of Gemm)"
            elif through:
                yield node, f"the weight comes through {' and '.join(through)}"
            elif math.prod(kind.shape[:-2]) != 1 or len(kind.shape) < 2:
                yield node, "the weight is not a matrix"


def _stored_behind(scope: Scope, name: str) -> tuple[list[str], Tensor | None]:
    """Return the path from an initializer to a value, and the initializer, or None."""
    through: list[str] = []
    while True:
        definition = scope.resolve(name)
        if definition is None:
            return through, None
        scope, node = definition.scope, definition.node
        if node is None:
            return through, scope.initializer(name)
        if node.op_type not in _BETWEEN or not node.inputs:
            return through, None
        through.insert(0, node.op_type)
        name = node.inputs[0]


def _makes_logits(prepared: Document) -> list[Node]:
    """Return the product that computes the logits of a language model, if there is one.

    It is more sensitive than others.
    """
    main = prepared.main
    nodes = []
    for node in main.nodes_of_type("MatMul"):
        name = node.outputs[0]
        while name not in main.outputs:
            users = [use.node for use in main.users(name)]
            if len(users) != 1 or users[0].op_type not in _BEHIND_LOGITS:
                break
            name = users[0].outputs[0]
        named = any("lm_head" in text for text in (node.name, *node.inputs[1:]))
        if named or (name in main.outputs and name == "logits"):
            nodes.append(node)
    return nodes


def _place(node: Node) -> _Place:
    return tuple(node.scope.path), node.ref


def _named(prepared: Document) -> dict[_Place, str]:
    """Give each node a unique name, as ONNX Runtime excludes nodes by name only."""
    transaction, names, seen = Transaction("name_nodes", {}), dict[_Place, str](), set[str]()
    for scope in prepared.main.walk():
        for node, place in [(node, _place(node)) for node in scope.nodes]:
            if not node.name or node.name in seen:
                name = free_node_name(scope, f"{UNNAMED}{next(filter(None, node.outputs), '')}")
                transaction.do(SetText(scope, "node", node, node.proto, "name", None, name))
            seen.add(node.name)
            names[place] = node.name
    return names


def _take_passed(prepared: Document) -> list[tuple[int, onnx.ValueInfoProto]]:
    """Take out outputs that are inputs, with which the library cannot sort nodes.

    Returns:
        Their places and records, to be put back in this order.
    """
    main = prepared.main
    records = [*main.records["output"]]
    positions = [
        (at, record) for at, record in enumerate(records) if text_of(record.name) in main.inputs
    ]
    if len(positions) == len(records):
        return []
    kept = [record for record in records if text_of(record.name) not in main.inputs]
    if positions:
        Splice(main, "output", 0, records, kept).do()
    return positions


def _forget_weight_types(prepared: Document) -> None:
    """Remove what is declared of weights: the library turns some, and then finds two shapes."""
    for scope in prepared.main.walk():
        weights = {*scope.named("initializer")}
        records = [*scope.records["value_info"]]
        kept = [record for record in records if text_of(record.name) not in weights]
        if len(kept) < len(records):
            Splice(scope, "value_info", 0, records, kept).do()


def _separate_roles(prepared: Document) -> None:
    """Give nodes that need a weight in different ways copies of it, as for tied embeddings.

    The library stores each weight once: with scales along one axis, and for Gemm transposed in its
    place, whoever else uses it.
    """
    transaction, names = Transaction("separate_roles", {}), FreshNames(prepared)
    main = prepared.main
    for tensor in main.initializers:
        roles = defaultdict[object, "list[tuple[Node, int]]"](list)
        others = tensor.name in main.outputs
        for use in main.users(tensor.name):
            node = use.node
            if node.scope is not main or node.op_type not in WEIGHTED or use.index != 1:
                others = True
            elif node.op_type == "Gemm":
                roles[node].append((node, 1))
            else:
                roles[channel_axis(node, len(tensor.shape))].append((node, 1))
        for uses in [*roles.values()][0 if others else 1 :]:
            _give_copy(transaction, names, tensor, uses)


def _give_copy(
    transaction: Transaction, names: FreshNames, tensor: Tensor, uses: list[tuple[Node, int]]
) -> None:
    """Give nodes a copy of a weight, which shares its memory."""
    main = uses[0][0].scope
    proto, name = onnx.TensorProto(), names.take(f"{tensor.name}_of_{uses[0][0].name}")
    proto.CopyFrom(tensor.proto)
    set_text(proto, "name", name)
    end = len(main.records["initializer"])
    transaction.do(Splice(main, "initializer", end, [], [proto]))
    for node, index in uses:
        inputs = [*node.inputs]
        inputs[index] = name
        transaction.do(SetLinks(main, node, "input", tuple(inputs)))


def _separate_names(prepared: Document) -> None:
    """Keep the library's new names distinct from those of the model, which it does not check.

    The library copies a bias that several nodes add and numbers the copies: they are created here,
    with unused names. A tensor named like the library's scale of another tensor is renamed.
    """
    transaction, names = Transaction("separate_names", {}), FreshNames(prepared)
    main = prepared.main
    for tensor in main.initializers:
        users = [
            use.node
            for use in main.users(tensor.name)
            if use.node.scope is main and use.index == _BIAS_INPUT
        ]
        for node in [*dict.fromkeys(users)][1:] if tensor.name not in main.outputs else ():
            _give_copy(transaction, names, tensor, [(node, _BIAS_INPUT)])
    weights = {tensor.name: tensor.proto for tensor in main.initializers}
    used_names = {*main.links.producers, *main.links.consumers, *weights}
    for name in sorted(used_names.difference(main.outputs, main.inputs)):
        ending = next((candidate for candidate in _ENDINGS if name.endswith(candidate)), "")
        if not ending or name.removesuffix(ending) not in used_names:
            continue
        other, maker = names.take(f"{name}_value"), main.producer(name)
        if maker is not None:
            relink(transaction, maker, "output", name, other)
        elif (old := weights.get(name)) is not None:
            renamed = onnx.TensorProto()
            renamed.CopyFrom(old)
            set_text(renamed, "name", other)
            at = next(
                i for i, candidate in enumerate(main.records["initializer"]) if candidate is old
            )
            transaction.do(Splice(main, "initializer", at, [old], [renamed]))
        relink_users(transaction, main, name, other)


def _import_once(prepared: Document) -> None:
    """Remove repeated imports of operators, which ONNX Runtime cannot quantize with."""
    entries = {
        (entry.domain, entry.version): entry for entry in prepared.model.opset_import
    }.values()
    if len(entries) < len(prepared.model.opset_import):
        kept = [
            onnx.OperatorSetIdProto.FromString(imported.SerializeToString()) for imported in entries
        ]
        del prepared.model.opset_import[:]
        prepared.model.opset_import.extend(kept)


def _has_axes(document: Document) -> bool:
    return document.opset_imports.get("", _AXES_SINCE) >= _AXES_SINCE


def _has_captured_activation(prepared: Document) -> bool:
    """Return whether a body takes what an activation makes that the library would remove.

    It lets the range of the quantized value do the same, which the body does not see.
    """
    main = prepared.main
    return any(
        use.node.scope is not main
        for op_type in ("Relu", "Clip")
        for node in main.nodes_of_type(op_type)
        for name in node.outputs
        for use in main.users(name)
    )


def _require_weights(document: Document) -> None:
    for scope in document.scopes():
        for tensor in scope.initializers:
            if problem := tensor.problem:
                raise InputError(problem, where=f"weight {tensor.name!r}")


def _inputs(document: Document) -> list[InputSpec]:
    """Return the inputs that have to be fed."""
    main, specs = document.main, []
    for name in main.inputs:
        if name in main.named("initializer"):
            continue
        known = main.value_type(name)
        if known is None or known.dtype is None:
            raise InputError(f"the type of input {name!r} is not known")
        specs.append(InputSpec(name, known.dtype, known.dims))
    return specs


def _shapes(input_set: InputSet, spec: InputSpec) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of an input.

    Raises:
        InputError: It contains no finite number.
    """
    value = input_set.values[spec.name]
    for array in value if isinstance(value, list) else (value,):
        if not array.size:
            raise InputError(f"input {spec.text} has no elements", where=str(input_set.folder))
        if array.dtype.kind not in "biuSUO" and not np.isfinite(array).all():
            raise InputError(
                f"input {spec.text} holds values that are infinite or not a number",
                where=str(input_set.folder),
            )
        yield array.shape
