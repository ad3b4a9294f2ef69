"""Whether enqueueing the work of an engine limits its throughput."""

from __future__ import annotations

_SHARE = 0.8
"""Of the GPU's time: the host that takes more to enqueue the work can hardly keep the GPU busy."""


def is_launch_bound(enqueue_ms: float, compute_ms: float) -> bool:
    """Return whether the host limits the throughput, by the medians of inferences."""
    return enqueue_ms > _SHARE * compute_ms


def enqueue_note(enqueue_ms: float, compute_ms: float) -> str:
    """Return the note about both medians; it says what helps where the host is the limit."""
    text = f"enqueueing takes {enqueue_ms:.3f} ms (median), the GPU {compute_ms:.3f} ms"
    is_bound = is_launch_bound(enqueue_ms, compute_ms)
    return f"Launch-bound: {text}; a CUDA graph would help" if is_bound else text
