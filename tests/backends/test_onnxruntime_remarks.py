from __future__ import annotations

from dld_tui.backends.onnxruntime.profiling import copies_note, fallback_notes
from dld_tui.backends.onnxruntime.session import Copies
from dld_tui.core.report.formats.ort_profile import Kernel, kernel_from


def kernels(provider: str, *names: str, op_type: str = "Resize") -> list[Kernel]:
    arguments = {"op_name": op_type, "provider": f"{provider}ExecutionProvider"}
    return [kernel_from(name, dict(arguments)) for name in names]


def test_nodes_on_the_cpu_are_named() -> None:
    found = fallback_notes([*kernels("CUDA", "conv"), *kernels("CPU", "up", "\x1b[2Jdown")], "CUDA")

    (note,) = found
    assert note.kind == "warning"
    assert note.text.startswith("2 of 3 nodes ran on the CPU: up (Resize), ")
    assert "\x1b" not in note.text


def test_a_long_list_is_cut() -> None:
    (note,) = fallback_notes(kernels("CPU", *(f"n{number}" for number in range(40))), "CUDA")

    assert note.text.endswith("n11 (Resize) and 28 more.")


def test_copies_between_them_are_counted() -> None:
    copy = kernels("CUDA", "copy", op_type="MemcpyToHost")

    assert [note.text for note in fallback_notes(copy, "CUDA")] == [
        "1 node copies between the CPU and the device."
    ]


def test_where_all_is_as_wanted_nothing_is_said() -> None:
    assert fallback_notes(kernels("CUDA", "conv"), "CUDA") == []
    assert fallback_notes(kernels("CPU", "conv"), "CPU") == []


def test_what_the_latency_is_without() -> None:
    note = copies_note(Copies(0.5, 0.25, 1024, 16), ["words"])

    assert "bringing the inputs takes 0.500 ms (1,024 bytes)" in note.text
    assert note.text.endswith("Inputs that stay in the memory of the CPU: words.")
