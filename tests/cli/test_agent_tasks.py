"""An agent that knows only the tools finds and applies the fix of a planted problem.

It is a script that decides by nothing but results: no name of the planted models is in it.
"""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper, parser

from tests.support.agents import Agent, agent

pytestmark = pytest.mark.slow
HEAD = '<ir_version: 10, opset_import: ["" : 20]>\n'


def saved(path: Path, text: str, **initializers: np.ndarray[Any, Any]) -> Path:
    model = parser.parse_model(HEAD + text)
    for name, values in initializers.items():
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    onnx.save(model, path)
    return path


def outputs(path: Path, x: np.ndarray[Any, Any]) -> Any:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


async def make_faster(one: Agent, model: str, output: str) -> dict[str, Any]:
    """Replace a slow power by products and return the verdict of a gate."""
    profile = await one.call("profile", model=model, duration=1.0)
    slowest = profile["result"]["layers"][0]
    assert slowest["percent"] > 100 / len(profile["result"]["layers"])
    operator = slowest["type"]
    seen = await one.call("find", model=model, query=operator, columns=["in[1].value"])
    exponent = None
    (node,) = (n for n in seen["result"]["nodes"] if n["node"] == slowest["nodes"][0])
    exponent = node["columns"]["in[1].value"]
    square = "Mul(x, x)"
    products = {2.0: square, 4.0: f"Mul({square}, {square})"}[exponent]
    rule = f"{operator}(x, {exponent:g}) => {products}"
    preview = await one.call("rewrite", model=model, rules=[rule])
    assert preview["result"]["rewritten"] == 1
    await one.call("rewrite", model=model, rules=[rule], output=output, verify=True)
    return await one.call("gate", base=model, new=output, runs=6)


async def mend(one: Agent, model: str, output: str) -> dict[str, Any]:
    """Connect inputs that nothing produces to the tensors that have nearly their names."""
    checked = await one.call("check", model=model, level="error")
    assert checked["exit_status"] == 1
    nodes = (await one.call("inspect", model=model, nodes=True))["result"]["node_list"]
    made = [name for node in nodes for name in node["outputs"]]
    edits = []
    for finding in checked["result"]["findings"]:
        (node,) = (one for one in nodes if one["name"] == finding["node"])
        (name,) = difflib.get_close_matches(finding["value"], made, n=1)
        edits.append({
            "edit": "set_input", "scope": finding["scope"], "node": finding["node"],
            "index": node["inputs"].index(finding["value"]), "value": name, "sort": True,
        })  # fmt: skip
    script = "\n".join(map(json.dumps, edits))
    preview = await one.call("edit", model=model, script=script)
    assert (preview["result"]["applied"], preview["result"]["refused"]) == (len(edits), [])
    await one.call("edit", model=model, script=script, output=output)
    return await one.call("check", model=output, level="error")


async def test_a_slow_node(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    model = saved(
        tmp_path / "net.onnx",
        """net (float[1,1024,128] x) => (float[1,1024,128] y) {
             [first] a = MatMul(x, w)
             [bend] b = Tanh(a)
             [power] c = Pow(b, k)
             [last] y = Add(c, x)
           }""",
        w=random.standard_normal((128, 128)).astype(np.float32) / 11,
        k=np.array(4, np.float32),
    )
    async with agent(tmp_path, "--allow", tmp_path) as one:
        verdict = await make_faster(one, "net.onnx", "faster.onnx")
    assert verdict["result"]["ratio"] < 0.9
    assert verdict["exit_status"] == 0
    x = random.standard_normal((1, 1024, 128)).astype(np.float32)
    assert np.allclose(outputs(model, x), outputs(tmp_path / "faster.onnx", x), atol=1e-5)


async def test_a_broken_model(tmp_path: Path) -> None:
    saved(
        tmp_path / "net.onnx",
        """net (float[1,8] x) => (float[1,8] y) {
             [last] y = Relu(hiden)
             [first] hidden = Sigmoid(x)
           }""",
    )
    with pytest.raises(Exception, match="hiden"):
        outputs(tmp_path / "net.onnx", np.zeros((1, 8), np.float32))
    async with agent(tmp_path, "--allow", tmp_path) as one:
        checked = await mend(one, "net.onnx", "mended.onnx")
    assert checked["exit_status"] == 0
    x = np.linspace(-3, 3, 8, dtype=np.float32)[None]
    assert np.allclose(outputs(tmp_path / "mended.onnx", x), 1 / (1 + np.exp(-x)), atol=1e-6)
