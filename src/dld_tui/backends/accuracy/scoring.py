"""Runs a model on labelled samples, and gives each sample the figures of a metric."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dld_tui.backends.onnxruntime.session import Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.accuracy.datasets import Batch, read_dataset
from dld_tui.core.accuracy.metrics import Array, Metric
from dld_tui.core.errors import InputError


def model_rows(
    model: Path, settings: SessionSettings, dataset: Path, labels: Path | None, metric: Metric
) -> Generator[tuple[int, int], None, Array]:
    """Run a model on a dataset; yields how many batches are done, and how many there are.

    Args:
        model: The model.
        settings: Of its session.
        dataset: As :func:`~dld_tui.core.accuracy.datasets.read_dataset` takes it.
        labels: Of the samples; None for those of the dataset.
        metric: What judges outputs.

    Returns:
        The rows of the metric: [samples, figures], float64.

    Raises:
        InputError: The model or the dataset cannot be read, or do not fit each other.
        UnavailableError: A provider is missing.
        ActivityError: The model cannot be run.
    """
    session = Session(model, replace(settings, quiet=True))
    # Its batch may be fixed where that of another model is not.
    batches = read_dataset(dataset, labels, session.inputs)
    rows: list[Sequence[float]] = []
    for done, batch in enumerate(batches):
        yield done, len(batches)
        rows += _rows(session, batch, metric)
    return np.asarray(rows, np.float64)


def _rows(session: Session, batch: Batch, metric: Metric) -> Iterator[Sequence[float]]:
    """Yield the figures of each sample.

    Raises:
        InputError: An output has no batch axis, or does not fit the label.
    """
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
