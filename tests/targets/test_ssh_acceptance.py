"""The whole way: a bare target behind a jump host, profiled twice, with the cable pulled once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.profile.onnxruntime import Request
from dld_tui.activities.registry import load
from dld_tui.core.events import Event, Finished, Log, Metric
from dld_tui.core.model.document.document import Document
from dld_tui.core.params import to_json
from dld_tui.core.reading.export import report_json
from dld_tui.core.report.report import open_report
from dld_tui.core.settings.saved_targets import Connection, changed
from dld_tui.targets.process import LocalTarget
from dld_tui.targets.ssh.target import SshTarget
from tests.support import models
from tests.support.asker import Answers
from tests.support.slow_line import SlowLine
from tests.support.ssh_jobs import BARE, REAL, target_of, until
from tests.support.sshd import Sshd


@pytest.mark.real_workers
def test_a_bare_target_behind_a_jump_host(
    connection: Connection, sshd: Sshd, jump: Sshd, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    model = models.write(tmp_path, models.layered())
    jump.allow(sshd.user_key)
    config = Path("~/.ssh/config").expanduser()
    config.parent.mkdir(mode=0o700)
    config.write_text(f"IdentityFile {sshd.user_key}\n")
    with SlowLine(jump.port) as line:
        known_hosts = tmp_path / "known_hosts_both"
        known_hosts.write_text(
            sshd.known_line + jump.known_line.replace(f":{jump.port} ", f":{line.port} ")
        )
        target = SshTarget(
            changed(
                connection, python=BARE, known_hosts=known_hosts,
                jump=f"{line.host}:{line.port}", config=True,
            ),
            Answers(),
            REAL,
        )  # fmt: skip

        def request(name: str, seconds: float) -> Request:
            return Request(model, tmp_path / name, shape=("x:2x4",), duration=seconds)

        # The first time everything is missing there; the cable is pulled while it measures.
        job = target.start("profile_onnxruntime", to_json(request("first.dldprof", 5)))
        until(job, Metric)
        line.cut()
        until(job, Log)
        line.mend()
        first = list(job.events())
        carried = line.carried
        again = target.start("profile_onnxruntime", to_json(request("second.dldprof", 0.2)))
        second = list(again.events())
        carried = line.carried - carried

    assert isinstance(first[-1], Finished), first[-1]
    assert isinstance(second[-1], Finished), second[-1]
    assert job.bytes_sent > 100_000
    assert carried < 1_000_000
    with LocalTarget().start("profile_onnxruntime", to_json(request("local.dldprof", 0.2))) as here:
        here.result()
    shapes = [form(tmp_path / f"{name}.dldprof") for name in ("local", "first", "second")]
    assert shapes[0] == shapes[1] == shapes[2]


def form(path: Path) -> str:
    """Return what is the same in every report of this model: fields, layers, and the model."""
    report = open_report(path)
    document = report_json(report, "layer")
    document["passes"] = "…"
    kept = {
        "fields": sorted(document),
        "settings": sorted(report.settings),
        "environment": sorted(report.environment),
        "facts": sorted(report.properties),
        "model": report.model,
        "problem": report.model_problem(),
        "layers": [[layer.name, layer.type, layer.provider] for layer in report.layers],
    }
    return json.dumps(kept, sort_keys=True, default=str)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Give a Python without a package but pip."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, timeout=120)
    return str(folder / "venv" / "bin" / "python")


def run(connection: Connection, python: str, activity: str, **settings: Any) -> list[Event]:
    request = to_json(load(activity).request(**settings))
    with target_of(connection, REAL, python=python).start(activity, request) as job:
        return list(job.events())


@pytest.mark.real_workers
@pytest.mark.skipif(
    not os.environ.get("DLD_TEST_INSTALL"),
    reason="DLD_TEST_INSTALL is not set: it installs packages",
)
@pytest.mark.timeout(1200)
def test_each_conversion_runs_on_a_bare_target(
    connection: Connection, bare: str, tmp_path: Path
) -> None:
    model = models.write(tmp_path, models.layered())
    jobs: dict[str, dict[str, Any]] = {
        "convert_external": {"threshold": 0},
        "convert_strip": {"threshold": 1},
        "convert_opset": {"to": 18},
        "convert_inline": {},
        "convert_clean": {"sort": True},
        "convert_dequantize": {},
        "convert_restore": {"weights": model},
        "convert_fp16": {},
        "convert_bf16": {},
        "convert_tensors": {"to": "float16"},
        "convert_precisions": {},
        "convert_shape": {"dim": ("x:0=N",)},
        "convert_quantize": {"dynamic": True},
        "convert_sanitize": {},
    }
    failed = []
    for activity, settings in jobs.items():
        output = tmp_path / f"{activity}.onnx"
        source = {"convert_inline": "convert_external", "convert_restore": "convert_strip"}.get(
            activity
        )
        events = run(
            connection, bare, activity,
            model=tmp_path / f"{source}.onnx" if source else model, output=output,
            **settings,
        )  # fmt: skip
        if not isinstance(events[-1], Finished):
            failed.append((activity, events[-1]))
            continue
        with_document = Document.open(output)
        with_document.close()
    events = run(connection, bare, "accuracy", model=model, against=str(model))
    if not isinstance(events[-1], Finished):
        failed.append(("accuracy", events[-1]))
    assert failed == []
