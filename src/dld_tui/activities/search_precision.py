"""Find the smallest set of nodes that must stay in fp32 when a model runs in a lower precision.

Result: ``{"precision", "kept": [{"scope", "node", "op_type"}], "lowered", "candidates", "trials",
"seconds", "estimate": {...}, "errors": {OUTPUT: {...}}, "edits": [...], "script": PATH or null}``.
`kept` is null when not even keeping all nodes is good enough, and with `estimate_only` nothing but
the estimate is there. `edits` are those of an edit script that assigns the precisions.

Each trial is noted at once, so a search that was stopped goes on where it was.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.errors import ActivityError, SaveError
from dld_tui.core.events import Event, Finished, Log, Metric, Progress
from dld_tui.core.params import param, to_json
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.backends.onnxruntime_options import SessionSettings
    from dld_tui.backends.precision_trials import PrecisionTrials, Trial
    from dld_tui.core.accuracy.search import Kept
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node


@dataclass(frozen=True)
class Request:
    """Which model, to which precision, and how good it has to be."""

    model: Path = param(
        label="Model", help="The ONNX model.", kind="file", positional=True, metavar="MODEL"
    )
    precision: str = param(
        "fp16",
        label="Precision",
        help="What all nodes that can are to compute in.",
        choices=("fp16", "bf16"),
        spellings=("--search", "--precision"),
    )
    tolerance: tuple[str, ...] = param(
        (),
        label="Tolerances",
        help="What outputs may be off: atol=1e-3,rtol=1e-2 or cosine=0.999 or snr=30 for all,"
        " NAME:atol=… for one.",
        spellings=("--tolerance",),
        metavar="SPEC",
    )
    atol: float = param(
        1e-2, label="Absolute", help="Absolute tolerance.", spellings=("--atol",), minimum=0
    )
    rtol: float = param(
        1e-2, label="Relative", help="Relative tolerance.", spellings=("--rtol",), minimum=0
    )
    inputs: Path | None = param(
        None,
        label="Input data",
        help="Folder with input_0.pb, … or NAME.npy, or with folders test_data_set_0, … of these."
        " By default inputs are random.",
        spellings=("--inputs",),
        kind="folder",
        metavar="DIR",
    )
    shape: tuple[str, ...] = param(
        (),
        label="Input shapes",
        help="Shape of an input, as NAME:1x3x224x224.",
        spellings=("--shape", "--shapes", "--input-shapes"),
        kind="shapes",
        metavar="NAME:DIMS",
    )
    seed: int = param(
        0, label="Seed", help="Of the random inputs.", spellings=("--seed",), minimum=0
    )
    provider: str = param(
        "CPU",
        label="Provider",
        help="Execution provider. On the CPU values are rounded to the precision between nodes.",
        spellings=("--provider",),
        metavar="NAME",
    )
    most_trials: int | None = param(
        None,
        label="Most trials",
        help="Stop after so many; what was tried is kept for the next time.",
        spellings=("--most-trials",),
        minimum=1,
        metavar="N",
    )
    script: Path | None = param(
        None,
        label="Edit script",
        help="Where to write the edit script that assigns the precisions.",
        spellings=("--script",),
        kind="output",
        metavar="FILE",
    )
    estimate_only: bool = param(
        False,
        label="Estimate",
        help="Only say how long it would take, from one trial.",
        spellings=("--estimate",),
    )
    again: bool = param(
        False,
        label="From the start",
        help="Forget the trials of an earlier search.",
        spellings=("--from-start",),
    )


def run(request: Request) -> Iterator[Event]:
    """Search.

    Raises:
        UsageError: A setting does not fit the model.
        InputError: The model or an input cannot be read.
        UnavailableError: ONNX Runtime or the provider is missing.
        ActivityError: The model cannot be run as it is, or the trials allowed were not enough.
    """
    from dld_tui.core.document.document import Document

    yield Progress(0, None, stage="Reading the model")
    with contextlib.closing(Document.open(request.model)) as document:
        yield from _search(request, document)


def _search(request: Request, document: Document) -> Iterator[Event]:
    from dld_tui.core.accuracy.search import cost_text, expected_trials, minimal_set

    yield Progress(0, None, stage="Running the model as it is")
    trials = _trials(request, document)
    yield Progress(0, None, stage="Looking for the nodes that suffer most")
    suspects = trials.candidates()
    keys = _Keys(document, suspects)
    yield Progress(0, None, stage="Trying with all nodes lowered")
    first = trials.run(())
    least, most = expected_trials(len(suspects), 3)
    each = expected_trials(len(suspects), 1)[1] - least
    estimate: dict[str, JSON] = {
        "nodes": len(suspects),
        "trial_seconds": first.seconds,
        "trials": [least, most],
        "trials_per_node": each,
        "seconds": [least * first.seconds, most * first.seconds],
    }
    yield Log(cost_text(estimate))
    if request.estimate_only:
        yield Finished({"precision": request.precision, "estimate": estimate})
        return
    record = _Record(request, document)
    known = record.read()
    known[frozenset()] = first.is_good
    steps = minimal_set(list(keys.nodes), known)
    made, seconds, last = 1, first.seconds, first
    best: dict[Kept, Trial] = {frozenset(): first}
    found: tuple[str, ...] | None = None
    try:
        kept = next(steps)
        while True:
            if request.most_trials is not None and made >= request.most_trials:
                raise ActivityError(
                    f"no result after {made} trials",
                    hint="Run it again: it goes on from there",
                )
            yield Progress(made, None, "trials", f"Trying with {len(kept):,} nodes kept in fp32")
            last = trials.run([keys.nodes[key] for key in kept])
            made, seconds = made + 1, seconds + last.seconds
            best[kept] = last
            yield Metric("kept", len(kept))
            if not last.is_good:
                yield Log(f"{len(kept)} kept: {last.problem}")
            known[kept] = last.is_good
            record.write(known)
            kept = steps.send(last.is_good)
    except StopIteration as end:
        found = end.value
    result: dict[str, JSON] = {
        "precision": request.precision, "candidates": len(suspects), "trials": made,
        "seconds": seconds, "estimate": estimate, "kept": None, "script": None, "edits": [],
    }  # fmt: skip
    if found is not None:
        final = best.get(frozenset(found))
        if final is None:  # it was tried in an earlier search
            final = trials.run([keys.nodes[key] for key in found])
            result["trials"], result["seconds"] = made + 1, seconds + final.seconds
        if not final.is_good:
            raise ActivityError(
                f"the result is not good when it is tried again: {final.problem}",
                hint="The model may give other results from run to run",
            )
        result.update(_told(request, keys, found, final))
    yield Finished(result)


def _trials(request: Request, document: Document) -> PrecisionTrials:
    from dld_tui.backends.onnxruntime_tensors import TensorRunner
    from dld_tui.backends.precision_trials import PrecisionTrials
    from dld_tui.core.accuracy.tolerance import parse_tolerances
    from dld_tui.core.inputs.feeds import input_feeds

    tolerances = parse_tolerances(request.tolerance, request.atol, request.rtol)
    settings = _settings(request)
    with TensorRunner(document, settings) as runner:
        specs = runner.inputs
    feeds = input_feeds(specs, request.inputs, request.shape, [request.seed])
    return PrecisionTrials(document, request.precision, feeds, tolerances, settings)


def _settings(request: Request) -> SessionSettings:
    from dld_tui.backends import onnxruntime as backend
    from dld_tui.backends.onnxruntime_options import SessionSettings

    provider = backend.find_provider(request.provider)
    # What fuses nodes would hide what happens between them.
    return SessionSettings(providers=(provider,), optimization_level="basic", quiet=True)


class _Keys:
    """Names nodes by their places, which hold from one start of the program to the next."""

    def __init__(self, document: Document, suspects: Sequence[Node]) -> None:
        places = {
            node: f"{number}:{at}"
            for number, scope in enumerate(document.scopes())
            for at, node in enumerate(scope.nodes)
        }
        self.nodes: dict[str, Node] = {places[node]: node for node in suspects}


class _Record:
    """The trials of a search, in the cache."""

    def __init__(self, request: Request, document: Document) -> None:
        from dld_tui.core.accuracy.trial_journal import files_of, search_name, stamps
        from dld_tui.core.paths import cache_dir

        settings = to_json(request)
        for name in ("most_trials", "script", "estimate_only", "again"):
            del settings[name]
        settings["files"] = stamps(files_of(document, request.model, request.inputs))
        self._path = cache_dir() / "precision-search" / f"{search_name(settings)}.json"
        self._again = request.again

    def read(self) -> dict[Kept, bool]:
        """Return the trials of an earlier search; none when there was none."""
        from dld_tui.core.accuracy.search import from_record

        if self._again:
            return {}
        try:
            data = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return from_record(data) if isinstance(data, list) else {}

    def write(self, known: Mapping[Kept, bool]) -> None:
        """Keep the trials made so far; a cache that cannot be written is no reason to stop."""
        from dld_tui.core.accuracy.search import as_record
        from dld_tui.core.paths import ensure

        new = self._path.with_suffix(".new")
        with contextlib.suppress(OSError, SaveError):
            ensure(self._path.parent)
            new.write_text(json.dumps(as_record(known)), encoding="utf-8")
            os.replace(new, self._path)


def _told(request: Request, keys: _Keys, found: Sequence[str], final: Trial) -> dict[str, JSON]:
    kept = [keys.nodes[key] for key in found]
    others = [node for key, node in keys.nodes.items() if key not in set(found)]
    edits: list[JSON] = [
        {"edit": "set_precision", "nodes": [_place(node) for node in nodes], "precision": precision}
        for nodes, precision in ((kept, "fp32"), (others, request.precision))
        if nodes
    ]
    if request.script is not None:
        lines = "".join(f"{json.dumps(edit, ensure_ascii=False)}\n" for edit in edits)
        try:
            request.script.write_text(lines, encoding="utf-8", errors="surrogateescape")
        except OSError as error:
            raise SaveError(f"cannot be written: {error}", where=str(request.script)) from None
    return {
        "kept": [
            {"scope": list(node.scope.path), "node": node.ref, "op_type": node.op_type}
            for node in kept
        ],
        "lowered": final.lowered_nodes,
        "errors": {name: error.to_json() for name, error in final.errors.items()},
        "edits": edits,
        "script": None if request.script is None else str(request.script),
    }


def _place(node: Node) -> JSON:
    return [list(node.scope.path), node.ref]
