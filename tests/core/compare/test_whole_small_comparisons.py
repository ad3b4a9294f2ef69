"""Comparisons of a few layers each, with all that is said of them and all their figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dld_tui.core.compare.comparison import GROUPINGS, MISMATCH, Comparison
from dld_tui.core.compare.conditions import batch_sizes, relevant_differences, same_model
from dld_tui.core.compare.engine_subject import plan_subject
from dld_tui.core.compare.export import (
    compare_table,
    comparison_csv,
    difference_table,
    mismatch_table,
    precision_table,
)
from dld_tui.core.compare.records import Subject
from dld_tui.core.tensorrt.plan.engine_plan import TimeStatistics, TimingSummary
from dld_tui.core.tensorrt.plan.mapping import map_plan
from tests.support.compared import noisy, subject, timed
from tests.support.plans import layer, plan
from tests.support.recorded import Recorded, settled, table_text
from tests.support.report_files import HOSTILE

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
COPY = "Reformatting CopyNode for Input Tensor 0 to a"
SAME = {"sha256": "0" * 64, "bytes": 10, "path": "/m/net.onnx"}


def plain(factor: float = 1.0, seed: int = 1, **more: Any) -> Subject:
    conv = timed("conv", noisy(2.0 * factor, seed), ["c"], **more)
    add = timed("add", noisy(0.5, seed + 1), ["a"], "Add")
    latencies = noisy(2.5 + 2 * (factor - 1), seed + 2)
    return subject(conv, add, latencies=latencies, model=SAME)


def rows_of(factors: Sequence[float], seed: int, **more: Any) -> Subject:
    rows = [timed(f"x{at}", noisy(factor, seed + at), [f"x{at}"])
            for at, factor in enumerate(factors)]  # fmt: skip
    return subject(*rows, **more)


def on_gpu(kernels: bool) -> Subject:
    cuda = timed("g", 0.1, ["g"], provider=CUDA, gpu_time_ms=2.0 if kernels else None)
    made = subject(cuda, timed("c", 0.5, ["c"], "Add", provider=CPU), title="g.dldprof")
    times = np.array([[2.0] * 10, [np.nan] * 10])
    return replace(made, gpu_times=times if kernels else None)


def reports() -> Iterator[tuple[str, Comparison]]:
    """Yield comparisons of reports."""
    nan = float("nan")
    apart = subject(
        timed("/a/conv", noisy(1.0, 1), ["/a/conv"]),
        timed("/a/relu", noisy(0.5, 2), ["/a/relu"], "Relu"),
        timed("/b/add", noisy(0.2, 3), ["/b/add"], "Add"),
        latencies=noisy(2.0, 4), first_tokens_ms=noisy(8.0, 9),
    )  # fmt: skip
    fused = subject(
        timed("fused", noisy(0.9, 5), ["/a/conv", "/a/relu"], "FusedConv"),
        timed("/b/add", noisy(0.2, 6), ["/b/add"], "Add"),
        timed("reorder", noisy(0.1, 7), [], "ReorderOutput"),
        title="b.dldprof", latencies=noisy(1.5, 8), first_tokens_ms=noisy(6.0, 9),
    )  # fmt: skip
    yield "fused", Comparison([apart, fused])
    yield "fused in the base", Comparison([apart, fused, apart], base=1)
    yield "fused alike", Comparison([fused, replace(fused, first_tokens_ms=())])
    batches = [replace(one, settings={"input_shapes": {"ids": [size, 8]}})
               for one, size in ((apart, 1), (fused, 2))]  # fmt: skip
    yield "batches", Comparison(batches)
    yield "a slower layer", Comparison([plain(), plain(1.5, 10)])
    yield "another provider", Comparison([plain(provider=CUDA), plain(3.0, 9, provider=CPU)])
    yield "back on the GPU", Comparison([plain(provider=CPU), plain(0.5, 9, provider=CUDA)])
    yield "types", Comparison([plain(precision="float32"), plain(0.5, 9, precision="float16")])
    yield "no latencies", Comparison([subject(by_pass=False)] * 2)
    hostile = subject(
        timed(HOSTILE, noisy(1.0, 1)), timed("x", noisy(1, 2)), timed("x", noisy(2, 3))
    )
    yield "hostile", Comparison([hostile, subject(timed("other", noisy(9.0, 4)))])
    branches = subject(timed("x", [1, nan] * 5, type="If"), timed("y", [nan, 1] * 5, type="If"))
    yield "branches", Comparison([branches, subject(timed("x", 1.0, type="If"))])
    medians = subject(timed("x", 1.0), timed("never", nan), by_pass=False)
    yield "no passes", Comparison([medians, subject(timed("x", 3.0), by_pass=False)])
    cpu = subject(timed("g", 8.0, ["g"], provider=CPU))
    yield "kernels", Comparison([cpu, on_gpu(kernels=True)])
    yield "launches", Comparison([on_gpu(kernels=True), on_gpu(kernels=False)])
    # Each pass another layer is delayed: none takes longer undisturbed, and every pass does.
    delayed = []
    for at in range(12):
        times = noisy(1.0, 40 + at)
        times[at::12] = [time + 8.0 for time in times[at::12]]
        delayed.append(timed(f"x{at}", times, [f"x{at}"]))
    yield "delays", Comparison([rows_of([1.0] * 12, 0), subject(*delayed)])
    factors = [3.5 + 0.1 * at for at in range(15)] + [12.0]
    yield "all slower but one", Comparison([rows_of([1.0] * 16, 0), rows_of(factors, 50)])
    fast, slow = (rows_of([factor] * 9, 0, settings={"threads": threads}, model=SAME)
                  for factor, threads in ((1.0, 8), (5.0, 1)))  # fmt: skip
    yield "all slower", Comparison([fast, slow])
    busy = {"cpu_threads": 2, "other_busy_threads": 1.7}
    two = replace(plain(2.0, 30), environment=busy)
    yield "busy", Comparison([replace(plain(), environment=busy), two])


def engine(title: str, *layers: dict[str, Any], **more: Any) -> Subject:
    made = plan([layer(at, **fields) for at, fields in enumerate(layers)], title=title, **more)
    return plan_subject(made, map_plan(made))


def conv(name: str, of: str, tactic: str, time_ms: float | None = None, **more: Any) -> Any:
    return {"name": name, "of": of, "tactic": tactic, "time_ms": time_ms, **more}


def engines() -> Iterator[tuple[str, Comparison]]:
    """Yield comparisons of engines."""
    copy = {"name": COPY, "type": "Reformat", "of": "fp32", "to": "fp16"}
    slow = engine("slow", conv("a", "fp32", "scudnn", 4.0), conv("b", "fp32", "scudnn", 2.0))
    fast = engine("fast", conv("a", "fp16", "hmma_1", 1.0), conv("b", "fp32", "scudnn", 2.0))
    both = engine("fused", conv("a + b", "fp16", "hmma_2", 1.0), {**copy, "time_ms": 0.5})
    yield "three engines", Comparison([slow, fast, both])
    yield "tactics and types", Comparison([
        engine("x", conv("a", "fp16", "t1", 1.0), conv("b", "fp16", "t1"), conv("c", "int8", "t")),
        engine("y", conv("a", "fp16", "t2", 2.0), conv("b", "fp16", "t1"), conv("c", "fp16", "t")),
    ])  # fmt: skip
    report = subject(timed("a", 1.0, ["a"], precision="float16"))
    half = engine("x", conv("a", "fp16", "t", 1.0))
    yield "an unknown type", Comparison([half, engine("y", conv("a", "", "", 1.0))])
    yield "an engine and a report", Comparison([half, report])
    yield "without a profile", Comparison([
        engine("x", conv("a", "fp32", "t1"), conv("b", "fp32", "t1")),
        engine("y", conv("a", "fp16", "t2"), copy),
    ])  # fmt: skip
    yield "one without a profile", Comparison([slow, engine("y", conv("a", "fp16", "t2"))])
    eighth = engine(
        "eighth", conv("c1", "int8", "", 1.0), conv("p", "fp16", "", 1.0, type="Pooling"),
        conv("q", "fp16", "", 0.5, type="Reformat"), conv("s", "int8", "", 0.1, type="Scale"),
        conv("QuantizeLinear_7 + QuantizeLinear_8", "int8", "", 0.2, type="PointWise"),
        conv("QuantizeLinear_9 + Relu_10", "int8", "", 0.3, type="PointWise"),
    )  # fmt: skip
    four = [conv("c1", "fp16", "", 2.0), conv("p", "fp16", "", 1.0, type="Pooling")]
    yield "int8", Comparison([engine("half", *four), eighth])
    yield "int8 is no faster", Comparison([engine("x", conv("c1", "fp16", "", 0.9)), eighth])
    ten = [conv(f"c{at}", "fp16", "t", 1.0 + at / 10) for at in range(10)]
    slower = [{**one, "time_ms": one["time_ms"] * 1.2} for one in ten]
    yield "all slower", Comparison([engine("x", *ten), engine("y", *slower)])
    uneven = [*slower[:-3], *ten[-3:]]
    yield "not all slower", Comparison([engine("x", *ten), engine("y", *uneven)])
    other = [{**one, "of": "int8"} for one in slower]
    yield "all slower in another type", Comparison([engine("x", *ten), engine("y", *other)])
    shapes = [
        engine(title, *(conv(f"{name}_{at}", of, "t", 1.0, dims=(1, 16 * (1 + at // 2), 8, 8))
                        for at in range(4)))
        for title, name, of in (("a", "Conv", "fp32"), ("b", "Q", "int8"), ("c", "Q", "int8"))
    ]  # fmt: skip
    yield "by shape", Comparison(shapes)
    yield "numbers of other models", Comparison([
        engine("1", conv("w + Conv_3", "fp16", "", dims=(1, 16, 8, 8)),
               conv("Conv_4", "fp16", "", dims=(1, 8, 4, 4)), model_path="one.onnx"),
        engine("2", conv("Conv_3 + Relu_4", "fp16", "", dims=(1, 8, 4, 4)),
               model_path="C:\\m\\two.onnx"),
    ])  # fmt: skip
    names = (
        ("Conv_0 + Relu_1", "Conv_2 + Add_3 + Relu_4"),
        ("w.weight + QuantizeLinear_1 + Conv_2 + Relu_3",
         "v.weight + QuantizeLinear_5 + Conv_7 + Add_9"),
    )  # fmt: skip
    for models in (("one.onnx", "two.onnx"), ("", "")):
        yield f"moved numbers of {'/'.join(models)}", Comparison([
            engine(title, conv(first, "fp16", "", 3.0, dims=(1, 16, 8, 8)),
                   conv(second, "fp16", "", 2.0, dims=(1, 8, 4, 4)), model_path=path)
            for title, (first, second), path in zip("ab", names, models, strict=True)
        ])  # fmt: skip
    yield "numbers that agree", Comparison([
        engine("a", conv("Conv_0 + Relu_1", "fp16", "", 3.0, dims=(1, 16, 8, 8)),
               conv("Conv_2", "fp16", "", 2.0, dims=(1, 8, 4, 4))),
        engine("b", conv("Conv_2", "fp16", "", 2.0, dims=(1, 16, 8, 8)),
               conv("Conv_0", "fp16", "", 1.5, dims=(1, 8, 4, 4)),
               conv("Relu_1", "fp16", "", 0.5, dims=(1, 4, 4, 4))),
    ])  # fmt: skip
    calls = [conv(f"__myl_{at}", "fp16", "", 1.0, metadata=f"[ONNX Layer: act | {name} (F)]")
             for at, name in enumerate(("one", "two"))]  # fmt: skip
    yield "calls of a function", Comparison([engine("x", *calls), engine("y", *calls)])
    batched = [
        replace(engine("n", conv("conv", "fp16", "", ms, dims=(batch, 16, 8, 8))),
                settings={"input_shapes": {f"x{batch}": [batch, 3, 8, 8]}}, latencies_ms=[ms] * 10)
        for batch, ms in ((1, 2.0), (8, 8.0))
    ]  # fmt: skip
    yield "batches of engines", Comparison(batched)
    median = TimeStatistics(1.0, 3.0, 2.0, 2.5)
    timings = [TimingSummary(median, None, None, None, None, None),
               TimingSummary(median, None, None, None, None, None,
                             series={"latency": (1.0, 3.0)})]  # fmt: skip
    yield "timings", Comparison([engine("x", conv("a", "fp16", "", 5.0, median_ms=2.0), timing=one)
                                 for one in timings])  # fmt: skip
    yield "a device", Comparison([engine("a", conv("a", "fp16", ""), device={"Device": "A100"}),
                                  engine("b", conv("a", "fp16", ""))])  # fmt: skip


def told(compared: Comparison) -> str:
    """Return all that is said of a comparison, and its rows as CSV."""
    lines = [compared.headline, *compared.explanation(), *compared.warnings]
    lines += [f"{one.section} {one.name}: {one.values}" for one in compared.differences]
    lines += [f"{one.what}: {one.node} {one.precision} {one.tactic}" for one in compared.mismatches]
    lines += map(str, compared.precisions if compared.of_engines else ())
    count = range(len(compared.subjects))
    lines.append(str([(compared.speed_up(at), compared.speed_up_bounds(at)) for at in count]))
    for by in (*GROUPINGS, MISMATCH):
        rows = compared.rows(by)
        lines += [f"by {by}", *comparison_csv(compared, rows, by).splitlines()[rows == [] :]]
        if by == "layer":
            lines += [str([cell.layers for cell in row.cells]) for row in rows]
    return settled("\n".join(lines))


def test_small_comparisons(recorded: Recorded) -> None:
    recorded("whole_small_reports", {name: told(one) for name, one in reports()})


def test_small_comparisons_of_engines(recorded: Recorded) -> None:
    recorded("whole_small_engines", {name: told(one) for name, one in engines()})


def test_columns_of_comparisons(recorded: Recorded) -> None:
    fused, three = dict(reports())["fused in the base"], dict(engines())["three engines"]
    texts = {}
    for view in ("csv", "text", "html", "screen"):
        rows = compare_table(fused, "layer", fused.rows(), view)
        mismatches = mismatch_table(three, three.mismatches, view)
        texts[view] = settled(f"{table_text(rows)}\n{table_text(mismatches)}")
    settings = Comparison([run(), run(settings={"threads": 2})])
    texts["differences"] = table_text(difference_table(settings))
    texts["precisions"] = table_text(precision_table(three))
    recorded("whole_columns", texts)


SETTINGS = {"provider": "CPU", "threads": 0, "input_shapes": {"x": [1, 3]}, "percentile": "90"}
NETWORK = {"network": "net.onnx", "backend": "ORT 1", "device": "cpu", "status": "complete"}


def run(passes: int = 10, **changes: Any) -> Subject:
    fields: dict[str, Any] = {"model": SAME, "properties": NETWORK, "settings": SETTINGS,
              "environment": {"python": "3"}}  # fmt: skip
    merged = {name: {**fields.get(name, {}), **value} if name in fields else value
              for name, value in changes.items()}  # fmt: skip
    return subject(timed("x", noisy(1.0, 1, passes, 0.001)), **{**fields, **merged})


def conditions() -> Iterator[tuple[str, list[Subject]]]:
    """Yield reports that were measured under other conditions."""
    yield "the same", [run(), run()]
    yield (
        "no settings of the measurement",
        [
            run(settings={"duration": None, "iterations": 5, "percentile": "99", "output": "a"}),
            run(settings={"duration": 3.0, "iterations": 9, "model": "m"}),
        ],
    )
    yield "settings and environment", [run(), run(
        properties={"backend": "ORT 2", "device": ""},
        settings={"warm_up": 3, "threads": 2, "provider": "CUDA", "shape": "x:2", "text": "",
                  "providers": {"a": 1, "b": None}, "list": [1, "b"], "is": True},
        environment={"python": "3.1", "load_average": [9.0], "gpu_temperature_c": 40},
    ), run(settings={"providers": {}, "list": [], "is": False, "text": "a"})]  # fmt: skip
    yield "an imported profile", [run(), Subject("p.json", "/p.json", run().layers, properties={
        "network": "p.json", "backend": "ORT 0", "device": "",
    })]  # fmt: skip
    yield "a changed model", [run(), run(model={"sha256": "1" * 64})]
    other = {"network": HOSTILE}
    yield "other models", [run(), run(model={"sha256": "1" * 64, "path": None}, properties=other)]
    sizes = [run(model={"sha256": None, "bytes": size}) for size in (10, 11)]
    yield "another size", sizes
    yield "the same size", sizes[:1] * 2
    yield "a network without a model", [run(model={"sha256": None, "bytes": None}, properties=named)
                                        for named in (NETWORK, {"network": "o"})]  # fmt: skip
    other_shapes: list[dict[str, Any]] = [
        {"x": [8, 3]}, {"x": [1, 5]}, {"y": [1, 3]}, {"x": ["N", 3]}, {"x": []}, {}
    ]  # fmt: skip
    for shapes in other_shapes:
        yield f"shapes {shapes}", [run(), run(settings={"input_shapes": shapes})]
    yield (
        "three shapes",
        [run(settings={"input_shapes": shapes}) for shapes in ({"x": [1]}, {"x": [2]}, {"x": [0]})],
    )
    model = {"sha256": "1" * 64}
    for shapes in ({"z": [1, 3]}, {"z": [2, 3]}):
        yield f"shapes {shapes} of another model", [
            run(), run(settings={"input_shapes": shapes}, model=model)
        ]  # fmt: skip
    clocks = [{"cpu_mhz": 2000.0, "gpu_sm_mhz": 1980, "power_mode": "MAXN", "cpu_governor": "a"},
              {"cpu_mhz": 2050.0, "gpu_sm_mhz": 1980, "board": {"power_mode": "MAXN"}},
              {"cpu_mhz": 2110.0, "gpu_sm_mhz": 1200, "power_mode": "15W", "cpu_governor": "b",
               "clocks": {"locked": True}, "cpu_boost": "on", "cpu": "c"}]  # fmt: skip
    measured = [run(environment=one, latencies=[1.0] * 10) for one in clocks]
    yield "clocks nearly alike", measured[:2]
    yield "clocks", [measured[0], run(environment=clocks[2], properties={"device": HOSTILE})]
    yield "no loops", [measured[0], run(), run()]
    yield "a bad run", [run(), run(
        passes=3, properties={"status": "partial"}, latencies=noisy(1.0, 5, 20, 0.2),
        environment={"load_average": [7.5, 1, 1], "cpu_threads": 4, "gpu_throttling": HOSTILE,
                     "a": {"throttling": "none"}, "b_throttling": ""},
    )]  # fmt: skip
    for passes in (1, 5, 6):
        yield f"{passes} passes", [run(passes), run()]
    yield "averages", [subject(timed("x", 1.0), by_pass=False), subject(by_pass=False)]
    whole = replace(run(), profiled_ms=[], properties={})
    yield "whole inferences", [whole, replace(whole, times=None if whole.times is None else
                                              whole.times[:, :1])]  # fmt: skip
    yield "prompts", [run(prompt=16), run(prompt=1024), run()]
    yield "the same prompt", [run(prompt=16), run(prompt=16), run()]


def test_conditions(recorded: Recorded) -> None:
    texts = {}
    for name, subjects in conditions():
        compared = Comparison(subjects)
        lines = [str((same_model(subjects), [d.name for d in relevant_differences(subjects)]))]
        lines.append(str(batch_sizes([one.settings.get("input_shapes") for one in subjects])))
        lines += [f"{one.section} {one.name}: {one.values}" for one in compared.differences]
        texts[name] = "\n".join([*lines, "--", *compared.unfair, "--", *compared.doubts])
    recorded("whole_conditions", texts)
