"""Quantization by ONNX Runtime: static with QuantizeLinear and DequantizeLinear, or dynamic."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import field, replace
from functools import partial
from math import inf, log10
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from dld_tui.core.conversion.accuracy_criteria import OPTIMIZED
from dld_tui.core.conversion.quantization_plan import point_lines
from dld_tui.core.conversion.request import (
    PreviewedRequest,
    QuantizationSettings,
    Repair,
)
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Event, Finished, Log, Progress
from dld_tui.core.notes import texts
from dld_tui.core.text import comma_separated
from dld_tui.core.trials import RepairOutcome

if TYPE_CHECKING:
    from dld_tui.backends.conversion.quantizer import QuantizedCopy, Quantizer
    from dld_tui.backends.conversion.verification import VerificationOutcome, Verifier
    from dld_tui.core.conversion.error_attribution import FailingNode
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.trials import Limits, Subset

_MATRICES = ("MatMul", "Gemm", "Gather", "Attention", "LSTM", "EmbedLayerNormalization")
"""Operators that dynamic quantization takes by default where there are convolutions, which ONNX
Runtime computes more slowly in integers on every processor (docs/guides/tune.md)."""
_ROUNDS = 12
_TRIALS, _TRIAL_SECONDS = 16, 120.0
"""The number of trials for the fewest nodes; more are made until this time has passed."""
_GROWTH = 1.5
"""The factor by which the set of kept nodes grows if the nodes of a trial were not enough."""
_NEEDED = "outputs are not close enough where it is quantized"
_HINT = "Leave the nodes around it as they are: --exclude NAME"
_SATURATION_HINT = (
    "Leave out nodes (--exclude NAME, --ops OP), run it with session.x64quantprecision=1, or on a"
    " processor with VNNI"
)
_NOISE_FACTOR = 2.0
"""Six decibels: an effective bit."""
_NOISE_FLOOR = 1e-3
"""60 dB, better than 8 bits are: other roundings, and no sums that are cut off."""
_EXACT_SUMS: dict[str, dict[str, Any]] = {
    "7 bits for weights (--reduce-range)": {"reduce_range": True},
    "no signs (--weights uint8 --activations uint8)": {"weights": "uint8", "activations": "uint8"},
}
"""What keeps sums of products of 8 bits from being cut off, as processors without VNNI do; the
faster one first."""


@dataclass(frozen=True)
class Request(Repair, QuantizationSettings, PreviewedRequest):
    """The method and the operators of the quantization."""

    def require(self) -> None:
        """Refuse settings that do not go together.

        Raises:
            UsageError: Says which.
        """
        super().require()
        if self.output is None and not self.list_only:
            raise UsageError("an output is needed: -o OUT, or --list")
        if self.weights_only and self.dynamic:
            raise UsageError("--weights-only computes in floating point: leave out --dynamic")
        if self.weights_only and self.weights not in ("int4", "uint4", "int8", "uint8"):
            raise UsageError(
                f"--weights-only stores int4, uint4, int8 or uint8, not {self.weights}"
            )
        self._require_for_weights()
        if self.list_only and (self.dynamic or self.weights_only):
            raise UsageError(
                "--list is of static quantization: leave out --dynamic and --weights-only"
            )
        is_static = not (self.dynamic or self.weights_only or self.list_only)
        if is_static and self.calibration is None:
            raise UsageError(
                "static quantization needs --calibration DIR",
                hint="Or add --dynamic or --weights-only",
            )
        if self.runtime == "tensorrt":
            self._require_for_tensorrt()
        if "fp8" in (self.weights, self.activations) and self.method != "auto":
            raise UsageError("fp8 has one method to find ranges: leave out --method")

    def _require_for_weights(self) -> None:
        asked = {
            "--format": self.format != "auto",
            "--rounding": self.rounding != "nearest",
            "--lm-head": self.lm_head,
        }
        if not self.weights_only and any(asked.values()):
            option = next(name for name, is_asked in asked.items() if is_asked)
            raise UsageError(f"{option} is for --weights-only")
        if self.rounding == "k-quant" and (self.weights, self.stored_as) != (
            "uint4",
            "matmulnbits",
        ):
            raise UsageError("k-quant needs uint4 weights")

    def _require_for_tensorrt(self) -> None:
        if self.dynamic:
            raise UsageError("TensorRT has no dynamic quantization", hint="Give --calibration DIR")
        types = (self.weights, self.activations)
        if not self.weights_only and types not in (("int8", "int8"), ("fp8", "fp8")):
            raise UsageError(f"TensorRT takes int8 or fp8 for both, not {' and '.join(types)}")
        if self.weights_only and self.stored_as != "dequantize":
            raise UsageError("TensorRT has no MatMulNBits: leave out --format")
        if self.weights_only and self.weights not in ("int4", "int8"):
            raise UsageError(f"TensorRT takes symmetric weights, not {self.weights}")


def run(request: Request) -> Iterator[Event]:
    """Quantize.

    Raises:
        UsageError: There is no calibration data, or an excluded node does not exist.
        InputError: The model or an input cannot be read, or does not match; names the file.
        UnavailableError: ONNX Runtime is not installed.
        ActivityError: It failed, or ONNX Runtime cannot use the result.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.quantizer import Quantizer
    from dld_tui.core.conversion.copies import open_model

    request.require()
    yield Progress(0, None, stage="Opening the model")
    with (
        contextlib.closing(open_model(request.model)) as document,
        Quantizer(document, request) as quantizer,
    ):
        if request.list_only:
            yield from _listed(request, quantizer)
        elif request.output is not None:
            yield from _quantized(request, document, quantizer, request.output)


@dataclass
class _Variant:
    """One way to quantize: what differs from the others that are tried."""

    method: str
    ops: tuple[str, ...]
    kept: dict[Node, str] = field(default_factory=dict)
    """Nodes that a repair leaves unquantized, with the reasons."""
    exact: str = ""
    """How it is kept from sums that are cut off, one of :data:`_EXACT_SUMS`."""


@dataclass
class _Quantized:
    """What one way has made."""

    variant: _Variant
    made: QuantizedCopy
    checked: VerificationOutcome

    @property
    def noise(self) -> float:
        """The relative error of the worst output; 0 where values were not compared."""
        return 0.0 if self.checked.verdict is None else self.checked.verdict.noise

    @property
    def written_noise(self) -> float | None:
        """The noise of the model as written, if ONNX Runtime's optimizer adds much to it."""
        written = self.checked.verdict and self.checked.verdict.as_written
        if not written:
            return None
        if not self.checked.is_wrong and self.noise <= max(
            _NOISE_FACTOR * written.noise, _NOISE_FLOOR
        ):
            return None
        return written.noise


_Attempt: TypeAlias = "Callable[[_Variant], Generator[Event, None, _Quantized]]"
_Attribution: TypeAlias = "Callable[[_Quantized], Generator[Event, None, _Quantized]]"


def _listed(request: Request, quantizer: Quantizer) -> Iterator[Event]:
    from dld_tui.core.conversion.result import QuantizationPoints

    points = yield from quantizer.points(comma_separated(*request.ops))
    yield Finished(QuantizationPoints([*points], [*quantizer.notes], [*point_lines(points)]))


def _quantized(
    request: Request, document: Document, quantizer: Quantizer, output: Path
) -> Iterator[Event]:
    from dld_tui.backends.conversion.soundness import write_sound
    from dld_tui.backends.conversion.verification import Verifier
    from dld_tui.core.conversion.accuracy_criteria import QUANTIZED
    from dld_tui.core.conversion.result import QuantizedModel

    yield from quantizer.check_calibration()
    notes = quantizer.notes
    calibration = None if request.inputs else request.calibration
    # ONNX Runtime's own kernels of 8 bits count where they are what will run it.
    is_for_runtime = request.runtime == "onnxruntime"
    is_fused = is_for_runtime and "fp8" not in (request.weights, request.activations)
    criteria = replace(QUANTIZED, is_fused=is_fused, is_for_runtime=is_for_runtime)
    verification = Verifier(
        request, document, output, criteria, hint=_HINT, calibration=calibration
    )
    with verification as verifier:

        def attempt(variant: _Variant) -> Generator[Event, None, _Quantized]:
            model = yield from quantizer.quantize(
                variant.method, variant.ops, variant.kept, _EXACT_SUMS.get(variant.exact)
            )
            checked = yield from verifier.check(model.document, attributes_errors=False)
            return _Quantized(variant, model, checked)

        def attributed(candidate: _Quantized) -> Generator[Event, None, _Quantized]:
            if not candidate.checked.is_wrong:
                return candidate
            return replace(candidate, checked=(yield from verifier.check(candidate.made.document)))

        best = yield from _best(request, document, attempt, notes)
        if request.repair and best.checked.is_wrong and best.written_noise is None:
            repair = _Repair(request, document, verifier, quantizer, attempt)
            with contextlib.closing(repair):
                fewest = yield from repair.with_fewest(best)
                fewest = yield from _with_exact_sums(request, fewest, attempt, notes)
                best = fewest if not fewest.checked.is_wrong else (
                    yield from repair.until_good(best, attributed)
                )  # fmt: skip
                repair.forget()
            notes += repair.notes
        best = yield from attributed(best)
        if (written_noise := best.written_noise) is not None:
            notes.append(
                f"{OPTIMIZED}, signal to noise is {_db(best.noise)}, as it is written"
                f" {_db(written_noise)}: sums of products may be cut off here. {_SATURATION_HINT}"
            )
        verified = yield from verifier.figures(
            best.made.document, best.checked, best.variant.kept, _advice
        )
        result = best.made.document
        unchanged = _quantized_nodes(result) <= _quantized_nodes(document)
        if unchanged:
            notes.append("nothing was quantized: no quantizable operator has a weight or is chosen")
        notes += quantizer.unquantized(best.made, best.variant.ops)
        quantized = partial(
            QuantizedModel, values=verified.values, latency_ms=verified.latency_ms,
            sets=quantizer.sets, method=best.variant.method, ops=[*best.variant.ops],
            points=[*best.made.points()], unchanged=unchanged,
        )  # fmt: skip
        yield from write_sound(
            request,
            document,
            result,
            output,
            quantized,
            [*notes, *texts(best.checked.notes)],
            is_for_runtime=criteria.is_for_runtime,
        )


def _best(
    request: Request,
    document: Document,
    attempt: _Attempt,
    notes: list[str],
) -> Generator[Event, None, _Quantized]:
    """Quantize in several ways if the user chose none, and return the best."""
    ops = tuple(comma_separated(*request.ops))
    methods = [request.method]
    if request.method == "auto":
        methods = ["minmax", "percentile", "entropy"]
    if "fp8" in (request.weights, request.activations):
        methods = ["distribution"]
    if request.dynamic and not ops and _has(document, "Conv"):
        # By rule, not by a measurement: the same model comes out each time.
        ops = _MATRICES
        notes.append(
            "convolutions stay in floating point: ONNX Runtime's integer convolutions are slower"
            " and less accurate (--ops Conv,MatMul,Gemm quantizes them, too)"
        )
    best = yield from attempt(_Variant(methods[0], ops))
    is_static = not (request.dynamic or request.weights_only)
    note = ""
    for method in methods[1:] if is_static and best.checked.is_wrong else ():
        yield Log(f"values are wrong; trying {method}")
        try:
            candidate = yield from attempt(_Variant(method, ops))
        except ActivityError as error:  # nobody has asked for this one
            yield Log(f"{method}: {error.message}")
            continue
        if (candidate.checked.is_wrong, candidate.noise) < (best.checked.is_wrong, best.noise):
            note, best = f"ranges found by {method}, which gives better values here", candidate
    notes += filter(None, [note])
    return (yield from _with_exact_sums(request, best, attempt, notes))


def _with_exact_sums(
    request: Request, best: _Quantized, attempt: _Attempt, notes: list[str]
) -> Generator[Event, None, _Quantized]:
    """Return the nearest of a result and those whose sums of products are not cut off."""
    of_8_bits = request.weights == "int8" and request.activations in ("int8", "uint8")
    note = ""
    for exact in _EXACT_SUMS if of_8_bits and not request.weights_only else ():
        # The operators of dynamic quantization cut off as they are written, too.
        if best.written_noise is None and not (request.dynamic and best.checked.is_wrong):
            break
        yield Log(f"this processor cuts off sums of products; trying {exact}")
        candidate = yield from attempt(replace(best.variant, exact=exact))
        if (candidate.checked.is_wrong, candidate.noise) < (best.checked.is_wrong, best.noise):
            note = (
                f"{exact}: {OPTIMIZED}, signal to noise is {_db(candidate.noise)} with that and"
                f" {_db(best.noise)} without"
            )
            best = candidate
    notes += filter(None, [note])
    return best


def _db(noise: float) -> str:
    return f"{-20 * log10(noise):.1f} dB" if 0 < noise < inf else "0 dB" if noise else "exact"


class _Repair:
    """Looks for the nodes that have to stay in floating point, by trials."""

    def __init__(
        self,
        request: Request,
        document: Document,
        verifier: Verifier,
        quantizer: Quantizer,
        attempt: _Attempt,
    ) -> None:
        from dld_tui.core.conversion.search_key import search_conditions
        from dld_tui.core.params import deciding
        from dld_tui.core.trials import KnownOutcomes

        self._limit, self._began = request.limit, monotonic()
        self._verifier, self._quantizer, self._attempt = verifier, quantizer, attempt
        conditions = search_conditions(
            deciding(request), document, [request.inputs, request.calibration]
        )
        self._journal: KnownOutcomes[RepairOutcome] = KnownOutcomes.of(
            RepairOutcome, "repair-int", conditions
        )
        self._reasons: dict[str, str] = {}
        """Why nodes stay, by their names in the document of the verifier."""
        self.notes: list[str] = []

    def close(self) -> None:
        """Let other processes have the journal."""
        self._journal.close()

    def forget(self) -> None:
        """Forget the trials of a repair that came to its end."""
        if not self.notes:
            self._journal.forget()

    def _limits(self, own: Limits) -> Limits:
        from dld_tui.core.trials import Limits

        if self._limit is None:
            return own
        return Limits(max(0.0, self._limit - (monotonic() - self._began)))

    def with_fewest(self, wrong: _Quantized) -> Generator[Event, None, _Quantized]:
        """Leave the fewest nodes in floating point; `wrong` where no trials of that can be made.

        As the precision search does: all trials share one session.
        """
        from dld_tui.backends.accuracy.precision_trials import QuantizationTrials
        from dld_tui.backends.onnxruntime.session_options import SessionSettings
        from dld_tui.core.trials import Limits, Trials, Words, subset_key

        plan, terms, variant = wrong.made.plan, self._verifier.terms(), wrong.variant
        if plan is None or terms is None:
            return wrong
        settings = SessionSettings(optimization_level="disabled", quiet=True)
        runner = QuantizationTrials(
            self._quantizer, plan, variant.method, variant.ops, terms.sets, terms.tolerances,
            settings, terms.criteria,
        )  # fmt: skip
        with contextlib.closing(runner):
            if not runner.is_quick:
                return wrong
            nodes = {str(at): node for at, node in enumerate(runner.candidates())}

            def run(kept: Subset) -> Generator[Event, None, RepairOutcome]:
                yield from ()
                outcome = runner.run([nodes[key] for key in kept]).outcome
                return RepairOutcome(
                    outcome.answer, outcome.problem, outcome.noise, outcome.seconds
                )

            trials = Trials(
                run,
                lambda kept: f"{variant.method} {subset_key(kept)}",
                self._journal,
                self._limits(Limits(_TRIAL_SECONDS, least=_TRIALS)),
                lambda kept: f"{len(kept):,} of {len(nodes):,} nodes must stay",
                Words("good", "not good", "cannot be run", is_quick=True),
            )
            search = yield from trials.guided([*nodes], lambda kept: kept)
        candidate, least = wrong, 0.0
        for kept in search.sufficient:
            if len(kept) < least:
                continue
            # The fewest are near the bound, which ONNX Runtime's own 8-bit kernels may miss then.
            reasons = dict.fromkeys((nodes[key] for key in nodes if key in kept), _NEEDED)
            candidate = yield from self._attempt(replace(variant, kept=reasons))
            if not candidate.checked.is_wrong:
                if replace(search, things=tuple(kept)).untried:
                    self.notes.append(
                        "fewer nodes may be enough: the search for the fewest was stopped"
                    )
                break
            least = len(kept) * _GROWTH
        return candidate

    def until_good(
        self, first: _Quantized, attributed: _Attribution
    ) -> Generator[Event, None, _Quantized]:
        """Leave nodes as they were until values are near enough; the last result if never."""
        from dld_tui.core.trials import Answer, Limits, Trials, Words, subset_key

        nodes = self._verifier.nodes
        names = {node: name for name, node in nodes.items()}
        results: dict[Subset, _Quantized] = {frozenset(): first}

        def attempted(kept: Subset) -> Generator[Event, None, _Quantized]:
            if kept not in results:
                reasons = {nodes[name]: why for name, why in self._reasons.items() if name in kept}
                results[kept] = yield from self._attempt(replace(first.variant, kept=reasons))
            return results[kept]

        def run(question: tuple[Subset, int]) -> Generator[Event, None, RepairOutcome]:
            kept, most = question
            result = yield from attempted(kept)
            if not result.checked.is_wrong:
                return RepairOutcome(Answer.SUFFICIENT)
            result = results[kept] = yield from attributed(result)
            more = self._verifier.to_keep(result.checked, result.variant.kept, most)
            reasons = {names[node]: why for node, why in more.items()}
            return RepairOutcome(Answer.INSUFFICIENT, blamed=reasons)

        def reasons_of(outcome: RepairOutcome) -> list[str]:
            for name, why in outcome.blamed.items():
                self._reasons.setdefault(name, why)
            return [*outcome.blamed]

        trials = Trials(
            run,
            lambda question: f"{first.variant.method} {subset_key(question[0])} {question[1]}",
            self._journal,
            self._limits(Limits()),
            lambda question: f"{len(question[0]):,} nodes left as they were",
            Words("good", "outputs are not close enough", "cannot be run"),
        )
        search = yield from trials.grown(lambda kept, most: (kept, most), reasons_of, _ROUNDS)
        if not search.is_whole:
            self.notes.append("the limit ended the repair; the same command resumes it")
        (last,) = search.tried or (frozenset[str](),)
        return (yield from attempted(last))


def _advice(first: FailingNode) -> str:
    from dld_tui.core.text import clip, visible

    node = clip(visible(first.node), 80, keep="middle")
    return f"--exclude {node} leaves it as it was; --repair leaves all such nodes"


def _has(document: Document, op_type: str) -> bool:
    """Return whether a node of an operator is anywhere in a model."""
    return any(scope.nodes_of_type(op_type) for scope in document.scopes())


def _quantized_nodes(document: Document) -> int:
    """Return the number of nodes that quantize, or compute with quantized tensors."""
    return sum(
        "uantize" in node.op_type or node.op_type.endswith(("Integer", "NBits"))
        for scope in document.scopes()
        for node in scope.nodes
    )
