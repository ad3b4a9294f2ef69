"""The smallest part of a model with which a command still fails, including subgraphs and functions.

Each trial is recorded immediately, so an interrupted search can be resumed.
"""

from __future__ import annotations

import contextlib
import shlex
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.conversion.reduction import Reduction, main_nodes, minimize_nodes
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Event, Finished, Log, Progress, events_of
from dld_tui.core.params import param, to_json
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.accuracy.trial_journal import OutcomeJournal
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node

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
    again: bool = param(
        False,
        label="Start over",
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
    from dld_tui.core.accuracy.trial_journal import OutcomeJournal, model_and_inputs, search_name
    from dld_tui.core.conversion.reduction import reached
    from dld_tui.core.document.document import Document
    from dld_tui.core.settings.paths import cache_dir

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
    with contextlib.closing(Document.open(request.model)) as document:
        nodes = main_nodes(document)
        if nodes is None:
            raise UsageError("the nodes of the model form a cycle", where=str(request.model))
        yield from _typed(document, request.model)
        facts = to_json(replace(request, output=Path(), again=False, time_limit=1.0))
        name = search_name(model_and_inputs(facts, document, None))
        labels = {
            node: " › ".join((*node.scope.path, node.ref)) for node in reached(document, nodes)
        }
        journal = OutcomeJournal(
            cache_dir() / "reduce" / f"{name}.jsonl",
            list(labels.values()),
            again=request.again,
        )
        with tempfile.TemporaryDirectory(prefix="dld-reduce-") as folder:
            search = _Reducing(request, document, nodes, labels, words, journal, Path(folder))
            yield from search.events()


def _typed(document: Document, path: Path) -> Iterator[Event]:
    """Infer types, which the inputs of parts have to declare; without, parts may not load."""
    import onnx

    from dld_tui.core.document.serialise import skeleton_bytes
    from dld_tui.core.document.types.inference import infer_types, store_types

    yield Progress(0, None, stage="Inferring shapes")
    try:
        model = onnx.ModelProto.FromString(skeleton_bytes(document))
        store_types(document, infer_types(model, path)[0])
    except ActivityError as error:
        yield Log(visible(str(error)), "warning")


class _Reducing:
    """One search."""

    def __init__(
        self,
        request: Request,
        document: Document,
        nodes: Sequence[Node],
        labels: Mapping[Node, str],
        words: Sequence[str],
        journal: OutcomeJournal,
        folder: Path,
    ) -> None:
        self._request = request
        self._document = document
        self._nodes = nodes
        self._labels = labels
        self._words = words
        self._journal = journal
        self._folder = folder
        self._tried = self._known = 0
        self._seen: set[frozenset[str]] = set()
        """The parts tried by this search, which it may repeat."""
        self._said = ""

    def events(self) -> Iterator[Event]:
        began = time.monotonic()
        whole = yield from self._fails(list(self._labels))
        if not whole:
            raise UsageError(
                "the check does not fail for the model itself",
                where=shlex.join(self._words),
                hint=f"It printed: {visible(self._said[-200:])}" if self._said.strip() else None,
            )
        search = minimize_nodes(self._document, self._nodes)
        answer: bool | None = None
        while True:
            try:
                part = next(search) if answer is None else search.send(answer)
            except StopIteration as end:
                smallest: list[Node] = end.value
                break
            answer = yield from self._fails(part)
            if answer:
                yield Log(f"{fmt.plural(len(part), 'node')} still fail")
        message = yield from self._finish(smallest)
        yield Finished(
            Reduction(
                self._request.output.absolute(), len(self._labels), len(smallest),
                [self._labels[node] for node in smallest], self._tried, self._known,
                round(time.monotonic() - began, 3), message,
            )
        )  # fmt: skip

    def _finish(self, smallest: Sequence[Node]) -> Generator[Event, None, str]:
        """Write the smallest model, and confirm that it fails."""
        failed = yield from self._checked_part(smallest)
        if not failed:
            raise ActivityError(
                "the smallest model does not fail each time: the check is not deterministic",
                hint="Repeat the command in the check until it fails, and add --again",
            )
        self._write(smallest, self._request.output)
        return self._said

    def _fails(self, part: Sequence[Node]) -> Generator[Event, None, bool]:
        from dld_tui.core.accuracy.search import Outcome

        key = frozenset(self._labels[node] for node in part)
        known = self._journal.known.get(key)
        if known is not None:
            self._known += key not in self._seen
            self._seen.add(key)
            return not known.good
        stage = f"Checking {fmt.plural(len(part), 'node')} of {len(self._labels)}"
        yield Progress(self._tried, None, "checks", stage)
        failed = yield from self._checked_part(part)
        self._tried += 1
        self._seen.add(key)
        outcome = Outcome(not failed, 0.0)
        self._journal.known[key] = outcome
        self._journal.add(key, outcome)
        return failed

    def _checked_part(self, part: Sequence[Node]) -> Generator[Event, None, bool]:
        if len(part) == len(self._labels):
            return (yield from self._checked(self._request.model))
        path = self._folder / "model.onnx"
        return self._write(part, path) and (yield from self._checked(path))

    def _write(self, part: Sequence[Node], path: Path) -> bool:
        """Write nodes as a model; return whether that can be."""
        from dld_tui.core.conversion.reduction import extract_kept
        from dld_tui.core.document.serialise import save

        extraction = extract_kept(self._document, set(part))
        if extraction is None:
            return False
        with contextlib.closing(extraction.document):
            save(extraction.document, path)
        return True

    def _checking(self, event: Event) -> Progress:
        if isinstance(event, Log):
            self._said = f"{self._said}{event.text}\n"[-_TAIL:]
        return Progress(self._tried, None, "checks", "Checking")

    def _checked(self, path: Path) -> Generator[Event, None, bool]:
        """Run the check on a model and return whether it fails as expected."""
        from dld_tui.backends.processes import run_program

        request = self._request
        words = [word.replace(PLACE, str(path)) for word in self._words]
        self._said = ""
        running = run_program(words, Path.cwd(), request.time_limit)
        end = yield from events_of(running, self._checking)
        if end.timed_out or (request.fail_text and request.fail_text not in self._said):
            return False
        codes = request.fail_codes
        return str(end.status) in codes if codes else end.status != 0
