"""The settings of a measurement of prefill and decode."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.inputs.shapes import about_seed
from dld_tui.core.params import param


@dataclass(frozen=True)
class Request:
    """What to run: prompts, tokens, batches."""

    model: Path = param(
        label="Model",
        help="The decoder, or a folder with genai_config.json or with one decoder.",
        kind="file",
        positional=True,
        metavar="MODEL",
    )
    output: Path | None = param(
        None,
        label="Report",
        help="Where to write the report. By default NAME.dldprof in the current folder, with a"
        " number where that exists.",
        spellings=("--output", "-o"),
        kind="output",
        suffix=".dldprof",
        beside=("{stem}.prefill.dldprof",),
        metavar="REPORT",
    )
    prompt: str = param(
        "128",
        label="Prompts",
        help="Lengths of prompts in tokens, separated by commas.",
        spellings=("--prompt", "--prompts"),
        metavar="N,…",
    )
    decode: int = param(
        64,
        label="Tokens",
        help="Tokens to make after the first one; the end of a text is not obeyed.",
        minimum=1,
        maximum=1_000_000,
        spellings=("--decode", "--tokens"),
        metavar="N",
    )
    batch: str = param(
        "1",
        label="Batches",
        help="How many sequences at once, separated by commas.",
        spellings=("--batch", "--batches"),
        metavar="N,…",
        of_model=True,
    )
    iterations: int = param(
        3,
        label="Repeats",
        help="Timed repeats of each prompt; figures are their medians.",
        minimum=1,
        maximum=10_000,
        spellings=("--iterations",),
        metavar="N",
    )
    provider: str = param(
        "CPU",
        label="Provider",
        help="Execution provider, such as CPU or CUDA. Several, separated by commas, are tried in"
        " this order for each operator.",
        spellings=("--provider", "--providers"),
        metavar="NAME",
    )
    shared_buffer: str = param(
        "auto",
        label="Shared cache",
        help="Whether past and present are one piece of memory; auto does as genai_config.json"
        " says, where the operators can.",
        choices=("auto", "on", "off"),
        spellings=("--shared-buffer",),
    )
    layer_passes: int = param(
        10,
        label="Layer passes",
        help="Passes of each phase in which its layers are measured; 0 leaves that out.",
        minimum=0,
        maximum=1000,
        spellings=("--layer-passes",),
        metavar="N",
    )
    threads: int = param(
        0,
        label="Threads",
        help="Threads within an operator; 0 is one a core.",
        minimum=0,
        maximum=4096,
        spellings=("--threads", "--intra-threads"),
        metavar="N",
        page="Session",
    )
    device_id: int = param(
        0,
        label="Device",
        help="Number of the device, for providers that have several.",
        minimum=0,
        spellings=("--device-id", "--device"),
        metavar="N",
        page="Session",
    )
    provider_option: tuple[str, ...] = param(
        (),
        label="Provider options",
        help="Option of the first provider, as KEY=VALUE, or of another as NAME.KEY=VALUE.",
        spellings=("--provider-option", "--provider-options"),
        metavar="KEY=VALUE",
        page="Session",
        of_model=False,
    )
    session_config: tuple[str, ...] = param(
        (),
        label="Session entries",
        help="Configuration entry of the session, as ONNX Runtime names it.",
        spellings=("--session-config",),
        metavar="KEY=VALUE",
        page="Session",
        of_model=False,
    )
    seed: int = param(0, **about_seed(page="Session"))
