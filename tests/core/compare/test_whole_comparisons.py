"""Pages, documents and sentences of whole comparisons, compared with the files beside."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dld_tui.core.compare.comparison import Comparison, open_subject
from dld_tui.core.compare.export import (
    compare_table,
    comparison_csv,
    comparison_json,
    comparison_page,
)
from dld_tui.core.compare.records import Subject
from dld_tui.core.compare.sweeps import SweepComparison, sweeps_json, sweeps_page
from dld_tui.core.report.records import Layer
from dld_tui.core.report.sweep import load_sweep
from dld_tui.core.tables.html_page import SCRIPT, STYLE, digest
from dld_tui.core.tables.rendering import fitted_lines
from dld_tui.core.types import JSON
from tests.support.compared import noisy, subject, timed
from tests.support.recorded import Recorded, settled
from tests.support.report_files import HOSTILE, make_report
from tests.support.transcript_files import FILES

WAYS = ("layer", "node", "type", "op", "scope", "provider", "precision", "mismatch")


def many(seed: int, path: Path) -> Path:
    return make_report(path, 14, 12, names=(HOSTILE,), seed=seed)


def part(
    name: str, kind: str, ms: float, seed: int, *nodes: str, **more: str
) -> tuple[Layer, Sequence[float]]:
    return timed(name, noisy(ms, seed, 30, 0.02), nodes, kind, **more)


def networks() -> list[Subject]:
    """Return a network in three versions: fused, in another type, and on fewer threads."""
    head = "/head/fc"
    return [
        subject(
            part("/a/conv", "Conv", 4.0, 1, "/a/conv", precision="float32", provider="CPU"),
            part("/a/relu", "Relu", 1.0, 2, "/a/relu", precision="float32", provider="CPU"),
            part("/b/conv", "Conv", 2.0, 3, "/b/conv", precision="float32", provider="CPU"),
            part("/b/gone", "Mul", 0.5, 4, "/b/gone", precision="float32", provider="CPU"),
            part(head, "Gemm", 3.0, 5, head, precision="float32", provider="CPU"),
            title="first.dldprof", latencies=noisy(10.6, 21, 30, 0.01),
            properties={"network": "n", "backend": "ORT", "device": "a CPU"},
            settings={"threads": 4, "precision": "fp32", "input_shapes": {"x": [1, 3]}},
            environment={"os": "Linux"},
        ),
        subject(
            part("fused", "FusedConv", 3.0, 6, "/a/conv", "/a/relu", precision="float32",
                 provider="CUDA"),
            part("/b/conv", "Conv", 1.0, 7, "/b/conv", precision="float16", provider="CUDA"),
            part("cast", "Cast", 0.25, 8, precision="float16", provider="CUDA"),
            part("cast_1", "Cast", 0.25, 9, precision="float16", provider="CUDA"),
            part(head, "Gemm", 3.01, 10, head, precision="float32", provider="CPU"),
            title="second.dldprof", latencies=noisy(7.6, 22, 30, 0.01),
            properties={"network": "n", "backend": "ORT", "device": "a GPU"},
            settings={"threads": 4, "precision": "fp16", "input_shapes": {"x": [1, 3]}},
            environment={"os": "Linux", "clocks": {"locked": True}},
        ),
        subject(
            part("/a/conv", "Conv", 8.0, 11, "/a/conv", precision="float32", provider="CPU"),
            part("/a/relu", "Relu", 2.0, 12, "/a/relu", precision="float32", provider="CPU"),
            part("/b/conv", "Conv", 4.0, 13, "/b/conv", precision="float32", provider="CPU"),
            part("/b/gone", "Mul", 1.0, 14, "/b/gone", precision="float32", provider="CPU"),
            part(head, "Gemm", 6.0, 15, head, precision="float32", provider="CPU"),
            title="third.dldprof", latencies=noisy(21.0, 23, 30, 0.01),
            properties={"network": "other", "backend": "ORT", "device": "a CPU"},
            settings={"threads": 1, "precision": "fp32", "input_shapes": {"x": [2, 3]}},
            environment={"os": "Linux", "other_busy_threads": 2.5},
        ),
    ]  # fmt: skip


def comparisons(folder: Path) -> dict[str, Comparison]:
    """Return comparisons of reports, of engines, and of what they cannot be compared in."""

    def opened(*names: str) -> list[Subject]:
        for name in names:
            FILES[name](folder / name)
        return [open_subject(folder / name) for name in names]

    first, second, third = networks()
    seeds = [open_subject(many(seed, folder / f"seed{seed}.dldprof")) for seed in (1, 2)]
    decoder = opened("decoder.dldprof")[0]
    slower = dataclasses.replace(
        decoder, title="slower.dldprof", latencies_ms=[2 * ms for ms in decoder.latencies_ms]
    )
    rows = {"odd": 1.0, **{f"n{at}": 1.0 + at for at in range(1, 9)}}
    slowed = [
        subject(
            *(part(name, "Conv", ms * (1.0 if name == "odd" else times), round(ms + times), name)
              for name, ms in rows.items()),
            title=f"{times:g}.dldprof", latencies=noisy(50.0 * times, 24, 30, 0.01),
        )
        for times in (0.5, 1.0, 1.5)
    ]  # fmt: skip
    return {
        "by one factor": Comparison(slowed, base=1),
        "two": Comparison([first, second]),
        "three": Comparison([first, second, third], base=1),
        "slower": Comparison([first, third]),
        "seeds": Comparison(seeds),
        "same": Comparison([second, second]),
        "fused": Comparison(opened("apart.dldprof", "fused.dldprof", "busy.dldprof")),
        "gpu": Comparison(opened("gpu.dldprof", "rich.dldprof")),
        "decoders": Comparison([decoder, slower]),
        "engines": Comparison(opened("slow.graph.json", "fast.graph.json")),
        "real engines": Comparison(opened("resnet.graph.json", "qat.graph.json")),
    }  # fmt: skip


def document(data: JSON) -> list[str]:
    """Return a document with a line for each value, or item of a list."""
    assert isinstance(data, dict)
    lines = []
    for key, value in data.items():
        items = value if isinstance(value, list) else [value]
        lines += [f"{key}: {json.dumps(item, ensure_ascii=False)}" for item in items]
    return lines


def framed(page: str) -> str:
    for text in (STYLE, SCRIPT):
        page = page.replace(text, "OURS").replace(digest(text), "OURS")
    return re.sub(r"\n?(?=<(?:section|tr|rect|li|p|div class=.tile|svg|h1)[ >])", "\n", page)


def told(compared: Comparison) -> list[str]:
    lines = [compared.headline, *compared.explanation(), "--"]
    lines += [*compared.warnings, "--", *compared.unfair, "--", *compared.doubts, "--"]
    lines += [str(one) for one in compared.differences]
    lines += [f"{one.what}: {one.node}" for one in compared.mismatches[:5]]
    return lines


def rows(compared: Comparison) -> list[str]:
    lines = []
    for by in WAYS if compared.of_engines else WAYS[:-1]:
        found = compared.rows(by)[:12]
        if by == "mismatch":
            lines += comparison_csv(compared, found, by).splitlines()
            continue
        table = compare_table(compared, by, found, "text")
        lines += [f"-- {by}", *fitted_lines(table, 110)[0]]
    return lines


def screens(compared: Comparison) -> list[str]:
    """Return the table of a screen: texts, styles and marks of each cell."""
    lines = []
    for view in ("screen", "html"):
        table = compare_table(compared, "layer", compared.rows()[:8], view)
        for row in table.rows:
            cells = [f"{column.key}={column.shown_text(row)}|{column.style_of(row)}"
                     for column in table.columns]  # fmt: skip
            lines.append(f"{view} {'; '.join(cells)}")
    return lines


def documents(compared: Comparison) -> list[str]:
    csv = comparison_csv(compared, compared.rows())
    return [*document(comparison_json(compared)), *csv.splitlines()]


def pages(compared: Comparison) -> list[str]:
    return framed(comparison_page(compared)).splitlines()


SHOWN: dict[Callable[[Comparison], Sequence[str]], tuple[str, ...]] = {
    told: (
        "two", "three", "slower", "seeds", "same", "fused", "gpu", "decoders", "engines",
        "real engines", "by one factor",
    ),
    rows: ("three", "seeds", "engines", "real engines"),
    screens: ("three", "slower", "seeds", "engines", "gpu"),
    documents: ("three", "slower", "engines", "decoders", "by one factor"),
    pages: ("three", "engines", "seeds"),
}  # fmt: skip


@pytest.mark.broad
def test_whole_comparisons(tmp_path: Path, recorded: Recorded) -> None:
    made = comparisons(tmp_path)
    for shown, names in SHOWN.items():
        texts = {name: settled("\n".join(shown(made[name])), tmp_path) for name in names}
        recorded(f"whole_{shown.__name__}", texts)


@pytest.mark.parametrize("base", [0, 1])
def test_whole_comparisons_of_sweeps(base: int, tmp_path: Path, recorded: Recorded) -> None:
    pairs = {
        "two": ("a.sweep.json", "b.sweep.json"),
        "three": ("failed.sweep.json", "rough.sweep.json", "near.sweep.json"),
        "sizes": ("sizes.sweep.json", "sizes.sweep.json"),
    }
    texts = {}
    for title, names in pairs.items():
        for name in names:
            FILES[name](tmp_path / name)
        compared = SweepComparison([load_sweep(tmp_path / name) for name in names], base)
        made = [framed(sweeps_page(compared)), *document(sweeps_json(compared, compared.rows))]
        texts[title] = settled("\n".join(made), tmp_path)
    recorded(f"whole_sweeps_from_{base}", texts)
