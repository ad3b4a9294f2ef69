"""Conversions and accuracy on a target with nothing but Python: what they need is brought there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.registry import load
from dld_tui.core.events import Event, Finished
from dld_tui.core.model.document.document import Document
from dld_tui.core.params import to_json
from dld_tui.core.settings.saved_targets import Connection
from tests.support import models
from tests.support.ssh_jobs import REAL, target_of


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
