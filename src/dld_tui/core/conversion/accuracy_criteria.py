"""How close the outputs of a converted model must be to the original's, by kind of conversion."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from dld_tui.core.accuracy.result import AccuracyRow
from dld_tui.core.accuracy.tensor_errors import TensorError, Tolerance, Tolerances
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.operators.categories import REARRANGING
from dld_tui.core.types import FLOATS

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node

OPTIMIZED = "as ONNX Runtime optimizes it for this processor"
_LEAST_DB = 3.0
"""Signal to noise ratio below which an output is useless: noise of 70 %."""
_NOTHING = 1e-6
"""Values up to it may be rounding errors of float32 themselves."""


@dataclass(frozen=True)
class NarrowType:
    """A floating point type of 16 bits."""

    precision: str
    """As layers name it."""
    dtype: str
    """As ONNX names it."""
    largest: float
    smallest: float
    """The smallest number above 0."""


FP16 = NarrowType("fp16", "float16", 65504.0, 2.0**-24)
BF16 = NarrowType("bf16", "bfloat16", (2 - 2**-7) * 2.0**127, 2.0**-133)


@dataclass(frozen=True)
class AccuracyCriteria:
    """What counts as close enough when no tolerance is given."""

    tolerance: Tolerance
    """For each element."""
    quiet_db: float
    """Signal to noise ratio from which single elements may be off by more, in dB."""
    narrow: NarrowType | None = None
    """The type to which every node rounds, where ONNX Runtime would not show it on a CPU."""
    has_kernels: bool = True
    """Whether ONNX Runtime can run the result on a CPU as it is."""
    noise_counts: bool = False
    """Whether an output is wrong that is nearly all noise, though its values are so small that the
    tolerance of each element allows anything: scores of a detector that sees nothing."""
    least_db: float = _LEAST_DB
    """Signal to noise ratio below which an output is wrong with `noise_counts`, though every
    element is within the tolerance."""
    share: float = 0.0
    """How far any element may be off, as a share of the largest one: the order of sums changes."""
    is_rewrite: bool = False
    """Whether only the graph differs: outputs keep their types, and a batch of two is run as well,
    since a folded value may have been computed from a size."""
    is_fused: bool = False
    """Whether the result is also checked as ONNX Runtime's optimizer fuses it, to 8-bit kernels."""
    is_for_runtime: bool = True
    """Whether ONNX Runtime will run the result, which then has to load with default options."""
    steps: float = 0.0
    """The largest mean difference of integers that are rounded floats, in steps: with random
    errors of the floats a part of them is one step apart, with another way of rounding half."""
    rounded: frozenset[str] = frozenset()
    """The tensors that hold rounded floats as integers (:func:`rounded_integers`)."""
    draws: int = 1
    """How many sets of random inputs are compared: noise that depends on them may hide in one."""

    def of_model(self, document: Document) -> AccuracyCriteria:
        """Return the criteria that knows which tensors of a model are rounded floats."""
        return replace(self, rounded=rounded_integers(document)) if self.steps else self

    @property
    def tolerances(self) -> Tolerances:
        """The tolerances of all tensors: rounded integers may be one step further off."""
        return Tolerances(self.tolerance, rounded=self.rounded)

    def judged(self, row: AccuracyRow) -> AccuracyRow:
        """Return a row whose problem takes the noise of the whole tensor into account."""
        problem = self.problem(row.error, row.problem, is_output=row.is_output, name=row.name)
        return row if problem == row.problem else replace(row, problem=problem)

    def problem(
        self, error: TensorError, element_problem: str, *, is_output: bool = True, name: str = ""
    ) -> str:
        """Return what is wrong with a tensor; empty when nothing is.

        Args:
            error: Of the tensor.
            element_problem: What is wrong with single elements.
            is_output: Whether it is an output of the model.
            name: Of the tensor.
        """
        if not element_problem and name in self.rounded:
            steps = error.mean_abs or 0.0
            if steps > self.steps and steps * error.count > 1:
                element_problem = f"its integers are {steps:.2g} steps off on average"
        if element_problem:
            return "" if self.is_harmless(error) else element_problem
        if name in self.rounded:
            return ""  # few steps have much noise
        is_lost = is_output and error.snr_db is not None and error.snr_db < self.least_db
        if not (self.noise_counts and is_lost and (error.largest or 0.0) > _NOTHING):
            return ""
        if (error.snr_db or 0.0) >= _LEAST_DB:
            limit = f"less than {self.least_db:g} dB"
            return f"the signal to noise ratio is {error.snr_db:.1f} dB, {limit}"
        return f"noise is nearly as large as the values, which reach only {error.largest:.3g}"

    def is_harmless(self, error: TensorError) -> bool:
        """Return whether the noise of the whole tensor is small, whatever single elements do."""
        quiet = error.snr_db is not None and error.snr_db >= self.quiet_db
        if self.share and error.max_abs is not None:
            quiet |= error.max_abs <= self.share * (error.largest or 0.0) + _NOTHING
        return quiet and not (error.special or error.mismatch or error.lost)


EXACT = AccuracyCriteria(Tolerance(0.0, 0.0), math.inf, is_rewrite=True)
"""The same weights in the same graph: every bit of the outputs is that of the original."""
SAME = AccuracyCriteria(
    Tolerance(1e-5, 1e-4), 70.0, noise_counts=True, share=1e-4, is_rewrite=True, steps=0.01
)
"""The same arithmetic in another order or by other operators."""
SAME_HALVES = AccuracyCriteria(
    Tolerance(1e-4, 5e-3), 50.0, noise_counts=True, share=5e-3, is_rewrite=True, steps=0.25
)
"""The same of a model that computes in 16 bits."""
FLOAT16 = AccuracyCriteria(Tolerance(1e-3, 1e-2), 30.0, FP16, noise_counts=True, steps=0.25)
"""Noise of 3 % of the values."""
BFLOAT16 = AccuracyCriteria(
    Tolerance(1e-2, 5e-2), 20.0, BF16, has_kernels=False, noise_counts=True, steps=0.25
)
"""Noise of 10 %: three digits fewer than float16."""
QUANTIZED = AccuracyCriteria(Tolerance(1e-2, 5e-2), 10.0, noise_counts=True, draws=3, steps=0.25)
"""Noise of 32 % of the values, a cosine of about 0.95: what a classifier's ranking survives."""
_COARSE = ("float8", "float4", "int8", "uint8", "int4", "uint4", "int2", "uint2")


def criteria_for(dtypes: Collection[str]) -> AccuracyCriteria:
    """Return the criteria to require where some tensors were converted to these element types.

    Weights that are only stored in a type and cast back are computed with as before: ONNX Runtime
    runs such models directly.
    """
    if any(dtype.startswith(_COARSE) for dtype in dtypes):
        return QUANTIZED
    if "bfloat16" in dtypes:
        return BFLOAT16
    return FLOAT16 if "float16" in dtypes else SAME


_ROUNDING = {
    "QuantizeLinear": (0,), "DynamicQuantizeLinear": (0, 2), "QLinearConv": (0,),
    "QLinearMatMul": (0,), "QGemm": (0,), "QLinearAdd": (0,), "QLinearMul": (0,),
    "QLinearSigmoid": (0,), "QLinearLeakyRelu": (0,), "QLinearSoftmax": (0,),
    "QLinearAveragePool": (0,), "QLinearGlobalAveragePool": (0,), "QLinearReduceMean": (0,),
    "QLinearWhere": (0,), "QLinearConcat": (0,),
}  # fmt: skip
"""The outputs of operators that are floats, rounded to integers."""
_MOVING = frozenset({
    *REARRANGING, "Concat", "DepthToSpace", "Expand", "Gather", "GatherElements", "GatherND",
    "MaxPool", "Pad", "ScatterElements", "ScatterND", "Slice", "SpaceToDepth", "Split",
    "TensorScatter", "Tile",
})  # fmt: skip


def rounded_integers(document: Document) -> frozenset[str]:
    """Return the tensors of the main graph whose integers are rounded floats.

    Operators that quantize make them, conversions of floats to integers, and attention with a
    quantized cache; what only moves elements keeps them. Indices and counts are not among them.
    """
    main = document.main
    names = set[str]()
    for node in main.nodes:
        if node.op_type in _ROUNDING:
            places: Collection[int] = _ROUNDING[node.op_type]
        elif quantizes_cache(node):
            places = (1, 2)
        elif node.op_type == "Cast":
            before = main.value_type(node.inputs[0])
            after = main.value_type(node.outputs[0])
            is_cut = before is not None and before.dtype in FLOATS
            is_kept = node.inputs[0] in names
            is_integer = after is not None and "int" in (after.dtype or "")
            places = (0,) if is_integer and (is_cut or is_kept) else ()
        elif node.op_type in _MOVING and not names.isdisjoint(node.inputs):
            places = range(len(node.outputs))
        else:
            continue
        names.update(node.outputs[at] for at in places if at < len(node.outputs))
    return frozenset(names - {""})


def quantizes_cache(node: Node) -> bool:
    """Return whether an attention rounds the keys and values in its cache to integers."""
    kind = node.attribute("k_quant_type")
    is_float = kind is None or kind.value in ("NONE", b"NONE")
    return node.op_type == "GroupQueryAttention" and not is_float


def packed_caches(document: Document) -> frozenset[str]:
    """Return the outputs of attentions that hold two integers of 4 bits in each byte."""
    nodes = document.main.nodes_of_type("GroupQueryAttention")
    packed = (
        node for node in nodes
        if quantizes_cache(node) and node.integer("kv_cache_bit_width", 0) == 4
    )  # fmt: skip
    return frozenset(name for node in packed for name in node.outputs[1:3] if name)
