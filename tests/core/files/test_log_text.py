"""What programs wrote, out of the logs of containers and schedulers."""

from __future__ import annotations

import json

import pytest

from dld_tui.core.files.log_text import unwrapped

LINES = ["&&&& RUNNING TensorRT.trtexec [TensorRT v8601] # trtexec", "", "[I] a: b | c", "end"]
TIME = "2026-11-28T10:00:00.123456789Z"
WRAPPED = {
    "docker, file, as json.dumps writes it": [json.dumps({"log": f"{line}\n", "time": TIME})
                                              for line in LINES],
    "docker, file": [json.dumps({"log": f"{line}\n", "stream": "stdout", "time": TIME},
                                separators=(",", ":")) for line in LINES],
    "docker --timestamps": [f"{TIME} {line}" for line in LINES],
    "docker compose": [f"build-1  | {line}" for line in LINES],
    "kubernetes": [f"{TIME} stdout F {line}" for line in LINES],
    "kubectl --prefix": [f"[pod/build-5f/main] {line}" for line in LINES],
    "kubectl --prefix --timestamps": [f"[pod/build-5f/main] {TIME} {line}" for line in LINES],
    "journalctl": [f"Nov 28 10:00:00 orin trtexec[123]: {line}" for line in LINES],
    "docker, file, stream first": [json.dumps({"stream": "stderr", "log": f"{line}\r\n"})
                                   for line in LINES],
    "docker build": [f"#12 3.{at:03} {line}" for at, line in enumerate(LINES)],
    "journalctl -o short-iso": [f"2026-11-28T10:00:00+0000 orin trtexec[123]: {line}"
                                for line in LINES],
    "gitlab": [f"{TIME} 00O {line}" for line in LINES],
    "jenkins": [f"[{TIME}] {line}" for line in LINES],
    "a time without a zone": [f"2026-11-28 10:00:00,123 {line}" for line in LINES],
    "ts": [f"Nov 28 10:00:00 {line}" for line in LINES],
    "mpirun --tag-output": [f"[1,0]<stdout>:{line}" for line in LINES],
    "srun --label": [f"0: {line}" for line in LINES],
    "colours": [f"\x1b[1;32m{line}\x1b[0m" for line in LINES],
    "nothing": LINES,
}  # fmt: skip


@pytest.mark.parametrize("lines", WRAPPED.values(), ids=WRAPPED)
def test_the_lines_of_the_program_are_found(lines: list[str]) -> None:
    assert unwrapped("\n".join(lines) + "\n").splitlines() == LINES


def test_lines_that_were_cut_or_are_of_others() -> None:
    text = f"{TIME} stdout P first and \n{TIME} stdout F second\n{TIME} stdout F third\n"
    assert unwrapped(text).splitlines() == ["first and second", "third"]
    lines = [f"trt-1  | {line}" for line in LINES * 2]
    assert unwrapped("\n".join(["Attaching to trt-1", *lines])).splitlines()[1:] == LINES * 2
    text = "0: node\nand its inputs\n1: node\n"
    assert unwrapped(text) == text
    text = '{"log":"a\\n","stream":"stdout"}\n{"log":"b\\n","str'
    assert unwrapped(text) == "a\n"
