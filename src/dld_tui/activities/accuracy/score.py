"""Quality of a model on labelled samples, before and after a conversion, with intervals."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.core.accuracy.scores import DatasetScores
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.events import Event, Finished, Progress, events_of
from dld_tui.core.machine import providers
from dld_tui.core.params import like, param

Result = DatasetScores


@dataclass(frozen=True)
class Request:
    """Which models, on what, judged how."""

    model: Path = like(Profile, "model", help="The reference: an ONNX model.")
    dataset: Path = param(
        label="Dataset",
        help="Folder with test_data_set_0, … or NAME.npy for each input (samples along the first"
        " axis), or an .npz file.",
        spellings=("--dataset",),
        kind="file",
        metavar="PATH",
        of_model=True,
    )
    against: Path | None = param(
        None,
        label="Against",
        help="Another model to judge on the same samples, such as a conversion of the reference.",
        spellings=("--against",),
        kind="file",
        metavar="MODEL_B",
        empty="the reference alone",
    )
    labels: Path | None = param(
        None,
        label="Labels",
        help="A .npy file, or a text file with a line for each sample: a class, or several"
        " numbers. By default labels of the .npz file, or output_0.pb of each set.",
        spellings=("--labels",),
        kind="file",
        metavar="FILE",
        empty="of the dataset",
    )
    metric: str = param(
        "top1",
        label="Metric",
        help="top1, top5, f1 (macro), map (of rankings), wer (ids of words), cosine or rmse (to"
        " the label); other packages add some.",
        spellings=("--metric",),
        metavar="NAME",
    )
    most_loss: float | None = param(
        None,
        label="Most loss",
        help="How much worse the other model may be, in the unit of the metric (points of"
        " percent): PASS, FAIL or UNDECIDED by the interval.",
        spellings=("--most-loss",),
        metavar="X",
        minimum=0.0,
        empty="not judged",
        applies=lambda values: bool(values.get("against")),
    )
    provider: str = like(Profile, "provider")
    against_provider: str = param(
        "",
        label="Other provider",
        help="Execution provider of the other model; by default the same.",
        spellings=("--against-provider",),
        metavar="NAME",
        empty="the same",
        means=providers.provider_note,
        applies=lambda values: bool(values.get("against")),
    )

    def require(self) -> None:
        """Refuse settings that do not go together.

        Raises:
            UsageError: A loss is limited without another model, or the metric is unknown.
        """
        if self.most_loss is not None and self.against is None:
            raise UsageError("--most-loss needs --against MODEL_B")


def run(request: Request) -> Iterator[Event]:
    """Judge.

    Raises:
        UsageError: Settings do not go together, or the metric is unknown.
        InputError: A model or the dataset cannot be read, or do not fit each other.
        UnavailableError: A provider is missing.
        ActivityError: A model cannot be run.
    """
    from dld_tui.backends.accuracy.scoring import model_rows
    from dld_tui.backends.onnxruntime.runtime import version
    from dld_tui.core.accuracy.metrics import Judged, dataset_scores, find_metric

    request.require()
    began = time.monotonic()
    metric = find_metric(request.metric)
    sides = [(request.model, request.provider)]
    if request.against is not None:
        sides.append((request.against, request.against_provider or request.provider))
    judged = []
    for number, (model, provider) in enumerate(sides):
        yield Progress(0, None, stage=f"Loading {model.name}")
        settings = Profile(model=model, provider=provider).session_settings()
        steps = model_rows(model, settings, request.dataset, request.labels, metric)

        def progress(
            done: tuple[int, int], number: int = number, name: str = model.name
        ) -> Progress:
            at, count = done
            total = len(sides) * count
            return Progress(number * count + at, total, "batches", f"Running {name}")

        rows = yield from events_of(steps, progress)
        judged.append(Judged(str(model), f"ONNX Runtime {version()}, {provider}", rows))
    scores = dataset_scores(metric, request.dataset, judged, request.most_loss)
    yield Finished(replace(scores, seconds=time.monotonic() - began))
