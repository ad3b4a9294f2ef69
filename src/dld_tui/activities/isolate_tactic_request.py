"""The settings of a search for the tactics that make a result wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.params import param
from dld_tui.core.tensorrt.settings import BuildSettings


@dataclass(frozen=True)
class Request(BuildSettings):
    """How to build, what is right, and how long to search."""

    output: Path | None = param(
        None,
        label="Keep the engine",
        help="Where to keep the engine that gives right results. By default it is not kept.",
        kind="output",
        spellings=("--output", "-o", "--save-engine", "--saveEngine"),
        metavar="ENGINE",
        empty="not kept",
    )
    avoid: Path | None = param(
        None,
        label="Replay file",
        help="Where to write what avoids the tactics, for dld build: a tactic replay, or an edited"
        " timing cache. By default NAME.tactics in the current folder.",
        kind="output",
        suffix=".tactics",
        spellings=("--write", "-w"),
        metavar="FILE",
    )
    tries: int = param(
        10,
        label="Builds",
        help="Builds that look for a wrong result, at most; and then for a right one.",
        minimum=1,
        spellings=("--tries", "--until"),
        metavar="N",
    )
    vary: bool = param(
        False,
        label="Vary",
        help="Take tactics at random from the second build on, not the fastest ones: finds wrong"
        " ones that are seldom chosen.",
        spellings=("--vary",),
    )
    runs: int = param(
        2,
        label="Runs",
        help="How often each engine runs on the same inputs; wrong once is wrong.",
        minimum=1,
        spellings=("--runs",),
        metavar="N",
    )
    way: str = param(
        "auto",
        label="Choose by",
        help="How tactics are chosen: by an algorithm selector (replay, TensorRT 8 to 10) or an"
        " edited timing cache (cache, from 10.8 on). By default replay where there is one.",
        choices=("auto", "replay", "cache"),
        spellings=("--by",),
    )
    tolerance: tuple[str, ...] = param(
        (),
        label="Tolerances",
        help="What outputs may be off: atol=1e-3,rtol=1e-2 or cosine=0.999 or snr=30 for all,"
        " NAME:atol=… for one.",
        spellings=("--tolerance",),
        metavar="SPEC",
    )
    atol: float = param(
        1e-2, label="Absolute", help="Absolute tolerance.", spellings=("--atol",), minimum=0
    )
    rtol: float = param(
        1e-2, label="Relative", help="Relative tolerance.", spellings=("--rtol",), minimum=0
    )
    inputs: Path | None = param(
        None,
        label="Input data",
        help="Folder with input_0.pb, … or NAME.npy, or with folders test_data_set_0, … of these."
        " By default inputs are made, in the usual shapes of the first profile.",
        spellings=("--inputs",),
        kind="folder",
        metavar="DIR",
    )
    seed: int = param(0, label="Seed", help="Of what is random.", spellings=("--seed",), minimum=0)
    provider: str = param(
        "CPU",
        label="Reference",
        help="Execution provider of ONNX Runtime that computes the right results.",
        spellings=("--provider",),
        metavar="NAME",
    )
    estimate_only: bool = param(
        False,
        label="Estimate",
        help="Only say how long it would take, from one build.",
        spellings=("--estimate",),
    )
    again: bool = param(
        False,
        label="From the start",
        help="Forget the builds of a search that was stopped.",
        spellings=("--from-start",),
    )

    @property
    def avoid_path(self) -> Path:
        """Where what avoids the tactics goes."""
        return self.avoid or Path(f"{self.model.stem}.tactics")
