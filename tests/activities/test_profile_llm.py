"""Prefill and decode: the same tokens and logits as a plain loop, and figures that add up."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from dld_tui.activities.profile import llm as profile_llm
from dld_tui.backends.onnxruntime import runtime, session_options
from dld_tui.backends.onnxruntime.generation import Generator, Timed
from dld_tui.backends.onnxruntime.session import Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core import fmt
from dld_tui.core.errors import ActivityError, DldError, UsageError
from dld_tui.core.events import Event
from dld_tui.core.llm.feeds import Decoder, StepFeeds
from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs.guessed_input import INPUTS
from dld_tui.core.reading.export import report_json
from dld_tui.core.reading.first_lines import headline
from dld_tui.core.report.generation import GenerationFigures, generation_of, llm_json
from dld_tui.core.report.measured_figures import measured_figures
from dld_tui.core.report.report import Report, open_report
from dld_tui.extras.energy import counters
from dld_tui.widgets.charts.plots import Plot
from dld_tui.widgets.charts.report_charts import context_plot
from tests.support import decoders, models
from tests.support.activities import finished
from tests.support.jobs import texts
from tests.support.runtime import needs_onnxruntime

ort = pytest.importorskip("onnxruntime")
QUICK: dict[str, Any] = {"prompt": "4", "decode": 3, "iterations": 1, "layer_passes": 0}


def measured(model: Path, **settings: Any) -> tuple[profile_llm.Result, list[Event]]:
    collects = gc.isenabled()
    events = [*profile_llm.run(profile_llm.Request(model, **{**QUICK, **settings}))]
    assert gc.isenabled() == collects
    result: profile_llm.Result = finished(events)
    return result, events


@contextmanager
def opened(path: Path) -> Iterator[tuple[Session, Decoder]]:
    with closing(Document.open(path)) as document:
        session = Session(path, SessionSettings(threads=1))
        yield session, Decoder(document, session.inputs)


def plain_loop(
    path: Path,
    decoder: Decoder,
    chunks: list[Any],
    count: int,
    cache: dict[str, Any],
    inputs: Callable[[Any, int], dict[str, Any]],
    seen: int = 0,
) -> tuple[list[Any], Any, dict[str, Any]]:
    """Return tokens, last logits and the cache, by ``session.run`` with what it gave before.

    Args:
        path: Of the model.
        decoder: What its outputs are.
        chunks: The tokens of the prompt, as they are given one after the other.
        count: How many tokens are made after the first.
        cache: The first one.
        inputs: Returns all other inputs, for tokens and how many were before them.
        seen: How many are in the first cache.
    """
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    tokens: list[Any] = []
    for number in range(len(chunks) + count):
        if number < len(chunks):
            ids = chunks[number]
        else:
            shape = (*chunks[0].shape[:-1], 1)
            chosen = tokens[-1].reshape(-1, *(1,) * (len(shape) - 1))
            ids = np.array(np.broadcast_to(chosen, shape))
        out = session.run(None, {"input_ids": ids, **inputs(ids, seen), **cache})
        made = dict(zip(names, out, strict=True))
        cache = {past: made[present] for past, present in decoder.fed_back.items()}
        seen += ids.shape[-1]
        logits = made[decoder.logits]
        logits = (logits if logits.ndim == 3 else logits[None])[:, -1]
        tokens.append(logits.argmax(-1))
    return tokens[len(chunks) - 1 :], logits, cache


def zeros(decoder: Decoder, batch: int, length: int) -> dict[str, Any]:
    return {
        past: np.zeros(decoder.cache_shape(past, batch, length), np.float32)
        for past in decoder.fed_back
    }


def masked(ids: Any, seen: int) -> dict[str, Any]:
    return {"attention_mask": np.ones((len(ids), seen + ids.shape[1]), np.int64)}


def assert_equal(timed: Timed, loop: tuple[list[Any], Any, dict[str, Any]], distinct: int) -> None:
    """Require tokens, logits and size of the cache of a loop; one that is stuck would be equal."""
    tokens, logits, cache = loop
    assert np.array_equal(timed.tokens, tokens)
    assert len({tuple(one) for one in tokens}) > distinct
    assert timed.logits is not None
    found = np.asarray(timed.logits, np.float64).reshape(logits.shape)
    np.testing.assert_allclose(found, logits, rtol=1e-4, atol=1e-4)
    assert timed.kv_bytes == sum(one.nbytes for one in cache.values())


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
    path = write(tmp_path / "m.onnx")
    with opened(path) as (session, decoder):
        whole = 2 if write is decoders.mixed else 0  # the layer of four that attends to all
        names = {f"past_key_values.{at}.{half}" for at in range(2) for half in ("key", "value")}
        names = {name.replace(".0.", f".{whole}.") for name in names if not whole or ".0." in name}
        assert decoder.shareable == names
        feeds = StepFeeds(decoder, batch, 9, capacity=9 + 12)
        *_, timed = Generator(path, session, decoder, shared=shared).run(feeds, batch, 9, 12)
        chunks = [feeds.prompt()["input_ids"]]
        loop = plain_loop(path, decoder, chunks, 12, zeros(decoder, batch, 0), masked)
    assert_equal(timed, loop, 3)
    assert len(timed.step_ms) == 12


@pytest.mark.parametrize("shared", [False, True])
def test_a_prompt_after_a_context_gives_the_tokens_of_a_plain_loop(
    shared: bool, tmp_path: Path
) -> None:
    path = decoders.grouped(tmp_path / "m.onnx")
    with opened(path) as (session, decoder):
        feeds = StepFeeds(decoder, 1, 5, capacity=30 + 5 + 6, context=30)
        assert feeds.prompt()["attention_mask"].shape == (1, 35)
        generator = Generator(path, session, decoder, shared=shared)
        *_, timed = generator.run(feeds, 1, 5, 6)
        chunks = [feeds.prompt()["input_ids"]]
        loop = plain_loop(path, decoder, chunks, 6, zeros(decoder, 1, 30), masked, 30)
        without = StepFeeds(decoder, 1, 5, capacity=30 + 5 + 6)
        *_, other = generator.run(without, 1, 5, 6)
    assert_equal(timed, loop, 0)
    assert other.logits is not None
    assert timed.logits is not None
    assert not np.allclose(other.logits, timed.logits)  # the context is seen


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


def prompt_of(feeds: StepFeeds, length: int, is_one_by_one: bool) -> list[Any]:
    if is_one_by_one:
        return [feeds.step(number)["input_ids"] for number in range(-length, 0)]
    return [feeds.prompt()["input_ids"]]


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
    def inputs(ids: Any, seen: int) -> dict[str, Any]:
        return {"cache_position": np.full(batch, seen)} if kind == "static" else {}

    path = odd_layer(tmp_path, kind)
    with opened(path) as (session, decoder):
        feeds = StepFeeds(decoder, batch, 5)
        *_, timed = Generator(path, session, decoder).run(feeds, batch, 5, 6)
        chunks = prompt_of(feeds, 5, kind == "one")
        loop = plain_loop(path, decoder, chunks, 6, zeros(decoder, batch, 0), inputs)
    assert_equal(timed, loop, 1)
    assert timed.kv_bytes == cache_bytes
    assert timed.prefill_ms > 0


@pytest.mark.parametrize(
    "kind", ["masked", "beams", pytest.param("scattered", marks=needs_onnxruntime(31))]
)
@pytest.mark.parametrize("shared", [pytest.param(True, marks=needs_onnxruntime(31)), False])
def test_a_cache_of_any_length_makes_the_tokens_of_a_plain_loop(
    kind: str, shared: bool, tmp_path: Path
) -> None:
    batch, prompt, count, length = 2, 5, 9, 17

    def inputs(ids: Any, seen: int) -> dict[str, Any]:
        new = ids.shape[1]
        if kind == "scattered":
            shown = np.tri(new, length, seen, dtype=bool)
            return {"attention_mask": np.array(np.broadcast_to(shown, (batch, 1, new, length))),
                    "cache_position": np.full(batch, seen)}  # fmt: skip
        values = {"attention_mask": np.ones((batch, seen + new), np.int32),
                  "past_sequence_length": np.array([seen], np.int32)}  # fmt: skip
        if kind == "beams":
            values |= {"beam_width": np.ones(1, np.int32),
                       "cache_indirection": np.zeros((batch, 1, length), np.int32)}  # fmt: skip
        return values

    path = decoders.in_place(tmp_path / "m.onnx", kind)
    with opened(path) as (session, decoder):
        assert decoder.wants_sharing
        assert decoder.takes_one == (kind != "scattered")
        feeds = StepFeeds(decoder, batch, prompt, capacity=length)
        generator = Generator(path, session, decoder, shared=shared)
        *_, timed = generator.run(feeds, batch, prompt, count)
        with pytest.raises(ValueError, match="18 tokens, but a capacity of 17"):
            next(generator.run(feeds, batch, prompt, length - prompt + 1))
        chunks = prompt_of(feeds, prompt, decoder.takes_one)
        shape = (batch, decoders.HEADS, length, 16)
        cache = {past: np.zeros(shape, np.float32) for past in decoder.fed_back}
        loop = plain_loop(path, decoder, chunks, count, cache, inputs)
    assert_equal(timed, loop, 3)


def masked_folder(folder: Path) -> Path:
    """Write a folder of a decoder that shares its cache."""
    path = decoders.folder(folder / "genai")
    decoders.in_place(path / "model.onnx", "masked")
    return path


def test_an_old_runtime_that_would_crash_shares_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runtime, "version", lambda: "1.23.2")
    folder = masked_folder(tmp_path)
    with pytest.raises(UsageError, match=r"1\.23\.2 crashes if past and present"):
        measured(folder, output=tmp_path / "a.dldprof", shared_buffer="on")
    measured(folder, output=tmp_path / "b.dldprof", shared_buffer="auto")
    with open_report(tmp_path / "b.dldprof") as report:
        assert report.settings["shared_buffer_used"] is False


@needs_onnxruntime(31)
@pytest.mark.parametrize(("wanted", "length"), [("auto", 7), ("off", 7), ("on", 7), ("max", 256)])
def test_the_length_of_a_shared_cache(wanted: str, length: int, tmp_path: Path) -> None:
    result, _ = measured(
        masked_folder(tmp_path), output=tmp_path / "r.dldprof", shared_buffer=wanted
    )
    [figures] = result.figures
    assert figures.kv_bytes == 2 * decoders.HIDDEN * length * 4  # keys and values, float32
    assert Report.open(result.report).settings["shared_buffer_used"] == (wanted != "off")


@needs_onnxruntime(31)
@pytest.mark.parametrize(
    ("model", "settings", "kind", "why"),
    [
        ("grouped", {"prompt": "250", "decode": 7}, UsageError,
         "more than the 256 that the model can see"),
        ("grouped", {"prompt": "0"}, UsageError, "--prompt is '0'"),
        ("grouped", {"batch": "two"}, UsageError, "--batch is 'two'"),
        ("grouped", {"batch": "99999999"}, UsageError, "and this machine has"),
        ("masked", {"shared_buffer": "max"}, UsageError, "needs max_length or context_length"),
        ("stacked", {}, ActivityError, "Attention attention writes into a shared cache"),
        ("static", {"prompt": "16", "decode": 5}, UsageError,
         "more than the 20 that the model can see"),
        ("no decoder", {}, ActivityError, "has no cache"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(
    model: str, settings: dict[str, Any], kind: type[DldError], why: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.onnx"
    if model == "grouped":
        decoders.grouped(path)
    elif model == "static":
        path = odd_layer(tmp_path, model)
    elif model == "no decoder":
        path = models.write(tmp_path, models.CHAIN)
    else:
        decoders.in_place(path, model)
    with pytest.raises(kind, match=why):
        measured(path, **settings)


def test_a_cache_of_keys_and_values_in_one(tmp_path: Path) -> None:
    path = decoders.stacked(tmp_path / "m.onnx")
    result, _ = measured(path, output=tmp_path / "r.dldprof", prompt="5", batch="2", decode=4)
    [figures] = result.figures
    # Two layers, keys and values, two sequences, all tokens but the last one, in float32.
    assert figures.kv_bytes == 2 * 2 * 2 * (5 + 4) * decoders.HIDDEN * 4
    [latency] = Report.open(result.report).latencies  # of a token, in the one repetition
    assert latency == pytest.approx(figures.token_ms)


@pytest.mark.broad
def test_a_folder_is_measured_and_reported(tmp_path: Path) -> None:
    folder = decoders.folder(tmp_path / "genai")
    settings = {"prompt": "4,8", "batch": "1,2", "decode": 5, "iterations": 2, "layer_passes": 2}
    made, _ = measured(folder, output=tmp_path / "r.dldprof", **settings)
    asked = [(1, 4), (1, 8), (2, 4), (2, 8)]
    assert [(one.batch, one.prompt) for one in made.figures] == asked
    per_token = 2 * 2 * decoders.KV_HEADS * decoders.HEAD_SIZE * 4  # layers, key and value
    sizes = [batch * (prompt + 5) * per_token for batch, prompt in asked]
    assert [one.kv_bytes for one in made.figures] == sizes
    assert all(0 < one.prefill_ms <= one.first_token_ms for one in made.figures)
    report = Report.open(made.report)
    assert generation_of(report) == made.figures
    assert report_json(report)["llm"] == llm_json(made.figures)
    first = made.figures[0]
    assert report.latencies == pytest.approx([ms / 5 for ms in first.repeats_ms])
    assert report.latency is not None
    assert report.latency.median == pytest.approx(first.token_ms)
    assert "with a batch of 1 after a prompt of 4." in " ".join(note.text for note in report.notes)
    assert f"   {fmt.three_digits(first.tokens_per_s)} tokens/s" in headline(report)
    assert made.prefill_report is not None
    for one, length in ((report, 1), (Report.open(made.prefill_report), 4)):
        attention = [layer for layer in one.layers if layer.type == "GroupQueryAttention"]
        assert {layer.output_dims[0] for layer in attention} == {(1, length, 64)}
        told = {each["name"]: each["shape"] for each in cast("Any", one.properties[INPUTS])}
        assert told["input_ids"] == [1, length]


def test_the_session_is_as_the_configuration_says(tmp_path: Path) -> None:
    used = {
        "intra_op_num_threads": 1, "enable_mem_pattern": False,
        "graph_optimization_level": "ORT_ENABLE_BASIC", "session.set_denormal_as_zero": "1",
    }  # fmt: skip
    options = used | {
        "log_id": "genai", "provider_options": [], "custom_ops_library": "evil.so",
        "session.model_external_initializers_file_folder_path": "/",
    }  # fmt: skip
    folder = decoders.folder(tmp_path / "genai", session_options=options)
    result, events = measured(folder, output=tmp_path / "r.dldprof")
    assert [text for text in texts(events) if "genai_config" in text] == [
        "session options from genai_config.json: intra_op_num_threads 1, enable_mem_pattern"
        " False, graph_optimization_level ORT_ENABLE_BASIC, session.set_denormal_as_zero 1"
    ]
    assert Report.open(result.report).settings["session_options_used"] == used


def test_operators_run_at_once_only_where_the_user_says_so() -> None:
    """The loader of such folders sets a number of threads, and no mode of execution."""
    given: dict[str, bool | int | str] = {"inter_op_num_threads": 4, "intra_op_num_threads": 65_535}
    plain, taken = session_options.with_genai_options(SessionSettings(), given)
    assert (plain.inter_threads, plain.parallel, plain.threads) == (4, False, 0)
    assert taken == {"inter_op_num_threads": 4}
    most: dict[str, bool | int | str] = {"inter_op_num_threads": 0, "intra_op_num_threads": 1024}
    assert session_options.with_genai_options(SessionSettings(), most)[1] == most
    options = session_options.session_options(ort, plain)
    assert options.execution_mode == ort.ExecutionMode.ORT_SEQUENTIAL
    asked = SessionSettings(execution_mode="parallel")
    assert session_options.with_genai_options(asked, given)[0].parallel


def test_what_the_user_says_of_the_session_holds() -> None:
    own = SessionSettings(threads=3, config={"session.x": "own"})
    given: dict[str, bool | int | str] = {
        "intra_op_num_threads": 1, "session.x": "2", "inter_op_num_threads": -1, "a": True
    }  # fmt: skip
    assert session_options.with_genai_options(own, given) == (own, {})
    every: dict[str, bool | int | str] = {
        "provider_options": "x", "intra_op_num_threads": True, "enable_cpu_mem_arena": False,
        "enable_mem_pattern": "no", "graph_optimization_level": "ORT_ENABLE_BASIC",
        "session.path": "f", "session.y": "3",
    }  # fmt: skip
    taken, applied = session_options.with_genai_options(own, every)
    assert taken == replace(
        own, memory_arena=False, optimization_level="basic",
        config={"session.x": "own", "session.y": "3"},
    )  # fmt: skip
    assert [*applied] == ["enable_cpu_mem_arena", "graph_optimization_level", "session.y"]
    options = session_options.session_options(ort, taken)
    assert (options.intra_op_num_threads, options.enable_cpu_mem_arena) == (3, False)
    assert options.enable_mem_pattern


def test_the_chart_is_over_the_context() -> None:
    steps = tuple(0.1 * at for at in range(1, 41))
    plot = context_plot([GenerationFigures(1, 60, 40, 1, 1, 82, steps, 0)])
    assert isinstance(plot, Plot)
    assert [*plot.marks[0].xs] == [*range(61, 101)]
    assert tuple(plot.marks[0].ys) == steps


def test_the_energy_of_a_token_is_that_of_the_steps_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RAPL of one package counts 5 J from each look to the next."""
    looks: list[Path] = []

    def packages(folder: Path) -> dict[str, tuple[int, int]]:
        looks.append(folder)
        return {"package-0": (5_000_000 * len(looks), 1 << 40)}

    monkeypatch.setattr(counters, "_packages", packages)
    path = decoders.grouped(tmp_path / "m.onnx")
    report = tmp_path / "r.dldprof"
    result, _ = measured(path, output=report, decode=5, batch="1,2", iterations=3)
    # Twice a run: after its prompt and at its end; the warm-up is not among them.
    assert len(looks) == 2 * 2 * 3
    one, two = result.figures
    assert one.energy_per_token_j == pytest.approx(3 * 5 / (3 * 5))
    assert two.energy_per_token_j == pytest.approx(3 * 5 / (3 * 5 * 2))
    with closing(Report.open(report)) as made:
        assert generation_of(made) == result.figures
        assert made.properties["energy_per_inference_j"] == pytest.approx(1.0)
        assert made.properties["energy_rails"] == "package-0 (RAPL)"
        said = {fact.name: fact.text for fact in measured_figures(made)}
        assert "1 J per decode step" in said["energy"]
        assert "1 J a token" in said["batch 1, prompt 4"]
        assert "500 mJ a token" in said["batch 2, prompt 4"]
        assert not any("energy" in note.text for note in made.notes)

    monkeypatch.setattr(counters, "_packages", lambda _: {})
    report = tmp_path / "unknown.dldprof"
    [figures] = measured(path, output=report)[0].figures
    assert figures.energy_per_token_j is None
    assert "a token is not" not in figures.text
    with closing(Report.open(report)) as made:
        assert "energy_per_inference_j" not in made.properties
        assert sum("energy of a token is not known" in note.text for note in made.notes) == 1


@pytest.mark.parametrize(
    ("runs", "more_ms", "change"),
    [
        ([(1, 9, 5, 5, 5)], None, np.inf),
        ([(1, 9, 5), (1, 9, 1)], None, 0.4),  # of one token
        ([(1, 9, 5, 7), (1, 9, 1, 1)], 5, 6),
        ([(1, 9, 5, 7, 9), (2, 8, 6, 7, 8), (1, 9, 1, 1, 2)], 6, 4),
        ([(4, 9, 1.04, 1.2), (2, 9, 1, 1)], None, 1),
        ([(2, 2, 1.75, 1.75), (2, 2, 1, 1)], 0.75, 0.75),  # more than half of a usual one
        ([(2, 2, 1.5, 1.5), (2, 2, 1, 1)], None, 0.5),
        ([(2, 2, 0.375, 0.375), (2, 2, 0.125, 0.125)], 0.25, 2),
        ([(2, 2, 0.25, 0.25), (2, 2, 0.125, 0.125)], None, 1),
        ([(2,), (4,)], None, 0.5),
    ],
)
def test_what_runs_tell_of_new_lengths_and_of_steadiness(
    runs: list[tuple[float, ...]], more_ms: float | None, change: float
) -> None:
    """Each run has its first token and its steps, of which the first one has costs of its own."""
    timed: Any = [SimpleNamespace(first_token_ms=one, step_ms=steps) for one, *steps in runs]
    assert profile_llm._new_shape_ms(timed) == more_ms
    assert profile_llm._change(timed) == pytest.approx(change)
