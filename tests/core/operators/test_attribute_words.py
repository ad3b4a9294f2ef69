"""The table of texts fits the schemas, and ONNX Runtime takes each of them or refuses others."""

from __future__ import annotations

from dld_tui.core.operators import attribute_words
from dld_tui.core.operators.registry import schema_for


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


def test_which_texts_readers_take_for_the_default() -> None:
    assert attribute_words.attribute_words("Gelu", "", "approximate") == ("none", "tanh")
    assert attribute_words.attribute_words("Relu", "", "approximate") == ()
    assert attribute_words.is_default_word("auto_pad", "")
    assert not attribute_words.is_default_word("auto_pad", "FOO")
