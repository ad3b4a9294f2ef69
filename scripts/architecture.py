"""Write what docs/project/architecture.md says of the source as it is: its imports and measures.

``python -m scripts.architecture`` replaces what stands between the marks
``<!-- scripts.architecture: NAME -->`` and ``<!-- /scripts.architecture -->``. A test fails when
a picture is no longer true.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from scripts.measure_structure import PACKAGE, Source, imports, measures, one_of_each, rooms_of

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "project" / "architecture.md"
_PART = re.compile(
    r"(<!-- scripts\.architecture: (\w+) -->\n)(.*?)(<!-- /scripts\.architecture -->)", re.DOTALL
)
_UNDRAWN = {PACKAGE, "__main__", "styles"}
_BEFORE: Mapping[str, tuple[str, str]] = {
    "files in src": ("949", ""),
    "lines in src": ("142,956", "about 140,000"),
    "most modules in a package": ("126 (dld_tui.widgets)", "25"),
    "most own ancestors of a screen or widget": ("30 (WorkspaceScreen)", "3"),
    "actions defined twice among ancestors": ("15", "0"),
    "largest import cycle, including deferred and typing imports": ("30", "3"),
    "pairs of packages of core that import each other": ("23", "0"),
    "packages of core in the largest cycle of their imports": ("21", "0"),
    "classes called Column": ("4", "1"),
    "`dict[str, JSON]` in signatures": ("231", "under 40"),
    "casts": ("108", "under 20"),
    "nested functions": ("366", ""),
    "modules of screens and widgets that start work themselves": ("40", "1"),
    "places that go by a sentence, besides readers of other programs": ("69", "0"),
    "such places in readers of other programs": ("83", ""),
    "classes of notes and findings": ("7", "1"),
    "classes of peaks": ("2", "1"),
    "modules that start processes": ("17", "1"),
    "modules that name `Reshape`": ("20", ""),
    "classes of journals": ("5", "1"),
    "functions that decide about overwriting": ("5", "1"),
    'edits by name, such as `edit("set_attribute", …)`': ("100", "0"),
    "options written by hand": ("195", "under 40"),
}
"""Of a measure: what it was when it was first counted, in November 2026, and its aim."""


def folders(source: Source) -> dict[str, set[str]]:
    """Return which folders and modules of the package import which others."""
    graph: dict[str, set[str]] = {}
    for module in source.trees:
        name = _folder(module)
        if name not in _UNDRAWN:
            others = {_folder(other) for other in imports(source, module)}
            graph.setdefault(name, set()).update(others - {name} - _UNDRAWN)
    return graph


def _folder(module: str) -> str:
    return module.removeprefix(f"{PACKAGE}.").partition(".")[0]


def reduced(graph: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return a graph without cycles less the arrows that follow from the others."""

    def reached(name: str) -> set[str]:
        return graph[name].union(*map(reached, graph[name]))

    return {
        name: {other for other in others if not any(other in reached(one) for one in others)}
        for name, others in graph.items()
    }


def picture(graph: Mapping[str, set[str]]) -> str:
    """Return a graph as a flowchart of Mermaid."""
    arrows = [
        f"    {name} --> {' & '.join(sorted(others))}" for name, others in graph.items() if others
    ]
    alone = [f"    {name}" for name, others in graph.items() if not others]
    return "\n".join(["```mermaid", "flowchart TD", *sorted(arrows), *sorted(alone), "```", ""])


def imports_of_folders(source: Source) -> str:
    """Return the picture of the folders of the package."""
    return picture(reduced(folders(source)))


def imports_of_core(source: Source) -> str:
    """Return the picture of the rooms of core."""
    return picture(reduced(rooms_of(source, "core")))


def imports_of_model(source: Source) -> str:
    """Return the picture of the rooms of a model."""
    return picture(reduced(rooms_of(source, "core.model")))


def table_of_measures(source: Source) -> str:
    """Return the measures, each with what it was and its aim."""
    rows = []
    for name, value in (*measures(source), *one_of_each(source)):
        before, aim = _BEFORE.get(name, ("", ""))
        rows.append(f"| {name} | {before} | {value} | {aim} |")
    return "\n".join(["| measure | at first | today | aim |", "|---|---|---|---|", *rows, ""])


PARTS: Mapping[str, Callable[[Source], str]] = {
    "folders": imports_of_folders,
    "core": imports_of_core,
    "model": imports_of_model,
    "measures": table_of_measures,
}
"""What is written, by the name in the mark."""


def parts_of(text: str) -> dict[str, str]:
    """Return what stands between the marks of a page, by name."""
    return {name: body for _, name, body, _ in _PART.findall(text)}


def main() -> int:
    """Write the page."""
    source = Source(ROOT)
    text = PAGE.read_text(encoding="utf-8")
    made = {name: PARTS[name](source) for name in parts_of(text)}
    text = _PART.sub(lambda found: found[1] + made[found[2]] + found[4], text)
    PAGE.write_text(text, encoding="utf-8")
    print(f"{PAGE}: {', '.join(made)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
