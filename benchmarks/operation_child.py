"""A process that says of command after command that writes a model what became of the model.

Reads one JSON object a line, answers each with one; when it dies, its parent starts another. It
runs ``dld`` with its jobs in a fork of this process, and judges results without it: by sessions of
ONNX Runtime with default options and without optimisation, on inputs drawn here. Wrong results are
kept in the folder that the variable ``KEEP`` names.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import random
import re
import shutil
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from benchmarks.opset_tasks import agree, same
from dld_tui.activities import worker
from dld_tui.activities.worker import EventWriter
from dld_tui.backends.onnxruntime import limits
from dld_tui.cli.main import run as run_dld
from dld_tui.core.events import Event, event_from_line, event_to_line
from dld_tui.core.process.child import CrashError, LimitError, Limits, compute, die_with
from dld_tui.targets.base import Job
from dld_tui.targets.process import LocalTarget
from tests.support import fork_server

Feeds = Mapping[str, npt.NDArray[Any]]
Judge: TypeAlias = "Callable[[Subject, Path, list[str]], tuple[str, str]]"
_SIZES = ((1, 1), (2, 2), (3, 3), (1, 8), (4, 4), (1, 16), (1, 64), (8, 8), (1, 224))
"""What unknown dimensions are tried with: the first axis, and the others."""
_INTEGERS = ((0, 2), (1, 3), (0, 1), (1, 2), (2, 5))
"""Ranges of integers: indices, sizes, nothing."""
_LARGEST = 1 << 24
_LIMIT_S, _MEMORY = 60.0, 8 << 30
_TOOLS = ("onnxslim", "onnx_graphsurgeon", "polygraphy.backend.onnx", "onnxruntime.quantization",
          "onnxruntime.transformers.float16", "onnx.version_converter")  # fmt: skip
"""What some jobs import."""
_ANY: Any = object()
"""An output of which nobody knows what it must be."""
_RANDOM = ("Random", "Bernoulli", "Multinomial", "training_mode")
_FOREIGN = re.compile(r"\.(cc|cpp|h|hpp):|/onnxruntime/|std::|virtual |0x[0-9a-f]{6}|Traceback")
"""Places in C++ or Python, which say nothing to a user."""
_NOISE = re.compile(r"are outside of the tolerance|one range for all items: they may differ")
"""How a result is called whose values are less exact than the judge asks."""


@dataclass
class Subject:
    """A model, what it is fed, and what it gives with default options and without optimisation."""

    path: Path
    model: onnx.ModelProto
    feeds: Feeds | None
    """None where none was found that it runs with."""
    outputs: list[Any] = field(default_factory=list)
    is_random: bool = False

    @property
    def names(self) -> list[str]:
        """Names of the outputs."""
        return [info.name for info in self.model.graph.output]

    def values(self, feeds: Feeds) -> dict[str, Any]:
        """Return the outputs for other inputs, by name."""
        return dict(zip(self.names, run(self.path, feeds), strict=True))


def session(model: Path | onnx.ModelProto, *, optimised: bool = True) -> Any:
    """Return a session on a CPU with default options, or without optimisation."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    given = str(model) if isinstance(model, Path) else model.SerializeToString()
    return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])


def run(model: Path | onnx.ModelProto, feeds: Feeds, *, optimised: bool = True) -> list[Any]:
    """Return the outputs of a model."""
    made = session(model, optimised=optimised)
    taken = {info.name for info in made.get_inputs()}
    return list(made.run(None, {name: feeds[name] for name in feeds if name in taken}))


def subject(path: Path, feeds: Feeds | None) -> Subject | str:
    """Return a model that a session with default options loads; else why it does not.

    Inputs are drawn where there are none, until one set runs.
    """
    model = onnx.load(path, load_external_data=False)
    draws = any(word in str(model.graph) for word in _RANDOM)
    try:
        made = session(path)
    except Exception as error:  # noqa: BLE001 - of C++
        return " ".join(str(error).split())[:200]
    for fed in [feeds] if feeds is not None else _drawn(made.get_inputs()):
        try:
            outputs = made.run(None, dict(fed))
            again = session(path, optimised=False).run(None, dict(fed))
        except Exception:  # noqa: BLE001 - the same
            continue
        return Subject(path, model, fed, outputs, draws or not agree(outputs, again))
    return Subject(path, model, None)


def _drawn(infos: Sequence[Any]) -> list[dict[str, npt.NDArray[Any]]]:
    found = []
    for integers in _INTEGERS:
        for sizes in _SIZES:
            fed = {info.name: _array(info, sizes, integers) for info in infos}
            kept = {name: one for name, one in fed.items() if one is not None}
            if len(kept) < len(fed):
                return []
            found.append(kept)
    return found


_DTYPES = {
    "float": np.float32, "float16": np.float16, "double": np.float64, "bool": np.bool_,
    "string": np.object_,
    **{f"{sign}int{bits}": np.dtype(f"{sign}int{bits}") for sign in ("", "u")
       for bits in (8, 16, 32, 64)},
}  # fmt: skip


def _array(info: Any, sizes: tuple[int, int], integers: tuple[int, int]) -> Any:
    named: Any = _DTYPES.get(info.type.removeprefix("tensor(").removesuffix(")"), np.void)
    dtype = np.dtype(named)
    shape = [
        dim if isinstance(dim, int) and dim >= 0 else sizes[at > 0]
        for at, dim in enumerate(info.shape)
    ]
    if dtype.kind == "V" or np.prod(shape, dtype=float) > _LARGEST:
        return None
    chance = np.random.default_rng(zlib.crc32(f"{info.name} {shape}".encode()))
    if dtype.kind == "O":
        return np.full(shape, "a", dtype=object)
    if dtype.kind == "b":
        return chance.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return chance.integers(*integers, shape).astype(dtype)
    return chance.uniform(-1, 1, shape).astype(dtype)


@dataclass(frozen=True)
class Operation:
    """A command, and how its result must relate to the model."""

    words: Callable[[Subject, Path, random.Random], list[str] | None]
    """``MODEL`` and ``OUT`` stand for the files; None where it does not apply."""
    judge: Judge
    """Returns the outcome and why."""


def outcome(operation: Operation, name: str, subject: Subject) -> dict[str, Any]:
    """Run an operation on a model and return what became of it."""
    with _folder() as place:
        folder, output = Path(place), Path(place, "out.onnx")
        chance = random.Random(f"40 {name.partition(' by ')[0]} {subject.path.name}")
        words = operation.words(subject, folder, chance)
        if words is None:
            return {"outcome": "not asked", "why": ""}
        put = {"MODEL": str(subject.path), "OUT": str(output)}
        given = [put.get(word, word) for word in words]
        status, text = _dld(given)
        said = text.replace(place, "").replace(str(subject.path.parent), "").strip()
        answer: dict[str, Any] = {"words": " ".join(words)[:300], "status": status}
        answer["leak"] = bool(_FOREIGN.search(said)) or "bug in dld" in said
        answer["said"] = said[-1500:] if answer["leak"] or status else ""
        if not output.exists():
            last = said.splitlines() or ["without a word"]
            idle = "nothing to replace" in said or "0 applied" in said
            return answer | {"outcome": "unchanged" if idle else "refused", "why": last[-1][:400]}
        if output.read_bytes() == subject.path.read_bytes():
            return answer | {"outcome": "unchanged", "why": ""}
        found, why = _judged_apart(partial(operation.judge, subject, output, words))
        if found in ("wrong", "unloadable"):
            kept = Path(os.environ.get("KEEP", place), f"{name}-{subject.path.stem}.onnx")
            if kept.parent != folder:
                shutil.copyfile(output, kept)
        if status:  # it says itself that something is not as it should be
            is_part = " skipped" in said and ", 0 skipped" not in said  # of a script
            found = "told" if found != "right" or is_part else "false alarm"
        elif found == "wrong" and _NOISE.search(said):
            found = "noise"
        return answer | {"outcome": found, "why": why[:400]}


def _judged_apart(judge: Callable[[], tuple[str, str]]) -> tuple[str, str]:
    """Return what a judge says, who may crash."""

    def answer() -> bytes:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return json.dumps(judge()).encode()

    try:
        found, why = json.loads(compute(answer, Limits(_LIMIT_S, _MEMORY)))
    except (CrashError, LimitError) as error:
        return "unloadable", f"the judge: {error!r}"
    return found, why


@contextlib.contextmanager
def _folder() -> Iterator[str]:
    """Yield a folder, which no fork removes when it ends."""
    place = tempfile.mkdtemp()
    try:
        yield place
    finally:
        shutil.rmtree(place)


def _dld(words: Sequence[str]) -> tuple[int, str]:
    """Return the exit status and the output of a command, which runs in a fork."""
    status, text = _forked(words, with_jobs=True)
    if status >= 0 and "DLD_INFERENCE_LIMIT" not in text:
        return status, text
    return _forked(words, with_jobs=False)  # it crashed, or what this process has counted, too


def _forked(words: Sequence[str], with_jobs: bool) -> tuple[int, str]:
    """Run a command in a fork; with its jobs, whose own processes would take most of the time."""
    parent = os.getpid()
    with tempfile.TemporaryFile() as output:
        pid = os.fork()
        if not pid:
            die_with(parent)
            for descriptor in (1, 2):
                os.dup2(output.fileno(), descriptor)
            status = 70
            try:
                if with_jobs:
                    LocalTarget.start = _start_here  # type: ignore[assignment, method-assign]
                    fork_server.server.start_by_fork()  # for what jobs start
                    os.environ["DLD_PARENT"] = ""  # it may limit itself
                status = PEERS[words[0]](*words[1:]) if words[0] in PEERS else run_dld(words)
                sys.stdout.flush()
                sys.stderr.flush()
            except Exception as error:  # noqa: BLE001 - of the programs of others
                print(error, flush=True)
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        output.seek(0)
        return status, output.read().decode("utf-8", "replace")


def _version_converter(model: str, output: str, version: str) -> int:
    onnx.save(onnx.version_converter.convert_version(onnx.load(model), int(version)), output)
    return 0


def _slim(model: str, output: str) -> int:
    onnxslim = importlib.import_module("onnxslim")
    onnx.save(onnxslim.slim(onnx.load(model)), output)
    return 0


def _simplify(model: str, output: str) -> int:
    onnxsim = importlib.import_module("onnxsim")
    onnx.save(onnxsim.simplify(onnx.load(model))[0], output)
    return 0


def _quantize_dynamic(model: str, output: str) -> int:
    importlib.import_module("onnxruntime.quantization").quantize_dynamic(model, output)
    return 0


def _float16(model: str, output: str) -> int:
    float16 = importlib.import_module("onnxruntime.transformers.float16")
    onnx.save(float16.convert_float_to_float16(onnx.load(model)), output)
    return 0


PEERS: dict[str, Callable[..., int]] = {
    "onnx": _version_converter, "onnxslim": _slim, "quantize_dynamic": _quantize_dynamic,
    "float16": _float16, "onnxsim": _simplify,
}  # fmt: skip
"""Programs of others, by the first word of a command."""


def _warm_up() -> None:
    """Run commands once, so that forks have what is computed once."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[N, 4] x) => (float[N, 4] y)'
        " { z = Relu(x) y = Abs(z) }"
    )
    out = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as place,
        contextlib.redirect_stdout(out), contextlib.redirect_stderr(out),
        pytest.MonkeyPatch.context() as patch,
    ):  # fmt: skip
        patch.setattr(LocalTarget, "start", _start_here)
        path, output = str(Path(place, "model.onnx")), str(Path(place, "out.onnx"))
        onnx.save(model, path)
        for words in (["opset", "--to", "15", "--no-measure"], ["fp16", "--no-measure"]):
            run_dld(["convert", words[0], path, *words[1:], "-o", output, "--force"])
        run_dld(["rewrite", path, "identity", "-o", output, "--force"])


def _start_here(target: LocalTarget, activity_id: str, request: Mapping[str, Any]) -> Any:
    limits._trials.clear()
    return _JobHere(activity_id, request)


class _JobHere(Job):
    """A job of this process."""

    def __init__(self, activity_id: str, request: Mapping[str, Any]) -> None:
        self._line = json.dumps({"activity": activity_id, "request": {**request}}).encode()

    def events(self) -> Iterator[Event]:
        """Run the job, and yield its events."""
        sent: list[Event] = []
        writer = EventWriter(-1)
        writer.send = sent.append  # type: ignore[assignment, method-assign]
        last = worker.run_request(self._line, writer, worker.Control())
        for event in (*sent, last):
            if (copy := event_from_line(event_to_line(event))) is not None:
                yield copy

    def cancel(self) -> None:
        """Do nothing: nobody asks for it."""

    def close(self) -> None:
        """Do nothing: it is over."""


def _loaded(result: Path) -> str:
    try:
        session(result)
    except Exception as error:  # noqa: BLE001 - that is what is asked
        return " ".join(str(error).split())[:300]
    return ""


def judged(
    result: Path, feeds: Feeds | None, expected: Sequence[Any], least_db: float | None = None
) -> tuple[str, str]:
    """Return whether a result loads and gives what is expected, optimised or not."""
    if feeds is None:
        problem = _loaded(result)
        return ("unloadable", problem) if problem else ("loads", "")
    for optimised in (True, False):
        how = "with default options" if optimised else "without optimisation"
        try:
            outputs = run(result, feeds, optimised=optimised)[: len(expected)]
            outputs = [one for one, two in zip(outputs, expected, strict=False) if two is not _ANY]
        except Exception as error:  # noqa: BLE001 - the same
            return "unloadable", f"{how}: {' '.join(str(error).split())[:300]}"
        near = agree if least_db is None else lambda a, b: _near(a, b, least_db)
        wanted = [one for one in expected if one is not _ANY]
        if expected and not wanted:
            return "loads", "nobody knows the values"
        if not near(outputs, wanted):
            shapes = f"{[np.shape(one) for one in outputs]} {[np.shape(one) for one in wanted]}"
            return "wrong", f"{how}: {shapes}"
    return "right", ""


def _near(found: Sequence[Any], expected: Sequence[Any], least_db: float) -> bool:
    """Return whether outputs are near by the noise of each, or in each element."""
    if len(found) != len(expected):
        return False
    for one, two in zip(found, expected, strict=True):
        first, second = np.asarray(one), np.asarray(two)
        if first.shape != second.shape:
            return False
        if second.dtype.kind not in "fiu":
            if not same(one, two) and second.dtype.kind != "b":
                return False
            continue
        a, b = first.astype(np.float64), second.astype(np.float64)
        finite = np.isfinite(b)
        noise = np.square(a - b)[finite].sum()
        limit = np.square(b)[finite].sum() / 10 ** (least_db / 10)
        close = np.allclose(a, b, rtol=10 ** (-least_db / 20), atol=1e-2, equal_nan=True)
        if not close and not (np.array_equal(np.isnan(a), np.isnan(b)) and noise <= limit):
            return False
    return True


def same_values(subject: Subject, result: Path, words: list[str]) -> tuple[str, str]:
    """Judge a result that must compute the same."""
    return judged(result, subject.feeds, subject.outputs)


def retyped(least_db: float | None = None) -> Judge:
    """Return the judge of results with other types of inputs and outputs, by what remains of them.

    Args:
        least_db: The signal to noise ratio that is enough; None where values have to be equal.
    """

    def judge(subject: Subject, result: Path, words: list[str]) -> tuple[str, str]:
        if subject.feeds is None:
            problem = _loaded(result)
            lacks_kernel = "bf16" in words and "NOT_IMPLEMENTED" in problem
            return ("unloadable" if problem and not lacks_kernel else "loads"), problem
        made = onnx.load(result, load_external_data=False)
        given, back = dict(subject.feeds), dict(subject.feeds)
        for info in made.graph.input:
            if info.name in subject.feeds:
                dtype = helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
                given[info.name] = subject.feeds[info.name].astype(dtype)
                back[info.name] = given[info.name].astype(subject.feeds[info.name].dtype)
        expected = [
            np.asarray(one).astype(helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type))
            if isinstance(one, np.ndarray)
            else one
            for one, info in zip(run(subject.path, back), made.graph.output, strict=True)
        ]
        found, why = judged(result, given, expected, least_db)
        if found != "unloadable" or "bf16" not in words or "NOT_IMPLEMENTED" not in why:
            return found, why
        try:  # ONNX Runtime has few kernels of bfloat16 on a CPU
            outputs = list(ReferenceEvaluator(str(result)).run(None, given))
        except Exception as error:  # noqa: BLE001 - nor has the evaluator all
            return "loads", f"evaluator: {' '.join(str(error).split())[:100]}"
        return ("right" if _near(outputs, expected, least_db or 0) else "wrong"), "evaluator"

    return judge


def prepended(subject: Subject, result: Path, words: list[str]) -> tuple[str, str]:
    """Judge a result whose input has become bytes that it divides by 255."""
    if subject.feeds is None:
        return judged(result, None, [])
    name = words[words.index("--input") + 1]
    usual = subject.feeds[name]
    bytes_ = np.random.default_rng(40).integers(0, 256, usual.shape).astype(np.uint8)
    floats = (bytes_.astype(np.float32) / np.float32(255)).astype(usual.dtype)
    expected = run(subject.path, {**subject.feeds, name: floats})
    return judged(result, {**subject.feeds, name: bytes_}, expected, 40)


def appended(subject: Subject, result: Path, words: list[str]) -> tuple[str, str]:
    """Judge a result with a Softmax behind an output."""
    if subject.feeds is None:
        return judged(result, None, [])
    at = subject.names.index(words[words.index("--of") + 1])
    expected = list(subject.outputs)
    value = np.asarray(expected[at])
    powers = np.exp(value.astype(np.float64) - value.max(-1, keepdims=True).astype(np.float64))
    expected[at] = (powers / powers.sum(-1, keepdims=True)).astype(value.dtype)
    return judged(result, subject.feeds, expected)


def _axes_of_batch(infos: Sequence[Any]) -> dict[str, int]:
    return {info.name: info.shape.index("N") for info in infos if "N" in info.shape}


def batched(subject: Subject, result: Path, words: list[str]) -> tuple[str, str]:
    """Judge a result with a batch of any size: as before, and a batch of two batches."""
    found, why = judged(result, subject.feeds, subject.outputs)
    if found != "right" or "batch=N" not in words or subject.feeds is None:
        return found, why
    grown = _axes_of_batch(session(result).get_inputs())
    other = dict(subject.feeds)
    for name, at in grown.items():
        value = np.flip(other[name], at)
        other[name] = value * value.dtype.type(0.5) if value.dtype.kind == "f" else value
    first, second = subject.outputs, run(subject.path, other)
    feeds = {
        name: np.concatenate([one, other[name]], grown[name]) if name in grown else one
        for name, one in subject.feeds.items()
    }
    if all(isinstance(info.shape[grown[info.name]], (str, type(None)))
           for info in session(subject.path).get_inputs() if info.name in grown):  # fmt: skip
        try:  # only the name is new: the model itself says what it does with another size
            return judged(result, feeds, run(subject.path, feeds))
        except Exception:  # noqa: BLE001 - of C++; it takes no other size
            return found, why
    made = session(result).get_outputs()
    axes = _axes_of_batch(made)
    expected = [
        np.concatenate([a, b], axes[info.name])
        if info.name in axes
        else a
        if same(a, b)  # it does not depend on the inputs
        else _ANY
        for a, b, info in zip(first, second, made, strict=True)
    ]
    return judged(result, feeds, expected)


def part(subject: Subject, result: Path, words: list[str]) -> tuple[str, str]:
    """Judge a part of a model by what the model gives at its borders."""
    if subject.feeds is None:
        return judged(result, None, [])
    made = onnx.load(result, load_external_data=False)
    weights = {tensor.name for tensor in made.graph.initializer}
    inputs = {info.name for info in made.graph.input} - weights
    outputs = [info.name for info in made.graph.output]
    whole = onnx.load(subject.path)
    own = {info.name for info in whole.graph.output}
    wanted = [name for name in {*(inputs - {*subject.feeds}), *outputs} if name not in own]
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted)
    try:
        values = dict(
            zip(
                [info.name for info in whole.graph.output],
                run(whole, subject.feeds, optimised=False),
                strict=True,
            )
        )
    except Exception as error:  # noqa: BLE001 - tensors that a graph cannot give
        found, why = judged(result, None, [])
        return found, why or " ".join(str(error).split())[:100]
    feeds: dict[str, Any] = {name: subject.feeds.get(name, values.get(name)) for name in inputs}
    if any(not isinstance(one, np.ndarray) for one in feeds.values()):
        return judged(result, None, [])
    # What float16 rounds depends on which casts ONNX Runtime leaves out around a kernel.
    halves = any(one.dtype == np.float16 for one in feeds.values())
    return judged(result, feeds, [values[name] for name in outputs], 40 if halves else None)


def main() -> None:
    """Answer until the input ends."""
    from benchmarks import operation_tasks

    operations = operation_tasks.OPERATIONS | operation_tasks.PEERS

    places = list(sys.path)
    fork_server.import_all(("activities", "backends", "cli", "core"))
    for tool in _TOOLS:
        importlib.import_module(tool)
    sys.path[:] = places  # ONNX Runtime's quantizer adds a folder, whose modules would hide others
    fork_server.apply(pytest.MonkeyPatch())
    _warm_up()
    gc.freeze()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    known: dict[str, Subject | str] = {}
    for line in sys.stdin:
        request = json.loads(line)
        path = request["path"]
        if path not in known:
            feeds = None
            if request["feeds"]:
                with np.load(request["feeds"], allow_pickle=True) as data:
                    feeds = dict(data)
            known = {path: subject(Path(path), feeds)}
        model, name = known[path], request["operation"]
        if isinstance(model, str):
            answer: dict[str, Any] = {"outcome": "not loaded", "why": model}
        elif model.is_random:
            answer = {"outcome": "random", "why": ""}
        elif not name:
            answer = {"outcome": "loads" if model.feeds is None else "runs", "why": ""}
        else:
            try:
                answer = outcome(operations[name], name, model)
            except Exception as error:  # noqa: BLE001 - of this benchmark
                import traceback

                answer = {"outcome": "benchmark", "why": f"{error!r} {traceback.format_exc()}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
