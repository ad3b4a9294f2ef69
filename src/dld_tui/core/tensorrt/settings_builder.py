"""The settings of a build: its effort, its memory, and what can be changed in the engine later."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.params import param


@dataclass(frozen=True)
class OptimizerSettings:
    """How long the builder searches."""

    optimization_level: int | None = param(
        None,
        label="Builder level",
        help="0 is the fastest build, 5 the best engine; by default 3.",
        minimum=0,
        maximum=5,
        spellings=(
            "--optimization-level",
            "--builderOptimizationLevel",
            "--builder-optimization-level",
        ),
        metavar="N",
        page="Optimizer",
    )
    max_aux_streams: int | None = param(
        None,
        label="Worker streams",
        help="CUDA streams beside the main one that layers may run on at the same time.",
        minimum=0,
        maximum=4096,
        spellings=("--max-aux-streams", "--maxAuxStreams"),
        metavar="N",
        page="Optimizer",
    )
    avg_timing: int | None = param(
        None,
        label="Timings",
        help="Timings of a tactic that are averaged.",
        minimum=1,
        maximum=10_000,
        spellings=("--avg-timing", "--avgTiming"),
        metavar="N",
        page="Optimizer",
    )
    max_tactics: int | None = param(
        None,
        label="Tactics",
        help="Tactics of a layer that are timed, at most.",
        minimum=1,
        spellings=("--max-tactics", "--maxTactics"),
        metavar="N",
        page="Optimizer",
    )
    tiling_level: int | None = param(
        None,
        label="Tiling level",
        help="0 to 3: how long to search for better tilings.",
        minimum=0,
        maximum=3,
        spellings=("--tiling-level", "--tilingOptimizationLevel", "--tiling-optimization-level"),
        metavar="N",
        page="Optimizer",
    )
    timing_cache: Path | None = param(
        None,
        label="Timing cache",
        help="Measured tactics, kept from build to build. By default one file a library version and"
        " GPU in the cache folder.",
        kind="file",
        spellings=(
            "--timing-cache",
            "--timingCacheFile",
            "--load-timing-cache",
            "--save-timing-cache",
        ),
        metavar="FILE",
        page="Optimizer",
    )
    no_timing_cache: bool = param(
        False,
        label="No timing cache",
        help="Neither read nor write a timing cache.",
        spellings=("--no-timing-cache", "--noBuilderCache"),
        page="Optimizer",
    )
    editable_timing_cache: bool = param(
        False,
        label="Editable cache",
        help="Keep to the tactics in the timing cache, also to edited ones, and log what was"
        " measured. From TensorRT 10.8 on.",
        spellings=("--editable-timing-cache",),
        page="Optimizer",
    )
    error_on_cache_miss: bool = param(
        False,
        label="Only cached",
        help="Fail when a tactic is not in the timing cache.",
        spellings=(
            "--error-on-cache-miss",
            "--errorOnTimingCacheMiss",
            "--error-on-timing-cache-miss",
        ),
        page="Optimizer",
    )


@dataclass(frozen=True)
class MemorySettings:
    """Memory of the build and of the engine."""

    workspace: float | None = param(
        None,
        label="Workspace",
        help="Scratch memory of a layer, at most; by default all of the device's.",
        unit="MiB",
        minimum=0,
        spellings=("--workspace",),
        metavar="MIB",
        page="Memory",
    )
    memory_pools: tuple[str, ...] = param(
        (),
        label="Other pools",
        help="Limit of a pool, as dlaSRAM:1M, dlaLocalDRAM:1G, dlaGlobalDRAM:512M or"
        " tacticSharedMem:48K. A number alone is in MiB.",
        spellings=("--memory-pool", "--memPoolSize", "--pool-limit", "--memory-pool-limit"),
        metavar="POOL:SIZE",
        page="Memory",
        of_model=False,
    )
    weight_streaming: bool = param(
        False,
        label="Weight streaming",
        help="Let the engine run with less memory than its weights need. Needs strong typing.",
        spellings=("--weight-streaming", "--allowWeightStreaming"),
        page="Memory",
    )
    l2_limit: int | None = param(
        None,
        label="L2 for tiling",
        help="L2 cache that tilings may use, at most.",
        unit="bytes",
        minimum=0,
        spellings=("--l2-limit", "--l2LimitForTiling"),
        metavar="BYTES",
        page="Memory",
    )


@dataclass(frozen=True)
class RefitSettings:
    """What an engine can be given later, and by which library it can be read."""

    refit: str = param(
        "none",
        label="Refit",
        help="Let weights be replaced later (refit), or leave them out of the engine, too (strip).",
        choices=("none", "refit", "strip"),
        spellings=("--refit-mode",),
        flags=(
            ("--refit", "refit"),
            ("--refittable", "refit"),
            ("--stripWeights", "strip"),
            ("--strip-weights", "strip"),
            ("--strip-plan", "strip"),
            ("--stripAllWeights", "strip"),
            ("--weightless", "strip"),
        ),
        page="Refit",
    )
    version_compatible: bool = param(
        False,
        label="Any version",
        help="Let newer versions of the library run the engine.",
        spellings=("--version-compatible", "--versionCompatible", "--vc"),
        page="Refit",
    )
    exclude_lean_runtime: bool = param(
        False,
        label="No lean runtime",
        help="Leave the lean runtime out of an engine for any version.",
        spellings=("--exclude-lean-runtime", "--excludeLeanRuntime"),
        page="Refit",
    )
