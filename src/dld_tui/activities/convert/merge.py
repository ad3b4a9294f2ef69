"""Several models merged into one: outputs of each become inputs of the next."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from dld_tui.core.conversion.request import EditRequest
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event, Progress
from dld_tui.core.model.document.transactions import Edit
from dld_tui.core.params import param, put_once, split_pair
from dld_tui.core.types import JSON


@dataclass(frozen=True, kw_only=True)
class Request(EditRequest):
    """Which models, and which outputs become which inputs."""

    others: tuple[Path, ...] = param(
        label="Other models",
        help="The models that are added, in their order.",
        kind="file",
        positional=True,
        metavar="OTHER...",
    )
    map: tuple[str, ...] = param(
        (),
        label="Links",
        help=(
            "The tensor OUT becomes input IN of the next model; an input as OUT is shared. By "
            "default, outputs go to inputs of their name, else to the one of their shape."
        ),
        spellings=("--map",),
        metavar="OUT=IN",
        empty="by name, else by shape",
    )
    prefix: tuple[str, ...] = param(
        (),
        label="Prefix",
        help="Prefix for names of an added model that are taken; once for all, or one per model.",
        spellings=("--prefix",),
        metavar="TEXT",
        empty="a number",
    )
    keep: tuple[str, ...] = param(
        (),
        label="Keep outputs",
        help="Keep a linked output as an output; NAME=NEW also renames it, as it does any output.",
        spellings=("--keep",),
        metavar="NAME[=NEW]",
    )

    def require(self) -> None:
        """Refuse to merge one model.

        Raises:
            UsageError: No other model is given, or a link is no pair.
        """
        super().require()
        if not self.others:
            raise UsageError("another model is needed")
        self.as_edit(str)

    def as_edit(self, keep: Callable[[Path], JSON]) -> Edit:
        """Return the edit that does it.

        Raises:
            UsageError: A link is no pair.
        """
        from dld_tui.core.conversion.edits.merging import merge_models

        values, inputs = (
            self._names() if any("=" in text for text in _after_equals_signs(self)) else ([], [])
        )
        links: dict[str, JSON] = {}
        for pair in self.map:
            cuts = [(pair[:at], pair[at + 1 :]) for at, char in enumerate(pair) if char == "="]
            known = [cut for cut in cuts if cut[0] in values and cut[1] in inputs]
            value, name = (known or cuts or [("", "")])[0]
            if not value or not name:
                raise UsageError(f"--map is {pair!r}, and not OUT=IN")
            if len(known) > 1:
                raise UsageError(f"--map {pair!r} can be read in {len(known)} ways")
            put_once(links, name, value, "--map")
        kept: dict[str, JSON] = {}
        for text in self.keep:
            name, new = split_pair(text, values.__contains__)
            put_once(kept, name, new or name, "--keep")
        models = [keep(path) for path in self.others]
        arguments: dict[str, Any] = {}
        if links:
            arguments["links"] = links
        if self.prefix:
            arguments["prefixes"] = [*self.prefix]
        if kept:
            arguments["keep"] = kept
        return merge_models(models=models, **arguments)

    def _names(self) -> tuple[list[str], list[str]]:
        """Return the values of all models, and the inputs of those that are added."""
        from dld_tui.core.llm.folder import open_document

        values, inputs = list[str](), list[str]()
        for path in (self.model, *self.others):
            with contextlib.closing(open_document(path)) as document:
                main = document.main
                values += [*main.inputs, *main.links.producers]
                inputs += main.inputs if path is not self.model else ()
        return values, inputs


def _after_equals_signs(request: Request) -> Iterator[str]:
    """Yield what is behind the first equals signs: others are ambiguous."""
    for text in (*request.map, *request.keep):
        yield text.partition("=")[2]


def run(request: Request) -> Iterator[Event]:
    """Merge.

    Raises:
        UsageError: A link is no pair.
        InputError: A model cannot be opened, or an input cannot be read.
        EditError: The models cannot be merged; says which and why.
        ActivityError: The result is not sound.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.in_turn import Stage, compared_in_turn
    from dld_tui.backends.conversion.soundness import write_sound
    from dld_tui.core.conversion.copies import copy_of, open_model
    from dld_tui.core.conversion.edits.merging import merge_into
    from dld_tui.core.conversion.result import MergedModel
    from dld_tui.core.model.document.transactions import Transaction

    request.require()
    yield Progress(0, None, stage="Opening the models")
    with contextlib.ExitStack() as stack:
        documents = []
        for path in (request.model, *request.others):
            documents.append(stack.enter_context(contextlib.closing(open_model(path))))
        first = documents[0]
        yield Progress(0, None, stage="Merging")
        result = stack.enter_context(contextlib.closing(copy_of(first)))
        edit = request.as_edit(lambda path: {"file": str(path)})
        given: dict[str, Any] = {"links": {}, "prefixes": [], "keep": None, **edit.arguments}
        added = merge_into(result, Transaction.of(edit), **given)
        kept = given["keep"] or {}
        stages = [Stage.of(first)]
        for document, one in zip(documents[1:], added, strict=True):
            stages = [stage.later(one) for stage in stages] + [Stage.of(document, one)]
        linked = {
            stage.inputs[name]
            for stage, one in zip(stages[1:], added, strict=True)
            for name in one.links
        }
        outputs = {name for stage in stages for name in stage.outputs.values()}
        verified = yield from compared_in_turn(
            request, result, request.output, stages,
            {str(new): name for name, new in kept.items()},
            linked - outputs - {*result.main.inputs},
        )  # fmt: skip
        make = partial(
            MergedModel, values=verified.values, latency_ms=None,
            links=[one.links for one in added],
            renamed=[{**one.moved, **one.renamed} for one in added],
        )  # fmt: skip
        yield from write_sound(request, first, result, request.output, make, others=documents[1:])
