"""Trials of a search for the nodes that must stay in floating point when others are quantized.

ONNX Runtime's quantizer runs once: it finds the ranges, and tells which tensors each node asks for
(:mod:`dld_tui.core.conversion.quantization_plan`). All trials then share one session, in which each
tensor is quantized and dequantized by choice.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dld_tui.backends.accuracy.precision_trials import PrecisionTrials, Trial
from dld_tui.backends.conversion.quantizer import Made, Quantizer
from dld_tui.backends.onnxruntime.session import SessionSettings
from dld_tui.backends.onnxruntime.tensors import TensorRunner
from dld_tui.core.accuracy.tolerance import Tolerances
from dld_tui.core.conversion.agreement import Agreement
from dld_tui.core.conversion.quantization_plan import QuantizationPlan
from dld_tui.core.conversion.quantization_switches import quantization_switches
from dld_tui.core.document.casting import Switched
from dld_tui.core.document.node import Node
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Event


class QuantizationTrials(PrecisionTrials):
    """Runs trials of a quantization against the model's own results. Close it before `quantizer`.

    Args:
        quantizer: Of the model.
        plan: What a quantization of all of it asks for, with scales.
        method: How ranges are found.
        ops: The operators that are quantized.
        feeds: Sets of inputs.
        tolerances: What outputs may be off.
        settings: How to run.
        agreement: What is near enough besides, where nobody gave a tolerance.

    Raises:
        ActivityError: The model itself cannot be run.
    """

    def __init__(
        self,
        quantizer: Quantizer,
        plan: QuantizationPlan,
        method: str,
        ops: Sequence[str],
        feeds: Sequence[Mapping[str, Any]],
        tolerances: Tolerances,
        settings: SessionSettings,
        agreement: Agreement | None,
    ) -> None:
        self._quantizer, self._plan = quantizer, plan
        self._method, self._ops = method, ops
        super().__init__(
            quantizer.prepared, "int8", feeds, tolerances, settings, agreement, quantizer.folder
        )

    def switches(self) -> Switched:
        """Return a copy in which inputs turn the quantization of tensors on and off."""
        return quantization_switches(self.document, self._plan)

    def candidates(self) -> list[Node]:
        """Return the nodes that ask for a tensor to be quantized, in the order of the model."""
        asking = {rule.node for rule in self._plan.rules if rule.otherwise or rule.when_quantized}
        return [node for node in self.document.main.nodes if node.name in asking]

    def ranked(self) -> list[Node]:
        """Return the same."""
        return self.candidates()

    def convert(self, kept: Collection[Node]) -> Trial:
        """Quantize the model for this very choice, and run that."""
        begin = time.perf_counter()
        made = _ended(self._quantizer.quantize(self._method, self._ops, kept))
        with (
            contextlib.closing(made.document),
            TensorRunner(made.document, self._settings, folder=self._folder) as runner,
        ):
            found = self._judged(runner.each(self._outputs, self.feeds))
        lowered_nodes = len(self.candidates()) - len(kept)
        return replace(found, lowered_nodes=lowered_nodes, seconds=time.perf_counter() - begin)


def _ended(steps: Generator[Event, None, Made]) -> Made:
    """Return what a step comes to; its progress is not told."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found: Made = stop.value
            return found


def plan_of(made: Made) -> QuantizationPlan:
    """Return the plan of a static quantization.

    Raises:
        ActivityError: The library told nothing.
    """
    if made.plan is None:
        raise ActivityError("ONNX Runtime's quantizer does not say what it quantizes")
    return made.plan
