"""Take models through all that is done with one, and print what came of it as a table.

    python -m scripts.walk MODEL... [--only fp16,check] [--out DIR] [--log FILE]

Each step is a `dld` command in a process of its own. A cell says how many seconds it took, and
where it went wrong why: `ort` for a failure that names ONNX Runtime as its cause, `FAIL` for any
other, `false` for an error that `dld check` finds in a model which ONNX Runtime loads, `lost` for
an edited copy whose values differ. What the commands printed of these stands in the log.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import onnx

LIMIT_S = 600.0
OF_RUNTIME = ("ONNX Runtime", "onnxruntime", "ORT ")


@dataclass(frozen=True)
class Step:
    """One command."""

    name: str
    arguments: tuple[str, ...]
    """`{model}`, `{out}` (a name without its end in the folder for results), `{nodes}`."""
    needs: str = ""
    """What must be there: ``decoder``, or the end of a file that another step wrote."""


STEPS = tuple(
    Step(name, tuple(words.split()), needs)
    for name, words, needs in (
        ("inspect", "inspect {model} --json", ""),
        ("cost", "inspect {model} --cost --json", ""),
        ("check", "check {model} --json", ""),
        ("draw", "draw {model} -o {out}.svg --force", ""),
        ("fp16", "convert fp16 {model} -o {out}.fp16.onnx --force --no-measure", ""),
        ("sanitize", "convert sanitize {model} -o {out}.clean.onnx --force --no-measure", ""),
        (
            "dynamic",
            "convert quantize {model} --dynamic -o {out}.int8.onnx --force --no-measure",
            "",
        ),
        (
            "int4",
            "convert quantize {model} --weights-only --weights int4 --block 32"
            " -o {out}.int4.onnx --force --no-measure",
            "",
        ),
        ("back", "convert dequantize {out}.int4.onnx -o {out}.back.onnx --force", ".int4.onnx"),
        ("diff", "diff {model} {out}.int4.onnx --json", ".int4.onnx"),
        ("extract", "extract {model} --nodes {nodes} -o {out}.part.onnx --force", ""),
        ("edit", "edit {model} {out}.jsonl -o {out}.edited.onnx --force", ""),
        ("values", "accuracy {out}.edited.onnx --against {model} --json", ".edited.onnx"),
        ("profile", "profile onnxruntime {model} --iterations 3 -o {out}.dldprof --force", ""),
        (
            "llm",
            "profile llm {model} --prompt 8 --decode 4 --iterations 1 --layer-passes 1"
            " -o {out}.llm.dldprof --force",
            "decoder",
        ),
    )
)


def main() -> None:
    """Walk."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--only", default="", help="Names of steps, separated by commas.")
    parser.add_argument("--out", type=Path, help="Folder for results; by default a scratch one.")
    parser.add_argument("--log", type=Path, default=Path("walk.log"))
    asked = parser.parse_args()
    only = set(filter(None, asked.only.split(",")))
    steps = [step for step in STEPS if not only or step.name in only]
    print("  ".join(f"{name:>9}" for name in ("model", *(step.name for step in steps))))
    with tempfile.TemporaryDirectory() as scratch, asked.log.open("w", encoding="utf-8") as log:
        for path in asked.models:
            out = (asked.out or Path(scratch)) / path.stem
            out.parent.mkdir(parents=True, exist_ok=True)
            model = onnx.load(path, load_external_data=False)
            prepare(model, out)
            print(f"{path.stem[:9]:>9}", end="", flush=True)
            for step in steps:
                cell = walk(step, path, out, model, log)
                print(f"  {cell:>9}", end="", flush=True)
            print()


def prepare(model: onnx.ModelProto, out: Path) -> None:
    """Write the edit script of a model: its first named node is called otherwise."""
    named = next((node.name for node in model.graph.node if node.name), None)
    edit = {"edit": "rename_node", "scope": [], "node": named or "#0", "name": "walked"}
    out.with_name(f"{out.name}.jsonl").write_text(json.dumps(edit) + "\n", encoding="utf-8")


def walk(step: Step, path: Path, out: Path, model: onnx.ModelProto, log: TextIO) -> str:
    """Run one step and return its cell."""
    middle = model.graph.node[len(model.graph.node) // 2 :][:3]
    words = {"model": str(path), "out": str(out),
             "nodes": ",".join(node.name or node.output[0] for node in middle)}  # fmt: skip
    if step.needs == "decoder":
        if not any("past" in value.name for value in model.graph.input):
            return "-"
    elif step.needs and not out.with_name(out.name + step.needs).exists():
        return "-"
    command = [word.format(**words) for word in step.arguments]
    begin = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dld_tui", *command],
            capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "LATE"
    seconds = time.monotonic() - begin
    verdict = judge(step, path, done)
    if verdict or len(done.stderr) > 4000:
        shown = f"== {path.stem} {step.name}: {verdict or 'long'} (exit {done.returncode},"
        print(f"{shown} {len(done.stderr)} bytes of errors)\n{' '.join(command)}", file=log)
        print(done.stdout[-3000:], done.stderr[-2000:], sep="\n", file=log, flush=True)
    return f"{seconds:.1f}{' ' if verdict else ''}{verdict}"


def judge(step: Step, path: Path, done: subprocess.CompletedProcess[str]) -> str:
    """Return what went wrong, empty for nothing."""
    if step.name == "check" and done.returncode in (0, 1):
        found = json.loads(done.stdout)["findings"]
        wrong = [one for one in found if one["level"] == "error"]
        return "false" if wrong and loads(path) else ""
    if done.returncode == 0 or (step.name == "diff" and done.returncode == 1):
        return ""
    if step.name == "values" and done.returncode == 1:
        return "lost"
    lines = done.stderr.strip().splitlines()
    said = next((line for line in lines if line.startswith("dld:")), lines[-1] if lines else "")
    return "ort" if any(word in said for word in OF_RUNTIME) else "FAIL"


def loads(path: Path) -> bool:
    """Return whether ONNX Runtime makes a session of a model."""
    code = "import onnxruntime as o, sys; o.InferenceSession(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=False)
    return done.returncode == 0


if __name__ == "__main__":
    main()
