"""Whether the other files of a folder say the same of a decoder as the decoder itself."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from dld_tui.core.checks.findings import DECODER_RULES, Finding, name_of, names_of
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.llm.folder import CONFIG, GenaiConfig, read_json
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.inputs.guess import guess_inputs, input_specs
from dld_tui.core.model.inputs.roles import cache_pairs, state_pairs
from dld_tui.core.text import visible

RULE = "decoder:config"
HUGGING_FACE = "config.json"
TOKENIZER = "tokenizer.json"
_LARGEST = 256 << 20
_HALVES, _STATES = frozenset({"key", "value"}), frozenset({"conv", "recurrent"})
_LAYER_KINDS = {
    "conv": frozenset({"conv"}),
    "linear_attention": _STATES,
    "full_attention": _HALVES,
    "sliding_attention": _HALVES,
}
"""What a layer keeps, by what ``layer_types`` of a decoder calls it."""


def folder_findings(document: Document, folder: Path, config: GenaiConfig | None) -> list[Finding]:
    """Return what the files of a folder say that does not hold for its decoder.

    Args:
        document: The decoder.
        folder: Where ``config.json`` and ``tokenizer.json`` may be.
        config: What onnxruntime-genai reads, where it is there.
    """
    findings = [] if config is None else disagreements(document, config)
    return [*findings, *_architecture(document, folder), *_tokenizer(document, folder, config)]


def disagreements(document: Document, config: GenaiConfig) -> list[Finding]:
    """Return what the configuration says that does not hold: names, layers, heads, vocabulary."""
    return [
        *map(_finding, config.faults), *_names(document, config), *_stages(document, config),
        *_pairs(document, config),
        *_sizes(document, config), *_others(config),
    ]  # fmt: skip


def _finding(message: str, file: str = CONFIG) -> Finding:
    return Finding(DECODER_RULES[RULE], RULE, f"{file}: {message}")


def _names(document: Document, config: GenaiConfig) -> Iterator[Finding]:
    sides = (
        ("input", config.inputs, {spec.name for spec in input_specs(document)}),
        ("output", config.outputs, set(document.main.outputs)),
    )
    layers = config.numbers.get("num_hidden_layers", len(cache_pairs(document)) // 2)
    layers = min(layers, 10_000)
    elsewhere = {
        name
        for stage in config.stages
        if stage.file != config.model.name
        for name in (*stage.inputs, *stage.outputs)
    }
    kept = _layers_with_state(config, [(named, there) for _, named, there in sides], layers)
    for side, named, there in sides:
        for key, name in named.items():
            wanted = [name]
            if key.endswith("_names"):
                if layers > 1 and "%d" not in name:
                    yield _finding(f"{visible(key)} is {name_of(name)}, without %d for the layer")
                    continue
                numbers = kept.get(_kind_of(key), range(layers))
                wanted = [name.replace("%d", str(at)) for at in numbers]
            known = there | elsewhere
            missing = [wanted_name for wanted_name in wanted if wanted_name not in known]
            if missing:
                lacking = names_of(missing, 1)
                yield _finding(f"the model has no {side} {lacking} ({visible(key)})")


def _stages(document: Document, config: GenaiConfig) -> Iterator[Finding]:
    """Find what the stages of a pipeline do not hand to one another."""
    own = next((stage for stage in config.stages if stage.file == config.model.name), None)
    if own is not None and own.inputs:
        lost = [spec.name for spec in input_specs(document) if spec.name not in own.inputs]
        if lost:
            yield _finding(f"its stage {name_of(own.file)} lists no input {names_of(lost, 1)}")
    produced = set[str]()
    for at, stage in enumerate(config.stages):
        later = {name: other.file for other in config.stages[at + 1 :] for name in other.outputs}
        for name in stage.inputs:
            if name in later and name not in produced:
                text = f"the stage {name_of(stage.file)} takes {name_of(name)}, which"
                yield _finding(f"{text} {name_of(later[name])} makes after it")
                break
        produced.update(stage.outputs)


def _kind_of(key: str) -> str:
    """Return what a name of all layers is of; empty for keys and values of an encoder."""
    return "" if key.startswith("cross_") else key.split("_")[-2]


def _layers_with_state(
    config: GenaiConfig, sides: Sequence[tuple[Mapping[str, str], Collection[str]]], layers: int
) -> dict[str, list[int]]:
    """Return the layers that keep keys, values, convolutions or recurrent states.

    Where layers are of several kinds, each keeps what its inputs and outputs say, and at least one
    of what ``layer_types`` says. One of which nothing is said has keys and values.
    """
    names = [
        (kind, name, there)
        for named, there in sides
        for key, name in named.items()
        if key.endswith("_names") and (kind := _kind_of(key))
    ]
    is_mixed = bool(_STATES & {kind for kind, _, _ in names})
    kept: dict[str, list[int]] = {kind: [] for kind in (*_HALVES, *_STATES)}
    for at in range(layers):
        kinds = _HALVES
        if is_mixed:
            named = frozenset(
                kind for kind, name, there in names if name.replace("%d", str(at)) in there
            )
            said = config.layer_types[at] if at < len(config.layer_types) else ""
            usual = _LAYER_KINDS.get(said, named or _HALVES)
            kinds = (usual & named) or usual
            kinds = _HALVES if kinds & _HALVES else kinds
        for kind in kinds:
            kept[kind].append(at)
    return kept


def _pairs(document: Document, config: GenaiConfig) -> Iterator[Finding]:
    """Find caches that would go back into others."""
    present_of = {pair.past: pair.present for pair in cache_pairs(document)}
    for half in ("key", "value"):
        past = config.inputs.get(f"past_{half}_names", "")
        present = config.outputs.get(f"present_{half}_names", "")
        for at in range(len(present_of)):
            name, expected = past.replace("%d", str(at)), present.replace("%d", str(at))
            output = present_of.get(name, expected)
            if expected != output and expected in document.main.outputs:
                text = f"{name_of(expected)} goes back into {name_of(name)}, whose own is"
                yield _finding(f"{text} {name_of(output)} (present_{half}_names)")
                break


def _sizes(document: Document, config: GenaiConfig) -> Iterator[Finding]:
    numbers = config.numbers
    if not state_pairs(document):  # layers of which some keep a state have fewer caches
        key = "num_hidden_layers"
        yield from _layers(document, numbers.get(key), key, CONFIG)
    for key, at in (("num_key_value_heads", 1), ("head_size", 3)):
        yield from _cache(document, numbers.get(key), key, at, CONFIG)
    yield from _heads(document, numbers.get("num_attention_heads"), "num_attention_heads", CONFIG)
    yield from _rotary(document, numbers.get("context_length"))
    width = _width(document, config)
    vocabulary = numbers.get("vocab_size")
    # onnxruntime-genai hands over logits of that width, which ONNX Runtime refuses.
    if width is not None and vocabulary is not None and width != vocabulary:
        yield _finding(f"vocab_size is {vocabulary}, the logits have {width}")
    for token in sorted(config.special_tokens):
        if width is not None and not 0 <= token < width:
            yield _finding(f"the special token {token} is beyond the logits, which have {width}")


def _rotary(document: Document, length: int | None) -> Iterator[Finding]:
    """Find tables of angles that end before the context does."""
    main = document.main
    for node in main.nodes_of_type("GroupQueryAttention"):
        table = main.initializer(node.inputs[7]) if len(node.inputs) > 7 else None
        if length is not None and table is not None and table.shape and table.shape[0] < length:
            name = name_of(node.inputs[7])
            yield _finding(
                f"context_length is {length}, the table {name} has {table.shape[0]} rows"
            )
            return


def _others(config: GenaiConfig) -> Iterator[Finding]:
    for name in config.others:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            yield _finding(f"the file {name_of(name)} is not in the folder")
        elif not (config.path.parent / name).is_file():
            yield _finding(f"the file {name_of(name)} is not there")


def _architecture(document: Document, folder: Path) -> Iterator[Finding]:
    """Find what ``config.json`` says otherwise."""
    if not cache_pairs(document) or not (folder / HUGGING_FACE).is_file():
        return
    try:
        data = read_json(folder / HUGGING_FACE, _LARGEST)
    except InputError as error:
        yield _finding(error.message, HUGGING_FACE)
        return
    config = data if isinstance(data, dict) else {}
    if config.get("is_encoder_decoder") is True or {"kv_lora_rank", "layer_types"} & {*config}:
        return  # layers of two models, heads of several kinds, or layers without a cache
    numbers = {key: value for key, value in config.items() if type(value) is int}
    for keys, look in (
        (("num_hidden_layers", "n_layer", "n_layers"), _layers),
        (("num_attention_heads", "n_head", "n_heads"), _heads),
    ):
        key = next((candidate for candidate in keys if candidate in numbers), keys[0])
        yield from look(document, numbers.get(key), key, HUGGING_FACE)
    for key, at in (("num_key_value_heads", 1), ("head_dim", 3)):
        yield from _cache(document, numbers.get(key), key, at, HUGGING_FACE)
    width, size = _width(document, None), numbers.get("vocab_size")
    if width is not None and size is not None and width < size:
        yield _finding(f"vocab_size is {size}, the logits have {width}", HUGGING_FACE)


def _tokenizer(document: Document, folder: Path, config: GenaiConfig | None) -> Iterator[Finding]:
    """Find tokens of the tokenizer that the model does not know."""
    width = _width(document, config)
    if width is None or not (folder / TOKENIZER).is_file():
        return
    try:
        data = read_json(folder / TOKENIZER, _LARGEST)
    except InputError as error:
        yield _finding(error.message, TOKENIZER)
        return
    whole = data if isinstance(data, dict) else {}
    model, added = whole.get("model"), whole.get("added_tokens")
    words = model.get("vocab") if isinstance(model, dict) else None
    tokens = [*words.values()] if isinstance(words, dict) else []
    tokens += range(len(words)) if isinstance(words, list) else []
    for token in added if isinstance(added, list) else ():
        tokens.append(token.get("id") if isinstance(token, dict) else None)
    most = max((token for token in tokens if type(token) is int), default=0)
    if most >= width:
        yield _finding(f"the token {most} is beyond the logits, which have {width}", TOKENIZER)


def _layers(document: Document, count: int | None, key: str, file: str) -> Iterator[Finding]:
    pairs = cache_pairs(document)
    if pairs and count is not None and len(pairs) not in (count, 2 * count):
        yield _finding(f"{key} is {count}, the model has {len(pairs)} caches", file)


def _heads(document: Document, count: int | None, key: str, file: str) -> Iterator[Finding]:
    for kind, attribute in (
        ("GroupQueryAttention", "num_heads"), ("MultiHeadAttention", "num_heads"),
        ("Attention", "q_num_heads"),
    ):  # fmt: skip
        for node in document.main.nodes_of_type(kind)[:1]:
            heads = node.attribute(attribute)
            if count is not None and heads is not None and heads.value != count:
                yield _finding(f"{key} is {count}, the model has {heads.value}", file)


def _cache(
    document: Document, expected: int | None, key: str, at: int, file: str
) -> Iterator[Finding]:
    pairs = cache_pairs(document)
    known = document.main.value_type(pairs[0].past) if pairs else None
    dims = known.dims if known is not None else None
    size = dims[at] if dims is not None and len(dims) == 4 else None
    past = pairs[0].past if pairs else ""
    reads = {node.op_type for node in document.main.consumers(past)} if past else set()
    if expected is not None and isinstance(size, str) and "GroupQueryAttention" in reads:
        # As wide as the attention asks.
        with contextlib.suppress(UsageError):
            size = guess_inputs(input_specs(document), document).shapes[past][at]
    if isinstance(size, int) and at == 3 and _is_packed(document, past):
        size *= 2
    if isinstance(size, int) and expected is not None and size != expected:
        yield _finding(f"{key} is {expected}, the cache {name_of(past)} has {size}", file)


def _is_packed(document: Document, past: str) -> bool:
    """Return whether two elements of a cache are one byte."""
    widths = (
        node.attribute("kv_cache_bit_width") for node in document.main.consumers(past)
    )  # fmt: skip
    return any(width is not None and width.value == 4 for width in widths)


def _width(document: Document, config: GenaiConfig | None) -> int | None:
    """Return how many tokens the logits tell of."""
    name = "logits" if config is None else config.outputs.get("logits", "logits")
    logits = document.main.value_type(name)
    width = logits.dims[-1] if logits is not None and logits.dims else None
    return width if isinstance(width, int) else None
