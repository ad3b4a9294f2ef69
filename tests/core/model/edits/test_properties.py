"""Every edit holds what :mod:`.properties` says of it, on random models and on real ones.

Its inverse, as data, brings a saved file back to the very bytes before it.
"""

from __future__ import annotations

import json
import random
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.core.compare.diff.compare import diff_documents
from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.edit_registry import known_edits
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.document.transactions import Transaction
from dld_tui.core.model.edits.restore import inverse_arguments
from dld_tui.core.model.shapes.inference import infer_types, store_types
from dld_tui.core.types import JSON
from tests.core.model.edits.properties import PROPERTIES, Property
from tests.oracles import edited_models as oracle
from tests.support import models
from tests.support.drawn_models import drawn_model
from tests.support.sessions import bytes_of
from tests.support.tiers import first


@pytest.fixture
def edits_leave_no_trace() -> None:
    """It is looked at here, edit by edit."""


DIFF_KINDS = {
    "node": {"node"}, "input": {"input", "graph", "function"},
    "output": {"output", "graph", "function"}, "initializer": {"initializer"},
    "sparse_initializer": {"initializer"}, "value_info": {"value"},
}  # fmt: skip
"""What `dld diff` calls the records that the oracle finds to differ; all others may be anything."""


_FOLLOWING = {"order", "value", "input", "output"}
"""What the diff tells of where nodes and values are known by others than before."""


@dataclass
class Subject:
    """A model that edits are tried on, and what it computes."""

    model: bytes
    seed: int = 0
    shapes: dict[str, list[int]] = field(default_factory=dict)
    """Of inputs, where a 2 for each unknown dimension will not do."""
    feeds: dict[str, Any] = field(init=False)
    outputs: list[Any] = field(init=False)
    names: list[str] = field(init=False)
    refusal: str | None = field(init=False)
    typed: onnx.ModelProto = field(init=False)

    def __post_init__(self) -> None:
        parsed = onnx.ModelProto.FromString(self.model)
        self.feeds = oracle.feeds_for(parsed, self.seed, self.shapes)
        self.outputs = oracle.bits_of(oracle.run(self.model, self.feeds))
        self.names = [info.name for info in parsed.graph.output]
        self.refusal = oracle.loads(self.model)
        self.typed = infer_types(parsed, None)[0]


def check(prop: Property, subject: Subject, dice: random.Random, size: int, folder: Path) -> bool:
    """Try one edit on a model; return False where there is nothing for it, or it is refused."""
    source = folder / "before.onnx"
    source.write_bytes(subject.model)
    document = Document.open(source)
    try:
        store_types(document, subject.typed)
        arguments = prop.draw(document, dice, size)
        if arguments is None:
            return False
        start = bytes_of(document)
        about = f"{prop.edit} {str(arguments)[:1500]}"
        refusal: EditError | None = None
        try:
            transaction = document.apply(prop.edit, **arguments)
        except EditError as error:
            refusal = error
        if refusal is not None:
            assert prop.refusable, f"{about}: {refusal}"
            assert bytes_of(document) == start, about
            return False
        made = bytes_of(document)
        _check_files(prop, subject, arguments, start, made, document, folder, about)
        if transaction.primitives:
            _check_inverse(document, transaction, start, folder, about)
        return True
    finally:
        document.close()


def _check_inverse(
    document: Document, transaction: Transaction, start: bytes, folder: Path, about: str
) -> None:
    """Undo an edit, and restore a file that has it as the journal says."""
    save(document, folder / "saved.onnx", overwrite=True)
    inverse = json.loads(json.dumps(inverse_arguments(document, transaction)))
    assert bytes_of(document) == start, about
    with closing(Document.open(folder / "saved.onnx")) as fresh:
        fresh.apply("restore", **inverse)
        assert bytes_of(fresh) == start, about


def _check_files(
    prop: Property, subject: Subject, arguments: dict[str, Any], start: bytes, made: bytes,
    document: Document, folder: Path, about: str,
) -> None:  # fmt: skip
    before, after = onnx.ModelProto.FromString(start), onnx.ModelProto.FromString(made)
    if prop.expected is not None:
        assert after == prop.expected(before, arguments), about
    if prop.undone is not None:
        assert prop.undone(after, arguments) == before, about
    stored = (b"dld.pending", b"one.data", b"two.data")  # values in data files
    pending = any(mark in data for mark in stored for data in (start, made))
    if prop.touches is not None and not pending:
        touched = {kind for _, kind in oracle.fields_touched(before, after)}
        assert touched <= {*prop.touches}, f"{about}: {touched}"
    if not pending:
        _compare_with_diff(before, after, start, made, folder, about)
    runnable: bytes | str = made
    if pending:  # its data file is written when it is saved
        save(document, folder / "after.onnx", overwrite=True)
        runnable = str(folder / "after.onnx")
        document.history.mark_saved()
    if not prop.may_break and subject.refusal is None and isinstance(runnable, bytes):
        session = not (prop.keeps or prop.negates)  # which run it
        refusal = oracle.loads(runnable, full_check=prop.full_check, session=session)
        assert refusal is None, f"{about}: {refusal}"
    if prop.negates:
        name = arguments.get("behind") or arguments["value"]
        place = subject.names.index(name)
        values = oracle.run(runnable, subject.feeds)
        negative = oracle.bits_of([-values[place]])[0]
        assert negative == subject.outputs[place], about
        assert [info.name for info in after.graph.output] == subject.names, about
    if prop.keeps:
        feeds = _renamed_feeds(subject, before, after)
        if prop.drops:
            present = {info.name for info in after.graph.input}
            feeds = {name: value for name, value in feeds.items() if name in present}
        outputs = oracle.run(runnable, feeds)
        found = oracle.bits_of(outputs)[: len(subject.outputs)]
        assert found == subject.outputs, about


def _renamed_feeds(subject: Subject, before: Any, after: Any) -> dict[str, Any]:
    known = [info.name for info in before.graph.input]
    now = [info.name for info in after.graph.input]
    if len(known) != len(now):
        return subject.feeds
    pairs = dict(zip(known, now, strict=True))
    return {pairs[name]: value for name, value in subject.feeds.items()}


def _compare_with_diff(
    before: Any, after: Any, start: bytes, made: bytes, folder: Path, about: str
) -> None:
    """Hold what `dld diff` says of the two against what the oracle finds."""
    documents = []
    for name, data in (("old", start), ("new", made)):
        (folder / f"{name}.onnx").write_bytes(data)
        documents.append(Document.open(folder / f"{name}.onnx"))
    found = diff_documents(*documents)
    told = {change.kind for _, change in found.all_changes()}
    touched = {kind for _, kind in oracle.fields_touched(before, after)}
    for document in documents:
        document.close()
    assert not touched or not found.same, f"{about}: the diff tells nothing of {touched}"
    if touched <= set(DIFF_KINDS):
        allowed = {kind for field in touched for kind in DIFF_KINDS[field]} | _FOLLOWING
        assert told <= allowed, f"{about}: the diff tells of {told}, the oracle of {touched}"


def test_every_edit_has_a_property() -> None:
    assert {prop.edit for prop in PROPERTIES} == set(known_edits())


def test_steps_that_do_not_fit_are_refused_and_leave_no_trace() -> None:
    document = Document(models.parse(models.CHAIN))
    before = bytes_of(document)
    steps: list[JSON] = [
        {"scope": [], "step": "links", "index": 0, "side": "input", "names": ["y"]},
        {"scope": [], "step": "links", "index": 99, "side": "input", "names": []},
    ]
    with pytest.raises(EditError, match="does not fit"):
        document.apply("restore", steps=steps, title="x")
    assert bytes_of(document) == before


ONCE, SELECTING = 3, 6
"""Draws of an edit in the plain tier; more of those that take any number of nodes."""
FAMILIES = 7
"""Of random models, which edits share: what such a model computes is found out once."""


@pytest.mark.parametrize("number", range(len(PROPERTIES)), ids=lambda n: PROPERTIES[n].edit)
def test_a_property_on_random_models(tmp_path: Path, number: int) -> None:
    family = number % FAMILIES
    made = try_property(PROPERTIES[number], tmp_path, seed=number, wanted=ONCE, family=family)
    assert made, "no random model has anything for it"


@lru_cache(maxsize=64)
def drawn(seed: int) -> Subject:
    return Subject(drawn_model(seed).SerializeToString(), seed)


def try_property(prop: Property, folder: Path, *, seed: int, wanted: int, family: int) -> int:
    """Try an edit on the models of a family until it was made so often; return how often it was."""
    dice, made = random.Random(seed), 0
    wanted = wanted if not prop.selects else wanted * SELECTING // ONCE
    for attempt in range(wanted * 6):
        subject = drawn(family * 1000 + attempt)
        size = dice.choice([1, 2, 3, 5, 8, 12, 13, 14, 20, 40])
        made += check(prop, subject, dice, size, folder)
        if made == wanted:
            break
    return made


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", range(len(PROPERTIES)), ids=lambda n: PROPERTIES[n].edit)
def test_a_property_on_many_random_models(tmp_path: Path, number: int) -> None:
    seed = number + 100
    assert try_property(PROPERTIES[number], tmp_path, seed=seed, wanted=2 * ONCE, family=seed)


LIGHT = (
    "squeezenet", "bvlc_alexnet", "inception_v1", "inception_v2", "resnet50", "shufflenet",
)  # fmt: skip
"""Models that the onnx package carries, with weights that are made as they are loaded."""
SMALL = ("basic_pitch_nmp", "logreg_iris", "ppocrv2_cls", "skl_rf_pipeline")
NAMED = ("functions_encoder_op18", "silero_vad_16k_op15")
"""Those of the folder that ``DLD_TEST_DATA`` names: local functions, If in If in If."""
SHAPES = {"silero_vad_16k_op15": {"input": [1, 576], "state": [2, 1, 128]}}
KEEPING = [prop for prop in PROPERTIES if prop.keeps or prop.negates]
SIZES = (1, 13, 2, 20, 12, 10_000)
"""Nodes of a selection: below and above where places are looked up in another way, and all."""


def real_model(name: str, files: Path) -> Subject:
    if name in LIGHT:
        light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
        return Subject((light / f"light_{name}.onnx").read_bytes())
    return Subject((files / f"{name}.onnx").read_bytes(), shapes=SHAPES.get(name, {}))


def try_on_real_model(subject: Subject, folder: Path, seed: int) -> int:
    """Try the edits that keep what a model computes; return how many were made."""
    dice, made = random.Random(seed), 0
    for number, prop in enumerate(KEEPING):
        if prop.selects:
            for size in SIZES[seed % 2 :: 2]:
                made += any(check(prop, subject, dice, size, folder) for _ in range(2))
        elif (number + seed) % 2:  # the others are tried on the models beside this one
            made += check(prop, subject, dice, 1, folder)
    return made


@pytest.mark.models
@pytest.mark.parametrize("name", first(5, [*SMALL, *LIGHT]))
def test_edits_keep_what_a_real_model_computes(tmp_path: Path, real_files: Path, name: str) -> None:
    subject = real_model(name, real_files)
    seed = (*SMALL, *LIGHT).index(name)
    assert try_on_real_model(subject, tmp_path, seed) > 20


@pytest.mark.parametrize("name", NAMED)
def test_edits_keep_what_a_named_model_computes(
    tmp_path: Path, real_models: Path, name: str
) -> None:
    assert try_on_real_model(real_model(name, real_models / "onnx"), tmp_path, 1) > 20
