"""Test what is installed on this machine end to end, with small generated models.

Each step runs in a separate process, so that a crash of a library ends only its step.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.activities.separate_process import run_in_process
from dld_tui.core import fmt
from dld_tui.core.codec import encode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, DldError, UnavailableError
from dld_tui.core.events import Event, Finished, Log, Progress
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.machine.health import FAILED, PASSED, SKIPPED, UNAVAILABLE, HealthStep, SelfTest
from dld_tui.core.notes import NoteKind
from dld_tui.core.params import FIRST_PAGE, like, param
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.types import JSON, PlainValues

if TYPE_CHECKING:
    from dld_tui.core.conversion.result import ComparedValues, NotCompared

Result = SelfTest
BACKENDS = ("cpu", "cuda", "tensorrt")
_PACKAGES = (
    "dld-tui", "onnx", "numpy", "onnxruntime", "onnxruntime-gpu", "tensorrt", "tensorrt-rtx-cu13",
    "tensorrt-rtx-cu12", "polygraphy",
)  # fmt: skip
_PASSES = 30
_TAIL = 2000
_AGAIN = "profile again and compare"


@dataclass(frozen=True)
class Request:
    """What to try."""

    backend: str = param(
        "all",
        label="Backend",
        help="Backend to test: ONNX Runtime on the CPU or on CUDA, TensorRT, or all three.",
        choices=("all", *BACKENDS),
        positional=True,
        metavar="BACKEND",
    )
    output: Path | None = param(
        None,
        label="Result",
        help=(
            "Write the results and a description of the machine as JSON, to attach to a bug "
            "report. By default they are only printed."
        ),
        spellings=("--output", "-o"),
        kind="output",
        metavar="FILE",
    )
    library: str = like(BuildSettings, "library")
    device: int = like(Profile, "device_id", help="Number of the GPU.", page=FIRST_PAGE)
    limit: float = param(
        300.0,
        label="Limit",
        help="Time limit of each step.",
        unit="s",
        minimum=1,
        spellings=("--limit",),
        metavar="S",
    )


Work: TypeAlias = Generator[Progress, None, str]
"""Yields while it works, and returns a figure for people."""


@dataclass(frozen=True)
class _Trial:
    """A step that can be made."""

    backend: str
    name: str
    needs: tuple[str, ...]
    """Steps of the same backend that must have passed."""
    work: Callable[[], Work]


def run(request: Request) -> Iterator[Event]:
    """Run the steps; missing hardware and packages are unavailable, which is no failure.

    Raises:
        SaveError: The output cannot be written.
    """
    from dld_tui.core.files.writer import write_text
    from dld_tui.core.machine.environment import environment
    from dld_tui.core.model.document.samples import write_demo_models

    steps: list[HealthStep] = []
    with temporary_folder("selftest") as folder:
        model, _ = write_demo_models(folder)
        bench = _Bench(request, folder, model)
        trials = [
            trial
            for trial in (*bench.cpu(), *bench.cuda(), *bench.tensorrt())
            if request.backend in ("all", trial.backend)
        ]
        for number, trial in enumerate(trials):
            yield Progress(number, len(trials), "steps", f"{trial.backend}: {trial.name}")
            step = _without(f"{folder}/", (yield from _run_trial(trial, steps)))
            steps.append(step)
            level = NoteKind.WARNING if step.status == FAILED else NoteKind.INFO
            yield Log(f"{step.backend}, {step.step}: {step.status}: {step.detail}", level)
        checks = yield from bench.ask("doctor")
    result = SelfTest(tuple(steps), environment(_PACKAGES), checks.checks)
    if request.output is not None:
        write_text(request.output, json.dumps(encode(result), indent=1))
    yield Finished(result)


def _run_trial(trial: _Trial, before: list[HealthStep]) -> Generator[Event, None, HealthStep]:
    statuses = {step.step: step.status for step in before if step.backend == trial.backend}
    for need in trial.needs:
        if statuses[need] != PASSED:
            status = UNAVAILABLE if statuses[need] == UNAVAILABLE else SKIPPED
            return HealthStep(trial.backend, trial.name, status, 0.0, f"needs the step {need!r}")
    begin = time.monotonic()
    try:
        text = yield from trial.work()
    except DldError as error:
        status = UNAVAILABLE if isinstance(error, UnavailableError) else FAILED
        where = f"{error.where}: " if error.where else ""
        return HealthStep(
            trial.backend, trial.name, status, time.monotonic() - begin, where + error.message,
            error.hint or "", (error.details or "")[-_TAIL:],
        )  # fmt: skip
    # The seam: unexpected results are what this test looks for.
    except Exception as error:  # noqa: BLE001
        return HealthStep(
            trial.backend, trial.name, FAILED, time.monotonic() - begin,
            f"unexpected {type(error).__name__}: {error}", "", traceback.format_exc()[-_TAIL:],
        )  # fmt: skip
    return HealthStep(trial.backend, trial.name, PASSED, time.monotonic() - begin, text)


def _without(folder: str, step: HealthStep) -> HealthStep:
    """Return a step that does not name the folder, which is gone when it is read."""
    detail, fix, log = (text.replace(folder, "") for text in (step.detail, step.fix, step.log))
    return replace(step, detail=detail, fix=fix, log=log)


class _Bench:
    """The steps, and the files that they leave each other."""

    def __init__(self, request: Request, folder: Path, model: Path) -> None:
        self._request = request
        self._folder = folder
        self._model = model
        self._engine = folder / "model.engine"
        self._other = folder / "other.onnx"
        self._refitted = folder / "refitted.engine"

    def cpu(self) -> Iterator[_Trial]:
        """ONNX Runtime on the CPU."""
        settings: dict[str, JSON] = {"optimization": "disabled", "against_optimization": "all"}
        for name, need, work in (
            ("check", (), self._check),
            ("profile", (), lambda: self._profile("cpu")),
            (_AGAIN, ("profile",), lambda: self._again("cpu")),
            ("values after optimization", (), lambda: self._agrees(**settings)),
            ("convert to float16", (), self._half),
            ("simplify", (), self._simplified),
        ):
            yield _Trial("cpu", name, need, work)

    def cuda(self) -> Iterator[_Trial]:
        """ONNX Runtime on CUDA."""
        settings: dict[str, JSON] = {"against_provider": "CUDA", "atol": 1e-3, "rtol": 1e-2}
        for name, need, work in (
            ("profile", (), lambda: self._profile("cuda")),
            (_AGAIN, ("profile",), lambda: self._again("cuda")),
            ("values beside the CPU's", ("profile",), lambda: self._agrees(**settings)),
            ("where nodes go", ("profile",), lambda: self._placed("CUDA")),
        ):
            yield _Trial("cuda", name, need, work)

    def tensorrt(self) -> Iterator[_Trial]:
        """TensorRT, or TensorRT-RTX."""
        settings: dict[str, JSON] = {"against": str(self._engine), **self._loading}
        for name, need, work in (
            ("build", (), self._build),
            ("profile", ("build",), self._profile_engine),
            (_AGAIN, ("profile",), self._engine_again),
            ("values beside ONNX Runtime's", ("profile",), lambda: self._agrees(**settings)),
            ("build and refit", ("profile",), self._refit),
            ("values after the refit", ("build and refit",), self._refitted_values),
        ):
            yield _Trial("tensorrt", name, need, work)

    def ask(self, activity: str, **settings: JSON) -> Generator[Progress, None, Any]:
        """Run an activity in a separate process and return its result."""
        return run_in_process(activity, settings, self._folder, self._request.limit)

    def _check(self) -> Work:
        result = yield from self.ask("check_full", model=str(self._model))
        if result.findings:
            raise ActivityError(result.findings[0].message)
        return "onnx's checker accepts the model"

    def _profile(self, backend: str, name: str = "") -> Work:
        provider, device = {"cpu": ("CPU", 0), "cuda": ("CUDA", self._request.device)}[backend]
        report = self._folder / f"{backend}{name}.dldprof"
        yield from self.ask(
            "profile_onnxruntime", model=str(self._model), output=str(report), provider=provider,
            device_id=device, iterations=_PASSES, layer_passes=5,
        )  # fmt: skip
        return _described(report, provider)

    def _again(self, backend: str) -> Work:
        yield from self._profile(backend, "-again")
        return self._compared(backend)

    def _compared(self, backend: str) -> str:
        from dld_tui.core.compare.comparison import Comparison, open_subject

        paths = [self._folder / f"{backend}{name}.dldprof" for name in ("", "-again")]
        comparison = Comparison([open_subject(path) for path in paths])
        rows = comparison.rows()
        alone = [row.key for row in rows if row.state(1, 0)]
        if alone:
            raise ActivityError(
                f"{fmt.plural(len(alone), 'layer')} of one run missing in the other"
            )
        factor = comparison.speed_up(1)
        ratio = "" if factor is None else f", speedup {factor:.2f}× over the first run"
        return f"{fmt.plural(len(rows), 'layer')} matched{ratio}"

    def _agrees(self, **settings: JSON) -> Work:
        asked: dict[str, JSON] = {"model": str(self._model), **settings}
        result = yield from self.ask("accuracy", **asked)
        if not result.is_good:
            raise ActivityError(f"tensor {result.first!r} is not within {result.tolerance}")
        worst = max((row.error.max_abs or 0.0 for row in result.tensors), default=0.0)
        return f"{fmt.plural(len(result.tensors), 'output')} within tolerance, off by {worst:.2g}"

    def _half(self) -> Work:
        half = self._folder / "half.onnx"
        result = yield from self.ask("convert_fp16", model=str(self._model), output=str(half))
        _require_good(result.values)
        return f"{fmt.size(self._model.stat().st_size)} to {fmt.size(half.stat().st_size)}"

    def _simplified(self) -> Work:
        simple = self._folder / "simple.onnx"
        result = yield from self.ask("convert_sanitize", model=str(self._model), output=str(simple))
        before, after = result.before.nodes, result.after.nodes
        if before == after:
            raise UnavailableError(
                "no simplifier that is installed folds anything of the model",
                hint="Install one: pip install onnxslim",
            )
        _require_good(result.values)
        return f"{before:,} nodes to {after:,}, the same values"

    def _placed(self, provider: str) -> Work:
        startup = yield from self.ask(
            "startup", model=str(self._model), provider=provider, repeats=1,
            device_id=self._request.device,
        )  # fmt: skip
        there = len(startup.nodes) - len(startup.elsewhere)
        return f"{there:,} of {fmt.plural(len(startup.nodes), 'node')} on {provider}"

    @property
    def _loading(self) -> PlainValues:
        device = str(self._request.device)
        return {"library": self._request.library, "device": device, "trust": True}

    def _built(self, output: Path, **settings: JSON) -> Generator[Progress, None, Any]:
        return self.ask(
            "build", model=str(self._model), output=str(output),
            library=self._request.library, device=str(self._request.device), **settings,
        )  # fmt: skip

    def _build(self) -> Work:
        result = yield from self._built(self._engine)
        if result.bytes != self._engine.stat().st_size:
            raise ActivityError("the size of the engine differs from the reported size")
        return f"{result.library}: {fmt.size(result.bytes)} in {fmt.duration(result.seconds)}"

    def _profile_engine(self, name: str = "") -> Work:
        report = self._folder / f"tensorrt{name}.dldprof"
        yield from self.ask(
            "profile_tensorrt", engine=str(self._engine), model=str(self._model),
            report=str(report), iterations=_PASSES, layer_passes=5, **self._loading,
        )  # fmt: skip
        return _described(report, "")

    def _engine_again(self) -> Work:
        yield from self._profile_engine("-again")
        return self._compared("tensorrt")

    def _refit(self) -> Work:
        refittable = self._folder / "refittable.engine"
        yield from self._built(refittable, refit="refit")
        _write_other(self._model, self._other)
        result = yield from self.ask(
            "refit", engine=str(refittable), model=str(self._other),
            output=str(self._refitted), **self._loading,
        )  # fmt: skip
        return f"{fmt.plural(result.weights, 'weight')} replaced"

    def _refitted_values(self) -> Work:
        """The engine must follow its new model, and must not follow the one it was built of."""
        beside: dict[str, JSON] = {"against": str(self._refitted), **self._loading}
        same = yield from self._agrees(model=str(self._other), **beside)
        before = yield from self.ask("accuracy", model=str(self._model), **beside)
        if before.is_good:
            raise ActivityError("the refitted engine still has the old weights")
        return f"{same} with the new weights"


def _require_good(values: ComparedValues | NotCompared) -> None:
    """Refuse a conversion's result whose values are wrong, or were not compared.

    Raises:
        ActivityError: Says which.
    """
    if values.skipped:
        raise ActivityError(f"its values were not compared: {values.skipped}")
    if values.is_wrong:
        raise ActivityError("it has wrong values")


def _described(report: Path, provider: str) -> str:
    """Return the measurements of a report.

    Raises:
        ActivityError: It has no latency, no layers, or none on the provider.
    """
    from dld_tui.core.report.report import open_report

    opened = open_report(report)
    try:
        latencies, layers = sorted(opened.latencies), opened.layers
        if not latencies or not layers:
            raise ActivityError("the report has no latency or no layers")
        text = f"{fmt.milliseconds(latencies[len(latencies) // 2])} ms, "
        if not provider:
            return text + fmt.plural(len(layers), "layer")
        there = sum(provider in (layer.provider or "") for layer in layers)
        if not there:
            raise ActivityError(f"no layer ran on {provider}")
        return f"{text}{there:,} of {fmt.plural(len(layers), 'layer')} on {provider}"
    finally:
        opened.close()


def _write_other(model: Path, other: Path) -> None:
    """Write the model with other weights in its last layer."""
    import onnx
    from onnx import numpy_helper

    proto = onnx.load(model)
    for tensor in proto.graph.initializer:
        if tensor.name.startswith("classifier."):
            values = numpy_helper.to_array(tensor) * -1.5
            tensor.CopyFrom(numpy_helper.from_array(values.astype("float32"), tensor.name))
    onnx.save(proto, other)
