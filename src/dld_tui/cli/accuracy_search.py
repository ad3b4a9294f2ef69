"""The result of ``dld accuracy --search`` as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dld_tui.cli.output import write, write_table
from dld_tui.core import fmt
from dld_tui.core.accuracy.result import cosine_text, figure, signal_text
from dld_tui.core.accuracy.search import cost_text, kept_table, not_minimal_text
from dld_tui.core.accuracy.statistics import TensorError
from dld_tui.core.codec import decode
from dld_tui.core.text import visible


def show_search(result: Mapping[str, Any], model: Path) -> None:
    """Print what a search found, for people."""
    precision = result["precision"]
    is_int8 = precision == "int8"
    if "kept" not in result:
        write(cost_text(result["estimate"]))
        return
    cost = f"{fmt.plural(result['trials'], 'trial')} in {fmt.duration(result['seconds'])}"
    kept = result["kept"]
    if kept is None:
        write(f"No set of nodes is enough: {cost}")
        write("The outputs are not within their tolerances even with all nodes kept in fp32")
        return
    if not result["minimal"]:
        write(not_minimal_text(result))
        _write_nodes(kept)
    elif kept:
        write(f"{fmt.plural(len(kept), 'node')} must stay in fp32; without any of them an output is"
              " not within its tolerance")  # fmt: skip
        _write_nodes(kept)
    elif not result["candidates"]:
        write(f"There is no node that {precision} changes")
        return
    else:
        write("All nodes can be quantized" if is_int8 else f"All nodes can compute in {precision}")
    write(f"{fmt.plural(result['lowered'], 'node')} in {precision}; {cost}")
    for name, data in result["errors"].items():
        error = decode(TensorError, data)
        write(
            f"{visible(name)}: largest error {figure(error.max_abs)}, cosine"
            f" {cosine_text(error.cosine)}, SNR {signal_text(error)} dB"
        )
    write()
    script = result["script"]
    if is_int8 and kept:
        given = "--exclude NAME …" if script is None else f"--exclude-from {visible(script)}"
        path = visible(str(model))
        write(f"Quantize the others: dld convert quantize {path} --calibration DIR {given} -o OUT")
        if script is None:
            write("Add --script nodes.txt to write the names to a file for --exclude-from")
    elif is_int8:
        write("Quantize it: dld convert quantize --calibration DIR")
    elif script is None:
        write("Add --script precisions.jsonl to write the edit script that sets the precisions")
    else:
        path, file = visible(str(model)), visible(script)
        write(f"Set the precisions: dld edit {path} {file} -o OUT")


def _write_nodes(kept: Sequence[Mapping[str, Any]]) -> None:
    write_table(kept_table(kept))
