"""Measurements of a decoder: prefill and decode separately, by batch and prompt length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.codec import decode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError
from dld_tui.core.tables.table import BYTES, COUNT, JOULES, MS, RATIO, Column, Table

if TYPE_CHECKING:
    from dld_tui.core.report.report import Report
    from dld_tui.core.types import JSON

GENERATION = "generation"
"""The property of a report that has the figures."""
SHARED_BUFFER = "generation_shared"
"""The property with those of the same with past and present in one buffer, if that was tried."""


@dataclass(frozen=True)
class GenerationFigures:
    """One batch and one length of the prompt. Times are medians over the repeats."""

    batch: int
    prompt: int
    """Tokens of each sequence before the first that is made."""
    tokens: int
    """Tokens of each sequence that were made after the first one."""
    prefill_ms: float
    """The run over the prompt."""
    first_token_ms: float
    """The same with its inputs, and with the logits fetched and the first token chosen."""
    decode_ms: float
    """All steps with their inputs and the choice of the token."""
    step_ms: tuple[float, ...]
    """Of each step: the n-th sees ``prompt + n + 1`` tokens."""
    kv_bytes: int
    """The cache after the last token."""
    peak_memory_bytes: int | None = None
    """The most memory that the process had in use until then."""
    energy_per_token_j: float | None = None
    """Of the counters that the machine keeps, in the time of the steps, idle power included."""
    gpu_memory_bytes: int | None = None
    """The memory of the GPU that the process used then."""
    warm_ups: int | None = None
    """Repetitions before those that count; None if unknown."""
    warm_up_change: float | None = None
    """The part by which times of the last two of them differed."""
    is_steady: bool = True
    """Whether that is little."""
    new_shape_ms: float | None = None
    """What a token takes more the first time that its length of the context is met; None where that
    is not measurable. It is in no other figure."""
    repeats_ms: tuple[float, ...] = ()
    """`decode_ms` of each repetition."""
    first_tokens_ms: tuple[float, ...] = ()
    """`first_token_ms` of each repetition."""
    longest_step_ms: float | None = None
    """The longest step of all repetitions."""
    step_p99_ms: float | None = None
    """The 99th percentile of all their steps; None of too few."""

    @property
    def rates(self) -> tuple[float, ...]:
        """Tokens of all sequences per second of each repetition."""
        return tuple(1000 * self.batch * self.tokens / ms for ms in self.repeats_ms if ms > 0)

    @property
    def rate_text(self) -> str:
        """The tokens a second as people read them."""
        return fmt.three_digits(self.tokens_per_s or 0.0)

    @property
    def warm_up_text(self) -> str:
        """What the warm-up was, for people."""
        if self.warm_ups is None or self.warm_up_change is None:
            return "warm-up unknown"
        runs = fmt.plural(self.warm_ups, "repetition")
        changed = f"{100 * self.warm_up_change:.0f} %"
        if self.is_steady:
            return f"warmed up until times were steady ({runs}, the last changed by {changed})"
        return f"times were not steady after {runs} of warm-up: they still changed by {changed}"

    @property
    def token_ms(self) -> float:
        """What a token takes: the mean of the steps of a repetition, its median over these."""
        return self.decode_ms / self.tokens if self.tokens else 0.0

    @property
    def tokens_ms(self) -> tuple[float, ...]:
        """What a token took in each repetition: their median is `token_ms`; empty if unknown."""
        return tuple(ms / self.tokens for ms in self.repeats_ms) if self.tokens else ()

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens of all sequences per second while decoding."""
        return 1000 * self.batch * self.tokens / self.decode_ms if self.decode_ms else None

    @property
    def prefill_tokens_per_s(self) -> float | None:
        """Tokens of the prompts per second."""
        return 1000 * self.batch * self.prompt / self.prefill_ms if self.prefill_ms else None

    @property
    def text(self) -> str:
        """The figures in one line for people."""
        parts = [
            f"first token {fmt.milliseconds(self.first_token_ms)} ms",
            f"{fmt.milliseconds(self.token_ms)} ms a token",
            f"{self.tokens_per_s or 0:,.1f} tokens/s",
            f"KV cache {fmt.size(self.kv_bytes)}",
        ]
        if self.energy_per_token_j is not None:
            parts.append(f"{fmt.joules(self.energy_per_token_j)} a token")
        return ", ".join(parts)


COLUMNS: tuple[Column[GenerationFigures], ...] = (
    Column("batch", "batch", lambda row: row.batch, COUNT),
    Column("prompt", "prompt", lambda row: row.prompt, COUNT, help="Tokens of each sequence."),
    Column("first_token_ms", "first token", lambda row: row.first_token_ms, MS),
    Column("prefill_ms", "prefill", lambda row: row.prefill_ms, MS,
           help="The run over the prompt, without its inputs and the choice of the token."),
    Column("prefill_tokens_per_s", "prefill tokens/s", lambda row: row.prefill_tokens_per_s, RATIO,
           help="By the time of prefill."),
    Column(
        "token_ms",
        "a token",
        lambda row: row.token_ms,
        MS,
        help="The mean of the steps of a repetition, with inputs and the choice of the token.",
    ),
    Column("step_p99_ms", "p99 of a token", lambda row: row.step_p99_ms, MS,
           help="Of all steps of all repetitions; unknown of fewer than 100."),
    Column("tokens_per_s", "tokens/s", lambda row: row.tokens_per_s, RATIO),
    Column(
        "energy_per_token_j",
        "energy a token",
        lambda row: row.energy_per_token_j,
        JOULES,
        help="From the machine's energy counters, idle power included; unknown without a counter.",
    ),
    Column("kv_bytes", "KV cache", lambda row: row.kv_bytes, BYTES),
    Column("peak_memory_bytes", "peak memory", lambda row: row.peak_memory_bytes, BYTES),
    Column("gpu_memory_bytes", "GPU memory", lambda row: row.gpu_memory_bytes, BYTES),
    Column(
        "new_shape_ms",
        "new length",
        lambda row: row.new_shape_ms,
        MS,
        help="What a token takes more the first time that its length of the context is met.",
    ),
)  # fmt: skip


def generation_table(figures: Sequence[GenerationFigures]) -> Table[GenerationFigures]:
    """Return a row for each batch and prompt."""
    return Table(COLUMNS, list(figures), name="generation", title="Prefill and decode")


def big_numbers(figures: Sequence[GenerationFigures]) -> list[tuple[str, str]]:
    """Return time to first token and tokens a second of the first row as (value, title)."""
    return [
        pair
        for one in figures[:1]
        for pair in (
            (fmt.milliseconds(one.first_token_ms), "to the first token, ms"),
            (one.rate_text, "tokens/s"),
        )
    ]


def generation_of(report: Report) -> list[GenerationFigures]:
    """Return the figures of a report; empty where it has none."""
    return stored_figures(report.properties)


def stored_figures(properties: Mapping[str, JSON]) -> list[GenerationFigures]:
    """Return the figures among the properties of a report; empty where there are none."""
    stored = properties.get(GENERATION)
    if not isinstance(stored, list):
        return []
    valid = []
    for entry in stored:
        try:
            figures: GenerationFigures = decode(GenerationFigures, entry)
        except ActivityError:
            continue
        if figures.batch > 0 and figures.prompt > 0:
            valid.append(figures)
    return valid


def llm_json(figures: Sequence[GenerationFigures]) -> JSON:
    """Return the figures by phase, with speeds; None without figures.

    The context is that of the middle step.
    """
    if not figures:
        return None
    return {
        "prefill": [
            {"prompt": row.prompt, "batch": row.batch, "ms": row.prefill_ms,
             "tokens_s": row.prefill_tokens_per_s}
            for row in figures
        ],
        "decode": [
            {"context": row.prompt + (row.tokens + 1) // 2, "batch": row.batch,
             "ms_token": row.token_ms, "tokens_s": row.tokens_per_s}
            for row in figures
        ],
        "ttft_ms": figures[0].first_token_ms,
        "tokens_s": figures[0].tokens_per_s,
        "new_shape_ms": figures[0].new_shape_ms,
        "kv_bytes": figures[0].kv_bytes,
    }  # fmt: skip


_UNEVEN = 2.0
"""How much longer than a token the longest step takes where that is told."""


def generation_story(figures: Sequence[GenerationFigures]) -> Iterator[str]:
    """Yield sentences on the tokens, and on how their speed depends on batch and context.

    Time to first token and speed themselves are in the first lines of the report.
    """
    if not figures:
        return
    first = figures[0]
    slowest_ms = first.longest_step_ms
    if slowest_ms is not None and slowest_ms > _UNEVEN * first.token_ms:
        often = first.step_p99_ms
        more = "" if often is None else f", one of 100 more than {fmt.three_digits(often)} ms"
        yield f"The slowest token takes {fmt.three_digits(slowest_ms)} ms{more}."
    if first.new_shape_ms is not None:
        cost = fmt.milliseconds(first.new_shape_ms)
        yield f"Each new length of the context costs {cost} ms once, which is in no other figure."
    longest = max((f for f in figures if f.batch == first.batch), key=lambda f: f.prompt)
    if longest.prompt > first.prompt and first.token_ms:
        times = longest.token_ms / first.token_ms
        doubt = _doubt(first.rates, longest.rates)
        yield f"At a prompt of {longest.prompt:,} a token takes {times:.2f}× as long{doubt}."
    largest = max((f for f in figures if f.prompt == first.prompt), key=lambda f: f.batch)
    if largest.batch > first.batch and first.tokens_per_s and largest.tokens_per_s:
        times = largest.tokens_per_s / first.tokens_per_s
        doubt = _doubt(first.rates, largest.rates)
        yield f"A batch of {largest.batch} makes {times:.1f}× as many tokens a second{doubt}."


def _doubt(one: Sequence[float], other: Sequence[float]) -> str:
    """Return that rates of repetitions overlap; empty where they do not, or are not known."""
    overlap = one and other and max(min(one), min(other)) <= min(max(one), max(other))
    return ", which is not certain: repetitions overlap" if overlap else ""


@dataclass(frozen=True)
class SharingGain:
    """What one buffer for past and present brings, as measured in the same run."""

    plain: GenerationFigures
    shared: GenerationFigures

    @property
    def factor(self) -> float:
        """The speedup of the tokens after the first."""
        return self.plain.decode_ms / self.shared.decode_ms

    @property
    def is_certain(self) -> bool:
        """Whether every repetition was faster, or a new length of the context costs no more."""
        faster = max(self.shared.repeats_ms) < min(self.plain.repeats_ms)
        saves = self.plain.new_shape_ms is not None and self.shared.new_shape_ms is None
        return (faster and self.factor >= _WORTH) or saves

    @property
    def text(self) -> str:
        """What was measured, for people."""
        rates = (self.plain.tokens_per_s or 0.0, self.shared.tokens_per_s or 0.0)
        parts = [f"measured {rates[0]:,.3g} → {rates[1]:,.3g} tokens/s, {self.factor:.2f}×"]
        if self.plain.new_shape_ms is not None and self.shared.new_shape_ms is None:
            cost = fmt.three_digits(self.plain.new_shape_ms)
            parts.append(f"and each new length of the context no longer costs {cost} ms")
        return " ".join(parts)


_WORTH = 1.03


def sharing_gain(report: Report) -> SharingGain | None:
    """Return what a shared buffer would certainly bring; None if nothing, or if it is unknown."""
    try:
        shared: GenerationFigures = decode(GenerationFigures, report.properties.get(SHARED_BUFFER))
    except ActivityError:
        return None
    plain = [
        one for one in generation_of(report)
        if (one.batch, one.prompt, one.tokens) == (shared.batch, shared.prompt, shared.tokens)
    ]  # fmt: skip
    if not plain or not plain[0].repeats_ms or not shared.repeats_ms or shared.decode_ms <= 0:
        return None
    gain = SharingGain(plain[0], shared)
    return gain if gain.is_certain else None
