"""Check what reports say of decoders against a plain loop, and what advice promises against tuning.

Usage: ``python scripts/gpu_check.py --figures [--folder FOLDER] [--limit SECONDS]``

Three decoders, with and without a buffer that past and present share, at prompts of 128 and 2,048
tokens: time to first token and tokens a second of ``dld profile llm`` are within 5 % of a plain
loop in the same process, measured in turns, and kernels are attributed to layers. Then for
ResNet-50, ViT, ConvNeXt and an int8 encoder of which parts run on the CPU: each advice of the
report is followed by ``dld tune --only``, and what that measures has to be within what the report
said. Prints one table, and writes ``figures.json`` to the folder. Needs PyTorch and torchvision for
the vision models; they are left out without. Each model has a process of its own.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dld_tui.core.report.generation import GenerationFigures, sharing_gain
from dld_tui.core.report.report import Report
from scripts.follow_advice import (
    BUDGET_S,
    Row,
    advice_of,
    bound_row,
    fresh,
    result_of,
    roof_row,
    text_of,
)

_WITHIN = 0.05
"""By what part figures of a decoder may differ from those of the plain loop."""
_PROMPTS, _TOKENS = (128, 2048), 32
_WARM, _REPEATS, _TURNS = 3, 7, 5
_LIMIT_S = 470.0


@dataclass(frozen=True)
class Decoder:
    """Sizes of a decoder with grouped attention, as the builder of onnxruntime-genai makes them."""

    layers: int
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    int4: bool
    dtype: str = "float16"
    vocabulary: int = 2048

    @property
    def head(self) -> int:
        """The size of a head."""
        return self.hidden // self.heads


DECODERS = {
    "int4-16x2048": Decoder(16, 2048, 5632, 32, 8, int4=True),
    "fp16-12x1024": Decoder(12, 1024, 2816, 16, 4, int4=False),
    "int4-24x1024": Decoder(24, 1024, 2816, 16, 16, int4=True),
}
VISION = {
    "resnet50-b1": "resnet50", "vit-b16": "vit_b_16", "convnext-tiny": "convnext_tiny",
}  # fmt: skip
MODELS = (*VISION, "encoder-int8")
_BLOCK = 32


class _Graph:
    """Nodes and weights of a model in the making."""

    def __init__(self, dtype: str) -> None:
        self.np: Any = importlib.import_module("numpy")
        self.onnx: Any = importlib.import_module("onnx")
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.dtype = dtype
        self.random = self.np.random.default_rng(7)

    def add(self, op: str, inputs: Sequence[str], *outputs: str, **attributes: Any) -> str:
        own = ("GroupQueryAttention", "MatMulNBits", "SkipSimplifiedLayerNormalization")
        domain = "com.microsoft" if op in own else ""
        made = self.onnx.helper.make_node(op, inputs, outputs, name=f"{outputs[0]}_node",
                                          domain=domain, **attributes)  # fmt: skip
        self.nodes.append(made)
        return outputs[0]

    def keep(self, name: str, values: Any, dtype: Any = None) -> str:
        array = self.np.asarray(values).astype(dtype or self.dtype)
        self.weights.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def weight(self, name: str, rows: int, columns: int) -> str:
        drawn = self.random.standard_normal((rows, columns), dtype="float32")
        return self.keep(name, drawn / rows**0.5)

    def product(self, name: str, x: str, rows: int, columns: int, *, int4: bool = False) -> str:
        if not int4:
            return self.add("MatMul", [x, self.weight(f"{name}.weight", rows, columns)], name)
        blocks = rows // _BLOCK
        packed = self.random.integers(0, 256, (columns, blocks, _BLOCK // 2), dtype="uint8")
        scale = 1 / (4.6 * rows**0.5)  # of random integers of four bits
        inputs = [
            x, self.keep(f"{name}.q", packed, "uint8"),
            self.keep(f"{name}.scales", self.np.full(columns * blocks, scale)),
        ]  # fmt: skip
        return self.add("MatMulNBits", inputs, name, K=rows, N=columns, bits=4, block_size=_BLOCK)

    def write(self, path: Path, inputs: Sequence[Any], outputs: Sequence[Any]) -> Path:
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, "main_graph", inputs, outputs, self.weights)
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        path.write_bytes(model.SerializeToString())
        return path


def write_decoder(path: Path, of: Decoder) -> Path:
    """Write a decoder with random weights."""
    g = _Graph(of.dtype)
    np, helper = g.np, g.onnx.helper
    real = helper.np_dtype_to_tensor_dtype(np.dtype(of.dtype))
    int64, value = g.onnx.TensorProto.INT64, helper.make_tensor_value_info
    inputs = [value("input_ids", int64, ["B", "S"]), value("attention_mask", int64, ["B", "T"])]
    outputs = [value("logits", real, ["B", "S", of.vocabulary])]
    one = g.keep("one", [1], "int64")
    counted = g.add("ReduceSum", ["attention_mask", one], "counted", keepdims=0)
    last = g.add("Sub", [counted, g.keep("one0", 1, "int64")], "last")
    lengths = g.add("Cast", [last], "seqlens", to=g.onnx.TensorProto.INT32)
    g.add("Shape", ["attention_mask"], "mask_shape")
    g.add("Gather", ["mask_shape", "one0"], "width", axis=0)
    total = g.add("Cast", ["width"], "total", to=g.onnx.TensorProto.INT32)
    at = np.arange(of.head // 2) / (of.head // 2)
    angles = np.outer(np.arange(4096), 10_000.0**-at)
    cos, sin = g.keep("cos", np.cos(angles)), g.keep("sin", np.sin(angles))
    x = g.add("Gather", [g.weight("embedding", of.vocabulary, of.hidden), "input_ids"], "embedded")
    ones = g.keep("ones", np.ones(of.hidden))
    normal = {"axis": -1, "epsilon": 1e-5, "stash_type": 1}
    norm = g.add("SimplifiedLayerNormalization", [x, ones], "norm", **normal)
    kv = of.kv_heads * of.head

    def joined(name: str, more: str) -> None:
        nonlocal x, norm
        g.add("SkipSimplifiedLayerNormalization", [x, more, ones], f"{name}.norm", "", "",
              f"{name}.sum", epsilon=1e-5)  # fmt: skip
        x, norm = f"{name}.sum", f"{name}.norm"

    for layer in range(of.layers):
        p = f"layers.{layer}"
        q, k, v = (
            g.product(f"{p}.{part}", norm, of.hidden, columns, int4=of.int4)
            for part, columns in (("q", of.hidden), ("k", kv), ("v", kv))
        )
        old = [f"past_key_values.{layer}.{part}" for part in ("key", "value")]
        new = [f"present.{layer}.{part}" for part in ("key", "value")]
        inputs += [value(name, real, ["B", of.kv_heads, "P", of.head]) for name in old]
        outputs += [value(name, real, ["B", of.kv_heads, "T", of.head]) for name in new]
        attended = g.add(
            "GroupQueryAttention", [q, k, v, *old, lengths, total, cos, sin], f"{p}.attention",
            *new, num_heads=of.heads, kv_num_heads=of.kv_heads, do_rotary=1,
        )  # fmt: skip
        joined(f"{p}.o", g.product(f"{p}.out", attended, of.hidden, of.hidden, int4=of.int4))
        gate = g.product(f"{p}.gate", norm, of.hidden, of.inner, int4=of.int4)
        up = g.product(f"{p}.up", norm, of.hidden, of.inner, int4=of.int4)
        g.add("Sigmoid", [gate], f"{p}.sigmoid")
        g.add("Mul", [gate, f"{p}.sigmoid"], f"{p}.silu")
        mixed = g.add("Mul", [f"{p}.silu", up], f"{p}.mixed")
        joined(f"{p}.mlp", g.product(f"{p}.down", mixed, of.inner, of.hidden, int4=of.int4))
    g.product("logits", norm, of.hidden, of.vocabulary)
    return g.write(path, inputs, outputs)


def write_encoder(path: Path, layers: int = 6, hidden: int = 512, tokens: int = 128) -> Path:
    """Write an encoder in float32 with random weights."""
    g = _Graph("float32")
    np, value = g.np, g.onnx.helper.make_tensor_value_info
    real, heads = g.onnx.TensorProto.FLOAT, hidden // 64
    apart = g.keep("apart", [0, 0, heads, 64], "int64")
    flat = g.keep("flat", [0, 0, hidden], "int64")
    scale, ones = g.keep("scale", 0.125), g.keep("ones", np.ones(hidden))
    zeros = g.keep("zeros", np.zeros(hidden))
    x = "x"
    for layer in range(layers):
        p = f"layer.{layer}"
        norm = g.add("LayerNormalization", [x, ones, zeros], f"{p}.norm", axis=-1)
        for part, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
            made = g.product(f"{p}.{part}", norm, hidden, hidden)
            g.add("Reshape", [made, apart], f"{p}.{part}.heads")
            g.add("Transpose", [f"{p}.{part}.heads"], f"{p}.{part}.t", perm=order)
        g.add("MatMul", [f"{p}.q.t", f"{p}.k.t"], f"{p}.products")
        g.add("Mul", [f"{p}.products", scale], f"{p}.scores")
        g.add("Softmax", [f"{p}.scores"], f"{p}.weights", axis=-1)
        g.add("MatMul", [f"{p}.weights", f"{p}.v.t"], f"{p}.attended")
        g.add("Transpose", [f"{p}.attended"], f"{p}.back", perm=[0, 2, 1, 3])
        g.add("Reshape", [f"{p}.back", flat], f"{p}.joined")
        out = g.product(f"{p}.out", f"{p}.joined", hidden, hidden)
        x = g.add("Add", [x, out], f"{p}.sum")
        norm = g.add("LayerNormalization", [x, ones, zeros], f"{p}.norm2", axis=-1)
        up = g.product(f"{p}.up", norm, hidden, 4 * hidden)
        g.add("Gelu", [up], f"{p}.gelu")
        x = g.add("Add", [x, g.product(f"{p}.down", f"{p}.gelu", 4 * hidden, hidden)], f"{p}.end")
    g.add("Identity", [x], "y")
    shape = [1, tokens, hidden]
    return g.write(path, [value("x", real, shape)], [value("y", real, shape)])


def write_model(name: str, folder: Path) -> Path:
    """Write a model of the table."""
    path = folder / f"{name}.onnx"
    path.unlink(missing_ok=True)
    if name in DECODERS:
        return write_decoder(path, DECODERS[name])
    if name in VISION:
        torch: Any = importlib.import_module("torch")
        torchvision: Any = importlib.import_module("torchvision")
        model = getattr(torchvision.models, VISION[name])(weights=None).eval()
        for weights in model.parameters():  # the head of ViT is zero: so would all outputs be
            if not weights.any():
                torch.nn.init.normal_(weights, std=0.02)
        example = torch.zeros(1, 3, 224, 224)
        torch.onnx.export(model, (example,), str(path), input_names=["x"], dynamo=False)
        return path
    plain = write_encoder(folder / f"{name}.fp32.onnx")
    settings = {"model": str(plain), "output": str(path), "dynamic": True, "values": "never"}
    result_of("convert_quantize", settings)
    return path


class PlainLoop:
    """Generates tokens with ONNX Runtime alone.

    Args:
        model: A decoder that :func:`write_decoder` has written.
        of: Its sizes.
        shared: Past and present are one buffer.
        device: ``cuda`` or ``cpu``.
    """

    def __init__(self, model: Path, of: Decoder, *, shared: bool, device: str = "cuda") -> None:
        runtime: Any = importlib.import_module("onnxruntime")
        names = {"cuda": "CUDAExecutionProvider", "cpu": "CPUExecutionProvider"}
        if device == "cuda":
            runtime.preload_dlls()
        self._np: Any = importlib.import_module("numpy")
        self._session = runtime.InferenceSession(str(model), providers=[names[device]])
        self._make = runtime.OrtValue.ortvalue_from_numpy
        self._of, self._shared, self._device = of, shared, device
        self._pairs = [
            (f"past_key_values.{layer}.{part}", f"present.{layer}.{part}")
            for layer in range(of.layers)
            for part in ("key", "value")
        ]

    def medians(self, prompt: int, warm: int, repeats: int) -> tuple[float, float]:
        """Return milliseconds to the first token, and tokens a second after it."""
        np = self._np
        masks = [np.ones((1, prompt + number), np.int64) for number in range(_TOKENS + 1)]
        ids = np.random.default_rng(0).integers(0, self._of.vocabulary, (1, prompt))
        firsts, rates = [], []
        for _ in range(warm + repeats):
            cache = self._empty(prompt + _TOKENS if self._shared else 0)
            begin = time.perf_counter()
            kept = self._bound(cache) if self._shared else None
            token = self._step(ids, masks[0], cache, kept)
            firsts.append(1000 * (time.perf_counter() - begin))
            begin = time.perf_counter()
            for number in range(1, _TOKENS + 1):
                token = self._step(token, masks[number], cache, kept)
            rates.append(_TOKENS / (time.perf_counter() - begin))
        return statistics.median(firsts[warm:]), statistics.median(rates[warm:])

    def _empty(self, length: int) -> dict[str, Any]:
        of = self._of
        empty = self._np.zeros((1, of.kv_heads, length, of.head), of.dtype)
        return {past: self._make(empty, self._device, 0) for past, _ in self._pairs}

    def _bound(self, cache: dict[str, Any]) -> Any:
        binding = self._session.io_binding()
        binding.bind_output("logits", self._device, 0)
        for past, present in self._pairs:
            binding.bind_ortvalue_input(past, cache[past])
            if self._shared:
                binding.bind_ortvalue_output(present, cache[past])
            else:
                binding.bind_output(present, self._device, 0)
        return binding

    def _step(self, tokens: Any, mask: Any, cache: dict[str, Any], binding: Any) -> Any:
        binding = binding or self._bound(cache)
        binding.bind_cpu_input("input_ids", tokens)
        binding.bind_cpu_input("attention_mask", mask)
        binding.bind_output("logits", self._device, 0)  # of another shape after the prompt
        self._session.run_with_iobinding(binding)
        made = binding.get_outputs()
        if not self._shared:
            for (past, _), present in zip(self._pairs, made[1:], strict=True):
                cache[past] = present
        return made[0].numpy()[:, -1:].argmax(-1)


def decoder_rows(
    name: str, folder: Path, *, shared: bool, prompts: Sequence[int] = _PROMPTS,
    provider: str = "CUDA", of: Decoder | None = None, turns: int = _TURNS,
) -> Iterator[Row]:  # fmt: skip
    """Yield a row for each prompt, and one for the kernels.

    The plain loop is measured before and after each run of the program, because the speed of a
    host changes within seconds: a run is compared with the mean of its two neighbours.
    """
    of = of or DECODERS[name]
    model, device = folder / f"{name}.onnx", "cpu" if provider == "CPU" else "cuda"
    report = folder / f"{name}-{'shared' if shared else 'apart'}.dldprof"
    loop = PlainLoop(model, of, shared=shared, device=device)

    def own() -> list[tuple[float, float]]:
        return [loop.medians(prompt, _WARM, _REPEATS) for prompt in prompts]

    def profiled(settings: dict[str, Any]) -> Any:
        fresh(report)
        return result_of("profile_llm", {
            "model": str(model), "output": str(report), "provider": provider, "decode": _TOKENS,
            "prompt": ",".join(map(str, prompts)), "shared_buffer": "on" if shared else "off",
        } | settings)  # fmt: skip

    plain, results = [own()], []
    for _ in range(turns):
        results.append(profiled({"layer_passes": 0, "iterations": _REPEATS}))
        plain.append(own())
    kind = f"{name} {'shared' if shared else 'apart'}"
    for at, prompt in enumerate(prompts):
        yield _compared(
            f"{kind}, prompt {prompt:,}",
            [one[at] for one in plain],
            [result.figures[at] for result in results],
        )
    # Only now, because all runs of a process are slower once kernels were recorded in it.
    result = profiled({"layer_passes": 6, "iterations": 1})
    for phase, path in (("decode", result.report), ("prefill", result.prefill_report)):
        yield _kernel_row(f"{kind}, {phase}", path)
        yield roof_row(path)
    if not shared:
        result = profiled({"layer_passes": 0, "shared_buffer": "auto", "prompt": str(prompts[-1])})
        with Report.open(str(result.report)) as opened:
            gain = sharing_gain(opened)
        text = "no advice" if gain is None else gain.text
        yield {"what": f"{kind}, a shared buffer", "said": text, "good": True}


def _compared(
    what: str, own: Sequence[tuple[float, float]], told: Sequence[GenerationFigures]
) -> Row:
    """Compare runs of the program with the plain loop before and after each."""
    neighbours = [
        tuple(statistics.fmean(pair) for pair in zip(*own[at : at + 2], strict=True))
        for at in range(len(told))
    ]
    ratios = [
        (figures.first_token_ms / first_ms, (figures.tokens_per_s or 0.0) / rate)
        for figures, (first_ms, rate) in zip(told, neighbours, strict=True)
    ]
    medians = [statistics.median(column) for column in zip(*ratios, strict=True)]
    changes = [max(column) / min(column) for column in zip(*own, strict=True)]
    last = told[-1]
    new = last.new_shape_ms
    firsts, rates = zip(*own, strict=True)
    return {
        "what": what,
        "own": f"{statistics.median(firsts):.2f} ms (×{changes[0]:.2f}),"
        f" {statistics.median(rates):.0f} tokens/s (×{changes[1]:.2f})",
        "said": f"{statistics.median(one.first_token_ms for one in told):.2f} ms,"
        f" {statistics.median(one.tokens_per_s or 0.0 for one in told):.0f} tokens/s"
        + ("" if new is None else f", new length {new:.1f} ms")
        + ("" if last.is_steady else ", not steady"),
        "ratios": " ".join(f"{ratio:.3f}" for ratio in medians),
        "good": all(abs(ratio - 1) <= _WITHIN for ratio in medians),
        "figures": {"own": own, "ratios": ratios, "gpu_memory_bytes": last.gpu_memory_bytes,
                    "new_shape_ms": new},
    }  # fmt: skip


def _kernel_row(what: str, path: Path) -> Row:
    with Report.open(str(path)) as report:
        timeline: Any = report.properties.get("gpu_timeline") or {}
        busy = sum(layer.gpu_time_ms or 0.0 for layer in report.layers)
    named, count = timeline.get("attributed", 0), timeline.get("kernels", 0)
    problem = timeline.get("problem") or ""
    said = f"{named:,} of {count:,} kernels have a layer, {busy:.3f} ms of layers {problem}"
    return {"what": f"{what}: kernels", "said": said.strip(), "good": bool(count)
            and named >= 0.99 * count}  # fmt: skip


def _child(folder: Path, provider: str, *words: str) -> list[Row]:
    """Run a part in a process of its own, and return its rows."""
    command = [
        sys.executable, "-m", "scripts.gpu_figures", "--folder", str(folder), "--provider",
        provider, *words,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = [json.loads(line[4:]) for line in done.stdout.splitlines() if line.startswith("ROW ")]
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        rows.append({"what": " ".join(words[:2]), "own": last[0][:200], "good": False})
    return rows


def _emit(rows: Iterator[Row] | Sequence[Row]) -> None:
    for row in rows:
        print(f"ROW {json.dumps(row)}", flush=True)


def figures(folder: Path, limit_s: float, part: str, provider: str) -> int:
    """Measure all; print the table. Returns the exit status."""
    begin, rows = time.monotonic(), list[Row]()
    names = [*(DECODERS if part != "bounds" else ()), *(MODELS if part != "decoders" else ())]
    writing = {
        name: subprocess.Popen(
            [sys.executable, "-m", "scripts.gpu_figures", "--folder", str(folder), "--write", name],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        for name in names
    }  # fmt: skip
    failed = []
    for name, process in writing.items():
        _, errors = process.communicate()
        if process.returncode:
            last = (errors.strip().splitlines() or ["no message"])[-1][:120]
            rows.append({"what": name, "own": f"could not be written: {last}", "good": False})
            failed.append(name)
    names = [name for name in names if name not in failed]

    def done(new: list[Row]) -> None:
        rows.extend(new)
        for row in new:
            print(text_of(row), flush=True)
        (folder / "figures.json").write_text(json.dumps(rows, indent=1))

    for name in (name for name in names if name in DECODERS):
        for shared in ("on", "off"):
            done(_child(folder, provider, "--decoder", name, "--shared", shared))
    advice = {name: _child(folder, provider, "--advice", name) for name in names if name in MODELS}
    for name, found in advice.items():
        done([one for one in found if "changes" not in one])
        if not any("changes" in one for one in found):
            done([{"what": name, "said": "no advice", "good": True}])
    ranked = [
        (rank, name, one)
        for name, found in advice.items()
        for rank, one in enumerate(one for one in found if "changes" in one)
    ]
    for _, name, one in sorted(ranked, key=lambda entry: entry[0]):
        if time.monotonic() - begin + 1.1 * BUDGET_S > limit_s:
            changes = ",".join(one["changes"])
            done([{"what": f"{name}: {changes}", "own": "not followed: the time was up",
                   "said": str(one["gain_percent"]), "good": True, "skipped": True}])  # fmt: skip
            continue
        done(_child(folder, provider, "--follow", name, "--change", json.dumps(one)))
    print("\n| what | own measurement | what dld said | ratios | |\n|---|---|---|---|---|")
    for row in rows:
        cells = [str(row.get(key, "")) for key in ("what", "own", "said", "ratios")]
        print(f"| {' | '.join(cells)} | {'ok' if row['good'] else 'FAIL'} |")
    bad = sum(not row["good"] for row in rows)
    print(f"{len(rows)} rows, {bad} failed, {time.monotonic() - begin:.0f} s")
    return 1 if bad else 0


def main() -> int:
    """Run what the arguments say. Returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--limit", type=float, default=_LIMIT_S)
    parser.add_argument("--part", choices=("all", "decoders", "bounds"), default="all")
    parser.add_argument("--provider", default="CUDA")
    for hidden in ("--write", "--decoder", "--shared", "--advice", "--follow", "--change"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    parts: dict[str, Callable[[Path], Any]] = {
        "write": lambda folder: [{"what": str(write_model(options.write, folder))}],
        "decoder": lambda folder: decoder_rows(
            options.decoder, folder, shared=options.shared == "on", provider=options.provider
        ),
        "advice": lambda folder: [
            *advice_of(folder / f"{options.advice}.onnx", folder, options.provider),
            roof_row(folder / f"{options.advice}.dldprof"),
        ],
        "follow": lambda folder: [
            bound_row(
                folder / f"{options.follow}.onnx",
                folder,
                json.loads(options.change),
                options.provider,
            )
        ],
    }
    for name, part in parts.items():
        if getattr(options, name):
            _emit(part(options.folder))
            return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        return figures(folder, options.limit, options.part, options.provider)


if __name__ == "__main__":
    sys.exit(main())
