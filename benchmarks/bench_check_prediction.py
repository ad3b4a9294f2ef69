"""Whether ``dld check --run`` tells what ONNX Runtime refuses, and nothing else as an error.

Over the one-operator models of the onnx package, folders of models, and seeded mutations of real
models and of one-operator models that run: each is loaded by ONNX Runtime in a child process, and
run where its shapes are known. Each part is printed when it ends.
What it refuses must have an error of ours, what it runs none. Where it only lacks a kernel for the
types (CPU), the warning ``no-kernel`` is what counts.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks import harness
from benchmarks.prediction_models import Case, Feeds, backend_cases, bases, file_cases, mutations
from benchmarks.prediction_operators import operator_mutations

MOST_MISSED = 0.01
_LIMIT_S = 60.0


class Verdicts:
    """What ONNX Runtime says, remembered from run to run: it depends on the model only."""

    def __init__(self, folder: Path, remembered: Path | None) -> None:
        self._folder = folder
        self._remembered = remembered
        self._child = harness.Child("benchmarks.prediction_child", _LIMIT_S)
        self._known: dict[str, dict[str, Any]] = {}
        if remembered is not None and remembered.exists():
            lines = remembered.read_text().splitlines()
            self._known = dict(json.loads(line) for line in lines)

    def of(self, case: Case) -> dict[str, Any]:
        """Return the verdict on a model."""
        key = case.key
        if key not in self._known:
            path = write(case, self._folder)
            feeds = None
            if case.feeds is not None:
                feeds = str(self._folder / "feeds.npz")
                save_feeds(case.feeds, feeds)
            self._known[key] = self._child.ask(ask="runtime", path=str(path), feeds=feeds)
            if self._remembered is not None:
                with self._remembered.open("a") as file:
                    file.write(json.dumps([key, self._known[key]]) + "\n")
        return self._known[key]

    def close(self) -> None:
        """End the child process."""
        self._child.close()


def save_feeds(feeds: Feeds, path: str) -> None:
    """Write inputs; of types that numpy has not, their bits and the number of the type."""
    arrays: dict[str, Any] = {}
    types = {}
    for name, array in feeds.items():
        types[name] = 0
        arrays[name] = array
        if array.dtype.kind == "V" or array.dtype.name.startswith(("float8", "bfloat", "float4")):
            types[name] = int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
            arrays[name] = array.view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)
    arrays["types of inputs"] = np.array(json.dumps(types))
    np.savez(path, **arrays)


def write(case: Case, folder: Path) -> Path:
    """Write a model where it finds its external data."""
    home = folder / "model"
    if home.is_dir():
        for path in home.iterdir():
            path.unlink()
    home.mkdir(exist_ok=True)
    if case.home is not None:
        for path in case.home.iterdir():
            if path.suffix != ".onnx" and path.is_file():
                shutil.copyfile(path, home / path.name)
    path = home / "model.onnx"
    path.write_bytes(case.model)
    return path


def _parts(options: Any, verdicts: Verdicts) -> Iterator[Iterator[Case]]:
    def runs(case: Case) -> bool:
        return bool(verdicts.of(case)["verdict"] == "ok")

    yield backend_cases()
    for folder in options.folders:
        yield file_cases(folder, folder.name)
    yield operator_mutations(runs, options.operators, options.seed)
    if options.mutations:
        models = bases(options.models, runs)
        print(f"mutated: {', '.join(f'{base.name} ({base.size})' for base in models)}")
        yield mutations(models, options.mutations, options.seed)


def main(argv: list[str]) -> int:
    """Print the table and what was predicted wrongly; return 1 when a bound is missed."""
    parser = harness.parser(__doc__)
    parser.add_argument("folders", type=Path, nargs="*", help="folders of models to check, too")
    parser.add_argument("--models", type=Path, action="append", default=[], metavar="FOLDER",
                        help="folder of models to mutate; may be repeated")  # fmt: skip
    parser.add_argument("--mutations", type=int, default=2000, help="of real models")
    parser.add_argument("--operators", type=int, default=1500, help="of one-operator models")
    parser.add_argument("--seed", type=int, default=0, help="of the mutations")
    parser.add_argument("--remember", type=Path, help="file that keeps the runtime's verdicts")
    parser.add_argument("--keep", type=Path, help="folder for models that were predicted wrongly")
    parser.add_argument("--only", help="only cases with this in their group")
    options = parser.parse_args(argv)
    if not options.models:
        options.models = [Path(onnx.__file__).parent / "backend/test/data/light"]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    ours = harness.Child("benchmarks.prediction_child", _LIMIT_S)
    with harness.work_folder() as folder:
        verdicts = Verdicts(folder, options.remember)
        for part in _parts(options, verdicts):
            before = set(counts)
            for case in part:
                if options.only and options.only not in case.group:
                    continue
                verdict = verdicts.of(case)
                found = ours.ask(ask="ours", path=str(write(case, folder)))
                outcome = _outcome(case, verdict, found)
                counts[case.group][outcome] += 1
                if outcome in ("missed", "false", "kernel missed", "kernel false", "ours crash"):
                    said = found.get("errors") or found.get("kernels") or found
                    place = f"{outcome}: {case.group}: {case.name}"
                    print(f"{place}\n    {verdict}\n    {said}", flush=True)
                    if options.keep:
                        options.keep.mkdir(parents=True, exist_ok=True)
                        name = re.sub(r"\W+", "_", place)[:120]
                        (options.keep / f"{name}.onnx").write_bytes(case.model)
            _show_counts({group: counts[group] for group in counts if group not in before})
        verdicts.close()
    ours.close()
    return _show(counts)


def _outcome(case: Case, verdict: dict[str, Any], found: dict[str, Any]) -> str:
    if "errors" not in found:
        return "ours " + str(found["verdict"])
    has_error, lacks_kernel = bool(found["errors"]), bool(found.get("kernels"))
    if verdict["verdict"] in ("crash", "time", "machine"):
        return f"runtime {verdict['verdict']}"
    if verdict["verdict"] == "ok":
        if has_error and not verdict.get("ran"):
            return "not run"  # it cannot be fed here: nobody knows
        return "false" if has_error else "kernel false" if lacks_kernel else "right"
    if verdict["verdict"] == "kernel":
        return "kernel told" if has_error or lacks_kernel else "kernel missed"
    if verdict["verdict"] == "run":
        if not case.known and not has_error:
            return "right"  # the shapes that it fails with are not in the model
        has_error |= bool(found.get("runs"))  # a warning, as other inputs might do
    return "told" if has_error else "missed"


_HEADS = (
    "right", "false", "told", "missed", "kernel told", "kernel missed", "kernel false",
    "runtime crash", "runtime time", "runtime machine", "not run", "ours crash", "ours time",
)  # fmt: skip


def _show_counts(counts: dict[str, Counter[str]]) -> None:
    if not counts:
        return
    print(f"\n{'':24}" + "".join(f"{head:>14}" for head in _HEADS))
    for group, found in counts.items():
        print(f"{group:24}" + "".join(f"{found[head]:14}" for head in _HEADS))
    print(flush=True)


def _show(counts: dict[str, Counter[str]]) -> int:
    total: Counter[str] = Counter()
    for found in counts.values():
        total += found
    _show_counts({**counts, "all": total})
    refused = total["told"] + total["missed"]
    table = harness.Table(f"{sum(total.values())} models, {refused} refused by ONNX Runtime")
    share = 100 * total["missed"] / max(refused, 1)
    table.add("refused without an error", share, unit="%", bound=100 * MOST_MISSED, rule="1 %")
    table.add("run with an error", total["false"], unit="", bound=0, rule="0")
    kernels = total["kernel told"] + total["kernel missed"]
    share = 100 * total["kernel missed"] / max(kernels, 1)
    table.add("no kernel, not told", share, unit="%", bound=100 * MOST_MISSED, rule="1 %")
    table.add("kernel said to lack", total["kernel false"], unit="", bound=0, rule="0")
    return table.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
