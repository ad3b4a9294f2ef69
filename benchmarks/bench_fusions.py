"""Fused operators that `dld rewrite` makes of transformers, beside ONNX Runtime's optimizer.

    python -m benchmarks.attention_models FOLDER      # where PyTorch and onnxscript are installed
    python -m benchmarks.bench_fusions FOLDER/*.onnx

ONNX Runtime's count is the best of its model types. Both results are run on the same inputs as the
model, without further optimizations; what is shown is the largest difference of ours.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from benchmarks import harness
from dld_tui.api.inference import infer_missing
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.rewrite.rule import rules_of, text_of_rules

RULES = (
    "casts",
    "no-ops",
    "shapes",
    "rotary-onnxruntime",
    "rotary-partial",
    "rms-norm-onnxruntime",
    "attention-grouped",
    "attention-onnxruntime",
    "gelu-onnxruntime",
    "bias-gelu",
    "skip-layer-norm",
)
KINDS = {
    "attention": ("Attention", "MultiHeadAttention", "GroupQueryAttention"),
    "norm": ("SkipLayerNormalization", "SimplifiedLayerNormalization"),
    "gelu": ("BiasGelu", "Gelu", "FastGelu"),
    "rotary": ("RotaryEmbedding",),
}
TYPES = ("bert", "gpt2", "vit", "bart")
SIZES = {"batch": 2, "length": 12, "sequence": 12}
TOLERANCE = 2e-5


def main(argv: list[str]) -> int:
    """Print the table; return 1 where a block of attention is missed, or values differ."""
    parser = harness.parser(__doc__)
    parser.add_argument("models", type=Path, nargs="+")
    options = parser.parse_args(argv)
    logging.disable(logging.CRITICAL)
    print(f"{'model':28}{'nodes':>7}{'after':>7}{'softmax':>8}", end="")
    print("".join(f"{kind + ' (ORT)':>16}" for kind in KINDS) + f"{'difference':>12}{'s':>7}")
    missed = 0
    for path in options.models:
        with harness.work_folder() as folder:
            before, after, seconds = _rewritten(path, folder / "ours.onnx")
            difference = _difference(path, folder / "ours.onnx")
        ours, theirs = _counts(after), _best_of_onnxruntime(path)
        blocks = before["Softmax"]
        is_missed = (
            after["Softmax"] > 0
            or difference > TOLERANCE
            or any(ours[kind] < theirs[kind] for kind in KINDS)
        )
        missed += is_missed
        cells = "".join(f"{f'{ours[kind]} ({theirs[kind]})':>16}" for kind in KINDS)
        print(
            f"{path.stem[:27]:28}{before.total():7}{after.total():7}{blocks:8}{cells}"
            f"{difference:12.2g}{seconds:7.2f}{'  MISSED' * is_missed}",
            flush=True,
        )
    print(f"{len(options.models)} models, {missed} missed")
    return int(missed > 0)


def _rewritten(path: Path, output: Path) -> tuple[Counter[str], Counter[str], float]:
    """Return the operators before and after, and how long the rewriting took."""
    document = Document.open(path)
    infer_missing(document, path)
    before = Counter(node.op_type for node in document.main.nodes)
    start = time.perf_counter()
    document.apply("rewrite", rules=text_of_rules(rules_of(RULES)))
    seconds = time.perf_counter() - start
    after = Counter(node.op_type for node in document.main.nodes)
    save(document, output)
    document.close()
    return before, after, seconds


def _counts(operators: Counter[str]) -> dict[str, int]:
    return {kind: sum(operators[name] for name in names) for kind, names in KINDS.items()}


def _best_of_onnxruntime(path: Path) -> dict[str, int]:
    from onnxruntime.transformers import optimizer
    from onnxruntime.transformers.fusion_options import FusionOptions

    best = dict.fromkeys(KINDS, 0)
    for model_type in TYPES:
        options = FusionOptions(model_type)
        try:  # heads and width of 0 are found by it
            found = optimizer.optimize_model(
                str(path), model_type=model_type, num_heads=0, hidden_size=0, opt_level=0,
                optimization_options=options,
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001 - whatever the other program raises
            print(f"    {model_type}: {error!r:.100}")
            continue
        counts = _counts(Counter(node.op_type for node in found.model.graph.node))
        best = {kind: max(best[kind], counts[kind]) for kind in KINDS}
    return best


def _difference(path: Path, other: Path) -> float:
    pairs = zip(_values(path), _values(other), strict=True)
    return max(float(np.abs(first - second).max()) for first, second in pairs)


def _values(path: Path) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    dice = np.random.default_rng(0)
    feeds = {
        given.name: _drawn(given.name, given.type, given.shape, dice)
        for given in session.get_inputs()
    }
    return list(session.run(None, feeds))


def _drawn(name: str, kind: str, dims: list[Any], dice: np.random.Generator) -> Any:
    shape = [dim if isinstance(dim, int) else SIZES.get(dim, 9) for dim in dims]
    if "float" in kind:
        return dice.normal(size=shape).astype(np.float32)
    if "mask" in name:  # the last of the second sequence are padding
        mask = np.ones(shape, np.int64)
        mask[1, -3:] = 0
        return mask
    dtype = onnx.helper.tensor_dtype_to_np_dtype(
        onnx.TensorProto.DataType.Value(kind[len("tensor(") : -1].upper())
    )
    return dice.integers(0, 2 if "type" in name else 40, shape).astype(dtype)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
