"""The start of a session, by stages that add up, and where nodes go before a run."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from dld_tui.activities.startup import Request, run
from dld_tui.backends.onnxruntime.startup import release_memory, why_elsewhere
from dld_tui.core.errors import TimeLimitError
from dld_tui.core.report.startup import SessionStartup
from tests.support.activities import finished
from tests.support.models import PLAIN_BRANCHES, write

pytest.importorskip("onnxruntime")
LOG = """
2026 [V:onnxruntime:, cuda_execution_provider.cc:1 GetCapability] CUDA kernel not found in registries for Op type: NonZero node name: /mask/NonZero
2026 [I:onnxruntime:, fallback_cpu_capability.cc:1 GetCpuPreferredNodes] ForceFallback to CPU execution for node: /shape/Gather because the CPU execution path is deemed faster than overhead involved with execution on other EPs capable of executing this node
"""  # noqa: E501


def test_the_stages_add_up_and_each_node_has_a_provider(tmp_path: Path) -> None:
    path = write(tmp_path, PLAIN_BRANCHES)
    found = finished(run(Request(path, repeats=2, shape=("x:3x4",))))
    assert isinstance(found, SessionStartup)
    assert sum(stage.ms for stage in found.stages) == pytest.approx(found.session_ms)
    assert [len(stage.repeats_ms) for stage in found.stages] == [2] * 6
    for stage in found.stages[:2]:  # of two repeats, medians are means, also of differences
        assert sum(stage.repeats_ms) / 2 == pytest.approx(stage.ms)
    assert 0 < found.first_ms < 100_000, "not the clock itself"
    assert 0 < found.later_ms < 100_000
    assert {node.provider for node in found.nodes} <= {"CPU"}
    assert found.elsewhere == []


def test_an_error_at_any_stage_names_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object) -> float:
        raise TimeLimitError("it takes over 6 s")

    path = write(tmp_path, PLAIN_BRANCHES)
    monkeypatch.setattr("dld_tui.backends.onnxruntime.startup.time_session", ended)
    with pytest.raises(TimeLimitError) as raised:
        list(run(Request(path, shape=("x:3x4",))))
    assert raised.value.where == str(path)


def own_bytes() -> int:
    """Return the memory of this process that no file backs."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    line = next(line for line in status.splitlines() if line.startswith("RssAnon"))
    return 1024 * int(line.split()[1])


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of the GNU C library")
def test_a_session_does_not_start_with_the_memory_of_those_before() -> None:
    chunks = [b"x" * 100_000 for _ in range(500)]
    last = b"y" * 100_000  # the heap does not shrink below it
    del chunks
    before = own_bytes()
    release_memory()
    assert own_bytes() < before - 25_000_000
    assert last


def test_the_reasons_are_those_of_the_log() -> None:
    assert why_elsewhere(LOG) == {
        "/mask/NonZero": "CUDA has no kernel of NonZero for these types",
        "/shape/Gather": "the CPU execution path is deemed faster than overhead involved with"
        " execution on other EPs capable of executing this node",
    }
