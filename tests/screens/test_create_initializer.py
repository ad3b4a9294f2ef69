from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from dld_tui.core.errors import DldError
from dld_tui.core.model.document import Document
from dld_tui.core.params import from_json
from dld_tui.core.types import JSON
from dld_tui.screens.tensors.create_initializer import NewTensor, values_of
from tests.support.recorded import Recorded, settled
from tests.support.tensors import write_tensors

CASES: list[dict[str, JSON]] = [
    {}, {"dims": "2, 3"}, {"dims": "(1, 3)"}, {"dims": "1X3"}, {"dims": "scalar"},
    {"dims": "0"}, {"dims": "-1"}, {"dims": "n"},
    {"dtype": "string", "dims": "2 2"},
    {"fill": "values", "values": "[[1, 2], [3, 4.5]]"},
    {"fill": "values", "values": "[1, 2, 3, 4]", "dims": "2, 2", "dtype": "int8"},
    {"fill": "values", "values": "[1, 2, 3]", "dims": "2, 2"},
    {"fill": "values", "values": "['a', 'b']", "dtype": "string"},
    {"fill": "normal", "dims": "2", "mean": 1, "deviation": 0.5, "seed": 7},
    {"fill": "uniform", "dims": "2", "low": -1, "high": 0.5, "seed": 7},
    {"fill": "positive", "dims": "2", "seed": 7}, {"fill": "negative", "dims": "2", "seed": 7},
    {"fill": "positive", "dtype": "int8"}, {"fill": "negative", "dtype": "int8"},
    {"fill": "npy"}, {"fill": "npy", "file": "a.npy"},
    {"fill": "npy", "file": "a.npy", "dims": "4"}, {"fill": "npy", "file": "a.npy", "dims": "5"},
    {"fill": "npy", "file": "words.npy"}, {"fill": "npy", "file": "no.npy"},
    {"fill": "external"}, {"fill": "external", "file": "a.npy", "dims": "2, 2", "offset": 128},
    {"fill": "external", "file": "FOLDER/a.npy", "length": 8, "dtype": "int4"},
    {"fill": "external", "file": "../a.npy"},
]  # fmt: skip


def test_values_of_each_kind(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    document = Document.open(write_tensors(tmp_path))
    np.save("a.npy", np.array([[1.5, -2], [0, 4]], np.float32))
    np.save("words.npy", np.array(["a", "bc"]))

    def told(case: dict[str, JSON]) -> str:
        text = json.dumps({"name": "t", **case}).replace("FOLDER", str(tmp_path))
        try:
            made = values_of(document, from_json(NewTensor, json.loads(text)))
        except DldError as error:
            return f"{type(error).__name__}: {error}"
        return json.dumps(asdict(made), default=str)

    texts = {json.dumps(case): settled(told(case), tmp_path) for case in CASES}
    recorded("values_of_initializers", texts)
