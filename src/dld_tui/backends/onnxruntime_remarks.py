"""Remarks that a profiling run with ONNX Runtime leaves in its report."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.backends.onnxruntime_binding import Copies
from dld_tui.backends.onnxruntime_options import SUFFIX
from dld_tui.core import fmt
from dld_tui.core.report.ort_kernel import Kernel
from dld_tui.core.report.records import Note
from dld_tui.core.text import clip, visible

_LISTED = 12
_NAME_CELLS = 60
_COPY_TYPES = ("MemcpyFromHost", "MemcpyToHost")


def fallback_notes(kernels: Sequence[Kernel], preferred: str) -> list[Note]:
    """Return which kernels ran on the CPU although another provider was preferred.

    Args:
        kernels: All of the profile.
        preferred: Short name of the first provider, e.g. ``CUDA``.
    """
    if preferred == "CPU":
        return []
    on_cpu = [kernel for kernel in kernels if kernel.provider == f"CPU{SUFFIX}"]
    copies = sum(kernel.op_type in _COPY_TYPES for kernel in kernels)
    notes = []
    if on_cpu:
        named = ", ".join(_label(kernel) for kernel in on_cpu[:_LISTED])
        more = f" and {len(on_cpu) - _LISTED:,} more" if len(on_cpu) > _LISTED else ""
        text = f"{len(on_cpu):,} of {len(kernels):,} nodes ran on the CPU: {named}{more}."
        notes.append(Note(text, "warning"))
    if copies:
        noun = "node copies" if copies == 1 else "nodes copy"
        notes.append(Note(f"{copies:,} {noun} between the CPU and the device.", "warning"))
    return notes


def _label(kernel: Kernel) -> str:
    name = clip(visible(kernel.name), _NAME_CELLS, keep="end")
    return f"{name} ({visible(kernel.op_type)})"


def copies_note(copies: Copies, on_host: Sequence[str]) -> Note:
    """Return what the copies take that are not part of the latency."""
    ms = fmt.milliseconds
    text = (
        "The latency is without copies, as IO binding keeps inputs and outputs on the device:"
        f" bringing the inputs takes {ms(copies.inputs_ms)} ms ({copies.input_bytes:,} bytes),"
        f" fetching the outputs {ms(copies.outputs_ms)} ms ({copies.output_bytes:,} bytes)."
    )
    if on_host:
        names = ", ".join(clip(visible(name), _NAME_CELLS) for name in on_host[:_LISTED])
        text += f" Inputs that stay in the memory of the CPU: {names}."
    return Note(text)
