from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.activities.convert import merge, opset
from dld_tui.activities.profile import llm as profile_llm
from dld_tui.activities.profile import onnxruntime as profile_onnxruntime
from dld_tui.core.errors import InputError, SaveError
from dld_tui.core.events import Cancelled, Event, Failed, Finished, Log, Progress
from dld_tui.core.files.external import ExternalDataError
from dld_tui.core.params import to_json
from dld_tui.core.report.report import open_report
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.targets.ssh import job as ssh_job
from dld_tui.targets.ssh.job import external_files, placed, plan_inputs
from dld_tui.targets.ssh.results import End, Listener, Records
from tests.support import decoders, models
from tests.support.recorded import Recorded, fields_of, settled
from tests.support.ssh_jobs import REAL, files_in, script, target_of

HOSTILE = "a b'$(touch owned)`x`;\n-\x1b[31m.onnx"


def external_model(folder: Path, name: str = "model.onnx") -> Path:
    """Write a model with weights in a file in a folder beside it."""
    model = models.parse(models.CHAIN)
    (folder / "weights").mkdir()
    weight = np.arange(2000, dtype=np.float32)
    tensor = onnx.numpy_helper.from_array(weight, "big")
    (folder / "weights" / "w.bin").write_bytes(weight.tobytes())
    onnx.external_data_helper.set_external_data(tensor, "weights/w.bin", 0, weight.nbytes)
    tensor.ClearField("raw_data")
    model.graph.initializer.append(tensor)
    path = folder / name
    path.write_bytes(model.SerializeToString())
    return path


def test_a_location_that_needs_a_folder_of_here_is_not_sent(tmp_path: Path) -> None:
    path = external_model(tmp_path)
    model = onnx.load(path, load_external_data=False)
    missing = model.graph.initializer.add(raw_data=b"12345678")
    onnx.external_data_helper.set_external_data(missing, "a missing file")
    path.write_bytes(model.SerializeToString())
    assert external_files(path) == [("weights/w.bin", tmp_path / "weights" / "w.bin")]
    del model.graph.initializer[-1]
    [location] = [one for one in model.graph.initializer[-1].external_data if one.key == "location"]
    location.value = "weights/../weights/w.bin"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ExternalDataError, match=r"a location with \.\. cannot be sent"):
        external_files(path)


@pytest.mark.broad
def test_the_report_of_a_run_that_is_stopped_comes_back(
    connection: Connection, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    model = models.write(tmp_path, models.layered())
    report = tmp_path / "part.dldprof"
    request = profile_onnxruntime.Request(
        model, report, shape=("x:2x4",), duration=0.1, layer_passes=50_000
    )
    job = target_of(connection, REAL).start("profile_onnxruntime", to_json(request))
    seen: list[Event] = []
    for event in job.events():
        seen.append(event)
        if isinstance(event, Progress) and event.stage == "Measuring layers" and event.done > 2:
            job.cancel()
    assert seen[-1] == Cancelled()
    opened = open_report(report)
    assert opened.model["path"] == str(model)
    assert any(isinstance(event, Log) and str(report) in event.text for event in seen)


def test_a_model_goes_with_its_data_and_the_result_comes_back(
    connection: Connection, tmp_path: Path
) -> None:
    model = external_model(tmp_path)
    target = target_of(connection, REAL)
    before = files_in(tmp_path)
    request = to_json(opset.Request(model, tmp_path / "out.onnx", 20))
    with target.start("convert_opset", request) as job:
        assert job.result()["path"] == str(tmp_path / "out.onnx")
    there = onnx.load(tmp_path / "out.onnx", load_external_data=False)
    assert there.opset_import[0].version == 20
    assert there.graph.initializer
    new = {name for name in files_in(tmp_path) if not name.startswith("deployed/")} - {*before}
    assert new == {"out.onnx", "out.onnx.data"}
    assert onnx.load(tmp_path / "out.onnx")  # its data are beside it


@pytest.mark.broad
def test_hostile_names_are_only_names(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "x"
    folder.mkdir()
    monkeypatch.chdir(folder)
    model = models.write(folder, models.CHAIN, HOSTILE)
    output = folder / f"-o {HOSTILE}"
    request = to_json(opset.Request(model, output, 20))
    with target_of(connection, REAL).start("convert_opset", request) as job:
        assert job.result()["path"] == str(output)
    assert sorted(os.listdir(folder)) == sorted([model.name, output.name])
    assert "owned" not in files_in(Path(connection.directory))


def planned(activity: str, request: Any, *replaces: Path) -> str:
    """Return all of a plan: what is sent, asked for, fetched and renamed."""
    data = to_json(request, map(str, replaces))
    plan = plan_inputs(activity, data, "/job")
    lines = [f"{place} is {file.path}" for place, file in plan.files]
    lines += [fields_of(output) for output in plan.outputs]
    lines += [f"{there} is {here}" for there, here in plan.renames.items()]
    request = placed(plan.request, "/job", "/there")
    assert isinstance(request, dict)
    asked = {name: value for name, value in request.items() if value != data[name]}
    return "\n".join([*lines, f"folders {plan.folders}", f"settings {asked}"])


def test_what_is_sent_and_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recorded: Recorded
) -> None:
    monkeypatch.chdir(tmp_path)
    external_model(tmp_path)
    models.write(tmp_path, models.CHAIN, "small.onnx")
    decoder = decoders.folder(tmp_path / "genai") / "model.onnx"
    whole = onnx.load(decoder)
    onnx.save(whole, decoder, save_as_external_data=True, location="w.data", size_threshold=0)
    for name in (
        "data/test_data_set_0/input_0.pb", "data/b.npy", "data/a.npy", "r.prefill.dldprof",
        "genai/tokenizer.json", "genai/model_fp16.onnx", "genai/w_fp16.data", "genai/notes.pdf",
    ):  # fmt: skip
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(b"12345")
    os.mkfifo("data/pipe")
    model, report = Path("model.onnx"), tmp_path / "r.dldprof"
    of_llm = profile_llm.Request(Path("genai"), Path("r.dldprof"))
    with_inputs = profile_onnxruntime.Request(model, inputs=Path("data"))
    texts = {
        "inputs": planned("profile_onnxruntime", with_inputs),
        "a decoder": planned("profile_llm", of_llm),
        "its model": planned("profile_llm", replace(of_llm, model=Path("genai/model.onnx"))),
        "no decoder": planned("profile_llm", replace(of_llm, model=Path("data"))),
        "a file may be replaced": planned("profile_llm", of_llm, report),
        "files beside it, too": planned(
            "profile_llm", of_llm, Path("r.prefill.dldprof").absolute()
        ),
        "several models": planned(
            "convert_merge",
            merge.Request(model, Path("out.onnx"), others=(Path("small.onnx"), model)),
        ),
    }
    recorded("ssh_plans", {title: settled(text, tmp_path) for title, text in texts.items()})
    monkeypatch.setattr(ssh_job, "_MOST_FILES", 4)
    assert len(plan_inputs("profile_llm", to_json(of_llm), "/job").files) == 4
    with pytest.raises(InputError, match="more than 4 files"):
        plan_inputs("profile_onnxruntime", to_json(with_inputs), "/job")


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ({"report": "/etc/passwd"}, {"report": "box:/etc/passwd"}),
        ({"report": "secret"}, {"report": "box:secret"}),
        ({"report": "/job/out/r"}, {"report": "here"}),
        ({"note": "free text"}, {"note": "free text"}),
        ({"n": 3}, {"n": 3}),
    ],
)
def test_a_target_cannot_name_a_file_of_this_machine(
    result: dict[str, str], shown: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").touch()
    listener = Listener("box", "/job", {"/job/out/r": "here"})
    listener.event("o", json.dumps({"event": "finished", "result": result}).encode())
    assert listener.end(End(0, False, "")) == Finished({**shown})


@pytest.mark.parametrize(
    "text",
    [b"\xff\xfe", b"{" * 9999, b'{"event": "finished", "result": 5}', b'{"event": []}', b"null"],
)
def test_hostile_records_are_only_lines_of_the_log(text: bytes) -> None:
    listener = Listener("box", "/job", {})
    assert isinstance(listener.event("o", text), Log)
    assert isinstance(listener.end(End.parse(text)), Failed)


def test_records_are_counted_by_what_is_whole() -> None:
    records = Records("box")
    assert list(records.feed(b"h\noone\nh\neta")) == [("o", b"one")]
    assert records.offset == 5
    records.restart()  # the connection was lost: it comes again from there
    assert list(records.feed(b"etail\nx{}\n")) == [("e", b"tail"), ("x", b"{}")]


@pytest.mark.broad
def test_an_output_that_was_not_written_is_told(connection: Connection, tmp_path: Path) -> None:
    request, output = script(["finish", {"a": 1}]), tmp_path / "o"
    asked = to_json(opset.Request(models.write(tmp_path, models.CHAIN), output, 20))
    request.settings = (*request.settings, *(s for s in asked.settings if s.name == "output"))
    request["output"] = str(output)
    with target_of(connection).start("fake", request) as job:
        assert isinstance(job.wait(), Failed)  # the worker knows no such setting
    assert not output.exists()


def test_what_is_not_there_never_reaches_the_target(tmp_path: Path) -> None:
    model = models.write(tmp_path, models.CHAIN)
    for request, error, said in (
        (profile_onnxruntime.Request(tmp_path / "none.onnx"), InputError, "File not found"),
        (profile_onnxruntime.Request(model, tmp_path / "none" / "r"), SaveError, "does not exist"),
    ):
        with pytest.raises(error, match=said):
            plan_inputs("profile_onnxruntime", to_json(request), "/job")
