"""The latency that ``dld profile onnxruntime`` reports, beside a bare InferenceSession loop."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path

from benchmarks import harness
from benchmarks.model_tasks import bare_session
from dld_tui.core.model.document.samples import demo_classifier

DEVIATION = 0.03


def main(argv: list[str]) -> int:
    """Print the table; return 1 when the bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("--batch", type=int, default=8, help="images at once")
    parser.add_argument("--iterations", type=int, default=200, help="inferences of each run")
    parser.add_argument("--warm-up", type=int, default=30, help="inferences before them")
    parser.add_argument("--threads", type=int, default=1, help="threads of the session")
    parser.add_argument("--rounds", type=int, default=15, help="runs of each, in turn")
    options = parser.parse_args(argv)
    shape = [options.batch, 3, 128, 128]
    counts = (options.iterations, options.warm_up, options.threads)
    profiled, bare = [], []
    with harness.work_folder() as folder:
        model = folder / "model.onnx"
        model.write_bytes(demo_classifier().SerializeToString())
        for attempt in range(options.rounds):
            # Whoever runs second finds a warmer machine, so they take turns.
            for ours in (True, False) if attempt % 2 else (False, True):
                if ours:
                    profiled.append(_profiled_ms(folder, model, shape, *counts))
                else:
                    measured = harness.fresh(
                        bare_session, model, json.dumps({"image": shape}), *counts
                    )
                    bare.append(measured["ms"])
    ours_ms, peer_ms = statistics.median(profiled), statistics.median(bare)
    # Neighbours in time saw the same machine, so each run is compared with the one beside it.
    ratio = statistics.median(
        ours_of_pair / peer_of_pair
        for ours_of_pair, peer_of_pair in zip(profiled, bare, strict=True)
    )
    table = harness.Table(
        f"Median latency, {options.rounds} runs of {options.iterations} inferences each"
    )
    table.add("profiler's latency", ours_ms, peer_ms)
    table.add(
        "difference from the bare loop, median of pairs",
        abs(ratio - 1) * 100,
        unit="%",
        bound=DEVIATION * 100,
        rule="3 % of the peer",
    )
    for name, found in (("profiler", profiled), ("bare loop", bare)):
        spread = (max(found) - min(found)) / statistics.median(found) * 100
        table.add(f"spread of the {name}'s runs", spread, unit="%")
    return table.finish()


def _profiled_ms(
    folder: Path, model: Path, shape: list[int], iterations: int, warm_up: int, threads: int
) -> float:
    command = [
        *(*harness.dld(), "profile", "onnxruntime", str(model), "--json", "--force"),
        *("--iterations", str(iterations), "--warm-up", str(warm_up), "--threads", str(threads)),
        *("--provider", "CPU", "--shape", f"image:{'x'.join(map(str, shape))}"),
        *("-o", str(folder / "report.dldprof")),
    ]
    done = subprocess.run(
        command,
        env=harness.environment(**harness.private_folders(folder)),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed with status {done.returncode}:\n{done.stderr}")
    median: float = json.loads(done.stdout)["latency_ms"]["median"]
    return median


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
