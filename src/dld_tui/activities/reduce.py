"""The smallest part of a model with which a command still fails, including subgraphs and functions.

Each trial is recorded immediately, so an interrupted search can be resumed.
"""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.conversion.reduction import (
    Reduction,
    main_nodes,
    minimize_nodes,
    node_labels,
)
from dld_tui.core.conversion.search_key import search_conditions
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Event, Finished, Log, Progress, events_of
from dld_tui.core.files import permission
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.notes import NoteKind
from dld_tui.core.params import deciding, param
from dld_tui.core.text import visible
from dld_tui.core.trials import (
    Answer,
    KnownOutcomes,
    Limits,
    Outcome,
    Subset,
    Trials,
    Words,
    limit_notes,
    subset_key,
    unknown_notes,
)

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node

_TAIL = 4000
PLACE = "{model}"
"""Placeholder for the model file in a check."""


@dataclass(frozen=True)
class Request:
    """Which model, and how it fails."""

    model: Path = param(
        label="Model",
        help="The ONNX model that fails.",
        kind="file",
        positional=True,
        metavar="MODEL",
    )
    check: str = param(
        label="Check",
        help=(
            "A command that fails for the model. {model} stands for the model file, by default "
            "the last argument. The command fails if its exit status is not 0 or a signal ends "
            "it."
        ),
        spellings=("--check",),
        runs_code=True,
        metavar="COMMAND",
    )
    output: Path = param(
        label="Output",
        help="Write the smallest model that still fails here.",
        kind="output",
        suffix=".onnx",
        spellings=("-o", "--output"),
        metavar="OUT",
    )
    fail_codes: tuple[str, ...] = param(
        (),
        label="Exit status",
        help="Only these exit statuses count as the failure; a negative number is a signal.",
        spellings=("--fail-code",),
        metavar="N",
    )
    fail_text: str = param(
        "",
        label="Text",
        help="Only runs that print this text count as the failure.",
        spellings=("--fail-text",),
        metavar="TEXT",
    )
    time_limit: float = param(
        60.0,
        label="Time limit",
        help="Time limit of each check; a timeout does not count as the failure.",
        unit="s",
        minimum=0.1,
        spellings=("--time-limit",),
        metavar="S",
    )
    limit: float | None = param(
        None,
        label="Limit",
        decides=False,
        help="Start no check after this time. The next search resumes from here.",
        unit="s",
        minimum=0,
        spellings=("--limit",),
        metavar="S",
        empty="until the result is certain",
    )
    again: bool = param(
        False,
        label="Start over",
        decides=False,
        help="Start over instead of resuming an interrupted search.",
        spellings=("--again",),
    )


def run(request: Request) -> Iterator[Event]:
    """Search.

    Raises:
        UsageError: The check is not a command, or does not fail for the model itself.
        InputError: The model cannot be opened.
        UnavailableError: The program does not exist.
        SaveError: A part cannot be written.
    """
    from dld_tui.backends.processes import find_program
    from dld_tui.core.llm.folder import open_document

    try:
        words = shlex.split(request.check)
    except ValueError as error:
        raise UsageError(f"the check is not a command: {error}") from None
    if not words:
        raise UsageError("no check is given", hint="Give a command that fails, with --check")
    if not any(PLACE in word for word in words):
        words.append(PLACE)
    words[0] = find_program(words[0])
    yield Progress(0, None, stage="Opening the model")
    with contextlib.closing(open_document(request.model)) as document:
        nodes = main_nodes(document)
        if nodes is None:
            raise UsageError("the nodes of the model form a cycle", where=str(request.model))
        yield from _typed(document, request.model)
        conditions = search_conditions(deciding(request), document)
        journal = KnownOutcomes.of(Outcome, "reduce", conditions, again=request.again)
        with (
            contextlib.closing(journal),
            temporary_folder("reduce") as folder,
        ):
            permission.agree([folder])
            yield from _Reducing(request, document, nodes, words, journal, folder).events()


def _typed(document: Document, path: Path) -> Iterator[Event]:
    """Infer types, which the inputs of parts have to declare; without, parts may not load."""
    import onnx

    from dld_tui.core.model.document.serialise import skeleton_bytes
    from dld_tui.core.model.shapes.inference import infer_types, store_types

    yield Progress(0, None, stage="Inferring shapes")
    try:
        model = onnx.ModelProto.FromString(skeleton_bytes(document))
        store_types(document, infer_types(model, path)[0])
    except ActivityError as error:
        yield Log(visible(str(error)), NoteKind.WARNING)


class _Reducing:
    """One search."""

    def __init__(
        self,
        request: Request,
        document: Document,
        nodes: Sequence[Node],
        words: Sequence[str],
        journal: KnownOutcomes[Outcome],
        folder: Path,
    ) -> None:
        self._request = request
        self._document = document
        self._nodes = nodes
        self._labels: Mapping[Node, str] = node_labels(document, nodes)
        self._words = words
        self._folder = folder
        every = len(self._labels)
        self._trials: Trials[Subset, Outcome] = Trials(
            self._checked_part,
            subset_key,
            journal,
            Limits(request.limit),
            lambda part: f"{len(part):,} of {every:,} nodes",
            Words("still fails", "does not fail", is_quick=True),
        )
        self._said = ""

    def events(self) -> Iterator[Event]:
        began, trials = time.monotonic(), self._trials
        whole = yield from trials.ask(frozenset(self._labels.values()))
        if not whole.is_sufficient:
            raise UsageError(
                "the check does not fail for the model itself",
                where=shlex.join(self._words),
                hint=visible(whole.problem) or None,
            )
        smallest, found = yield from minimize_nodes(
            self._document, self._nodes, self._labels, trials
        )
        tried, known = trials.made, trials.replayed
        again = yield from trials.confirm(frozenset(self._labels[node] for node in smallest))
        if not again.is_sufficient:
            raise ActivityError(
                "the smallest model does not fail each time: the check is not deterministic",
                hint="Repeat the command in the check until it fails, and add --again",
            )
        self._write(smallest, self._request.output)
        for note in (*limit_notes(found, "node"), *unknown_notes(found, "node")):
            yield Log(note, NoteKind.WARNING)
        yield Finished(
            Reduction(
                self._request.output.absolute(), len(self._labels), len(smallest),
                [self._labels[node] for node in smallest], tried, known,
                round(time.monotonic() - began, 3), self._said, not found.untried,
                len(found.unknown),
            )
        )  # fmt: skip

    def _checked_part(self, part: Subset) -> Generator[Event, None, Outcome]:
        if len(part) == len(self._labels):
            return (yield from self._checked(self._request.model))
        path = self._folder / "model.onnx"
        if not self._write([node for node, label in self._labels.items() if label in part], path):
            return Outcome(Answer.UNKNOWN, "a type is not known")
        return (yield from self._checked(path))

    def _write(self, part: Sequence[Node], path: Path) -> bool:
        """Write nodes as a model; return whether that can be."""
        from dld_tui.core.conversion.reduction import extract_kept
        from dld_tui.core.model.document.serialise import save

        extraction = extract_kept(self._document, set(part))
        if extraction is None:
            return False
        with contextlib.closing(extraction.document):
            save(extraction.document, path)
        return True

    def _checked(self, path: Path) -> Generator[Event, None, Outcome]:
        """Run the check on a model: the outcome is sufficient if it fails as expected."""
        from dld_tui.backends.processes import run_program

        request = self._request
        words = [word.replace(PLACE, str(path)) for word in self._words]
        self._said = ""
        running = run_program(words, Path.cwd(), request.time_limit)
        end = yield from events_of(running, self._checking)
        if end.timed_out:
            problem = f"the check took more than {request.time_limit:g} s"
            return Outcome(Answer.UNKNOWN, problem, seconds=end.seconds)
        codes, is_text = request.fail_codes, request.fail_text in self._said
        is_failure = str(end.status) in codes if codes else end.status != 0
        if is_failure and is_text:
            return Outcome(Answer.SUFFICIENT, seconds=end.seconds)
        printed = f"It printed: {self._said[-200:]}" if self._said.strip() else ""
        return Outcome(Answer.INSUFFICIENT, printed, seconds=end.seconds)

    def _checking(self, event: Event) -> Progress:
        if isinstance(event, Log):
            self._said = f"{self._said}{event.text}\n"[-_TAIL:]
        return Progress(0, stage="checking")
