"""What each conversion makes of each model, beside other converters: runs, values, size, speed.

Each runs in a process of its own, with its own command; what it writes is judged in another one,
as ``dld convert`` judges its own results: loaded and run by ONNX Runtime on a CPU, compared with
the model on the same inputs, and timed in turns with it. Calibration inputs are made for each. A
result counts as ``good`` within the tolerance of its conversion; a result that its converter itself
calls wrong is ``told``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import harness, operation_tasks, opset_tasks

_LIMIT_S = 240
_SETS = 2
_BIN = Path(sys.executable).parent
_ORT_FP16 = """
import sys, onnx
from onnxruntime.transformers.float16 import convert_float_to_float16
onnx.save(convert_float_to_float16(onnx.load(sys.argv[1])), sys.argv[2])
"""
_ORT_DYNAMIC = """
import sys
from onnxruntime.quantization import quantize_dynamic
quantize_dynamic(sys.argv[1], sys.argv[2])
"""
_ORT_STATIC = """
import sys
from pathlib import Path
import onnx
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, quantize_static

class Reader(CalibrationDataReader):
    def __init__(self):
        self.left = iter(sorted(Path(sys.argv[3]).iterdir()))

    def get_next(self):
        folder = next(self.left, None)
        tensors = [] if folder is None else [onnx.load_tensor(one) for one in folder.iterdir()]
        return {one.name: numpy_helper.to_array(one) for one in tensors} or None

quantize_static(sys.argv[1], sys.argv[2], Reader())
"""


@dataclass(frozen=True)
class Conversion:
    """One conversion, and those of others that do the same."""

    name: str
    agreement: str
    """What is near enough (:mod:`dld_tui.core.conversion.accuracy_criteria`)."""
    ours: Sequence[str]
    """Arguments of ``dld convert``; ``CALIBRATION`` stands for the folder of inputs."""
    peers: dict[str, Sequence[str]]
    """Commands; ``MODEL``, ``OUT`` and ``CALIBRATION`` are put in."""


def _script(text: str, *more: str) -> Sequence[str]:
    return (sys.executable, "-c", text, "MODEL", "OUT", *more)


CONVERSIONS = (
    Conversion("fp16", "FLOAT16", ("fp16",), {
        "onnxruntime": _script(_ORT_FP16),
        "polygraphy": ("polygraphy", "convert", "MODEL", "--fp-to-fp16", "-o", "OUT"),
    }),
    Conversion("fp16 --repair", "FLOAT16", ("fp16", "--repair"), {}),
    Conversion("bf16", "BFLOAT16", ("bf16",), {}),
    Conversion("int8", "QUANTIZED", ("quantize", "--calibration", "CALIBRATION"), {
        "onnxruntime": _script(_ORT_STATIC, "CALIBRATION"),
    }),
    Conversion("int8 --repair", "QUANTIZED",
               ("quantize", "--calibration", "CALIBRATION", "--repair"), {}),
    Conversion("int8 dynamic", "QUANTIZED", ("quantize", "--dynamic"), {
        "onnxruntime": _script(_ORT_DYNAMIC),
    }),
    Conversion("int4 weights", "QUANTIZED",
               ("quantize", "--weights-only", "--weights", "int4", "--block", "32"), {}),
    Conversion("sanitize", "SAME", ("sanitize",), {
        "onnxslim": ("onnxslim", "MODEL", "OUT"),
        "onnxsim": (sys.executable, "-m", "onnxsim", "MODEL", "OUT"),
        "polygraphy": ("polygraphy", "surgeon", "sanitize", "--fold-constants", "--cleanup",
                       "MODEL", "-o", "OUT"),
    }),
    Conversion("opset 13", "SAME", ("opset", "--to", "13"), {}),
    Conversion("opset 21", "SAME", ("opset", "--to", "21"), {}),
    Conversion("tensors float16", "FLOAT16", ("tensors", "--to", "float16"), {}),
    Conversion("external", "EXACT", ("external", "--threshold", "0"), {}),
)  # fmt: skip


def main(argv: list[str]) -> int:
    """Print the table; return 1 where one of ours is wrong and does not say so, or does not run."""
    parser = harness.parser(__doc__)
    parser.add_argument("models", type=Path, nargs="*", help="models; onnx's own by default")
    parser.add_argument(
        "--only", action="append", default=[], help="a conversion or operation by its name"
    )
    parser.add_argument("--limit", type=float, default=_LIMIT_S, help="seconds for each command")
    parser.add_argument(
        "--opsets", type=int, metavar="N", help="N conversions between opsets of onnx's node models"
    )
    parser.add_argument(
        "--operations", type=int, metavar="N",
        help="commands that write models, on N of the models, which may be folders",
    )  # fmt: skip
    parser.add_argument(
        "--share", type=int, metavar="N",
        help="with --operations: N operations for each model, drawn by chance; all by default",
    )  # fmt: skip
    parser.add_argument("--log", type=Path, help="what became of each, kept from run to run")
    parser.add_argument("--judge", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.judge:
        print(json.dumps(_judged(*options.judge)))
        return 0
    if options.opsets:
        outcomes = opset_tasks.table(options.opsets)
        return int(outcomes["wrong"] + outcomes["unloadable"] > 0)
    if options.operations:
        outcomes = operation_tasks.table(
            options.operations, options.only, options.models, options.log, options.share
        )
        return int(outcomes["wrong"] + outcomes["unloadable"] > 0)
    models = [one.resolve() for one in options.models] or _light_models()
    chosen = [one for one in CONVERSIONS if not options.only or one.name in options.only]
    print("| model | conversion | by | values | worst SNR, dB | nodes | MB | ms |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    failed = 0
    for model in models:
        with harness.work_folder() as folder:
            sets = input_sets(model, folder / "sets")
            for conversion in chosen:
                for line, is_bad in _rows(model, conversion, folder, sets, options.limit):
                    print(line, flush=True)
                    failed += is_bad
    print(f"\n{len(models)} models, {failed} of ours wrong without saying so, or refused")
    return int(failed > 0)


def _rows(
    model: Path, conversion: Conversion, folder: Path, sets: Path | None, limit: float
) -> Iterator[tuple[str, bool]]:
    """Yield lines of the table, and whether each is of a failure of ours."""
    needs_sets = "CALIBRATION" in conversion.ours
    if needs_sets and sets is None:
        return
    put = {"MODEL": str(model), "CALIBRATION": str(sets)}
    ours = [str(_BIN / "dld"), "convert", *conversion.ours[:1], "MODEL", "-o", "OUT",
            "--keep-wrong", *conversion.ours[1:]]  # fmt: skip
    for by, command in {"dld": ours, **conversion.peers}.items():
        output = folder / f"{by}.onnx"
        output.unlink(missing_ok=True)
        words = [put.get(word, str(output) if word == "OUT" else word) for word in command]
        if not Path(words[0]).is_absolute():
            words[0] = str(_BIN / words[0])
        is_told, problem = _run(words, folder, output, limit)
        cells, is_good = ["–", "–", "–", "–"], False
        if problem is None:
            found = _judge(model, output, conversion.agreement, sets if needs_sets else None, limit)
            is_good, problem = found.get("is_good", False), found.get("problem")
            cells = _cells(model, output, found)
        if problem is not None:
            said = f"refused: {problem[:90]}" if by == "dld" else f"fails: {problem[:90]}"
        else:
            said = "good" if is_good else "wrong, reported" if is_told else "WRONG"
        line = f"| {model.stem} | {conversion.name} | {by} | {said} | {' | '.join(cells)} |"
        yield line.replace("\n", " "), by == "dld" and not (is_good or is_told)


def _cells(model: Path, output: Path, found: dict[str, Any]) -> list[str]:
    snr = found.get("snr_db")
    times = found.get("latency_ms")
    return [
        found.get("skipped")
        or ("exact" if found.get("is_exact") else "–" if snr is None else f"{snr:.0f}"),
        f"{_nodes(model)} → {_nodes(output)}",
        f"{_bytes(model) / 1e6:.2f} → {_bytes(output) / 1e6:.2f}",
        "–" if times is None else f"{times['before']:.3g} → {times['after']:.3g}",
    ]


def _run(words: list[str], folder: Path, output: Path, limit: float) -> tuple[bool, str | None]:
    """Run a command; return whether it says that values are wrong, and why it made nothing."""
    try:
        ended = subprocess.run(
            words, capture_output=True, text=True, timeout=limit, check=False,
            env=harness.environment(), cwd=folder,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False, f"stopped after {limit:g} s"
    if not output.exists():
        lines = (ended.stderr or ended.stdout).strip().splitlines() or ["without a word"]
        return False, lines[-1].removeprefix("dld: ")
    return ended.returncode == 1, None


def _judge(
    model: Path, output: Path, agreement: str, sets: Path | None, limit: float
) -> dict[str, Any]:
    words = [sys.executable, "-m", "benchmarks.bench_conversions", "--judge",
             str(model), str(output), agreement, str(sets or "")]  # fmt: skip
    try:
        ended = subprocess.run(
            words, capture_output=True, text=True, timeout=limit, check=False,
            env=harness.environment(), cwd=Path(__file__).parent.parent,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"problem": f"not judged within {limit:g} s"}
    if ended.returncode:
        return {"problem": f"the judge crashed ({ended.returncode})"}
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def _judged(model: str, output: str, agreement: str, sets: str) -> dict[str, Any]:
    """Return what :mod:`dld_tui.backends.conversion.verification` says of a result."""
    from dld_tui.backends.conversion.verification import Verifier
    from dld_tui.core.conversion import accuracy_criteria
    from dld_tui.core.conversion.request import Verification
    from dld_tui.core.errors import DldError
    from dld_tui.core.model.document import Document

    asked = Verification(values="always", inputs=Path(sets) if sets else None)
    with (
        contextlib.closing(Document.open(Path(model))) as before,
        contextlib.closing(Document.open(Path(output))) as after,
        Verifier(asked, before, Path(output), getattr(accuracy_criteria, agreement)) as verifier,
    ):
        try:
            checked = _end(verifier.check(after))
            figures = _end(verifier.figures(after, checked))
        except DldError as error:
            return {"problem": error.message}
    if checked.verdict is None:
        return {"is_good": True, "skipped": checked.skipped, "latency_ms": figures["latency_ms"]}
    snrs = [row.error.snr_db for row in checked.verdict.outputs if row.error.snr_db is not None]
    is_exact = all(row.error.is_equal for row in checked.verdict.outputs)
    return {
        "is_good": checked.verdict.is_good, "is_exact": is_exact,
        "snr_db": min(snrs, default=None), "latency_ms": figures["latency_ms"],
    }  # fmt: skip


def _end(steps: Any) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            return stop.value


def input_sets(model: Path, folder: Path) -> Path | None:
    """Write sets of inputs that the model takes; None where none can be made."""
    import numpy as np
    from onnx import numpy_helper

    from dld_tui.backends.onnxruntime.session_options import SessionSettings
    from dld_tui.backends.onnxruntime.tensors import TensorRunner
    from dld_tui.core.errors import DldError
    from dld_tui.core.model.document import Document
    from dld_tui.core.model.inputs.feeds import input_feeds
    from dld_tui.core.model.inputs.guess import specs_for

    try:
        with (
            contextlib.closing(Document.open(model)) as document,
            TensorRunner(document, SessionSettings(quiet=True)) as runner,
        ):
            specs, run = specs_for(runner.inputs, document), partial(runner.values, runner.outputs)
            feeds = input_feeds(specs, None, (), range(_SETS), document, run)
    except DldError:
        return None
    for number, one in enumerate(feeds.sets):
        place = folder / f"test_data_set_{number}"
        place.mkdir(parents=True)
        for index, (name, value) in enumerate(one.items()):
            tensor = numpy_helper.from_array(np.asarray(value), name)
            (place / f"input_{index}.pb").write_bytes(tensor.SerializeToString())
    return folder


def _nodes(path: Path) -> int:
    from dld_tui.core.model.document import Document

    with contextlib.closing(Document.open(path)) as document:
        return sum(len(scope.nodes) for scope in document.scopes())


def _bytes(path: Path) -> int:
    beside = path.with_name(f"{path.name}.data")
    return path.stat().st_size + (beside.stat().st_size if beside.exists() else 0)


def _light_models() -> list[Path]:
    import onnx

    return sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
