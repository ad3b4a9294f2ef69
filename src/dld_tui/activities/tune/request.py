"""What to tune, and within which bounds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dld_tui.activities.accuracy.score import Request as Score
from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.core.accuracy.tensor_errors import ToleranceSettings
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.model.inputs.settings import InputSettings
from dld_tui.core.params import like, param, settings_of
from dld_tui.core.process.paths import unused
from dld_tui.core.tune.changes import DEFAULT_LIMIT
from dld_tui.core.types import JSON

_ACCURACY = "Accuracy"
_METRIC = next(one.default for one in settings_of(Score) if one.name == "metric")


def _has_dataset(values: Mapping[str, JSON]) -> bool:
    return bool(values.get("dataset"))


@dataclass(frozen=True)
class Request:
    """What to tune, and within which bounds."""

    model: Path = param(
        label="Model", help="The ONNX model to tune.", kind="file", positional=True,
        metavar="MODEL",
    )  # fmt: skip
    output: Path | None = param(
        None,
        label="Result",
        help=(
            "Write the result here, with the model, the settings as Python and two profiles "
            "beside it. By default NAME.tune.json in the current folder."
        ),
        spellings=("--output", "-o"),
        kind="output",
        suffix=".tune.json",
        default_path=lambda request: unused(Path(f"{request.model.stem}.tune.json")),
        beside=(
            "{stem}.onnx", "{stem}.onnx.data", "{stem}.py", "{stem}.before.dldprof",
            "{stem}.after.dldprof",
        ),
        metavar="FILE",
    )  # fmt: skip
    budget: float = param(
        300.0,
        label="Time",
        decides=False,
        help="Time budget. The best candidate so far is the result.",
        unit="s",
        minimum=1,
        spellings=("--budget",),
        metavar="S",
    )
    provider: str = like(
        Profile,
        "provider",
        help="Execution provider, such as CPU or CUDA.",
        spellings=("--provider",),
    )
    only: tuple[str, ...] = param(
        (),
        label="Only",
        decides=False,
        empty="all applicable changes",
        help="Try only these changes: ids separated by commas, such as int8-dynamic,threads-1.",
        spellings=("--only",),
        metavar="CHANGE,…",
    )
    tolerance: tuple[str, ...] = like(
        ToleranceSettings,
        "tolerance",
        spellings=("--tolerance", "--accuracy"),
        help=(
            "Tolerance of outputs: cosine=0.999, snr=30 or atol=1e-3,rtol=1e-2 for all, "
            f"NAME:atol=… for one. By default {DEFAULT_LIMIT}."
        ),
    )
    dataset: Path | None = like(
        Score,
        "dataset",
        None,
        help="Labelled samples, as dld accuracy --dataset takes them: a candidate may lose as much"
        " of the metric as --most-loss says, and outputs need not be within the default tolerance.",
        empty="none: outputs are compared",
        page=_ACCURACY,
    )
    labels: Path | None = like(Score, "labels", page=_ACCURACY, applies=_has_dataset)
    metric: str = like(Score, "metric", page=_ACCURACY, applies=_has_dataset)
    most_loss: float | None = like(
        Score,
        "most_loss",
        help="How much worse a candidate may be, in the unit of the metric (points of percent), by"
        " the end of its interval.",
        empty="needed",
        page=_ACCURACY,
        applies=_has_dataset,
    )
    calibration: Path | None = param(
        None,
        label="Calibration",
        empty="none: static int8 is not tried",
        help=(
            "Folder of inputs for static quantization. Without it, static quantization is not "
            "tried."
        ),
        kind="folder",
        spellings=("--calibration",),
        metavar="DIR",
    )
    batch: tuple[str, ...] = param(
        (),
        label="Batch sizes",
        empty="as in the inputs",
        help="Batch sizes to try, such as 2,4,8. Candidates are then compared by time per item.",
        spellings=("--batch",),
        metavar="N,…",
    )
    fix_shapes: bool = param(
        False,
        label="Fix shapes",
        help="Also try fixing dynamic dimensions to the sizes of the inputs.",
        spellings=("--fix-shapes",),
    )
    shape: tuple[str, ...] = like(InputSettings, "shape", page="Inputs")
    inputs: Path | None = like(InputSettings, "inputs", page="Inputs")
    seed: int = like(InputSettings, "seed", page="Inputs")
    device_id: int = like(Profile, "device_id", page="Inputs")
    again: bool = param(
        False,
        label="Start over",
        decides=False,
        help="Start over instead of resuming an interrupted run.",
        spellings=("--again",),
        page="Inputs",
    )

    def require(self) -> None:
        """Refuse settings that exclude each other, before anything is loaded.

        Raises:
            UsageError: Says which.
        """
        if self.batch and self.inputs is not None:
            raise UsageError(
                "--batch cannot be combined with --inputs, whose data have a fixed size"
            )
        if self.dataset is not None and self.most_loss is None:
            raise UsageError("--dataset needs --most-loss: how much worse a candidate may be")
        is_asked = self.labels or self.most_loss is not None or self.metric != _METRIC
        if self.dataset is None and is_asked:
            raise UsageError("--labels, --metric and --most-loss need --dataset")
