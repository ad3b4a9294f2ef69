"""A result with errors that the model did not have is refused."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from dld_tui.activities.check.sound import Request, run
from dld_tui.backends.conversion import soundness
from dld_tui.backends.conversion.soundness import errors_of, require_sound
from dld_tui.core.checks import check
from dld_tui.core.checks.findings import LOAD, ToolFinding
from dld_tui.core.errors import ActivityError, InputError, UnavailableError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.locations import LocatedMessage
from dld_tui.core.model.tensors.value_types import ValueType
from tests.support import decoders, models
from tests.support.conversions import REFUSED_WHEN_OPTIMIZED

BROKEN = models.CHAIN.replace("Mul(b, b)", "Mul(b, none)")
CONV = """
<ir_version: 10, opset_import: ["" : 18]>
product (float[2, 4] x, float[4, 3] w) => (float[2, 3] y) { [wide] y = MatMul(x, w) }
"""
NARROWED = CONV.replace("[4, 3]", "[5, 3]")


def sound(before: str, after: str) -> list[str]:
    with (
        closing(Document(models.parse(before))) as one,
        closing(Document(models.parse(after))) as other,
    ):
        return require_sound(one, other)


def test_a_sound_result_and_errors_of_the_model_itself_pass() -> None:
    for before, after in ((BROKEN, models.CHAIN), (models.CHAIN,) * 2, (BROKEN,) * 2):
        sound(before, after)
    sound(NARROWED, NARROWED.replace("wide", "other"))


def test_new_errors_are_named(tmp_path: Path) -> None:
    with pytest.raises(ActivityError, match=r"not valid: .*none"):
        sound(models.CHAIN, BROKEN)
    good, bad = (models.write(tmp_path, text, f"{len(text)}.onnx") for text in (CONV, BROKEN))
    with pytest.raises(ActivityError, match=r"not valid: .*none"):
        list(run(Request(good, bad)))
    bad.write_bytes(b"\x08")
    with pytest.raises(InputError):
        list(run(Request(good, bad)))


def test_what_no_runtime_takes_counts_as_an_error() -> None:
    with closing(Document(models.parse(NARROWED))) as document:
        assert [one for one in check(document) if one.level == "error"] == []
    with pytest.raises(ActivityError, match=r"not valid: wide: .*MatMul.*dimension"):
        sound(CONV, NARROWED)


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


FOREIGN = """
<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
conv (float[1, 3, 8, 8] x, float[4, 3, 3, 3] w) => (y, z) {
    [wide] y = Conv(x, w)
    [odd] z = own.Odd(x)
}
"""


def test_operators_of_others_are_told_and_the_rest_is_checked() -> None:
    plain = FOREIGN.replace("own.Odd", "Neg")
    assert sound(FOREIGN, FOREIGN) == []
    (note,) = sound(plain, FOREIGN)
    assert "Odd of own" in note
    with pytest.raises(ActivityError, match=r"not valid: wide: Conv: .*\[3, 2\]"):
        sound(plain, FOREIGN.replace("[4, 3,", "[4, 2,"))


def test_options_are_named_with_which_an_optimizer_at_fault_does_not_refuse() -> None:
    kept = REFUSED_WHEN_OPTIMIZED.replace("z = T", "k = T").replace("(z, t)", "(k, t) z = Abs(k)")
    with pytest.raises(ActivityError, match="optimizer") as caught:
        sound(kept, REFUSED_WHEN_OPTIMIZED)
    assert "optimization disabled" in str(caught.value.hint)
    sound(REFUSED_WHEN_OPTIMIZED, REFUSED_WHEN_OPTIMIZED)


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
