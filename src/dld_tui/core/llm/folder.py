"""The folder of a language model: which file is its decoder, and what its configuration says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON, CancelCheck, Foreign, ProgressCallback

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

CONFIG = "genai_config.json"
_LARGEST = 16 << 20
_DECODERS = (
    "model.onnx", "decoder_model_merged.onnx", "decoder_with_past_model.onnx", "decoder_model.onnx",
)  # fmt: skip

_NUMBERS = (
    "context_length", "vocab_size", "head_size", "hidden_size", "num_attention_heads",
    "num_hidden_layers", "num_key_value_heads",
)  # fmt: skip
_TOKENS = ("bos_token_id", "eos_token_id", "pad_token_id", "image_token_id")
_CONFIGURATION = (CONFIG, "config.json", "generation_config.json", "preprocessor_config.json")
_TOKENIZER = (
    "tokenizer.json", "tokenizer_config.json", "tokenizer.model", "special_tokens_map.json",
    "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt", "chat_template.jinja",
)  # fmt: skip


@dataclass(frozen=True)
class Stage:
    """One of several models that a decoder runs in sequence. All names are untrusted text."""

    file: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class GenaiConfig:
    """What ``genai_config.json`` of onnxruntime-genai says of a decoder; all texts are foreign."""

    path: Path
    model: Path
    """The file of the decoder, in the same folder."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Names of inputs by what they are, such as ``input_ids`` or ``past_key_names``; ``%d`` in
    those of caches stands for the layer."""
    outputs: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)
    """``vocab_size``, ``context_length``, ``head_size``, ``num_hidden_layers`` and the like."""
    special_tokens: frozenset[int] = frozenset()
    shared_buffer: bool = False
    """Whether past and present are to be one piece of memory."""
    max_length: int | None = None
    """The longest sequence that is generated, which such memory is allocated for."""
    others: tuple[str, ...] = ()
    """Files of further models, as of an embedding or of images."""
    layer_types: tuple[str, ...] = ()
    """What each layer is, such as ``conv`` or ``full_attention``, where that is said."""
    stages: tuple[Stage, ...] = ()
    """The models of a decoder that is a pipeline; empty for a single model."""
    session: Mapping[str, bool | int | str] = field(default_factory=dict)
    """Options of the decoder's session, such as ``intra_op_num_threads``."""
    faults: tuple[str, ...] = ()
    """What is no number, no name or missing, so that onnxruntime-genai does not load it."""


def read_config(path: Path) -> GenaiConfig:
    """Read the configuration of a folder.

    Args:
        path: The file.

    Raises:
        InputError: It cannot be read, is of another form, or names no file of its folder.
    """
    data = read_json(path, _LARGEST)
    model = _object(data, "model", path)
    decoder = _object(model, "decoder", path)
    stages = _stages(decoder)
    name = decoder.get("filename")
    if name is None and stages:  # the stage with the caches
        name = max(stages, key=lambda stage: len(stage.inputs)).file
    file = path.parent / name if isinstance(name, str) and len(name) < 256 else None
    if file is None or file.parent.resolve() != path.parent.resolve():
        raise InputError("names no decoder of its folder", where=str(path))
    options = data.get("search") if isinstance(data, Mapping) else None
    search = options if isinstance(options, dict) else {}
    shared = search.get("past_present_share_buffer") is True
    tokens: list[JSON] = []
    for key in _TOKENS:
        value = model.get(key)
        tokens += value if isinstance(value, list) else [value]
    both = {**model, **decoder}
    numbers = {k: n for k, v in both.items() if (n := _whole(v)) is not None}
    parts = (part for key, part in model.items() if key != "decoder" and isinstance(part, dict))
    files = (part.get("filename") for part in parts)
    listed = decoder.get("layer_types")
    kinds = listed if isinstance(listed, list) else []
    return GenaiConfig(
        path,
        file,
        _texts(decoder.get("inputs")),
        _texts(decoder.get("outputs")),
        numbers,
        frozenset(token for token in tokens if isinstance(token, int)),
        shared,
        _whole(search.get("max_length")),
        (
            *(name for name in files if isinstance(name, str)),
            *(stage.file for stage in stages if stage.file != name),
        ),
        tuple(kind if isinstance(kind, str) else "" for kind in kinds),
        tuple(stages),
        _plain(decoder.get("session_options")),
        (
            *_wrong_numbers(both),
            *_wrong_names(decoder),
            *_wrong_tokens(model),
            *_too_long(search, numbers.get("context_length")),
            *_wrong_layers(model.get("type"), kinds, numbers.get("num_hidden_layers")),
        ),
    )


def _stages(decoder: Foreign) -> list[Stage]:
    """Return the models that a decoder runs one after the other; empty for a single one."""
    listed = decoder.get("pipeline")
    stages = []
    for entry in listed if isinstance(listed, list) else ():
        for stage in entry.values() if isinstance(entry, dict) else ():
            file = stage.get("filename") if isinstance(stage, dict) else None
            if isinstance(stage, dict) and isinstance(file, str):
                inputs, outputs = _listed(stage.get("inputs")), _listed(stage.get("outputs"))
                stages.append(Stage(file, inputs, outputs))
    return stages


def read_json(path: Path, largest: int) -> JSON | Foreign:
    """Return what a file of a folder says, as onnxruntime-genai reads it: in UTF-8 alone.

    Raises:
        InputError: It cannot be read, or has more bytes than the largest may have.
    """
    try:
        if path.stat().st_size > largest:
            raise InputError("is too large for a configuration", where=str(path))
        data: JSON | Foreign = json.loads(path.read_bytes().decode())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"cannot be read: {visible(str(error))[:200]}", where=str(path)) from None
    return data


def _whole(value: JSON | Foreign) -> int | None:
    """Return a whole number, also one that is written as 16.0; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _wrong_numbers(both: Foreign) -> Iterator[str]:
    for key in _NUMBERS:
        value = both.get(key, 1)
        number = _whole(value)
        if number is None or not 0 <= number < 1 << 31:
            yield f"{key} is {_said(value)}, which is not a valid number"
    if not both.get("context_length"):
        yield "it has no context_length"


def _wrong_names(decoder: Foreign) -> Iterator[str]:
    for side in ("inputs", "outputs"):
        names = decoder.get(side, {})
        if not isinstance(names, dict):
            yield f"its {side} are not an object of names"
            continue
        for key, value in names.items():
            if not isinstance(value, str):
                yield f"{visible(key)} of its {side} is {_said(value)}, which is not a name"


def _wrong_tokens(model: Foreign) -> Iterator[str]:
    for key in _TOKENS:
        value = model.get(key, 0)
        if None in map(_whole, value if isinstance(value, list) else [value]):
            yield f"{key} is {_said(value)}, which is not a token"


def _too_long(search: Foreign, context: int | None) -> Iterator[str]:
    most = _whole(search.get("max_length"))
    if most is not None and context and most > context:
        yield f"max_length is {most}, more than the context_length {context}"


def _wrong_layers(kind: JSON, listed: Sequence[JSON], layers: int | None) -> Iterator[str]:
    is_needed = isinstance(kind, str) and kind.startswith("lfm2")
    if layers is not None and len(listed) != layers and (listed or is_needed):
        yield f"layer_types lists {len(listed)}, num_hidden_layers is {layers}"


def _listed(value: JSON) -> tuple[str, ...]:
    names = value if isinstance(value, list) else []
    return tuple(name for name in names if isinstance(name, str))


def _said(value: JSON | Foreign) -> str:
    return clip(visible(json.dumps(value)), 40)


def _plain(value: JSON) -> dict[str, bool | int | str]:
    if not isinstance(value, dict):
        return {}
    return {key: item for key, item in value.items() if isinstance(item, bool | int | str)}


def _object(data: JSON | Foreign, name: str, path: Path) -> Foreign:
    content = data.get(name) if isinstance(data, Mapping) else None
    if not isinstance(content, dict):
        raise InputError(f"has no {name!r}", where=str(path))
    return content


def _texts(value: JSON) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {key: text for key, text in value.items() if isinstance(text, str)}


def model_in(path: Path) -> Path:
    """Return the decoder of a folder of a language model; any other path as it is.

    Raises:
        InputError: The folder has several models; its configuration cannot be used.
    """
    if not path.is_dir() or not _models(path):
        return path
    return find_decoder(path)[0]


def open_document(
    path: Path | str,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
    journaled: bool = False,
) -> Document:
    """Open a model, or the decoder in the folder of a language model.

    Args:
        path: The file or the folder.
        progress: As the others, it is that of
            :meth:`~dld_tui.core.model.document.document.Document.open`.

    Raises:
        CancelledError: `cancelled` said so.
        InputError: See :func:`model_in`; or the model cannot be read.
    """
    from dld_tui.core.model.document.document import (
        Document,  # lazy: others want the name of a file
    )

    return Document.open(
        model_in(Path(path)), progress=progress, cancelled=cancelled, journaled=journaled
    )


def _models(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")])


@dataclass(frozen=True)
class FolderContents:
    """What is in the folder of a language model. Names are untrusted text."""

    decoder: str
    """The model that commands take when the folder is named."""
    models: tuple[str, ...]
    """All of them, with their place in the folder."""
    configuration: tuple[str, ...]
    """Files that say how the models are used."""
    tokenizer: tuple[str, ...]
    """Files that say which text a token is."""
    numbers: Mapping[str, int]
    """What ``genai_config.json`` says: ``context_length``, ``vocab_size`` and the like."""


def contents_of(folder: Path) -> FolderContents:
    """Return what is in a folder of onnxruntime-genai, Optimum or Hugging Face.

    Raises:
        InputError: See :func:`find_decoder`.
    """
    decoder, config = find_decoder(folder)

    def there(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in names if (folder / name).is_file())

    return FolderContents(
        decoder.relative_to(folder).as_posix(),
        tuple(path.relative_to(folder).as_posix() for path in _models(folder)),
        there(_CONFIGURATION),
        there(_TOKENIZER),
        config.numbers if config is not None else {},
    )


def find_decoder(path: Path) -> tuple[Path, GenaiConfig | None]:
    """Return the file of a decoder, and its configuration where there is one.

    Args:
        path: A model, or the folder of one as onnxruntime-genai and Optimum write it.

    Raises:
        InputError: The folder has no model, or several; the configuration cannot be used.
    """
    if not path.is_dir():
        beside = path.parent / CONFIG
        config = read_config(beside) if beside.is_file() else None
        return path, config if config is not None and config.model.name == path.name else None
    if (path / CONFIG).is_file():
        config = read_config(path / CONFIG)
        return config.model, config
    models = _models(path)
    chosen = [model for name in _DECODERS for model in models if model.name == name] or models
    if not chosen:
        raise InputError("has no model", where=str(path))
    if chosen is models and len(models) > 1:
        raise InputError(f"has {len(models)} models", where=str(path), hint="Name one of them")
    return chosen[0], None
