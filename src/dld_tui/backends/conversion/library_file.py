"""A conversion by a library that reads and writes files, in a separate process.

The library gets a view of the model: a small file that references the weights in place.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from dld_tui.backends.onnxruntime.runtime import RAISE_LIMITS
from dld_tui.backends.processes import run_tool
from dld_tui.core import fmt
from dld_tui.core.codec import encode
from dld_tui.core.conversion.copies import copy_of, open_model, restore_dropped
from dld_tui.core.errors import ActivityError, TimeLimitError, UnavailableError, UsageError
from dld_tui.core.events import Event, Progress
from dld_tui.core.files.model_set import discard_view, external_view
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.document.summary import summarise
from dld_tui.core.model.operators.native import trial_limits
from dld_tui.core.process.child import free_memory
from dld_tui.core.process.installation import install_hint
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON


def by_library(
    document: Document,
    module: str,
    options: Any,
    stage: str,
    stack: contextlib.ExitStack,
    steps: int = 0,
    limit_s: float | None = None,
    *,
    computed: bool = False,
) -> Generator[Event, None, Document]:
    """Convert a model with ``main`` of a module, and restore what that loses.

    Args:
        document: The model; it stays unchanged, and open until `stack` is closed.
        module: Its ``main`` gets the input file, the output file and the options as JSON in
            ``sys.argv[1:]``.
        options: A dataclass, or JSON data.
        stage: For the progress.
        stack: Closes the result and removes temporary files.
        steps: The number of input sets that it reads, if it reports their count in the file of
            :func:`step_file`.
        limit_s: A time limit in seconds; None is no limit.
        computed: As for :func:`~dld_tui.backends.processes.run_tool`.

    Returns:
        The result, without a path.

    Raises:
        ActivityError: The library failed, with its last message; or it took too long.
        SaveError: The disk is full.
    """
    folder = document.path.parent if document.path is not None else None
    whole = stack.enter_context(contextlib.closing(copy_of(document)))
    view = external_view(
        skeleton_bytes(whole), whole.blobs, folder, external=whole.external, values=True
    )
    stack.callback(discard_view, view)
    result = view.with_name(f"{view.stem}-out.onnx")
    counter = step_file(result)
    also = (result.with_name(f"{result.name}.{kind}") for kind in ("data", "plan"))
    for file in (result, *also, counter):
        stack.callback(file.unlink, missing_ok=True)
    limits = trial_limits(view.stat().st_size, summarise(document).weight_bytes)
    memory = limits.memory
    if steps:  # inputs of any size
        memory = max(memory, (free_memory() or 0) // 2)
    arguments = [str(view), str(result), json.dumps(encode(options))]
    running = run_tool(module, arguments, limit_s, memory, computed=computed)
    with contextlib.closing(running):
        while True:
            try:
                passed = next(running)
            except StopIteration as stop:
                end = stop.value
                break
            done = _count(counter) if steps else 0
            if 0 < done < steps:
                yield Progress(done, steps, "sets", stage)
            else:
                yield Progress(round(passed, 1), None, "s", stage)
    if end.timed_out:
        raise TimeLimitError(f"{stage}: stopped after {limit_s:.3g} s")
    if end.lacked_memory:
        raise ActivityError(
            f"{stage}: it takes over {fmt.size(memory)}",
            hint=RAISE_LIMITS,
            details=end.output,
        )
    if end.status != 0 or not result.exists():
        raise ActivityError(f"{stage}: {_last(end.output, end.crashed)}", details=end.output)
    converted = open_model(result)
    stack.callback(converted.close)
    restore_dropped(document, converted)
    return converted


def step_file(target: Path) -> Path:
    """Return the file in which a library that writes a file says how far it is."""
    return target.with_name(f"{target.name}.progress")


def _count(counter: Path) -> int:
    try:
        return int(counter.read_text(encoding="ascii"))
    except (OSError, ValueError):  # not there yet, or half written
        return 0


def _last(output: str, crashed: str | None) -> str:
    if crashed is not None:
        return f"the library crashed ({crashed})"
    lines = [line for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "Error" in line or "[E]" in line or "!" in line[:3]]
    last = (errors or lines or ["it ended without a message"])[-1]
    return clip(visible(" ".join(last.removeprefix("[!] ").split())), 300)


_NEEDED = {
    "onnxruntime": ("onnxruntime",),
    "polygraphy": ("polygraphy", "onnx_graphsurgeon", "onnxconverter_common"),
}
_INSTALL = {
    "onnxruntime": ("cpu",),
    "polygraphy": ("polygraphy", "onnxconverter-common"),
}
_EXTERNAL_BYTES = 1 << 30
"""Bytes of a model from which its weights go to a file of their own."""


def convert_fp16(
    document: Document,
    library: str,
    stack: contextlib.ExitStack,
    options: Mapping[str, JSON],
) -> Generator[Event, None, Document]:
    """Convert a model; see :func:`~dld_tui.backends.conversion.library_file.by_library`.

    Raises:
        UnavailableError: The library is not installed.
        UsageError: It has no such option.
    """
    missing = [name for name in _NEEDED[library] if importlib.util.find_spec(name) is None]
    if missing:
        raise UnavailableError(
            f"{' and '.join(missing)} not installed", hint=install_hint(*_INSTALL[library])
        )
    if library == "polygraphy" and (options["op_block"] or options["node_block"]):
        raise UsageError("Polygraphy's converter has no block lists", hint="Use another --library")
    result = yield from by_library(
        document,
        f"{__name__}:fp16_main",
        {"library": library, **options},
        f"Converting with {library}",
        stack,
    )
    return result


def fp16_main() -> None:
    """Convert the model of the first argument; write the second; options are the third."""
    source, target = (str(Path(argument).absolute()) for argument in sys.argv[1:3])
    with temporary_folder("fp16") as scratch:
        os.chdir(scratch)  # where ONNX Runtime leaves a file when it cannot infer all shapes
        try:
            _convert_file(source, target, json.loads(sys.argv[3]))
        finally:
            os.chdir(Path(target).parent)


def _convert_file(source: str, target: str, options: Mapping[str, Any]) -> None:
    import onnx

    model = onnx.load(source)
    if options["library"] == "onnxruntime":
        from onnxruntime.transformers.float16 import (
            DEFAULT_OP_BLOCK_LIST,
            convert_float_to_float16,
        )

        model = convert_float_to_float16(
            model,
            keep_io_types=options["keep_io_types"],
            op_block_list=[*DEFAULT_OP_BLOCK_LIST, *options["op_block"]],
            node_block_list=options["node_block"],
        )
    else:
        from polygraphy.backend.onnx import ConvertToFp16

        model = ConvertToFp16(model)()
    large = model.ByteSize() > _EXTERNAL_BYTES
    onnx.save_model(
        model, target, save_as_external_data=large,
        location=f"{Path(target).name}.data" if large else None,
    )  # fmt: skip
