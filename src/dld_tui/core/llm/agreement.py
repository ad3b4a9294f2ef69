"""Whether the configuration of a folder says the same of a decoder as the decoder itself."""

from __future__ import annotations

from collections.abc import Iterator

from dld_tui.core.checks.findings import DECODER_RULES, Finding, name_of
from dld_tui.core.document.document import Document
from dld_tui.core.inputs.guess import input_specs
from dld_tui.core.inputs.roles import cache_pairs
from dld_tui.core.llm.folder import CONFIG, GenaiConfig
from dld_tui.core.text import visible

RULE = "decoder:config"
_REPEATED = {
    "past_key_names": "inputs", "past_value_names": "inputs",
    "present_key_names": "outputs", "present_value_names": "outputs",
}  # fmt: skip
"""Names with ``%d`` for the layer."""


def disagreements(document: Document, config: GenaiConfig) -> list[Finding]:
    """Return what the configuration says that does not hold: names, layers, heads, vocabulary."""
    return [*_names(document, config), *_sizes(document, config), *_others(config)]


def _finding(message: str) -> Finding:
    return Finding(DECODER_RULES[RULE], RULE, f"{CONFIG}: {message}")


def _names(document: Document, config: GenaiConfig) -> Iterator[Finding]:
    layers = config.numbers.get("num_hidden_layers", 0)
    for side, named, there in (
        ("input", config.inputs, {spec.name for spec in input_specs(document)}),
        ("output", config.outputs, set(document.main.outputs)),
    ):
        for what, name in named.items():
            if what in _REPEATED:
                wanted = [name.replace("%d", str(at)) for at in range(min(layers, 10_000))]
            else:
                wanted = [name]
            missing = [one for one in wanted if one not in there]
            if missing:
                more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
                text = f"the model has no {side} {name_of(missing[0])}{more} ({visible(what)})"
                yield _finding(text)


def _sizes(document: Document, config: GenaiConfig) -> Iterator[Finding]:
    main, numbers = document.main, config.numbers
    pairs = cache_pairs(document)
    layers = numbers.get("num_hidden_layers")
    if pairs and layers is not None and len(pairs) not in (layers, 2 * layers):
        yield _finding(f"num_hidden_layers is {layers}, the model has {len(pairs)} caches")
    known = main.value_type(pairs[0].past) if pairs else None
    dims = known.dims if known is not None else None
    for key, at in (("num_key_value_heads", 1), ("head_size", 3)):
        size = dims[at] if dims is not None and len(dims) == 4 else None
        said = numbers.get(key)
        if isinstance(size, int) and said is not None and size != said:
            yield _finding(f"{key} is {said}, the cache {name_of(pairs[0].past)} has {size}")
    said = numbers.get("num_attention_heads")
    for node in main.nodes_of_type("GroupQueryAttention")[:1]:
        heads = node.attribute("num_heads")
        if said is not None and heads is not None and heads.value != said:
            yield _finding(f"num_attention_heads is {said}, the model has {heads.value}")
    logits = main.value_type(config.outputs.get("logits", "logits"))
    width = logits.dims[-1] if logits is not None and logits.dims else None
    said = numbers.get("vocab_size")
    if isinstance(width, int) and said is not None and width < said:
        yield _finding(f"vocab_size is {said}, the logits have {width}")
    for token in sorted(config.special_tokens):
        if isinstance(width, int) and not 0 <= token < width:
            yield _finding(f"the special token {token} is beyond the logits, which have {width}")


def _others(config: GenaiConfig) -> Iterator[Finding]:
    for name in config.others:
        if not (config.path.parent / name).is_file():
            yield _finding(f"the file {name_of(name)} is not there")
