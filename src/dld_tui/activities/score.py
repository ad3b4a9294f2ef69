"""Quality of a model on labelled samples, before and after a conversion, with intervals."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.activities.profile_onnxruntime import Request as Profile
from dld_tui.core.accuracy.scores import DatasetScores, Score
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.machine import providers
from dld_tui.core.params import like, param

if TYPE_CHECKING:
    import numpy as np

    from dld_tui.backends.onnxruntime.session import Session
    from dld_tui.core.accuracy.datasets import Batch
    from dld_tui.core.accuracy.metrics import Metric

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
    import numpy as np

    from dld_tui.backends.onnxruntime.runtime import version
    from dld_tui.core.accuracy.datasets import read_dataset
    from dld_tui.core.accuracy.metrics import difference, find_metric, interval

    request.require()
    began = time.monotonic()
    metric = find_metric(request.metric)
    sides = [(request.model, request.provider)]
    if request.against is not None:
        sides.append((request.against, request.against_provider or request.provider))
    rows: list[np.ndarray[Any, Any]] = []
    for number, (model, provider) in enumerate(sides):
        yield Progress(0, None, stage=f"Loading {model.name}")
        with _session(model, provider) as session:
            # Its batch may be fixed where that of the other one is not.
            batches = read_dataset(request.dataset, request.labels, session.inputs)
            mine: list[Sequence[float]] = []
            for done, batch in enumerate(batches):
                at = number * len(batches) + done
                yield Progress(at, len(sides) * len(batches), "batches", f"Running {model.name}")
                mine += _rows(session, batch, metric)
        rows.append(np.asarray(mine, np.float64))
    names = [provider for _, provider in sides]
    yield Finished(
        DatasetScores(
            str(request.dataset), metric.name, metric.title, metric.unit, metric.is_better_higher,
            len(rows[0]),
            tuple(
                Score(str(model), interval(metric, own), f"ONNX Runtime {version()}, {name}")
                for (model, _), own, name in zip(sides, rows, names, strict=True)
            ),
            difference(metric, *rows) if len(rows) == 2 else None,
            request.most_loss,
            int(np.sum(np.any(rows[0] != rows[1], axis=1))) if len(rows) == 2 else None,
            time.monotonic() - began,
        )
    )  # fmt: skip


@contextlib.contextmanager
def _session(model: Path, provider: str) -> Iterator[Session]:
    from dld_tui.backends.onnxruntime.session import Session

    settings = Profile(model=model, provider=provider).session_settings()
    yield Session(model, replace(settings, quiet=True))


def _rows(session: Session, batch: Batch, metric: Metric) -> Iterator[Sequence[float]]:
    """Yield the figures of each sample.

    Raises:
        InputError: An output has no batch axis, or does not fit the label.
    """
    import numpy as np

    outputs = session.run(session.feed(dict(batch.values)))
    count = len(batch.labels)
    for at, label in enumerate(batch.labels):
        parts = []
        for output in outputs:
            array = np.asarray(output)
            if count > 1 and (not array.ndim or len(array) != count):
                raise InputError(
                    f"an output of {count} samples has shape {list(array.shape)}",
                    hint="Give each sample as a set of its own: test_data_set_0, …",
                )
            is_batch = array.ndim and len(array) == count
            parts.append(array[at] if is_batch else array)
        yield metric.sample(parts, label)
