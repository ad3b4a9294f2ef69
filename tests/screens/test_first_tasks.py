"""The first tasks of docs/start/first-tasks.md, typed as the page says, in a pseudo-terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support import decoders, documented_keys, engine_files
from tests.support.report_files import make_report
from tests.support.typist import Programs

PAGE = Path(__file__).parents[2] / "docs/start/first-tasks.md"


class Task(NamedTuple):
    """A row of the page."""

    name: str
    keys: str
    presses: int


def tasks() -> list[Task]:
    """Return the rows of the page."""
    return [
        Task(name.partition(" (")[0], keys, int(presses))
        for name, keys, presses, _ in documented_keys.rows(PAGE, 4)
    ]


def model(side: int = 16) -> onnx.ModelProto:
    """Return a small network with a stride to change and weights of two sizes."""
    weight = numpy_helper.from_array(
        np.linspace(-1, 1, 108, dtype=np.float32).reshape(4, 3, 3, 3), "weight"
    )
    second = numpy_helper.from_array(
        np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4, 1, 1), "second_weight"
    )
    nodes = [
        helper.make_node("Conv", ["x", "weight"], ["a"], "stem", strides=[1, 1]),
        helper.make_node("Relu", ["a"], ["b"], "act"),
        helper.make_node("Conv", ["b", "second_weight"], ["c"], "mix"),
        helper.make_node("Add", ["c", "b"], ["y"], "sum"),
    ]
    graph = helper.make_graph(
        nodes, "first",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, side, side])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, "h", "w"])],
        [weight, second],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    made.ir_version = 10
    return made


class Seen(NamedTuple):
    """What came of a task."""

    folder: Path
    state: dict[str, Any]

    @property
    def page(self) -> str:
        """The class of what is in front."""
        return str(self.state["screens"][-1][0])

    @property
    def text(self) -> str:
        """What is in front, as lines."""
        return "\n".join(self.state["screens"][-1][1:])

    def operators(self) -> list[str]:
        """Return the operators in the file."""
        return [node.op_type for node in onnx.load(self.folder / "model.onnx").graph.node]

    def weights(self) -> list[str]:
        """Return the names of the initializers in the file."""
        return [one.name for one in onnx.load(self.folder / "model.onnx").graph.initializer]

    def names(self, file: str = "model.onnx") -> list[str]:
        """Return the names of the nodes in a file."""
        return [node.name for node in onnx.load(self.folder / file).graph.node]


def _largest_first(seen: Seen) -> bool:
    rows = [line for line in seen.text.splitlines() if "float32" in line]
    return seen.page == "InitializersScreen" and "second" not in rows[0] and "second" in rows[1]


def _saved_elsewhere(seen: Seen) -> bool:
    return seen.names("other.onnx") == seen.names() and "other.onnx" in seen.text


HAPPENED: dict[str, Callable[[Seen], bool]] = {
    "the largest weights": _largest_first,
    "the slowest node": lambda seen: seen.page == "ReportScreen" and "Conv" in seen.text,
    "make it faster": lambda seen: (
        seen.page == "TuneScreen" and "original model" in seen.text
        and (seen.folder / "model.tune.json").exists()
    ),
    "fix a finding, and save": lambda seen: seen.weights() == ["weight", "second_weight"],
    "see an engine": lambda seen: seen.page == "PlanScreen" and "50.0 %" in seen.text,
    "change a stride": lambda seen: "strides" in seen.text and "[2, 2]" in seen.text,
    "what is around this node": lambda seen: seen.state["focus"] == "GraphCanvas#graph-canvas",
    "a picture of the graph": lambda seen: "<svg" in (seen.folder / "model.svg").read_text(),
    "compare two profiles": lambda seen: seen.page == "CompareScreen",
    "fp16, and whether it is still right": lambda seen: (
        seen.page == "AppliedDialog" and "signal to noise" in seen.text
    ),
    "quantize": lambda seen: seen.page == "AppliedDialog" and "int8" in seen.text,
    "add a machine": lambda seen: "jetson" in seen.text and "10.0.0.7" in seen.text,
    "undo": lambda seen: "stem" in seen.text and "front" not in seen.text,
    "save under another name": _saved_elsewhere,
    "leave without losing anything": lambda seen: (
        bool(seen.state.get("ended")) and seen.names()[0] == "front"
    ),
    "replace operators, and save": lambda seen: seen.operators() == ["Conv", "Tanh", "Conv", "Add"],
    "follow an advice": lambda seen: (
        seen.page == "ReportScreen" and (seen.folder / "tiny.dldprof").exists()
    ),
    "profile a decoder": lambda seen: (
        seen.page == "ReportScreen" and "to the first token" in seen.text
    ),
}  # fmt: skip
"""Whether a task was done."""
SIZES = ((80, 24), (120, 35), (200, 50))


def at_sizes() -> Iterator[Any]:
    """Yield tasks and sizes: all tasks at the smallest size, and half of them at each other one.

    The rest of them takes long, and is rarely run.
    """
    for number, task in enumerate(tasks()):
        for at, size in enumerate(SIZES):
            mark = pytest.mark.slow if not at or at == 1 + number % 2 else pytest.mark.exhaustive
            name = f"{task.name.replace(' ', '_')}-{size[0]}x{size[1]}"
            yield pytest.param(task, size, id=name, marks=mark)


_REPORTS = ("compare two profiles", "follow an advice")


def test_the_page_has_all_tasks_and_counts_their_presses() -> None:
    found = tasks()
    assert [task.name for task in found] == list(HAPPENED)
    for task in found:
        assert documented_keys.presses(task.keys) == task.presses, task.name


@pytest.mark.parametrize(("task", "size"), at_sizes())
def test_a_first_task(
    programs: Programs, tmp_path: Path, task: Task, size: tuple[int, int]
) -> None:
    made = model()
    if task.name == "fix a finding, and save":
        made.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "unused"))
    onnx.save(made, tmp_path / "model.onnx")
    (tmp_path / "samples").mkdir()
    np.save(tmp_path / "samples" / "x.npy", np.ones((1, 3, 16, 16), np.float32))
    path = "model.onnx"
    if task.name in _REPORTS:
        for name in ("a.dldprof", "b.dldprof"):
            make_report(tmp_path / name)
        path = "a.dldprof"
        onnx.save(model(side=8), tmp_path / "tiny.onnx")
    elif task.name == "see an engine":
        engine_files.write_engine(tmp_path)
    elif task.name == "profile a decoder":
        decoders.folder(tmp_path / "decoder")
        path = "decoder/model.onnx"
    with programs.start(tmp_path, path, size=size) as typist:
        typist.wait_for_screen()
        typist.settle()
        typist.slowly(documented_keys.typed(task.keys))
        typist.settle(0.5)
        seen = Seen(tmp_path, typist.state())
    assert not seen.state["faults"]
    assert HAPPENED[task.name](seen), "" if seen.state.get("ended") else seen.text
