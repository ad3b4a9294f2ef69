"""Prefill and decode: the same tokens and logits as a plain loop, and figures that add up."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest

from dld_tui.activities.profile import llm as profile_llm
from dld_tui.backends.onnxruntime import session_options
from dld_tui.core import fmt
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Finished, Log
from dld_tui.core.llm.feeds import Decoder, StepFeeds
from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs.guessed_input import INPUTS
from dld_tui.core.reading.export import report_json
from dld_tui.core.reading.first_lines import headline
from dld_tui.core.report.generation import GenerationFigures, generation_of, llm_json
from dld_tui.core.report.measured_facts import measured_facts
from dld_tui.core.report.report import Report, open_report
from dld_tui.widgets.charts.plots import Plot
from dld_tui.widgets.charts.report_charts import context_plot
from tests.support import decoders, models
from tests.support.runtime import needs_onnxruntime

ort = pytest.importorskip("onnxruntime")


def result_of(model: Path, **settings: Any) -> profile_llm.Result:
    request = profile_llm.Request(model, **settings)
    [finished] = [event for event in profile_llm.run(request) if isinstance(event, Finished)]
    found: profile_llm.Result = finished.result
    return found


def plain_loop(
    path: Path, feeds: StepFeeds, decoder: Decoder, batch: int, count: int, context: int = 0
) -> Any:
    """Return tokens and last logits by ``session.run`` with what it gave before.

    The cache of the context is zeros.
    """
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    cache = {
        past: np.zeros(decoder.cache_shape(past, batch, context), np.float32)
        for past in decoder.fed_back
    }
    tokens, values = [], feeds.prompt()
    prompt = values["input_ids"].shape[1] + context
    for number in range(count + 1):
        out = dict(zip(names, session.run(None, {**values, **cache}), strict=True))
        cache = {past: out[present] for past, present in decoder.fed_back.items()}
        logits = out[decoder.logits][:, -1]
        tokens.append(logits.argmax(-1))
        if number < count:
            ids = tokens[-1].reshape(batch, 1)
            length = prompt + number + 1
            values = {"input_ids": ids, "attention_mask": np.ones((batch, length), np.int64)}
    return tokens, logits, cache


@pytest.mark.parametrize(
    ("write", "shared"),
    [
        (decoders.grouped, False),
        (decoders.grouped, True),
        pytest.param(decoders.mixed, False, marks=needs_onnxruntime(31)),
        pytest.param(decoders.mixed, True, marks=needs_onnxruntime(31)),
    ],
)
@pytest.mark.parametrize("batch", [1, 2])
def test_tokens_and_logits_are_those_of_a_plain_loop(
    write: Callable[[Path], Path], shared: bool, batch: int, tmp_path: Path
) -> None:
    from dld_tui.backends.onnxruntime.generation import Generator
    from dld_tui.backends.onnxruntime.session import Session
    from dld_tui.backends.onnxruntime.session_options import SessionSettings

    path = write(tmp_path / "m.onnx")
    with closing(Document.open(path)) as document:
        session = Session(path, SessionSettings(threads=1))
        decoder = Decoder(document, session.inputs)
        whole = 2 if write is decoders.mixed else 0  # the layer of four that attends to all
        names = {f"past_key_values.{at}.{half}" for at in range(2) for half in ("key", "value")}
        names = {name.replace(".0.", f".{whole}.") for name in names if not whole or ".0." in name}
        assert decoder.shareable == names
        feeds = StepFeeds(decoder, batch, 9, capacity=9 + 12)
        generator = Generator(path, session, decoder, shared=shared)
        timed = [*generator.run(feeds, batch, 9, 12)][-1]
        tokens, logits, cache = plain_loop(path, feeds, decoder, batch, 12)
    assert np.array_equal(timed.tokens, tokens)
    assert len({tuple(one) for one in tokens}) > 3  # a loop that is stuck would be equal, too
    assert timed.logits is not None
    np.testing.assert_allclose(np.asarray(timed.logits, np.float64), logits, rtol=1e-4, atol=1e-4)
    assert timed.kv_bytes == sum(one.nbytes for one in cache.values())
    assert len(timed.step_ms) == 12


@pytest.mark.parametrize("shared", [False, True])
def test_a_prompt_after_a_context_gives_the_tokens_of_a_plain_loop(
    shared: bool, tmp_path: Path
) -> None:
    from dld_tui.backends.onnxruntime.generation import Generator
    from dld_tui.backends.onnxruntime.session import Session
    from dld_tui.backends.onnxruntime.session_options import SessionSettings

    path = decoders.grouped(tmp_path / "m.onnx")
    with closing(Document.open(path)) as document:
        session = Session(path, SessionSettings(providers=("CPU",)))
        decoder = Decoder(document, session.inputs)
        feeds = StepFeeds(decoder, 1, 5, capacity=30 + 5 + 6, context=30)
        assert feeds.prompt()["attention_mask"].shape == (1, 35)
        generator = Generator(path, session, decoder, shared=shared)
        *_, timed = generator.run(feeds, 1, 5, 6)
        tokens, logits, cache = plain_loop(path, feeds, decoder, 1, 6, context=30)
        without = StepFeeds(decoder, 1, 5, capacity=30 + 5 + 6)
        *_, other = generator.run(without, 1, 5, 6)
    assert np.array_equal(timed.tokens, tokens)
    assert timed.logits is not None
    np.testing.assert_allclose(np.asarray(timed.logits, np.float64), logits, rtol=1e-4, atol=1e-4)
    assert other.logits is not None
    assert not np.allclose(other.logits, timed.logits)  # the context is seen
    length = next(one.shape[2] for one in cache.values())
    assert length == 30 + 5 + 6


SPLIT = "x = Gather (table, input_ids) y = Reshape (x, apart)"
ODD_LAYERS = {
    # No batch: tokens and their logits are rows.
    "rows": """g (int64[s] input_ids, float[past, 4, 8] past_key) => (float[s, 9] logits,
            float[total, 4, 8] present_key)
        <int64[3] apart = {-1, 4, 8}, int64[2] joined = {-1, 32}, float[9, 32] table,
         float[32, 9] head> { SPLIT
        present_key = Concat <axis = 0> (past_key, y)
        mean = ReduceMean <keepdims = 1> (present_key, first)
        first = Constant <value = int64[1] {0}> ()
        z = Add (y, mean) flat = Reshape (z, joined) logits = MatMul (flat, head) }""",
    # Several rows of tokens for each sequence, as of codes of sounds.
    "codes": """g (int64[b, 3, s] input_ids, float[b, past, 32] past_key) => (float[b, s, 9] logits,
            float[b, total, 32] present_key)
        <int64[1] rows = {1}, float[9, 32] table, float[32, 9] head> {
        x = Gather (table, input_ids) y = ReduceSum <keepdims = 0> (x, rows)
        present_key = Concat <axis = 1> (past_key, y)
        mean = ReduceMean <keepdims = 1> (present_key, rows)
        z = Add (y, mean) logits = MatMul (z, head) }""",
    # One token at a time, and two states.
    "one": """g (int64[b, 1] input_ids, float[b, 32] past_state, float[b, 32] past_ssm) =>
            (float[b, 1, 9] logits, float[b, 32] present_state, float[b, 32] present_ssm)
        <int64[1] rows = {1}, float[9, 32] table, float[32, 9] head> {
        x = Gather (table, input_ids) y = Squeeze (x, rows)
        mixed = Add (past_state, y) present_state = Tanh (mixed)
        both = Sub (past_ssm, present_state) present_ssm = Tanh (both)
        z = Unsqueeze (present_ssm, rows) logits = MatMul (z, head) }""",
    # A cache of a fixed size, and the place to write to.
    "static": """g (int64[b, s] input_ids, int64[b] cache_position, float[b, 4, 20, 8] past_key) =>
            (float[b, s, 9] logits, float[b, 4, 20, 8] present_key)
        <int64[4] apart = {0, -1, 4, 8}, int64[3] joined = {0, -1, 32}, float[9, 32] table,
         float[32, 9] head, int64[1] rows = {2}> { SPLIT
        turned = Transpose <perm = [0, 2, 1, 3]> (y)
        present_key = TensorScatter <axis = 2> (past_key, turned, cache_position)
        mean = ReduceMean <keepdims = 1> (present_key, rows)
        z = Add (turned, mean) back = Transpose <perm = [0, 2, 1, 3]> (z)
        flat = Reshape (back, joined) logits = MatMul (flat, head) }""",
}


def odd_layer(folder: Path, kind: str) -> Path:
    head = '<ir_version: 11, opset_import: ["" : 24]>'
    return models.write_weighted(folder, head + ODD_LAYERS[kind].replace("SPLIT", SPLIT))


@needs_onnxruntime(31)
@pytest.mark.parametrize(
    ("kind", "batch", "cache_bytes"),
    [
        ("rows", 1, 11 * 32 * 4),
        ("codes", 2, 2 * 11 * 32 * 4),
        ("one", 2, 2 * 2 * 32 * 4),
        ("static", 2, 2 * 4 * 20 * 8 * 4),
    ],
)
def test_odd_decoders_say_what_a_plain_loop_says(
    kind: str, batch: int, cache_bytes: int, tmp_path: Path
) -> None:
    from dld_tui.backends.onnxruntime.generation import Generator
    from dld_tui.backends.onnxruntime.session import Session
    from dld_tui.backends.onnxruntime.session_options import SessionSettings

    path = odd_layer(tmp_path, kind)
    with closing(Document.open(path)) as document:
        session = Session(path, SessionSettings(threads=1))
        decoder = Decoder(document, session.inputs)
        feeds = StepFeeds(decoder, batch, 5)
        timed = [*Generator(path, session, decoder).run(feeds, batch, 5, 6)][-1]
        plain = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
        names = [one.name for one in plain.get_outputs()]
        cache = {
            past: np.zeros(decoder.cache_shape(past, batch, 0), np.float32)
            for past in decoder.fed_back
        }
        if kind == "one":
            prompt = [feeds.step(number)["input_ids"] for number in range(-5, 0)]
        else:
            prompt = [feeds.prompt()["input_ids"]]
        tokens: list[Any] = []
        seen = 0
        for ids in (*prompt, *[None] * 6):
            if ids is None:
                shape = {"rows": (1,), "codes": (batch, 3, 1)}.get(kind, (batch, 1))
                chosen = np.asarray(tokens[-1]).reshape(-1, *(1,) * (len(shape) - 1))
                ids = np.array(np.broadcast_to(chosen, shape))
            values = {"input_ids": ids, **cache}
            if kind == "static":
                values["cache_position"] = np.full(batch, seen)
            out = dict(zip(names, plain.run(None, values), strict=True))
            cache = {past: out[present] for past, present in decoder.fed_back.items()}
            seen += ids.shape[-1]
            logits = out["logits"] if out["logits"].ndim == 3 else out["logits"][None]
            tokens.append(logits[:, -1].argmax(-1))
    assert np.array_equal(timed.tokens, tokens[len(prompt) - 1 :])
    assert len({tuple(one) for one in timed.tokens}) > 1
    assert timed.kv_bytes == cache_bytes
    assert timed.prefill_ms > 0


@pytest.mark.parametrize(
    "kind",
    ["masked", "beams", pytest.param("scattered", marks=needs_onnxruntime(31))],
)
@pytest.mark.parametrize("shared", [pytest.param(True, marks=needs_onnxruntime(31)), False])
def test_a_cache_of_any_length_makes_the_tokens_of_a_plain_loop(
    kind: str, shared: bool, tmp_path: Path
) -> None:
    from dld_tui.backends.onnxruntime.generation import Generator
    from dld_tui.backends.onnxruntime.session import Session
    from dld_tui.backends.onnxruntime.session_options import SessionSettings

    path = decoders.in_place(tmp_path / "m.onnx", kind)
    batch, prompt, count, length = 2, 5, 9, 17
    with closing(Document.open(path)) as document:
        session = Session(path, SessionSettings(threads=1))
        decoder = Decoder(document, session.inputs)
        assert decoder.wants_sharing
        assert decoder.takes_one == (kind != "scattered")
        feeds = StepFeeds(decoder, batch, prompt, capacity=length)
        generator = Generator(path, session, decoder, shared=shared)
        timed = [*generator.run(feeds, batch, prompt, count)][-1]
        with pytest.raises(ValueError, match="18 tokens, but a capacity of 17"):
            next(generator.run(feeds, batch, prompt, length - prompt + 1))
    if decoder.takes_one:
        chunks = [feeds.step(number)["input_ids"] for number in range(-prompt, 0)]
    else:
        chunks = [feeds.prompt()["input_ids"]]
    plain = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in plain.get_outputs()]
    cache = {
        past: np.zeros((batch, decoders.HEADS, length, 16), np.float32) for past in decoder.fed_back
    }
    tokens: list[Any] = []
    seen = 0
    for number in range(len(chunks) + count):
        ids = chunks[number] if number < len(chunks) else tokens[-1].reshape(batch, 1)
        new = ids.shape[1]
        if kind == "scattered":
            shown = np.tri(new, length, seen, dtype=bool)
            values = {"attention_mask": np.array(np.broadcast_to(shown, (batch, 1, new, length))),
                      "cache_position": np.full(batch, seen)}  # fmt: skip
        else:
            values = {"attention_mask": np.ones((batch, seen + new), np.int32),
                      "past_sequence_length": np.array([seen], np.int32)}  # fmt: skip
        if kind == "beams":
            values |= {"beam_width": np.ones(1, np.int32),
                       "cache_indirection": np.zeros((batch, 1, length), np.int32)}  # fmt: skip
        out = dict(zip(names, plain.run(None, {"input_ids": ids, **values, **cache}), strict=True))
        cache = {past: out[present] for past, present in decoder.fed_back.items()}
        seen += new
        tokens.append(out["logits"][:, -1].argmax(-1))
    assert np.array_equal(timed.tokens, tokens[len(chunks) - 1 :])
    assert len({tuple(step) for step in timed.tokens}) > 3
    assert timed.kv_bytes == sum(value.nbytes for value in cache.values())


def test_an_old_runtime_that_would_crash_shares_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dld_tui.backends.onnxruntime import runtime

    monkeypatch.setattr(runtime, "version", lambda: "1.23.2")
    folder = decoders.folder(tmp_path / "genai")
    decoders.in_place(folder / "model.onnx", "masked")
    settings: dict[str, Any] = {
        "prompt": "4", "decode": 3, "iterations": 1, "layer_passes": 1
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"1\.23\.2 crashes if past and present"):
        result_of(folder, output=tmp_path / "a.dldprof", shared_buffer="on", **settings)
    result_of(folder, output=tmp_path / "b.dldprof", shared_buffer="auto", **settings)
    with open_report(tmp_path / "b.dldprof") as report:
        assert report.settings["shared_buffer_used"] is False


@needs_onnxruntime(31)
@pytest.mark.parametrize(
    ("wanted", "length"), [("auto", 4 + 3), ("off", 4 + 3), ("on", 4 + 3), ("max", 256)]
)
def test_the_length_of_a_shared_cache(wanted: str, length: int, tmp_path: Path) -> None:
    folder = decoders.folder(tmp_path / "genai")
    decoders.in_place(folder / "model.onnx", "masked")
    report = tmp_path / "r.dldprof"
    result = result_of(folder, output=report, prompt="4", decode=3, iterations=1, layer_passes=1,
                       shared_buffer=wanted)  # fmt: skip
    [figures] = result.figures
    assert figures.kv_bytes == 2 * decoders.HIDDEN * length * 4  # keys and values, float32
    assert Report.open(report).settings["shared_buffer_used"] == (wanted != "off")


def test_an_attention_without_a_cpu_kernel_is_refused(tmp_path: Path) -> None:
    path = decoders.in_place(tmp_path / "m.onnx", "stacked")
    with pytest.raises(ActivityError, match="Attention attention writes into a shared cache"):
        result_of(path, prompt="4", decode=3, layer_passes=0)


def test_no_longest_cache_is_known(tmp_path: Path) -> None:
    path = decoders.in_place(tmp_path / "m.onnx", "masked")
    with pytest.raises(UsageError, match="needs max_length or context_length"):
        result_of(path, prompt="4", decode=3, layer_passes=0, shared_buffer="max")


@needs_onnxruntime(31)
def test_a_fixed_cache_limits_the_tokens(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="more than the 20 that the model can see"):
        result_of(odd_layer(tmp_path, "static"), prompt="16", decode=5, layer_passes=0)


def test_hidden_states_choose_no_token(tmp_path: Path) -> None:
    path = decoders.grouped(tmp_path / "m.onnx")
    model = onnx.load(path)
    for output in (model.graph.output[0].name, *model.graph.node[-1].output):
        assert output == "logits"
    model.graph.output[0].name = model.graph.node[-1].output[0] = "hidden_states"
    onnx.save(model, path)
    request = profile_llm.Request(
        path, tmp_path / "r.dldprof", prompt="5", decode=2, iterations=1, layer_passes=0
    )
    told = [event.text for event in profile_llm.run(request) if isinstance(event, Log)]
    assert any("the tokens are random" in line for line in told)


@pytest.mark.parametrize("shared", ["on", "off"])
def test_further_outputs_may_change_their_shape(shared: str, tmp_path: Path) -> None:
    path = decoders.grouped(tmp_path / "m.onnx")
    model = onnx.load(path)
    model.graph.output.append(onnx.ValueInfoProto(name="norm"))
    onnx.save(model, path)
    made = result_of(path, prompt="5", decode=3, iterations=1, layer_passes=1, shared_buffer=shared,
                     output=tmp_path / "r.dldprof")  # fmt: skip
    assert made.figures[0].tokens == 3


def test_a_cache_of_keys_and_values_in_one(tmp_path: Path) -> None:
    path = decoders.stacked(tmp_path / "m.onnx")
    report = tmp_path / "r.dldprof"
    made = result_of(
        path, output=report, prompt="5", batch="2", decode=4, iterations=1, layer_passes=0
    )
    [figures] = made.figures
    # Two layers, keys and values, two sequences, all tokens but the last one, in float32.
    assert figures.kv_bytes == 2 * 2 * 2 * (5 + 4) * decoders.HIDDEN * 4
    [latency] = Report.open(made.report).latencies  # of a token, in the one repetition
    assert latency == pytest.approx(figures.token_ms)


@pytest.mark.broad
def test_a_folder_is_measured_and_reported(tmp_path: Path) -> None:
    folder = decoders.folder(tmp_path / "genai")
    settings = {"prompt": "4,8", "batch": "1,2", "decode": 5, "iterations": 2, "layer_passes": 2}
    made = result_of(folder, output=tmp_path / "r.dldprof", **settings)
    assert [(one.batch, one.prompt) for one in made.figures] == [(1, 4), (1, 8), (2, 4), (2, 8)]
    per_token = 2 * 2 * decoders.KV_HEADS * decoders.HEAD_SIZE * 4  # layers, key and value
    assert [one.kv_bytes for one in made.figures] == [
        batch * (prompt + 5) * per_token for batch, prompt in ((1, 4), (1, 8), (2, 4), (2, 8))
    ]
    assert all(0 < one.prefill_ms <= one.first_token_ms for one in made.figures)
    report = Report.open(made.report)
    assert generation_of(report) == made.figures
    assert report_json(report)["llm"] == llm_json(made.figures)
    first = made.figures[0]
    assert report.latencies == pytest.approx([ms / 5 for ms in first.repeats_ms])
    assert report.latency is not None
    assert report.latency.median == pytest.approx(first.token_ms)
    assert "with a batch of 1 after a prompt of 4." in " ".join(note.text for note in report.notes)
    rate = fmt.three_digits(made.figures[0].tokens_per_s)
    assert f"   {rate} tokens/s" in headline(report)
    assert made.prefill_report is not None
    phases = [report, Report.open(made.prefill_report)]
    for one in phases:
        assert "GroupQueryAttention" in {layer.type for layer in one.layers}
    shapes = [
        {dims for layer in one.layers if layer.type == "GroupQueryAttention"
         for dims in layer.output_dims[:1]}
        for one in phases
    ]  # fmt: skip
    assert shapes == [{(1, 1, 64)}, {(1, 4, 64)}]
    told = [
        {one["name"]: one["shape"] for one in cast("Any", report.facts[INPUTS])}
        for report in phases
    ]
    assert [inputs["input_ids"] for inputs in told] == [[1, 1], [1, 4]]


def test_the_session_is_as_the_configuration_says(tmp_path: Path) -> None:
    options = {
        "log_id": "genai", "intra_op_num_threads": 1, "enable_mem_pattern": False,
        "graph_optimization_level": "ORT_ENABLE_BASIC", "provider_options": [],
        "session.set_denormal_as_zero": "1", "custom_ops_library": "evil.so",
        "session.model_external_initializers_file_folder_path": "/",
    }  # fmt: skip
    folder = decoders.folder(tmp_path / "genai", session_options=options)
    request = profile_llm.Request(
        folder, prompt="4", decode=2, iterations=1, layer_passes=0, output=tmp_path / "r.dldprof"
    )
    events = [*profile_llm.run(request)]
    [said] = [one.text for one in events if isinstance(one, Log) and "genai_config" in one.text]
    assert said == (
        "session options from genai_config.json: intra_op_num_threads 1, enable_mem_pattern"
        " False, graph_optimization_level ORT_ENABLE_BASIC, session.set_denormal_as_zero 1"
    )
    used = Report.open(tmp_path / "r.dldprof").settings["session_options_used"]
    assert used == {
        "intra_op_num_threads": 1, "enable_mem_pattern": False,
        "graph_optimization_level": "ORT_ENABLE_BASIC", "session.set_denormal_as_zero": "1",
    }  # fmt: skip


@pytest.mark.usefixtures("replaces_all")
def test_a_configuration_that_is_wrong_is_said_to_be(tmp_path: Path) -> None:
    folder = decoders.folder(tmp_path / "genai")
    path = folder / "genai_config.json"
    settings = {"prompt": "4", "decode": 2, "iterations": 1, "layer_passes": 0}

    def said() -> list[Log]:
        request = profile_llm.Request(folder, output=tmp_path / "r.dldprof", **settings)  # type: ignore[arg-type]
        return [one for one in profile_llm.run(request) if isinstance(one, Log)]

    sound = said()
    assert {one.level for one in sound} == {"info"}
    config = json.loads(path.read_text())
    config["model"]["decoder"]["num_hidden_layers"] = 9
    config["model"]["decoder"]["outputs"]["logits"] = "scores"
    path.write_text(json.dumps(config))
    [warning] = [one.text for one in said() if one.level == "warning"]
    assert warning == (
        "genai_config.json: the model has no input past_key_values.2.key and 6 more"
        " (past_key_names), and 5 more: what the model itself says is measured; `dld check` of"
        " the folder names all"
    )


def test_operators_run_at_once_only_where_the_user_says_so() -> None:
    """The loader of such folders sets a number of threads, and no mode of execution."""
    given: dict[str, bool | int | str] = {"inter_op_num_threads": 4, "intra_op_num_threads": 65_535}
    plain, taken = session_options.with_genai_options(session_options.SessionSettings(), given)
    assert (plain.inter_threads, plain.parallel, plain.threads) == (4, False, 0)
    assert taken == {"inter_op_num_threads": 4}
    options = session_options.session_options(ort, plain)
    assert options.execution_mode == ort.ExecutionMode.ORT_SEQUENTIAL
    asked = session_options.SessionSettings(execution_mode="parallel")
    assert session_options.with_genai_options(asked, given)[0].parallel


def test_what_the_user_says_of_the_session_holds() -> None:
    own = session_options.SessionSettings(threads=3, config={"session.x": "own"})
    given: dict[str, bool | int | str] = {
        "intra_op_num_threads": 1,
        "session.x": "2",
        "inter_op_num_threads": -1,
        "a": True,
    }
    assert session_options.with_genai_options(own, given) == (own, {})
    options = session_options.session_options(
        ort, session_options.with_genai_options(own, {"enable_cpu_mem_arena": False})[0]
    )
    assert (options.intra_op_num_threads, options.enable_cpu_mem_arena) == (3, False)
    assert options.enable_mem_pattern


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"prompt": "250", "decode": 7}, "more than the 256 that the model can see"),
        ({"prompt": "0"}, "--prompt is '0'"),
        ({"batch": "two"}, "--batch is 'two'"),
        ({"batch": "99999999"}, "and this machine has"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    change: dict[str, Any], why: str, tmp_path: Path
) -> None:
    path = decoders.grouped(tmp_path / "m.onnx")
    with pytest.raises(UsageError, match=why):
        result_of(path, **change)


def test_a_model_without_cache_is_no_decoder(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
        g (float[N, 4] x) => (float[N, 4] y) { y = Relu (x) }"""
    with pytest.raises(ActivityError, match="has no cache"):
        result_of(models.write(tmp_path, text))


def test_the_chart_is_over_the_context() -> None:
    steps = tuple(0.1 * at for at in range(1, 41))
    plot = context_plot([GenerationFigures(1, 60, 40, 1, 1, 82, steps, 0)])
    assert isinstance(plot, Plot)
    assert [*plot.marks[0].xs] == [*range(61, 101)]
    assert tuple(plot.marks[0].ys) == steps


class Counter:
    """RAPL of one package, which counts 5 J from each look to the next."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "intel-rapl:0"
        self.folder.mkdir()
        (self.folder / "name").write_text("package-0")
        self.looks = 0

    def packages(self, _: Path) -> dict[str, tuple[int, int]]:
        """Stand for the function that reads the counters."""
        self.looks += 1
        return {"package-0": (5_000_000 * self.looks, 1 << 40)}


def test_the_energy_of_a_token_is_that_of_the_steps_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dld_tui.extras.energy import counters

    counter = Counter(tmp_path)
    monkeypatch.setattr(counters, "_packages", counter.packages)
    path = decoders.grouped(tmp_path / "m.onnx")
    report = tmp_path / "r.dldprof"
    result = result_of(
        path, output=report, prompt="4", decode=5, batch="1,2", iterations=3, layer_passes=0
    )
    # Twice a run: after its prompt and at its end; the warm-up is not among them.
    assert counter.looks == 2 * 2 * 3
    one, two = result.figures
    assert one.energy_per_token_j == pytest.approx(3 * 5 / (3 * 5))
    assert two.energy_per_token_j == pytest.approx(3 * 5 / (3 * 5 * 2))
    with closing(Report.open(report)) as made:
        assert generation_of(made) == result.figures
        assert made.facts["energy_per_inference_j"] == pytest.approx(1.0)
        assert made.facts["energy_rails"] == "package-0 (RAPL)"
        said = {fact.name: fact.text for fact in measured_facts(made)}
        assert "1 J per decode step" in said["energy"]
        assert "1 J a token" in said["batch 1, prompt 4"]
        assert "500 mJ a token" in said["batch 2, prompt 4"]
        assert not any("energy" in note.text for note in made.notes)


def test_an_energy_that_nothing_tells_is_absent_and_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dld_tui.extras.energy import counters

    monkeypatch.setattr(counters, "_packages", lambda _: {})
    path = decoders.grouped(tmp_path / "m.onnx")
    report = tmp_path / "r.dldprof"
    [figures] = result_of(path, output=report, prompt="4", decode=3, layer_passes=0).figures
    assert figures.energy_per_token_j is None
    assert "a token is not" not in figures.text
    with closing(Report.open(report)) as made:
        assert "energy_per_inference_j" not in made.facts
        assert sum("energy of a token is not known" in note.text for note in made.notes) == 1
