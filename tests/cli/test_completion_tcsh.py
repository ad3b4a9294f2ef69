"""Completion in a real tcsh: what Tab makes of a line."""

from __future__ import annotations

import os
import pty
import select
import shutil
import sys
import time
from pathlib import Path

import pytest

from tests.support.cli import process


def _complete(line: str) -> list[str]:
    variables = {**os.environ, "_DLD_COMPLETE": "tcsh_complete", "COMMAND_LINE": line}
    return process(env=variables).stdout.split()


def test_words_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dir").mkdir()
    for name in ("model.onnx", "my model.onnx", "dir/a.onnx"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert _complete("dld insp") == ["inspect"]
    assert _complete("dld inspect m") == ["model.onnx"]  # tcsh would cut the other at its blank
    assert _complete("dld inspect ") == ["dir/", "model.onnx"]
    assert _complete("dld inspect d") == ["dir/", "dir/a.onnx"]
    assert _complete("dld inspect 'mod") == ["model.onnx"]
    assert _complete("dld inspect --nod") == ["--nodes"]
    assert _complete("dld doctor --target l") == ["local"]


@pytest.mark.skipif(shutil.which("tcsh") is None, reason="no tcsh here")
def test_a_tab_in_tcsh(tmp_path: Path) -> None:
    program = tmp_path / "dld"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dld_tui "$@"\n')
    program.chmod(0o755)
    pid, master = pty.fork()
    if not pid:
        os.environ["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
        os.chdir(tmp_path)
        os.execlp("tcsh", "tcsh", "-f")
    try:
        os.write(master, b'set prompt="> "\reval "`dld completion tcsh`" && echo rea""dy\r')
        _read_until(master, b"ready")
        os.write(master, b"dld inspe\t--jso\t")
        assert b"inspect --json" in _read_until(master, b"inspect --json")
    finally:
        os.close(master)
        os.waitpid(pid, 0)


def _read_until(master: int, text: bytes) -> bytes:
    got, limit = b"", time.monotonic() + 60
    while text not in got and time.monotonic() < limit:
        if select.select([master], [], [], 0.1)[0]:
            got += os.read(master, 4096)
    return got
