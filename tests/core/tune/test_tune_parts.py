"""Changes, the code of settings, what is kept of a run that was stopped, reasons in sentences."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.document.document import Document
from dld_tui.core.tune.changes import CHANGES, Setup, thread_changes, usable_changes
from dld_tui.core.tune.journal import Journal
from dld_tui.core.tune.result import cpp_code, python_code
from dld_tui.core.types import JSON
from tests.support import models

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
    assert setup.criteria is _BY_ID["int8-dynamic"].criteria
    basic = setup.with_change(_BY_ID["basic"])
    assert not basic.goes_with(_BY_ID["extended"])
    assert basic.goes_with(_BY_ID["blocks"])


def test_only_what_makes_sense_is_tried() -> None:
    def ids(provider: str, operators: set[str], **given: object) -> set[str]:
        found = usable_changes(CHANGES, provider, frozenset(operators), given.get)
        return {change.id for change in found}

    cpu = ids("CPU", {"Conv"})
    assert "int8-dynamic" in cpu
    assert cpu.isdisjoint({"gelu", "cuda-graph", "bf16", "int8", "weights-int8"})
    assert "int8" in ids("CPU", {"Conv"}, calibration=Path("folder"))
    assert "gelu" in ids("CPU", {"Erf"})
    gpu = ids("CUDA", {"Conv"})
    assert {"cuda-graph", "bf16", "nhwc"} <= gpu
    assert "no-spinning" not in gpu


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


def test_cpp_code_has_every_setting() -> None:
    code = cpp_code("m.onnx", SESSION)
    for line in (
        "options.SetIntraOpNumThreads(2);", "options.SetInterOpNumThreads(3);",
        "options.SetGraphOptimizationLevel(ORT_ENABLE_EXTENDED);",
        'options.AddConfigEntry("session.set_denormal_as_zero", "1");',
        'Ort::Session session(env, "m.onnx", options);',
    ):  # fmt: skip
        assert line in code
    gpu = cpp_code("m.onnx", {"provider": "CUDA", "provider_option": ["prefer_nhwc=1"]})
    assert 'const char* cuda_keys[] = {"prefer_nhwc"};' in gpu
    assert "AppendExecutionProvider_CUDA_V2(*cuda);" in gpu


def test_code_of_a_provider_that_nobody_named_is_that_of_the_cpu() -> None:
    for nobody in ("", ",", " "):
        code = python_code("m.onnx", {"provider": nobody})
        assert 'providers=["CPUExecutionProvider"]' in code


def test_a_run_that_was_stopped_goes_on_from_there(tmp_path: Path) -> None:
    first = Journal(tmp_path / "run")
    first.model("fp16").write_bytes(b"model")
    first.add_made("fp16", "")
    first.add_made("bf16", "no kernel")
    first.add_round("models", ["as it is", "fp16"], {"as it is": 2.0, "fp16": 1.0})
    with (tmp_path / "run" / "journal.jsonl").open("a") as file:
        file.write('{"race": "models: as it is')  # killed while it wrote
    second = Journal(tmp_path / "run")
    assert (second.made("fp16"), second.made("bf16"), second.made("int8")) == (
        "",
        "no kernel",
        None,
    )
    assert second.rounds("models", ["as it is", "fp16"]) == [{"as it is": 2.0, "fp16": 1.0}]
    assert second.rounds("models", ["as it is"]) == []
    second.add_made("opset", "")
    third = Journal(tmp_path / "run")
    assert third.rounds("models", ["as it is", "fp16"]) == [{"as it is": 2.0, "fp16": 1.0}]
    third.model("opset").write_bytes(b"model")
    assert third.made("opset") == "", "the line after one that was cut"
    second.model("fp16").unlink()
    assert second.made("fp16") is None  # its model is gone: it is made again
    second.forget()
    assert Journal(tmp_path / "run").made("bf16") is None


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
    journal = Journal(tmp_path)
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

        def problem() -> str | None:
            with closing(Journal.of({"model": "m"}, document)) as journal:
                return journal.made("bf16")

        with closing(Journal.of({"model": "m"}, document)) as journal:
            journal.add_made("bf16", "no kernel")
        assert problem() == "no kernel"
        for name, value in (("onnxruntime", "1.32.0"), ("dld-tui", "2"), ("threads", 1)):
            versions[name] = value  # type: ignore[assignment]
            assert problem() is None
            del versions[name]
            if name == "onnxruntime":
                versions[name] = "1.31.1"
        assert problem() == "no kernel"


def test_two_runs_at_once_do_not_share_what_they_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    document = Document.open(models.write(tmp_path, models.CHAIN))
    first, beside = (Journal.of({"model": "m"}, document) for _ in range(2))
    first.add_made("fp16", "")
    beside.add_made("bf16", "no kernels")
    assert (first.is_kept, beside.is_kept) == (True, False)
    assert [*(tmp_path / "temporary").iterdir()] != []
    beside.close()
    assert [*(tmp_path / "temporary").iterdir()] == []
    first.close()
    again = Journal.of({"model": "m"}, document)
    assert (again.is_kept, again.made("bf16")) == (True, None)
    again.model("fp16").write_bytes(b"")
    assert again.made("fp16") == ""
    again.forget()
    assert [*(tmp_path / "cache" / "dld-tui" / "tune").iterdir()] == []
    again.close()
    document.close()
