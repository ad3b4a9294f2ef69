"""How close the results of a conversion must be to the original's, by kind of conversion."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

from dld_tui.core.accuracy.result import Row
from dld_tui.core.accuracy.statistics import TensorError, Tolerance

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
class Agreement:
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
    share: float = 0.0
    """How far any element may be off, as a share of the largest one: the order of sums changes."""
    is_rewrite: bool = False
    """Whether only the graph differs: outputs keep their types, and a batch of two is run as well,
    since a folded value may have been computed from a size."""
    is_fused: bool = False
    """Whether the result is also checked as ONNX Runtime's optimizer fuses it, to 8-bit kernels."""
    draws: int = 1
    """How many sets of random inputs are compared: noise that depends on them may hide in one."""

    def judged(self, row: Row) -> Row:
        """Return a row whose problem takes the noise of the whole tensor into account."""
        problem = self.problem(row.error, row.problem, is_output=row.is_output)
        return row if problem == row.problem else replace(row, problem=problem)

    def problem(self, error: TensorError, element_problem: str, *, is_output: bool = True) -> str:
        """Return what is wrong with a tensor; empty when nothing is.

        Args:
            error: Of the tensor.
            element_problem: What is wrong with single elements.
            is_output: Whether it is an output of the model.
        """
        if element_problem:
            return "" if self.is_harmless(error) else element_problem
        is_lost = is_output and error.snr_db is not None and error.snr_db < _LEAST_DB
        if self.noise_counts and is_lost and (error.largest or 0.0) > _NOTHING:
            return f"noise is nearly as large as the values, which reach only {error.largest:.3g}"
        return ""

    def is_harmless(self, error: TensorError) -> bool:
        """Return whether the noise of the whole tensor is small, whatever single elements do."""
        quiet = error.snr_db is not None and error.snr_db >= self.quiet_db
        if self.share and error.max_abs is not None:
            quiet |= error.max_abs <= self.share * (error.largest or 0.0) + _NOTHING
        return quiet and not (error.special or error.mismatch or error.lost)


EXACT = Agreement(Tolerance(0.0, 0.0), math.inf, is_rewrite=True)
"""The same weights in the same graph: every bit of the outputs is that of the original."""
SAME = Agreement(Tolerance(1e-5, 1e-4), 70.0, noise_counts=True, share=1e-4, is_rewrite=True)
"""The same arithmetic in another order or by other operators."""
SAME_HALVES = Agreement(Tolerance(1e-4, 5e-3), 50.0, noise_counts=True, share=5e-3, is_rewrite=True)
"""The same of a model that computes in 16 bits."""
FLOAT16 = Agreement(Tolerance(1e-3, 1e-2), 30.0, FP16, noise_counts=True)
"""Noise of 3 % of the values."""
BFLOAT16 = Agreement(Tolerance(1e-2, 5e-2), 20.0, BF16, has_kernels=False, noise_counts=True)
"""Noise of 10 %: three digits fewer than float16."""
QUANTIZED = Agreement(Tolerance(1e-2, 5e-2), 10.0, noise_counts=True, draws=3)
"""Noise of 32 % of the values, a cosine of about 0.95: what a classifier's ranking survives."""
_COARSE = ("float8", "float4", "int8", "uint8", "int4", "uint4", "int2", "uint2")


def agreement_for(dtypes: Collection[str]) -> Agreement:
    """Return the agreement to require where some tensors were converted to these element types.

    Weights that are only stored in a type and cast back are computed with as before: ONNX Runtime
    runs such models directly.
    """
    if any(dtype.startswith(_COARSE) for dtype in dtypes):
        return QUANTIZED
    if "bfloat16" in dtypes:
        return BFLOAT16
    return FLOAT16 if "float16" in dtypes else SAME
