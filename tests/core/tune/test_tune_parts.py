"""Changes, the code of settings, what is kept of a run that was stopped, reasons in sentences."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.accuracy.tensor_errors import TensorError
from dld_tui.core.conversion.accuracy_criteria import QUANTIZED
from dld_tui.core.model.document.document import Document
from dld_tui.core.text import visible
from dld_tui.core.tune.changes import (
    CHANGES,
    Setup,
    combinations,
    thread_changes,
    usable_changes,
)
from dld_tui.core.tune.journal import KnownMeasurements
from dld_tui.core.tune.result import CandidateState, Exclusion, cpp_code, python_code
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.recorded import Recorded

_BY_ID = {change.id: change for change in CHANGES}
SESSION: dict[str, JSON] = {
    "provider": "CPU", "threads": 2, "inter_threads": 3, "optimization_level": "extended",
    "dim": ["N=1"], "session_config": ["session.set_denormal_as_zero=1"],
}  # fmt: skip


def test_changes_add_up_and_say_what_they_set() -> None:
    setup = Setup(Path("m.onnx"))
    assert (setup.key, setup.session) == ("as it is", {})
    for name in ("int8-dynamic", "no-spinning", "denormals"):
        setup = setup.with_change(_BY_ID[name])
    assert setup.key == "int8-dynamic+no-spinning+denormals"
    assert setup.session["session_config"] == [
        "session.intra_op.allow_spinning=0", "session.set_denormal_as_zero=1",
    ]  # fmt: skip
    assert setup.criteria.tolerance == _BY_ID["int8-dynamic"].criteria.tolerance
    assert (setup.criteria.quiet_db, setup.criteria.least_db) == (20.0, 20.0)
    assert [_BY_ID[name].tolerance for name in ("int8-dynamic", "fp16")] == [("snr=20",), ()]
    basic = setup.with_change(_BY_ID["basic"])
    assert not basic.goes_with(_BY_ID["extended"])
    assert basic.goes_with(_BY_ID["blocks"])


def test_changes_that_can_be_tried(recorded: Recorded) -> None:
    """Those of a provider, for operators, with settings, or that are named."""
    every = frozenset(name for one in CHANGES for name in one.ops)
    texts = {}
    for provider in ("CPU", "CUDA", "TensorRT", "CoreML"):
        for title, operators, given, only in (
            ("a model of Relu", frozenset({"Relu"}), "", ()), ("all operators", every, "", ()),
            ("with calibration", every, "calibration", ()),
            ("named", every, "", ("fp16", "threads-1", "fused-gelu", "basic", "nhwc")),
        ):  # fmt: skip
            usable = usable_changes(CHANGES, provider, operators, given.__eq__, only)
            texts[f"{provider}, {title}"] = " ".join(one.id for one in usable)
    recorded("usable_changes", texts)


def test_no_candidate_is_taken_below_20_db() -> None:
    """Elements of an embedding are so small that a tolerance of each allows any noise."""
    embedding = TensorError((1, 384), 384, max_abs=0.009, largest=0.05, snr_db=15.0)
    for name in ("int8-dynamic", "fp16", "simplified"):
        criteria = Setup(Path("m.onnx"), (_BY_ID[name],)).criteria
        problem = criteria.problem(embedding, "")
        assert problem == "the signal to noise ratio is 15.0 dB, less than 20 dB"
        assert criteria.problem(replace(embedding, snr_db=20.0), "") == ""
    assert QUANTIZED.problem(embedding, "") == "", "a conversion that the user asks for"


def test_a_model_that_lost_is_tried_where_no_launch_holds_it_up() -> None:
    known = {change.id: change for change in CHANGES}
    base = Setup(Path("m.onnx"))
    fp16 = replace(base.with_change(known["fp16"]), model=Path("fp16.onnx"))

    def made(*helped: str) -> list[str]:
        setups = [base.with_change(known[name]) for name in helped]
        return [one.key for one in combinations([base], setups, [fp16])]

    assert made("cuda-graph") == ["cuda-graph", "fp16+cuda-graph"]
    assert made("nhwc", "cuda-graph") == [
        "nhwc", "cuda-graph", "nhwc+cuda-graph", "fp16+cuda-graph",
    ]  # fmt: skip
    assert made("nhwc") == ["nhwc"]


@pytest.mark.parametrize(
    ("usable", "physical", "counts"),
    [(2, 2, [1, 2]), (16, 8, [1, 4, 8, 16]), (1, 4, [1]), (6, None, [1, 3, 6])],
)
def test_numbers_of_threads(usable: int, physical: int | None, counts: list[int]) -> None:
    assert [one.session["threads"] for one in thread_changes(usable, physical)] == counts


def test_python_code_makes_that_session(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = pytest.importorskip("onnxruntime")
    made: list[Any] = []
    monkeypatch.setattr(
        runtime, "InferenceSession", lambda *args, **kwargs: made.append((args, kwargs))
    )
    exec(compile(python_code('a "b".onnx', SESSION), "code", "exec"), {})
    (model, options), more = made[0]
    assert model == 'a "b".onnx'
    assert more == {"providers": ["CPUExecutionProvider"]}
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (2, 3)
    assert options.execution_mode == runtime.ExecutionMode.ORT_PARALLEL
    level = runtime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    assert options.graph_optimization_level == level
    assert options.get_session_config_entry("session.set_denormal_as_zero") == "1"


@pytest.mark.parametrize("name", ['a"b\\c.onnx', "a\nb\x1b7\u202e.onnx", "é\udcff??/.onnx", "'😀"])
def test_paths_in_code_are_those_of_the_file(name: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    made: list[Any] = []
    code = python_code(name, {}).replace("ort.InferenceSession", "session")
    exec(compile(code, "c", "exec"), {"session": lambda *args, **_: made.append(args[0]),
                                      "ort": runtime})  # fmt: skip
    assert made == [name]
    cpp = cpp_code(name, {})
    assert cpp.count("\n") == 7
    assert visible(cpp.replace("\n", "")) == cpp.replace("\n", "")
    literal = cpp[cpp.index('(env, "') + 7 : cpp.index('", options);')]
    plain = re.sub(rb"\\([0-7]{3}|.)", lambda found: _byte(found[1]), literal.encode())
    assert plain == os.fsencode(name)


def _byte(escape: bytes) -> bytes:
    return bytes([int(escape, 8)]) if escape.isdigit() else escape


def test_code_of_a_provider_that_nobody_named_is_that_of_the_cpu() -> None:
    for nobody in ("", ",", " "):
        code = python_code("m.onnx", {"provider": nobody})
        assert 'providers=["CPUExecutionProvider"]' in code


NO_KERNEL = Exclusion(CandidateState.FAILED, "no kernel")


def test_a_run_that_was_stopped_goes_on_from_there(tmp_path: Path) -> None:
    first = KnownMeasurements(tmp_path / "run")
    first.model("fp16").write_bytes(b"model")
    first.add_made("fp16", None)
    first.add_made("bf16", NO_KERNEL)
    first.add_round("models", ["as it is", "fp16"], {"as it is": 2.0, "fp16": 1.0})
    with (tmp_path / "run" / "journal.jsonl").open("a") as file:
        file.write('{"race": "models: as it is')  # killed while it wrote
    first.close()
    second = KnownMeasurements(tmp_path / "run")
    assert [second.is_made(key) for key in ("fp16", "bf16", "int8")] == [True, True, False]
    assert (second.exclusion("fp16"), second.exclusion("bf16")) == (None, NO_KERNEL)
    assert second.rounds("models", ["as it is", "fp16"]) == [{"as it is": 2.0, "fp16": 1.0}]
    assert second.rounds("models", ["as it is"]) == []
    second.add_made("opset", None)
    second.close()
    third = KnownMeasurements(tmp_path / "run")
    assert third.rounds("models", ["as it is", "fp16"]) == [{"as it is": 2.0, "fp16": 1.0}]
    third.model("opset").write_bytes(b"model")
    assert third.is_made("opset"), "the line after one that was cut"
    second.model("fp16").unlink()
    assert not second.is_made("fp16")  # its model is gone: it is made again
    second.forget()
    assert not KnownMeasurements(tmp_path / "run").is_made("bf16")


@pytest.mark.parametrize(
    "line",
    [
        '{"race": "r: a b", "ms": {"a": NaN, "b": 1.0}}', '{"race": "r: a b", "ms": {"a": 0}}',
        '{"race": "r: a b", "ms": {"a": -1.0}}', '{"race": "r: a b", "ms": {"a": Infinity}}',
        '{"race": "r: a b", "ms": [1]}', "[]", "7", "null", "\ufffd", '{"made": 1}', "[" * 200_000,
    ],
)  # fmt: skip
def test_damaged_lines_of_a_journal_are_not_read(line: str, tmp_path: Path) -> None:
    good = '{"race": "r: a b", "ms": {"a": 1.0, "b": 2.0}}'
    (tmp_path / "journal.jsonl").write_text(f"{line}\n{good}\n", encoding="utf-8")
    journal = KnownMeasurements(tmp_path)
    assert journal.rounds("r", ["a", "b"]) == [{"a": 1.0, "b": 2.0}]


def test_other_versions_and_processors_do_not_go_on_with_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    environment = "dld_tui.core.machine.environment"
    versions = {"onnxruntime": "1.31.1"}
    monkeypatch.setattr(f"{environment}.package_version", versions.get)
    monkeypatch.setattr(f"{environment}.usable_threads", lambda: versions.get("threads", 2))
    with closing(Document.open(models.write(tmp_path, models.CHAIN))) as document:

        def problem(again: bool = False) -> Exclusion | None:
            known = KnownMeasurements.of({"model": "m"}, document, again=again)
            with closing(known) as journal:
                return journal.exclusion("bf16")

        with closing(KnownMeasurements.of({"model": "m"}, document)) as journal:
            journal.add_made("bf16", NO_KERNEL)
        assert problem() == NO_KERNEL
        for name, value in (("onnxruntime", "1.32.0"), ("dld-tui", "2"), ("threads", 1)):
            versions[name] = value  # type: ignore[assignment]
            assert problem() is None
            del versions[name]
            if name == "onnxruntime":
                versions[name] = "1.31.1"
        assert problem() == NO_KERNEL
        assert problem(again=True) is None


def test_two_runs_at_once_do_not_share_what_they_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    document = Document.open(models.write(tmp_path, models.CHAIN))
    first, beside = (KnownMeasurements.of({"model": "m"}, document) for _ in range(2))
    first.add_made("fp16", None)
    beside.add_made("bf16", NO_KERNEL)
    assert (first.is_kept, beside.is_kept) == (True, False)
    assert [*(tmp_path / "temporary").iterdir()] != []
    beside.close()
    assert [*(tmp_path / "temporary").iterdir()] == []
    first.close()
    again = KnownMeasurements.of({"model": "m"}, document)
    assert (again.is_kept, again.is_made("bf16")) == (True, False)
    again.model("fp16").write_bytes(b"")
    assert again.is_made("fp16")
    again.forget()
    assert [*(tmp_path / "cache" / "dld-tui" / "tune").iterdir()] == []
    again.close()
    document.close()
