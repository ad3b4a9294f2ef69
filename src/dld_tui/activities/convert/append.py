"""Post-processing behind an output: softmax, argmax, the largest values, a detector's NMS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.core.conversion.request import EditRequest
from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Event
from dld_tui.core.params import param, when
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.transactions import Edit, Transaction

_IS_NMS = when("step", "nms")


@dataclass(frozen=True, kw_only=True)
class Request(EditRequest):
    """Which output, and what is made of it."""

    step: str = param(
        "softmax",
        label="Step",
        help="softmax and argmax keep the output's name; top-k and nms make new outputs.",
        choices=("softmax", "argmax", "top-k", "nms"),
        spellings=("--step",),
    )
    source: str = param(
        "",
        label="Output name",
        help="Which output; for nms that with the boxes, or with boxes and scores.",
        spellings=("--of",),
        metavar="NAME",
        empty="the only one",
    )
    keep: bool = param(
        False, label="Keep", help="Keep the output itself as well.", spellings=("--keep",)
    )
    axis: int = param(
        -1, label="Axis", help="Axis of softmax, argmax and top-k.", spellings=("--axis",),
        applies=when("step", "softmax", "argmax", "top-k"),
    )  # fmt: skip
    k: int = param(
        5, label="K", help="How many of the largest values.", minimum=1, spellings=("--k",),
        applies=when("step", "top-k"),
    )  # fmt: skip
    scores: str = param(
        "",
        label="Scores",
        applies=_IS_NMS,
        help="For nms: the output with the scores, where another one has them.",
        spellings=("--scores",),
        metavar="NAME",
        empty="behind the boxes",
    )
    boxes: str = param(
        "centres",
        label="Boxes",
        applies=_IS_NMS,
        help="For nms: x, y of the centre, width and height; or two corners.",
        choices=("centres", "corners"),
        spellings=("--boxes",),
    )
    objectness: bool = param(
        False,
        label="Objectness",
        applies=_IS_NMS,
        help="For nms: the value behind a box is a factor of its scores (YOLOv5).",
        spellings=("--objectness",),
    )
    iou: float = param(
        0.45, label="IoU", help="For nms: boxes with a larger overlap are one.", minimum=0,
        maximum=1, spellings=("--iou",), applies=_IS_NMS,
    )  # fmt: skip
    threshold: float = param(
        0.25, label="Threshold", help="For nms: scores below are left out.",
        spellings=("--threshold",), applies=_IS_NMS,
    )  # fmt: skip
    most: int = param(
        300, label="Most boxes", help="For nms: of each class.", minimum=1, spellings=("--most",),
        applies=_IS_NMS,
    )  # fmt: skip

    def as_edit(self, keep: Callable[[Path], JSON]) -> Edit:
        """Return the edit that does it."""
        from dld_tui.core.model.edits.processing import append_processing

        return append_processing(
            step=self.step, output=self.source, scores=self.scores, axis=self.axis, k=self.k,
            keep=self.keep, centres=self.boxes == "centres", objectness=self.objectness,
            iou=self.iou, threshold=self.threshold, most=self.most,
        )  # fmt: skip


def run(request: Request) -> Iterator[Event]:
    """Add the nodes.

    Raises:
        InputError: The model cannot be opened, or an input cannot be read.
        EditError: There is no such output, or its shape does not fit.
        ActivityError: The result is not sound.
        SaveError: The result cannot be written.
    """
    from dld_tui.backends.conversion.in_turn import Changed, Stage, write_changed
    from dld_tui.core.conversion.copies import infer
    from dld_tui.core.model.edits.processing import append_into

    def change(
        document: Document, result: Document, transaction: Transaction, arguments: dict[str, Any]
    ) -> Changed:
        result.ask_types = partial(infer, result, document.path)
        appended = append_into(result, transaction, **arguments)
        inner = {one.name: one.inner for one in appended}
        stage = Stage.of(document)
        stage = replace(stage, outputs={**stage.outputs, **inner})
        return Changed([one.line for one in appended], stage, [*inner.values()])

    yield from write_changed(request, change)
