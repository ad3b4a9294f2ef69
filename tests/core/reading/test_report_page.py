from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dld_tui.core.notes import NoteKind
from dld_tui.core.reading.export import report_page
from dld_tui.core.report.records import GpuEvent, Layer, NodeLink
from dld_tui.core.report.report import Report
from dld_tui.core.report.store import ReportWriter
from tests.support.browser import dom_after
from tests.support.profiles import start_report
from tests.support.report_files import HOSTILE, make_report
from tests.support.work import steps_in

NASTY = '"><script>document.title="hit"</script><img src="http://x.test/a.png" onerror=alert(1)>'
SVG = re.compile(r"<svg .*?</svg>", re.DOTALL)


class Tags(HTMLParser):
    """The tags of a page, and that each is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "line", "rect", "polygon"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in ("rect", "line", "polygon"):
            return
        assert self.open.pop() == tag


@pytest.fixture
def page(tmp_path: Path) -> str:
    path = make_report(tmp_path / "tiny.dldprof", layers=30, passes=9, names=(HOSTILE, NASTY))
    with Report.open(path) as report:
        return report_page(report)


def test_a_page_is_well_formed_and_refers_to_nothing_outside(page: str) -> None:
    tags = Tags(page)
    assert tags.open == []
    for tag, attributes in tags.seen:
        assert "src" not in attributes, tag
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
        assert (attributes.get("href") or "#").startswith("#"), tag
    assert {tag for tag, _ in tags.seen} & {"link", "img", "iframe", "object", "base"} == set()
    assert [tag for tag, _ in tags.seen].count("script") == 1


def test_what_was_recorded_is_told_as_people_read_it(tmp_path: Path) -> None:
    told = {
        "bytes": (2000, "size", "2 kB"), "moved_bytes": (10, "moved", "10 B"),
        "kilobytes": (10, "kilobytes", "10"), "mtime_ns": (10**18, "modified", "2001-09-09"),
        "took_ns": (5_000_000, "took_ms", "5.000"), "ratio": (0.25, "ratio", "0.25"),
        "yes": (True, "yes", "yes"), "no": (False, "no", "no"),
        "names": (["a", 2], "names", "a, 2"),
        "some": ([{}], "some", "[{}]"), "inner": ({"bytes": 10}, "inner.bytes", "10 B"),
        "text": ("t", "text", "t"), "none": (None, "", ""), "nothing": ("", "", ""),
        "empty": ([], "", ""), "input_shapes": ({"x": [1]}, "", ""),
    }  # fmt: skip
    settings = {name: value for name, (value, *_) in told.items()}
    made = start_report(tmp_path / "r.dldprof", settings=settings)
    made.finish()
    with Report.open(made.path) as report:
        page = report_page(report)
    (section,) = re.findall(r"<h2[^>]*>Settings</h2>(.*?)</section>", page, re.S)
    rows = dict(re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td>', section))
    expected = {name: text for _, name, text in told.values() if name}
    assert rows | {"modified": rows["modified"][:10]} == expected


@pytest.mark.broad
def test_the_work_and_the_page_grow_with_the_layers_and_no_faster(tmp_path: Path) -> None:
    work = []
    for count in (100, 200):
        path = make_report(tmp_path / f"{count}.dldprof", layers=count, passes=2)
        with Report.open(path) as report:
            work.append(steps_in(report_page, report))
            made = report_page(report)
    assert work[1] < 2.5 * work[0]
    assert made.count("<tr>") > 200
    assert len(made) < 400_000


def test_hostile_text_is_text_wherever_it_comes_from(tmp_path: Path) -> None:
    made = ReportWriter.create(
        tmp_path / "r.dldprof",
        network=NASTY, backend=NASTY, execution_provider=NASTY, device=NASTY,
        model={"path": NASTY, NASTY: [NASTY]},
        settings={NASTY: NASTY, "nested": {NASTY: {NASTY: NASTY}}},
        environment={NASTY: HOSTILE},
    )  # fmt: skip
    facts = {
        "provider": NASTY,
        "precision": NASTY,
        "nodes": (NodeLink((NASTY,), "", NASTY, NASTY),),
    }
    for kind in (NASTY, HOSTILE, ""):
        number = made.add_layer(Layer(NASTY, kind, output_dims=((NASTY, None),), **facts))  # type: ignore[arg-type]
        made.add_samples(0, [(number, 100.0 * number, 90.0, 90.0, NASTY)])
    made.add_pass(0, 0.0, 400.0)
    made.add_gpu_events(0, [GpuEvent(NASTY, "kernel", NASTY, 0.0, 300.0)])
    counter = made.add_counter(NASTY, NASTY, NASTY, 1.0, "nvml")
    made.add_counter_samples(counter, [(1.0, 1.0), (300.0, 0.5)])
    made.note(NASTY, NoteKind.WARNING)
    made.finish()
    with Report.open(tmp_path / "r.dldprof") as report:
        page = report_page(report)
    tags = Tags(page)
    assert tags.open == []
    assert [tag for tag, _ in tags.seen].count("script") == 1
    assert not {"img"} & {tag for tag, _ in tags.seen}
    assert not any(name.startswith("on") for _, found in tags.seen for name in found)
    assert "\x1b" not in page
    assert "\u202e" not in page
    for drawn in SVG.findall(page):
        ElementTree.fromstring(drawn)


SORT = """
const seen = [];
document.addEventListener("securitypolicyviolation", (event) => seen.push(event.violatedDirective));
const heads = document.querySelectorAll("#layer-table thead button");
const column = (at) => [...document.querySelectorAll("#layer-table tbody tr")]
  .map((row) => row.cells[at]);
const values = () => column(3).map((cell) => parseFloat(cell.dataset.v));
const told = { first: values() };
heads[3].click(); told.up = values();
heads[3].click(); told.down = values();
heads[1].click(); told.names = column(1).map((cell) => cell.textContent);
heads[0].click(); heads[0].click(); told.numbers = column(0).map((cell) => +cell.dataset.v);
const field = document.querySelector("input[data-table=layer-table]");
field.value = "softmax BLOCK.1"; field.dispatchEvent(new Event("input"));
told.left = column(1).filter((cell) => !cell.parentNode.hidden).map((cell) => cell.textContent);
told.title = document.title;
told.requests = performance.getEntriesByType("resource").length;
told.images = document.images.length;
told.scheme = getComputedStyle(document.body).backgroundColor;
const out = document.createElement("pre");
out.id = "told"; out.textContent = JSON.stringify({ ...told, violations: seen });
document.body.append(out);
"""


def test_in_a_browser_tables_sort_and_filter_and_nothing_is_loaded(
    page: str, tmp_path: Path
) -> None:
    dom = dom_after(page, SORT, tmp_path)
    found = re.search(r'<pre id="told">(.*?)</pre>', dom, re.DOTALL)
    assert found is not None, "the script of the page or of the test did not run"
    told = json.loads(html.unescape(found[1]))
    assert told["first"] == sorted(told["first"], reverse=True)
    assert told["up"] == sorted(told["first"])
    assert told["down"] == told["first"]
    # As the browser compares: case and punctuation count little, numbers by their value.
    blocks = [name for name in told["names"] if name.startswith("/block.")]
    assert blocks == sorted(blocks, key=lambda name: int(name.split(".")[1].split("/")[0]))
    assert told["numbers"] == list(range(30))
    assert told["left"] == ["/block.1/softmax_9"]
    assert told["title"] == "tiny.onnx"
    assert (told["requests"], told["images"], told["violations"]) == (0, 0, [])
    assert told["scheme"] == "rgb(255, 255, 255)"
