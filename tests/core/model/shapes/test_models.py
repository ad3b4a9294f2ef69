"""Shapes of all values of real models, held against what ONNX Runtime makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import DldError
from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs.guess import Guess, candidate_guesses, input_specs
from dld_tui.core.model.shapes.evaluation import Evaluation
from tests.support.backend_cases import fits, known

ort = pytest.importorskip("onnxruntime")

_LARGEST = 30 << 20
_MOST_UNKNOWN = 0.03
_SIZES = 2
"""Guesses of the inputs that each model is run with."""


def session_of(model: onnx.ModelProto) -> Any:
    """Return a session whose outputs are all values of the main graph, or None."""
    told = {value.name for value in model.graph.output}
    told |= {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in told:
                told.add(name)
                model.graph.output.append(onnx.ValueInfoProto(name=name))
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        return ort.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # noqa: BLE001 - what it refuses is nothing to compare with
        return None


def runs(session: Any, guesses: Iterator[Guess]) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Yield inputs with which a session runs, and what it makes of them."""
    while True:
        try:
            guess = next(guesses, None)
            if guess is None:
                return
            feeds: dict[str, Any] = dict(guess.values(0))
            results = session.run(None, feeds)
        except DldError:
            return
        except Exception:  # noqa: BLE001 - the next guess may do
            continue
        yield feeds, results


def compared(path: Path, wrong: list[object]) -> tuple[int, int]:
    """Add what is wrong; return how many values were compared, and how many are not known."""
    if path.stat().st_size > _LARGEST:
        return 0, 0
    try:
        model = onnx.load(path)
        document = Document.open(path)
    except Exception:  # noqa: BLE001 - of damaged files, as some are
        return 0, 0
    count = unknown = 0
    with closing(document):
        session = session_of(model)
        if session is None:
            return 0, 0
        try:
            guesses = candidate_guesses(input_specs(document), document)
        except DldError:
            return 0, 0
        for feeds, results in islice(runs(session, guesses), _SIZES):
            evaluation = Evaluation(document, {name: known(one) for name, one in feeds.items()})
            for output, actual in zip(session.get_outputs(), results, strict=True):
                if not isinstance(actual, np.ndarray):
                    continue
                value = evaluation.value(document.main, output.name)
                count += 1
                unknown += not value.is_known
                if not fits(value.dims, actual.shape):
                    wrong.append((path.name, output.name, value.dims, actual.shape))
            wrong += [(path.name, demand.text) for demand in evaluation.demands.failed]
    return count, unknown


def check(paths: list[Path], least: int) -> None:
    """Compare models, of which this many values must be compared."""
    wrong: list[object] = []
    counts = [compared(path, wrong) for path in paths]
    assert not wrong
    count, unknown = (sum(column) for column in zip(*counts, strict=True))
    assert count >= least
    assert unknown <= _MOST_UNKNOWN * count


@pytest.mark.broad
def test_models_of_the_repository(real_files: Path) -> None:
    data = Path(__file__).parents[3] / "data"
    check(sorted({*data.rglob("*.onnx"), *real_files.rglob("*.onnx")}), 50)


@pytest.mark.models
def test_models_of_the_data_folder(real_models: Path) -> None:
    # Elsewhere in it are models that never end.
    check(sorted((real_models / "onnx").rglob("*.onnx")), 5000)
