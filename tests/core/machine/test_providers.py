"""What a form says of execution providers before a run."""

from __future__ import annotations

import pytest

from dld_tui.core.machine.providers import InstalledProviders, find_installed, provider_note


@pytest.mark.parametrize(
    ("known", "typed", "here", "text"),
    [(None, "CUDA", True, ""), ([], "CPU", True, "ONNX Runtime is not installed here"),
     (["CPU"], "CPU", True, ""), (["CUDA", "CPU"], "CPU", True, "here also CUDA"),
     (["CPU"], "CUDA, cpu", True, "no CUDA here, but CPU"), (["CPU"], "CUDA", False, "")],
)  # fmt: skip
def test_providers_are_told_before_a_run(
    known: list[str] | None,
    typed: str,
    here: bool,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(InstalledProviders, "names", known)
    assert provider_note(typed, {"provider": typed}, here) == text


def test_onnx_runtime_is_asked_for_its_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    monkeypatch.setattr(InstalledProviders, "names", None)
    find_installed()
    names = [f"{name}ExecutionProvider" for name in InstalledProviders.names or ()]
    assert "CPUExecutionProvider" in names
    assert set(names) <= set(onnxruntime.get_available_providers())
