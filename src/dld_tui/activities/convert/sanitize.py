"""Simplify a model to as few nodes as the installed simplifiers reach.

onnxsim, onnxslim, Polygraphy and our own rules (see docs/reference/rewrites.md) get the model in
turn, each in a separate process and on the best result of those before, as long as that makes it
smaller. A result counts if ONNX Runtime computes the same with it, and only if it adds no operator
set and does not grow the file beyond the limit. Without a result, the model stays unchanged, which
is not an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.conversion.request import ConversionRequest, Verification
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import (
    ActivityError,
    CancelledError,
    DldError,
    TimeLimitError,
    UnavailableError,
)
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.notes import Note, NoteKind, texts
from dld_tui.core.params import param
from dld_tui.core.process.installation import install_command, install_hint
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.backends.conversion.verification import Verifier
    from dld_tui.core.conversion.result import SimplifierTrial
    from dld_tui.core.model.document.document import Document

BEST = "best"
_LIBRARIES = ("onnxsim", "onnxslim", "Polygraphy", "rules")
_SPARING = "Polygraphy"
"""The one that loads weights only to fold them."""
_LARGE = 512 << 20
"""Bytes of weights above which only one simplifier runs."""
_LARGE_RESULT = 256 << 20
"""Bytes of weights from which on the others get the model itself: each writes and runs a result."""
_MOST_ROUNDS = 4
_NOTED_GROWTH = 10
"""The share of the weights by which they may grow without a warning."""


@dataclass(frozen=True)
class Request(Verification, ConversionRequest):
    """Which model, where to, and what to do."""

    by: str = param(
        BEST,
        label="Simplifier",
        help=(
            "Simplifier to use. best runs all of them and keeps the result with the fewest nodes."
        ),
        choices=(BEST, *_LIBRARIES),
        spellings=("--by",),
    )
    fold: bool = param(
        True,
        label="Fold constants",
        help="Replace constant expressions with their values.",
        spellings=("--fold-constants",),
    )
    threshold: float = param(
        1536.0,  # as onnxsim; a model in one file has at most 2048
        label="Size threshold",
        help="Do not fold constants larger than this.",
        unit="MiB",
        minimum=0,
        spellings=("--fold-size-threshold",),
        metavar="MIB",
    )
    passes: int | None = param(
        None,
        label="Passes",
        help="Number of folding passes; by default until nothing changes (Polygraphy).",
        minimum=1,
        spellings=("--num-passes",),
        metavar="N",
        empty="until nothing changes",
    )
    shapes: bool = param(
        True,
        label="Fold shapes",
        help="Fold Shape nodes and shape arithmetic (Polygraphy).",
        spellings=("--fold-shapes",),
    )
    inference: bool = param(
        True,
        label="Infer shapes",
        help="Infer shapes between passes (Polygraphy).",
        spellings=("--per-pass-shape-inference",),
    )
    partitioning: str = param(
        "none",
        label="Partitioning",
        help="Partition the graph if ONNX Runtime cannot evaluate it (Polygraphy).",
        choices=("none", "basic", "recursive"),
        spellings=("--partitioning",),
    )
    cleanup: bool = param(
        True,
        label="Remove unused",
        help="Remove nodes that no output depends on (Polygraphy).",
        spellings=("--cleanup",),
    )
    toposort: bool = param(
        False,
        label="Sort nodes",
        help="Sort the nodes topologically.",
        spellings=("--toposort",),
    )
    time_limit: float | None = param(
        None,
        label="Time limit",
        help="Time limit of each simplifier; the others continue. By default, 6 s of processor time"
        " and 60 s per MB of the model without weights, and together at most twice as much for"
        " those that exceed it.",
        unit="s",
        minimum=1,
        spellings=("--time-limit",),
        metavar="S",
        empty="by size",
    )


def run(request: Request) -> Iterator[Event]:
    """Sanitize.

    Raises:
        InputError: The model cannot be opened.
        UnavailableError: A requested simplifier is not installed.
        UsageError: A shape does not match.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.soundness import write_sound
    from dld_tui.backends.conversion.verification import (
        VerificationOutcome,
        Verifier,
        same_arithmetic,
    )
    from dld_tui.backends.onnxruntime.limits import folding_excess
    from dld_tui.core.conversion.copies import copy_of, open_model
    from dld_tui.core.conversion.result import SanitizedModel
    from dld_tui.core.model.shapes.inference import left_out

    libraries = _installed(request.by)
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_model(request.model)) as document, contextlib.ExitStack() as stack:
        notes: list[Note] = []
        criteria = same_arithmetic(document)
        verifier = stack.enter_context(
            Verifier(request, document, request.output, criteria, most_bytes=_LARGE)
        )
        why = ""
        if request.by == BEST and _weight_bytes(document) > _LARGE and _SPARING in libraries:
            libraries = [_SPARING]
            text = f"by {_SPARING} only: the others load all weights, and these are large"
            notes.append(Note(NoteKind.INFO, text))
        elif why := (yield from verifier.prepare()):
            notes.append(Note(NoteKind.UNVERIFIED, f"not verified: {why}"))
        if request.fold and request.time_limit is None and (much := folding_excess(document)):
            notes.append(Note(NoteKind.INFO, f"constants are not folded: {much}"))
            request = replace(request, fold=False)
        search = _Search(request, document, verifier, stack, is_runnable=not why)
        endless = left_out(document)
        if not endless:
            yield from search.run(libraries)
        if search.best is None:
            text = f"nothing was simplified: {endless or search.why()}"
            notes.append(Note(NoteKind.UNCHANGED, text))
            result, checked = copy_of(document), VerificationOutcome(skipped="nothing was changed")
            stack.callback(result.close)
        else:
            result = search.best
            text = f"simplified by {', then '.join(search.steps)}"
            notes.append(Note(NoteKind.INFO, text))
            put_back_inputs(document, result)
            checked = yield from verifier.check(result)
        if request.by == BEST and (absent := _absent()):
            how = install_command("simplify")
            text = f"tried without {absent}, which may leave fewer nodes: {how}"
            notes.append(Note(NoteKind.INFO, text))
        if text := growth(_weight_bytes(document), _weight_bytes(result)):
            notes.append(Note(NoteKind.INFO, text))
        verified = yield from verifier.figures(result, checked)
        # Findings of the search are not reported twice.
        known = {note.kind for note in notes} & {NoteKind.UNVERIFIED}
        notes += [note for note in checked.notes if note.kind not in known]
        sanitized = partial(
            SanitizedModel, values=verified.values, latency_ms=verified.latency_ms,
            tried=search.tried, unchanged=search.best is None,
        )  # fmt: skip
        yield from write_sound(request, document, result, request.output, sanitized, texts(notes))


def put_back_inputs(original: Document, result: Document) -> None:
    """Put back inputs that nothing reads: simplifiers drop them, and callers give them.

    Weights that are no inputs any more, as an old version of the format wants them, need a newer
    one.
    """
    import onnx

    from dld_tui.core.files.proto_fields import text_of
    from dld_tui.core.model.document.opset_imports import ensure_ir
    from dld_tui.core.model.document.scope import INITIALIZERS_WITHOUT_INPUTS
    from dld_tui.core.model.document.transactions import Splice, Transaction

    main, kept = result.main, 0
    if any(name not in main.inputs for name in main.named("initializer")):
        ensure_ir(Transaction("sanitize", {}), result, INITIALIZERS_WITHOUT_INPUTS)
    for record in original.main.records.get("input", ()):
        name = text_of(record.name)
        if name not in main.inputs:
            if original.main.initializer(name) is not None or main.definition(name) is not None:
                continue
            copy = onnx.ValueInfoProto()
            copy.CopyFrom(record)
            Splice(main, "input", kept, [], [copy]).do()
        kept += 1


def _absent() -> str:
    """Return the simplifiers that are not installed, empty where all are."""
    from dld_tui.backends.conversion import simplifiers

    return ", ".join(name for name in _LIBRARIES if simplifiers.missing(name))


def _installed(by: str) -> list[str]:
    from dld_tui.backends.conversion import simplifiers

    wanted = _LIBRARIES if by == BEST else (by,)
    installed = [name for name in wanted if not simplifiers.missing(name)]
    if not installed:
        absent = " and ".join(
            dict.fromkeys(m for name in wanted for m in simplifiers.missing(name))
        )
        raise UnavailableError(f"{absent} not installed", hint=install_hint("simplify"))
    return installed


@dataclass
class _Search:
    """The search for the result with the fewest nodes."""

    request: Request
    original: Document
    verifier: Verifier
    stack: contextlib.ExitStack
    is_runnable: bool
    """Whether the original can be run, as far as that is known."""
    best: Document | None = None
    steps: list[str] = field(default_factory=list)
    """The simplifiers of the best result, in order."""
    tried: list[SimplifierTrial] = field(default_factory=list)
    limit_s: float = 0.0
    """The default time limit of a simplifier, in seconds of processor time."""
    left_s: float = 0.0
    """How much is left for those that exceed it."""
    failed: set[str] = field(default_factory=set)
    """The simplifiers that failed or timed out, and are not run again."""

    def run(self, libraries: list[str]) -> Iterator[Event]:
        """Try each on the best result, until that changes nothing."""
        from dld_tui.core.model.document.serialise import skeleton_bytes
        from dld_tui.core.model.operators.native import trial_limits

        size = len(skeleton_bytes(self.original))
        self.limit_s = trial_limits(size, _weight_bytes(self.original)).seconds
        self.left_s = (1 + self.is_runnable) * self.limit_s
        done: set[tuple[str, int]] = set()
        for _ in range(_MOST_ROUNDS):
            before = self.best
            for name in libraries:
                source, steps = self.original, list[str]()
                if self.best is not None and _weight_bytes(self.best) <= _LARGE_RESULT:
                    source, steps = self.best, self.steps
                if name not in self.failed and (name, id(source)) not in done:
                    done.add((name, id(source)))
                    yield from self._try(name, source, steps)
                    done.add((name, id(self.best)))  # by the same one again
            if self.best is before:
                return

    def why(self) -> str:
        """Return why there is no result."""
        return "; ".join(f"{trial.by}: {trial.problem or 'no fewer nodes'}" for trial in self.tried)

    def _try(self, name: str, source: Document, steps: list[str]) -> Iterator[Event]:
        from dld_tui.backends.conversion import simplifiers
        from dld_tui.backends.conversion.library_file import by_library
        from dld_tui.core.conversion.result import SimplifierTrial

        request = self.request
        options = simplifiers.Options(
            by=name, fold=request.fold, threshold=int(request.threshold * 2**20),
            passes=request.passes, shapes=request.shapes, inference=request.inference,
            partitioning=request.partitioning, cleanup=request.cleanup, toposort=request.toposort,
        )  # fmt: skip
        stage = f"{name} simplifies"
        limit_s = request.time_limit or max(min(self.limit_s, self.left_s), 1.0)
        problem: str | None = None
        result: Document | None = None
        try:
            result = yield from by_library(
                source, simplifiers.__name__, options, stage, self.stack, limit_s=limit_s,
                computed=request.time_limit is None,
            )  # fmt: skip
        except CancelledError:
            raise
        except DldError as error:
            problem = error.message
            self.failed.add(name)
            if isinstance(error, TimeLimitError):
                self.left_s -= limit_s
        else:
            # A result that is rejected anyway need not be run.
            problem = self._problem(result) if self._is_better(result) else None
        count = None if result is None else nodes(result)
        chain = ", then ".join([*steps, name])
        self.tried.append(SimplifierTrial(chain, count, problem))
        if problem is not None:
            yield Log(f"{chain}: not taken: {problem}", level=NoteKind.WARNING)
        elif result is not None and self._is_better(result):
            self.best, self.steps = result, [*steps, name]

    def _is_better(self, result: Document) -> bool:
        known = self.best
        if known is not None:
            return nodes(result) < nodes(known)
        # A requested simplifier may leave as many nodes, and tidy up all the same.
        limit = nodes(self.original)
        return nodes(result) < limit or (self.request.by != BEST and nodes(result) == limit)

    def _problem(self, result: Document) -> str | None:
        """Return why a result is not to be taken, if so."""
        added = _domains(result) - _domains(self.original)
        if added:
            return f"it brings in operators of {', '.join(sorted(added))}"
        limit = self.request.threshold * 2**20
        known = _tensor_sizes(self.original)
        for name, size in _tensor_sizes(result).items():
            if size > limit and name not in known:
                return f"it folds {visible(name)}, which takes {fmt.size(size)}"
        return self.verifier.outcome(result).problem or _unsound(self.original, result)


def _unsound(original: Document, result: Document) -> str | None:
    from dld_tui.backends.conversion.soundness import require_sound

    try:
        require_sound(original, result)
    except ActivityError as error:
        return error.message
    return None


def growth(before: int, after: int) -> str:
    """Return how to keep the file small where folding let its weights grow, both in bytes."""
    if after - before < max(before // _NOTED_GROWTH, 1 << 20):
        return ""
    return (
        f"folding made the weights {fmt.size(after - before)} larger; with "
        "--fold-size-threshold 0.1 what computes them stays in the model"
    )


def nodes(document: Document) -> int:
    """Return the number of nodes of a model, subgraphs and local functions included."""
    return sum(len(scope.nodes) for scope in document.scopes())


def _domains(document: Document) -> set[str]:
    from dld_tui.core.types import plain_domain

    return {
        plain_domain(node.domain) or "ai.onnx"
        for scope in document.scopes()
        for node in scope.nodes
    }


def _weight_bytes(document: Document) -> int:
    return sum(_tensor_sizes(document).values())


def _tensor_sizes(document: Document) -> dict[str, int]:
    """Return bytes of weights by name; names of subgraphs may hide each other."""
    return {
        tensor.name: tensor.nbytes or 0
        for scope in document.scopes()
        for tensor in scope.initializers
        if tensor.location != "none"
    }
