"""A result with errors that the model did not have is refused."""

from __future__ import annotations

import re
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from dld_tui.activities.check.sound import Request, run
from dld_tui.backends.conversion import soundness
from dld_tui.backends.conversion.soundness import errors_of, require_sound
from dld_tui.backends.onnxruntime.tensors import spared
from dld_tui.backends.onnxruntime.verdict import settings_to_load
from dld_tui.core.checks.findings import LOAD, ToolFinding
from dld_tui.core.errors import (
    ActivityError,
    DldError,
    InputError,
    TimeLimitError,
    UnavailableError,
)
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.locations import LocatedMessage
from dld_tui.core.model.tensors.value_types import ValueType
from tests.support import decoders, models
from tests.support.conversions import REFUSED_WHEN_OPTIMIZED
from tests.support.recorded import Recorded
from tests.support.runtime import needs_onnxruntime

BROKEN = models.CHAIN.replace("Mul(b, b)", "Mul(b, none)")
CONV = """
<ir_version: 10, opset_import: ["" : 18]>
product (float[2, 4] x, float[4, 3] w) => (float[2, 3] y) { [wide] y = MatMul(x, w) }
"""
NARROWED = CONV.replace("[4, 3]", "[5, 3]")


FOREIGN = """
<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
conv (float[1, 3, 8, 8] x, float[4, 3, 3, 3] w) => (y, z) {
    [wide] y = Conv(x, w)
    [odd] z = own.Odd(x)
}
"""
PLAIN = FOREIGN.replace("own.Odd", "Neg")
NARROW = FOREIGN.replace("[4, 3,", "[4, 2,")
ODDER = FOREIGN.replace("own.Odd(x)", "own.Odd(x) u = a_library_of_others.Much(x) v = own.Even(x)")
ODDER = ODDER.replace('"own" : 1', '"own" : 1, "a_library_of_others" : 2')
CALL = """
<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
conv (float[4] x) => (z) { [odd] z = own.Odd(x) }
<domain: "own", opset_import: ["" : 18]> Odd (a) => (b) { b = Neg(a) }
"""
KEPT = REFUSED_WHEN_OPTIMIZED.replace("z = T", "k = T").replace("(z, t)", "(k, t) z = Abs(k)")
OLD = BROKEN.replace('["" : 18]', '["" : 6]')
PAIRS = {
    "nothing is new": (models.CHAIN, models.CHAIN),
    "a fault less": (BROKEN, models.CHAIN),
    "the fault of before": (BROKEN, BROKEN),
    "the refusal of before, of a node of another name": (
        NARROWED, NARROWED.replace("wide", "other"),
    ),
    "a new fault": (models.CHAIN, BROKEN),
    "two new ones": (models.CHAIN, BROKEN.replace("Relu(x)", "Relu(ghost)")),
    "what another model has that it was made of": (models.CHAIN, BROKEN, BROKEN),
    "what another model has not": (models.CHAIN, BROKEN, models.CHAIN),
    "of old operators": (models.CHAIN.replace('["" : 18]', '["" : 6]'), OLD),
    "what no runtime takes": (CONV, NARROWED),
    "what is new in a model that cannot run": (
        NARROWED, NARROWED.replace("MatMul(x, w)", "MatMul(x, ghost)"),
    ),
    "operators of others that were there": (FOREIGN, FOREIGN),
    "operators of others": (PLAIN, FOREIGN),
    "operators of others, that another model has": (PLAIN, FOREIGN, FOREIGN),
    "more operators of others": (PLAIN, ODDER),
    "more operators of others than before": (FOREIGN, ODDER),
    "beside operators of others": (PLAIN, NARROW),
    "an operator of others is a function before": (CALL, CALL.partition("<domain")[0]),
    "an operator of others is a function": (PLAIN, CALL),
    "what the optimizer makes wrong": (KEPT, REFUSED_WHEN_OPTIMIZED),
    "what the optimizer makes wrong before, too": (REFUSED_WHEN_OPTIMIZED, REFUSED_WHEN_OPTIMIZED),
    "what has no kernel": (CONV, CONV.replace("float[", "bfloat16[")),
}  # fmt: skip


def sound(before: str, after: str, *others: str, is_for_runtime: bool = True) -> list[str]:
    with ExitStack() as stack:
        one, other, *rest = (
            stack.enter_context(closing(Document(models.parse(text))))
            for text in (before, after, *others)
        )
        return require_sound(one, other, others=rest, is_for_runtime=is_for_runtime)


def without_version(text: str) -> str:
    return re.sub(r"Runtime [\d.]+", "Runtime", text)


def told(before: str, after: str, *others: str, is_for_runtime: bool = True) -> str:
    try:
        return "\n".join(sound(before, after, *others, is_for_runtime=is_for_runtime)) or "sound"
    except ActivityError as error:
        lines = [f"! {error.message}", f"!   {error.hint}", f"!   {error.details}"]
        return without_version("\n".join(lines))


@needs_onnxruntime(31)
def test_new_errors_are_told(recorded: Recorded) -> None:
    found = {name: told(*texts) for name, texts in PAIRS.items()}
    for name, texts in PAIRS.items():
        elsewhere = told(*texts, is_for_runtime=False)
        if elsewhere != found[name]:
            found[f"{name}, not for ONNX Runtime"] = elsewhere
    recorded("require_sound", found)


def test_both_files_are_opened(tmp_path: Path) -> None:
    good, bad = (models.write(tmp_path, text, f"{len(text)}.onnx") for text in (CONV, BROKEN))
    with pytest.raises(ActivityError, match=r"not valid: .*none"):
        list(run(Request(good, bad)))
    bad.write_bytes(b"\x08")
    with pytest.raises(InputError):
        list(run(Request(good, bad)))


def test_types_that_were_inferred_before_a_conversion_do_not_count(tmp_path: Path) -> None:
    document = Document.open(decoders.grouped(tmp_path / "decoder.onnx"))
    document.main.inferred["layers.0.sum"] = ValueType("bfloat16", None)

    assert errors_of(document, document.path) == ([], [])
    document.close()


def test_a_refusal_counts_where_a_rule_names_the_node_in_the_original_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A runtime may compute a size, and so find a fault, in one of two models only.
    fault = ToolFinding("error", LOAD, LocatedMessage("MatMul: it refuses that", [], 0))

    def faults(document: Document, **_: object) -> tuple[list[ToolFinding], bool]:
        is_refused = document.main.nodes[0].name == "other"
        return ([fault], False) if is_refused else ([], True)

    monkeypatch.setattr(soundness, "_runtime_faults", faults)
    with pytest.raises(ActivityError, match="the model itself cannot run") as caught:
        sound(NARROWED, NARROWED.replace("wide", "other"))
    assert "it refuses that" in str(caught.value.details)
    sound(NARROWED.replace("wide", "other"), NARROWED.replace("wide", "other"))


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(
    ("error", "refusals"),
    [
        (UnavailableError("ONNX Runtime is not installed"), []),
        (TimeLimitError("it takes long"), []),
        (DldError("it ended", details="std::bad_alloc"), []),
        (DldError("it is odd"), ["ONNX Runtime refuses it: it is odd"]),
    ],
)
def test_what_cannot_be_known_is_no_refusal(
    error: DldError, refusals: list[str], many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def session(_: Path, settings: object) -> None:
        seen.append(settings)
        raise error

    monkeypatch.setattr(soundness, "Session", session)
    monkeypatch.setattr(soundness, "has_many_nodes", lambda _: many)
    with closing(Document(models.parse(models.CHAIN))) as document:
        for found in errors_of(document, None):
            assert [without_version(one.message) for one in found] == refusals
        assert errors_of(document, None, False) == ([], [])
    settings = settings_to_load(16)
    assert seen == [spared(settings) if many else settings]


def test_without_onnxruntime_rules_alone_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing() -> None:
        raise UnavailableError("ONNX Runtime is not installed")

    monkeypatch.setattr("dld_tui.backends.onnxruntime.runtime.load", missing)
    path = models.write(tmp_path, models.CHAIN)
    with closing(Document.open(path)) as before, closing(Document.open(path)) as after:
        assert require_sound(before, after) == []
        after.apply("rename_value", scope=[], value=after.main.nodes[0].outputs[0], name="other")
        assert require_sound(before, after) == []
        after.apply("delete_nodes", scope=[], nodes=[after.main.nodes[0].ref], reconnect=False)
        with pytest.raises(ActivityError, match="not valid"):
            require_sound(before, after)
