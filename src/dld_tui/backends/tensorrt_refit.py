"""Put the weights of an ONNX model into an engine that was built for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.backends.tensorrt_runtime import Engine, failures
from dld_tui.backends.tensorrt_runtime_errors import running_problem
from dld_tui.core.errors import InputError, SaveError, UnavailableError
from dld_tui.core.text import visible

if TYPE_CHECKING:
    import tensorrt as trt
else:
    from dld_tui.backends.tensorrt_library import trt

_SHOWN = 3


def refit(engine: Engine, model: Path) -> int:
    """Give an engine the weights of a model, and return how many.

    Raises:
        InputError: The engine cannot be refitted, or the model has not its weights.
        UnavailableError: The library is too old to read weights from ONNX.
        ActivityError: The library refuses.
    """
    if "OnnxParserRefitter.refit_from_file" not in engine.library.facts.has:
        raise UnavailableError(
            f"{engine.library.facts.title} cannot refit an engine from a model: 10.0 or later can"
        )
    if not engine.engine.refittable:
        raise InputError(
            "the engine cannot be refitted",
            where=engine.where,
            hint="Build it with --refit, or with --strip-weights",
        )
    with failures(engine, "Refitting"):
        refitter = trt.Refitter(engine.engine, engine.logger)
        parser = trt.OnnxParserRefitter(refitter, engine.logger)
        if not parser.refit_from_file(str(model)):
            raise _mismatch(engine, parser, model)
        missing = refitter.get_missing_weights()
        if missing:
            names = ", ".join(visible(name) for name in missing[:_SHOWN])
            raise InputError(
                f"the model lacks {len(missing):,} of the engine's weights: {names}",
                where=str(model),
            )
        if not refitter.refit_cuda_engine():
            raise running_problem(engine.log.errors, "Refitting", engine.where)
        return len(refitter.get_all_weights())


def _mismatch(engine: Engine, parser: trt.OnnxParserRefitter, model: Path) -> InputError:
    said = [parser.get_error(index).desc() for index in range(parser.num_errors)]
    reason = visible(
        " ".join((said or [*engine.log.errors] or ["it does not say why"])[-1].split())
    )
    return InputError(f"its weights do not fit the engine: {reason[:300]}", where=str(model))


def refitted_bytes(engine: Engine) -> bytes:
    """Return the engine as a file, with the weights that it has now.

    Weights are written even where the engine came without them.

    Raises:
        ActivityError: The library does not write it.
    """
    facts = engine.library.facts
    with failures(engine, "Writing the engine"):
        if "SerializationFlag.EXCLUDE_WEIGHTS" in facts.has:
            config = engine.engine.create_serialization_config()
            config.clear_flag(trt.SerializationFlag.EXCLUDE_WEIGHTS)
            keeps = getattr(trt.SerializationFlag, "INCLUDE_REFIT", None)
            if keeps is not None:  # later versions write an engine that is refitted no more
                config.set_flag(keeps)
            made = engine.engine.serialize_with_config(config)
        else:
            made = engine.engine.serialize()
        if made is None:
            raise running_problem(engine.log.errors, "Writing the engine", engine.where)
        try:
            return bytes(made)
        except MemoryError:
            raise SaveError("the engine does not fit into memory", where=engine.where) from None
