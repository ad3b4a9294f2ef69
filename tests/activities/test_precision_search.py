"""The search finds what overflows, says its cost, and goes on after a cut."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.activities.accuracy.search import Request, run
from dld_tui.backends.accuracy.precision_trials import PrecisionTrials
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.onnxruntime.tensors import TensorRunner
from dld_tui.core.accuracy.tensor_errors import parse_tolerances
from dld_tui.core.codec import encode
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Progress
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.metadata import precision_of
from dld_tui.core.model.document.scripting.scripts import parse_script, replay
from dld_tui.core.model.inputs.feeds import input_feeds
from tests.support import models
from tests.support.activities import finished
from tests.support.conversions import OVERFLOWS, convert
from tests.support.jobs import texts
from tests.support.precision_models import write_attention

pytest.importorskip("onnxruntime")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return models.write(tmp_path, OVERFLOWS)


def search(request: Request) -> tuple[dict[str, Any], list[str]]:
    """Return the result, and the stages of trials."""
    events = list(run(request))
    stages = [event.stage for event in events if isinstance(event, Progress)]
    assert any("A trial takes" in text for text in texts(events))
    trials = [stage for stage in stages if stage.startswith("Trial ") and ")" not in stage]
    return encode(finished(events)), trials


def names(result: dict[str, Any]) -> set[str]:
    return {one["node"] for one in result["kept"]}


def test_what_overflows_is_kept_and_the_script_sets_the_rest(path: Path) -> None:
    script = path.with_name("p.jsonl")
    result, _ = search(Request(path, script=script))
    kept = names(result)
    assert "bigger" in kept
    assert len(kept) < 4
    assert result["lowered"] == 6 - len(kept)
    assert result["errors"]["y"]["special"] == 0
    document = Document.open(path)
    assert replay(document, parse_script(script.read_text())).refused == []
    precisions = {node.name: precision_of(node) for node in document.main.nodes}
    assert {name for name, precision in precisions.items() if precision == "fp32"} == kept
    assert set(precisions.values()) == {"fp32", "fp16"}
    assert [json.loads(line) for line in script.read_text().splitlines()] == result["edits"]


def cut(request: Request, after: int) -> None:
    """Stop a search in the midst of a trial."""
    begun = run(request)
    assert isinstance(begun, Generator)
    made = 0
    for event in begun:
        made += isinstance(event, Progress) and event.stage.startswith("Trial ")
        if made == after:
            begun.close()
            return
    raise AssertionError("it was over before")


def test_a_search_that_was_cut_goes_on_where_it_was(path: Path) -> None:
    whole, all_trials = search(Request(path, seed=1))
    cut(Request(path), 5)
    rest, trials = search(Request(path))
    assert names(rest) == names(whole)
    assert len(trials) == len(all_trials) - 4, "what was tried is not tried again"

    again, trials = search(Request(path))
    assert again["kept"] == rest["kept"]
    assert trials == ["Trial 1: 2 of 6 nodes in fp32; fewest so far: 2"]
    assert again["trials"] == 1, "the result once more"
    _, from_start = search(Request(path, again=True))
    assert len(from_start) == len(all_trials)

    models.write(path.parent, OVERFLOWS.replace("{300}", "{2}"))  # another model
    assert search(Request(path))[0]["kept"] == []
    journals = [*(path.parent / "cache" / "trials").glob("search-*.jsonl")]
    assert len(journals) == 3, "that of another seed, and of another model"


def test_a_result_that_is_not_minimal_says_so(path: Path) -> None:
    with pytest.raises(ActivityError, match="no result after 1 trial"):
        search(Request(path, most_trials=1))
    result, _ = search(Request(path, most_trials=1))
    assert (result["minimal"], result["untried"], len(result["kept"])) == (False, 6, 6)
    result, _ = search(Request(path))
    assert (result["minimal"], result["untried"]) == (True, 0)


def test_nothing_can_be_taken_from_the_result(tmp_path: Path) -> None:
    """Two layers whose scores, but not their probabilities, overflow."""
    path = tmp_path / "attention.onnx"
    every = write_attention(path)
    result, _ = search(Request(path, tolerance=("snr=70",)))
    kept = names(result)
    assert result["minimal"]
    assert {"scores_0", "scaled_0", "scores_1", "scaled_1"} < kept < set(every)
    tolerances = parse_tolerances(("snr=70",))
    settings = SessionSettings(optimization_level="disabled", quiet=True)
    with closing(Document.open(path)) as document:
        nodes = [node for node in document.main.nodes if node.name in kept]
        with TensorRunner(document, settings) as runner:
            feeds = input_feeds(runner.inputs, None, (), [0]).sets
        with closing(PrecisionTrials(document, "fp16", feeds, tolerances, settings)) as trials:
            assert trials.convert(nodes).is_good
            without = [trials.convert([one for one in nodes if one is not node]) for node in nodes]
    assert not any(trial.is_good for trial in without)


def test_the_cost_alone(path: Path) -> None:
    result, trials = search(Request(path, estimate_only=True))
    assert "kept" not in result
    assert result["estimate"]["nodes"] == 6
    assert len(trials) == 1


def test_trials_by_copies_find_the_same(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on CUDA, where values are not rounded but computed in the precision."""
    monkeypatch.setattr(PrecisionTrials, "_switchable", lambda self: None)
    result, trials = search(Request(path))
    assert names(result) == {"bigger", "down"}
    assert result["minimal"]
    assert result["estimate"]["ranking_trials"] == 0
    assert len(trials) == result["trials"] <= 9


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.usefixtures("replaces_all")
def test_nodes_to_leave_in_float_are_found_for_int8(real_files: Path, tmp_path: Path) -> None:
    """On a real classifier: the command that takes the names gives a model that is good."""
    model, script, sets = real_files / "ppocrv2_cls.onnx", tmp_path / "names.txt", tmp_path / "c"
    for number in range(2):
        (sets / f"test_data_set_{number}").mkdir(parents=True)
        x = np.random.default_rng(number).uniform(-1, 1, (1, 3, 32, 64)).astype(np.float32)
        np.save(sets / f"test_data_set_{number}" / "x.npy", x)
    # For TensorRT, so that the kernels of this processor do not count.
    asked = Request(
        model, precision="int8", calibration=sets, runtime="tensorrt", tolerance=("snr=0",),
        script=script,
    )  # fmt: skip
    errors = search(asked)[0]["errors"].values()
    tolerance = (f"snr={min(one['snr_db'] for one in errors) + 1:.3f}",)
    result, _ = search(replace(asked, tolerance=tolerance))
    kept = result["kept"]
    assert kept, "all quantized is not good enough"
    assert len(kept) < result["candidates"] // 4
    assert result["minimal"]
    assert result["edits"] == []
    assert script.read_text().split() == [one["node"] for one in kept]

    def is_good(names: Path | None) -> bool:
        made = convert(
            "quantize", model, tmp_path / "o.onnx", calibration=sets, method="minmax",
            runtime="tensorrt", exclude_from=names, tolerance=tolerance,
        )  # fmt: skip
        return bool(made["values"]["is_good"])

    assert is_good(script)
    assert not is_good(None)
