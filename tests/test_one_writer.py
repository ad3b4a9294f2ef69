"""Files are written in one place, whole or not at all; CSV, too, is made in one place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).resolve().parents[1] / "src" / "dld_tui"
WRITERS = {"core/files/writer.py"}
ELSEWHERE = {
    # A process's own temporary folder: nobody else reads it, and it goes with the process.
    "backends/conversion/verification.py": "the view of a model",
    "backends/model_checkers.py": "what a child process answers",
    "backends/onnxruntime/constants.py": "values for the edit that owns the scratch folder",
    "backends/onnxruntime/tensors.py": "the view of a model",
    "backends/onnxruntime/verdict.py": "parts of the view of a model",
    "backends/conversion/quantization.py": "how far a child process is",
    "backends/tensorrt/library.py": "what a child process answers",
    "backends/tensorrt/profiling.py": "files for the reader of engine plans",
    "activities/providers.py": "the view of a model for TensorRT's parser",
    "backends/onnxruntime/engine_layers.py": "layer information for its reader",
    "api/inference.py": "a snapshot for a child process",
    "api/requests.py": "inputs for a child process",
    "core/edits/model_swap.py": "the payloads of a conversion",
    "core/document/locations.py": "labels in the view of a model",
    "core/files/model_set.py": "the view of a model",
    "screens/workspace/jobs.py": "a snapshot for a child process",
    # Grows while it is read: a rename would hide it until its end.
    "core/trials.py": "a line a trial; one that is damaged is left out",
    "core/tune/journal.py": "a line is added to a journal",
    "core/document/scripting/journal.py": "a line an edit, so that a crash loses none",
    # Written by others, or on another machine: renamed when whole.
    "core/tensors/payloads.py": "under the hash of its content, renamed when it is whole",
    "core/process/terminal.py": "the terminal itself",
    "cli/help.py": "a paragraph for the terminal",
    "targets/ssh/remote/agent.py": "a bare Python on a target, which renames it when it is whole",
    "targets/ssh/remote/environment.py": "a bare Python on a target",
    "targets/ssh/remote/jobs.py": "the new folder of a job on a target",
    "targets/ssh/remote/objects.py": "a bare Python on a target, which renames it when it is whole",
    "targets/ssh/remote/supervisor.py": "events of a job, followed while they are written",
}
"""What writes by itself, and why."""


def calls(tree: ast.AST) -> Iterator[str]:
    """Yield the calls that write a file: open with a mode for it, write_text, os.replace."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        owner = function.value if isinstance(function, ast.Attribute) else None
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        constants = [value.value for value in values if isinstance(value, ast.Constant)]
        words = [value for value in constants if isinstance(value, str)]
        opens = name == "open" and any(
            set(word) & set("wxa") and set(word) <= set("rwxabt+") for word in words
        )
        writes = name in ("write_text", "write_bytes") and owner is not None
        renames = name in ("replace", "rename") and getattr(owner, "id", "") == "os"
        if opens or writes or renames:
            yield name


def test_files_are_written_by_the_writer() -> None:
    found = {}
    for path in sorted(SRC.rglob("*.py")):
        place = path.relative_to(SRC).as_posix()
        names = set(calls(ast.parse(path.read_text(encoding="utf-8"))))
        if names and place not in WRITERS:
            found[place] = names
    assert {place: names for place, names in found.items() if place not in ELSEWHERE} == {}
    assert set(ELSEWHERE) - set(found) == set(), "these write nothing any more"


def test_csv_is_made_in_one_place() -> None:
    makers = [
        path.relative_to(SRC).as_posix()
        for path in sorted(SRC.rglob("*.py"))
        if "csv.writer(" in path.read_text(encoding="utf-8")
    ]
    assert makers == ["core/tables/rendering.py"]
