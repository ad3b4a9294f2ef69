"""What ONNX Runtime's error texts mean, from those of versions 1.23 and 1.31."""

from __future__ import annotations

import re
from pathlib import Path

from dld_tui.core.errors import ActivityError, DldError, InputError
from dld_tui.core.text import visible

_INPUT_FAULTS = ("InvalidProtobuf", "NoSuchFile", "NoModel")
_LONGEST = 8_000
"""Texts may hold names of any length; what is looked at is bounded, so that the search is, too."""
_OP = r"(?P<op>[^\s\"'(),]{1,200})"
_NODE_PATTERNS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        rf"while running {_OP} node\. Name:'(?P<node>.*?)' Status Message: (?P<why>.*)",
        rf'In Node, \("(?P<node>.*?)", {_OP}, "[^"]*", -?\d+\) : .*, Error (?P<why>.*)',
        rf"(?P<why>Could not find an implementation for {_OP}\(\d+\)"
        r" node with name '(?P<node>.*)')",
        rf"Node \((?P<node>.*?)\) Op \({_OP}\) (?P<why>.*)",
        rf"(?P<why>Type '[^']*' of (?:input|output) .*? of operator \({_OP}\)"
        r" in node \((?P<node>.*)\) is .*)",
        rf"(?P<why>Type parameter \(\w+\) of Optype \({_OP}\) bound to different types .*?)"
        r" in node \((?P<node>.*)\)",
        rf"(?<!\S)(?P<why>{_OP}\(-?\d+\) is not a registered function/op)",
    )
)
_GPU_FAULTS = (
    "unspecified launch failure",
    "illegal memory access",
    "CUDA failure 46:",
    "CUDA failure 100:",
    "CUDA failure 214:",
    "CUDA failure 719:",
    "devices are busy or unavailable",
    "uncorrectable ECC error",
    "GPU is lost",
)
"""What ONNX Runtime passes on of CUDA when the device fails in the middle of a run."""
_PREFIX = re.compile(
    r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : "
    r"|Load model from .*? failed: ?"
    r"|This is an invalid model\. (?:Type Error: |Error: )?"
    r"|Exception during (?:initialization|loading): "
    r"|Fatal error: "
    r"|/\S*/onnxruntime/\S+\.(?:h|cc|cpp|cu):\d+ ",
    re.DOTALL,
)
_SIGNATURE = re.compile(
    r"^[\w:*&<>, ]+?\(.*?\)(?: const)? (?=\w+.*? was false\. |[A-Z])", re.DOTALL
)


def error_from(error: Exception, model: Path, doing: str, version: str) -> DldError:
    """Return the error to show for one that ONNX Runtime raised.

    Args:
        error: Of whatever class; its name tells an unreadable file from other faults.
        model: The file.
        doing: ``load`` or ``run``.
        version: Of ONNX Runtime.
    """
    full = str(error).strip()[:_LONGEST]
    where, why = str(model), full
    for pattern in _NODE_PATTERNS:
        if match := pattern.search(full):
            groups = match.groupdict()
            why = groups["why"]
            node = f"node {groups['node']!r}" if groups.get("node") else "a node"
            where = f"{model}: {node} ({visible(groups['op'])})"
            break
    message = _short(why)
    details = f"{type(error).__name__}: {full}"
    if type(error).__name__ in _INPUT_FAULTS:
        return InputError(f"ONNX Runtime cannot read it: {message}", where=where, details=details)
    return ActivityError(
        f"ONNX Runtime {version} cannot {doing} it: {message}",
        where=where,
        hint=_hint(full),
        details=details,
    )


def _short(text: str, limit: int = 300) -> str:
    """Return the sentence without the parts that name source files and functions."""
    for _ in range(4):
        text = _PREFIX.sub("", text, count=1).strip()
    text = _SIGNATURE.sub("", text)
    text = visible(" ".join(text.split())).rstrip(". ")
    return text if len(text) <= limit else text[:limit] + "…"


def _hint(text: str) -> str | None:
    if "llocate memory" in text or "bad_alloc" in text:
        return "It needs more memory than there is"
    if any(sign in text for sign in _GPU_FAULTS):
        return "The GPU failed or is gone: look at nvidia-smi and at the kernel's log (dmesg)"
    if "No Op registered" in text or "not a registered function/op" in text:
        return "The operator is not part of ONNX Runtime; it may need a custom operator library"
    if "Could not find an implementation" in text:
        return "There is no kernel for these types on this provider"
    return None
