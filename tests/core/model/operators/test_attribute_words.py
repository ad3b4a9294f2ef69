"""The table of texts fits the schemas, and ONNX Runtime takes each of them or refuses others."""

from __future__ import annotations

import re

from dld_tui.core.model.operators import attribute_words
from dld_tui.core.model.operators.attribute_words import (
    Coded,
    integer_text,
    integer_word,
    integer_words,
)
from dld_tui.core.model.operators.registry import (
    schema_for,
    versions_of,
)


def test_each_text_is_of_an_attribute_that_holds_texts() -> None:
    for (domain, op_type), words in attribute_words._WORDS.items():
        version = 9 if op_type == "Upsample" else None
        schema = schema_for(op_type, domain, version)
        assert schema is not None, op_type
        kinds = {attribute.name: attribute.kind for attribute in schema.attributes}
        assert {name: kinds[name] for name in words} == dict.fromkeys(words, "string")


def test_defaults_are_among_the_texts() -> None:
    for (domain, op_type), words in attribute_words._WORDS.items():
        schema = schema_for(op_type, domain, 9 if op_type == "Upsample" else None)
        assert schema is not None
        for attribute in schema.attributes:
            if attribute.name in words and attribute.default is not None:
                assert isinstance(attribute.default, bytes)
                assert attribute.default.decode() in words[attribute.name]


def test_texts_are_those_of_the_first_to_the_last_opset_that_has_them() -> None:
    for (op_type, attribute), limits in attribute_words._VERSIONS.items():
        for word, (first, last) in limits.items():
            ends = {first - 1: False, first: True}
            if last is not None:
                ends |= {last: True, last + 1: False}
            for version, is_there in ends.items():
                words = attribute_words.attribute_words(op_type, "", attribute, version)
                assert (word in words) == is_there, (op_type, word, version)


def test_which_texts_readers_take_for_the_default() -> None:
    assert attribute_words.attribute_words("Gelu", "", "approximate") == ("none", "tanh")
    assert attribute_words.attribute_words("Relu", "", "approximate") == ()
    assert attribute_words.is_default_word("auto_pad", "")
    assert not attribute_words.is_default_word("auto_pad", "FOO")


def test_texts_of_a_version_are_those_that_its_documentation_names() -> None:
    for (domain, op_type), by_attribute in attribute_words._WORDS.items():
        for attribute, words in by_attribute.items():
            offered: dict[int, tuple[str, ...]] = {}
            documented: dict[int, set[str]] = {}
            for version in versions_of(op_type, domain):
                schema = schema_for(op_type, domain, version)
                known = schema.attribute(attribute) if schema is not None else None
                if known is not None:
                    # What is in parentheses explains a text.
                    about = re.sub(r"\((?!default).*?\)", "", known.description)
                    documented[version] = {w for w in words if re.search(rf"\b{w}\b", about)}
                    offered[version] = attribute_words.attribute_words(
                        op_type, domain, attribute, version
                    )
            sometimes = {
                word for word in words if len({word in texts for texts in documented.values()}) == 2
            }
            for version, texts in offered.items():
                about_version = (op_type, attribute, version)
                assert sometimes & set(texts) == sometimes & documented[version], about_version


def test_types_are_words() -> None:
    cast, gelu = schema_for("Cast", "", 13), schema_for("LayerNormalization", "", 17)
    assert integer_word("to", 1, cast) == "float32"
    assert integer_text("to", "float16", cast) == "10"
    assert integer_text("to", "10", cast) == "10"
    assert "bfloat16" in integer_words("to", cast)
    assert "float8e4m3fn" not in integer_words("to", cast)  # of opset 19
    assert "float8e4m3fn" in integer_words("to", schema_for("Cast", "", 19))
    assert integer_word("stash_type", 1, gelu) == "float32"
    assert integer_word("axis", 1, gelu) is None
    assert integer_text("axis", "float16", gelu) == "float16"
    assert integer_word("to", 99, cast) is None
    assert integer_word("to", 1, None) is None
    assert integer_word("precision", 1, None) is None  # of a plugin


def test_other_whole_numbers_have_the_words_of_the_schema() -> None:
    for name, attribute, number, word in (
        ("MatMulNBits", "accuracy_level", 4, "int8"), ("MatMulBnb4", "quant_type", 1, "NF4"),
        ("QMoE", "swiglu_fusion", 2, "not interleaved"), ("GroupNorm", "activation", 1, "SiLU"),
        ("QuantizeWithOrder", "order_input", 2, "COL32"),
    ):  # fmt: skip
        schema = schema_for(name, "com.microsoft", 1)
        assert schema is not None
        known = schema.attribute(attribute)
        assert known is not None
        assert integer_word(attribute, number, schema) == word
        assert integer_text(attribute, word.lower(), schema) == str(number)
        assert integer_word(attribute, 77, schema) is None


def test_a_number_equals_its_words() -> None:
    schema = schema_for("SequenceEmpty", "", 17)
    coded = Coded.of("dtype", 10, schema)
    assert isinstance(coded, Coded)
    assert coded == 10
    assert (coded.word, coded.means("fp16"), coded.means("float32")) == ("float16", True, False)
    assert type(Coded.of("axis", 1, schema_for("Softmax", "", 13))) is int
