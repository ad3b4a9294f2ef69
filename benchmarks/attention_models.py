"""Small transformers exported from PyTorch: what fusions of attention have to find.

    python -m benchmarks.attention_models FOLDER

The attention is written as transformers' own models wrote theirs (BERT, GPT-2, ViT, Whisper), and
with PyTorch's scaled_dot_product_attention; each is exported by the exporter of graphs that were
traced, and by the one of programs that were exported. Weights are drawn.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

WIDTH, HEADS, LAYERS, WORDS, LENGTH, BATCH = 32, 4, 2, 50, 12, 2
SIZE = WIDTH // HEADS


def split(x: Any) -> Any:
    """Return (batch, length, width) as (batch, heads, length, size)."""
    return x.view(x.size(0), x.size(1), HEADS, SIZE).permute(0, 2, 1, 3)


def joined(x: Any) -> Any:
    """Return (batch, heads, length, size) as (batch, length, width)."""
    x = x.permute(0, 2, 1, 3).contiguous()
    return x.view(x.size(0), x.size(1), WIDTH)


class BertAttention(nn.Module):
    """Three projections, scores divided by the root of the size, an added mask."""

    fused = False

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any, mask: Any) -> Any:
        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        if self.fused:
            context = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(SIZE)
            if mask is not None:
                scores = scores + mask
            context = torch.matmul(functional.softmax(scores, dim=-1), v)
        return self.out(joined(context))


class SdpaAttention(BertAttention):
    """The same by scaled_dot_product_attention."""

    fused = True


class GptAttention(nn.Module):
    """One projection to queries, keys and values, and a mask of what comes later."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        later = torch.tril(torch.ones(64, 64, dtype=torch.bool)).view(1, 1, 64, 64)
        self.register_buffer("seen", later, persistent=False)

    def forward(self, x: Any, mask: Any) -> Any:
        q, k, v = (split(part) for part in self.qkv(x).split(WIDTH, dim=2))
        scores = torch.matmul(q, k.transpose(-1, -2)) / (SIZE**0.5)
        seen = self.seen[:, :, k.size(-2) - q.size(-2) : k.size(-2), : k.size(-2)]
        scores = torch.where(seen, scores, torch.full([], torch.finfo(scores.dtype).min))
        return self.out(joined(torch.matmul(functional.softmax(scores, dim=-1), v)))


class GptSdpaAttention(GptAttention):
    """The same by scaled_dot_product_attention."""

    def forward(self, x: Any, mask: Any) -> Any:
        q, k, v = (split(part) for part in self.qkv(x).split(WIDTH, dim=2))
        return self.out(joined(functional.scaled_dot_product_attention(q, k, v, is_causal=True)))


class VitAttention(nn.Module):
    """As timm has it: one projection, five dimensions, heads in front."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any, mask: Any) -> Any:
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, HEADS, SIZE).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q * SIZE**-0.5) @ k.transpose(-2, -1)
        return self.out((scores.softmax(dim=-1) @ v).transpose(1, 2).reshape(b, n, c))


class WhisperAttention(nn.Module):
    """Queries scaled before, keys without a bias; keys and values may come from another input."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.value = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.key, self.out = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any, mask: Any, other: Any = None) -> Any:
        source = x if other is None else other
        q = split(self.query(x) * SIZE**-0.5)
        k, v = split(self.key(source)), split(self.value(source))
        scores = torch.matmul(q, k.transpose(2, 3))
        if mask is not None:
            scores = scores + mask
        return self.out(joined(torch.matmul(functional.softmax(scores, dim=-1), v)))


class RotaryAttention(nn.Module):
    """As Llama has it: queries and keys are turned, halves against halves."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)
        )
        rates = 1.0 / (10000.0 ** (torch.arange(0, SIZE, 2).float() / SIZE))
        self.register_buffer("rates", rates, persistent=False)

    @staticmethod
    def turned(x: Any) -> Any:
        half = x.shape[-1] // 2
        return torch.cat((-x[..., half:], x[..., :half]), dim=-1)

    def forward(self, x: Any, mask: Any) -> Any:
        places = torch.arange(x.size(1))[None, :, None].float()
        angles = places @ self.rates[None, None, :]
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos().unsqueeze(1), angles.sin().unsqueeze(1)
        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        q, k = q * cos + self.turned(q) * sin, k * cos + self.turned(k) * sin
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(SIZE)
        if mask is not None:
            scores = scores + mask
        return self.out(joined(torch.matmul(functional.softmax(scores, dim=-1), v)))


class RootNorm(nn.Module):
    """Root mean square normalization in float, as Llama has it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + torch.randn(WIDTH) / 10)

    def forward(self, x: Any) -> Any:
        wide = x.to(torch.float32)
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * scaled.to(x.dtype)


class GroupedAttention(nn.Module):
    """As newer Llamas have it: half as many heads of keys, which are repeated; and Phi, of which a
    part of each head is turned.
    """

    turned = SIZE
    fused = False

    def __init__(self) -> None:
        super().__init__()
        self.query, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(WIDTH, WIDTH // 2, bias=False) for _ in range(2))
        rates = 1.0 / (10000.0 ** (torch.arange(0, self.turned, 2).float() / self.turned))
        self.register_buffer("rates", rates, persistent=False)

    def rotated(self, x: Any, cos: Any, sin: Any) -> Any:
        first, rest = x[..., : self.turned], x[..., self.turned :]
        first = first * cos + RotaryAttention.turned(first) * sin
        return torch.cat((first, rest), dim=-1) if self.turned < SIZE else first

    @staticmethod
    def repeated(x: Any) -> Any:
        batch, heads, length, size = x.shape
        more = x[:, :, None, :, :].expand(batch, heads, 2, length, size)
        return more.reshape(batch, 2 * heads, length, size)

    def forward(self, x: Any, mask: Any) -> Any:
        batch, length = x.shape[:2]
        parts = (self.query(x), self.key(x), self.value(x))
        q, k, v = (part.view(batch, length, -1, SIZE).transpose(1, 2) for part in parts)
        places = torch.arange(length)[None, None, :].float()
        rates = self.rates[None, :, None].float().expand(1, -1, 1)
        angles = (rates @ places).transpose(1, 2)
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = (turn.to(x.dtype)[:, None] for turn in (angles.cos(), angles.sin()))
        q, k = self.rotated(q, cos, sin), self.rotated(k, cos, sin)
        k, v = self.repeated(k), self.repeated(v)
        if self.fused:
            made = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            scores = torch.matmul(q, k.transpose(2, 3)) * SIZE**-0.5 + mask
            made = torch.matmul(functional.softmax(scores, dim=-1, dtype=torch.float32), v)
        return self.out(made.transpose(1, 2).contiguous().reshape(batch, length, -1))


class GroupedSdpaAttention(GroupedAttention):
    """The same by scaled_dot_product_attention."""

    fused = True


class PartialAttention(GroupedAttention):
    """The same with half of each head turned."""

    turned = SIZE // 2


class PairsAttention(nn.Module):
    """As GPT-J has it: neighbours in the first part of each head are turned, by a table."""

    turned = SIZE // 2

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (
            nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4)
        )
        rates = 1.0 / (10000.0 ** (torch.arange(0, self.turned, 2).float() / self.turned))
        angles = torch.outer(torch.arange(64).float(), rates)
        self.register_buffer("angles", torch.cat((angles.sin(), angles.cos()), dim=-1))

    def rotated(self, x: Any, cos: Any, sin: Any) -> Any:
        first, rest = x[:, :, :, : self.turned], x[:, :, :, self.turned :]
        pairs = torch.stack((-first[:, :, :, 1::2], first[:, :, :, ::2]), dim=-1).flatten(-2)
        return torch.cat((first * cos + pairs * sin, rest), dim=-1)

    def forward(self, x: Any, mask: Any) -> Any:
        batch, length = x.shape[:2]
        q, k, v = (part(x).view(batch, length, HEADS, SIZE)
                   for part in (self.query, self.key, self.value))  # fmt: skip
        places = torch.arange(length)[None, :].expand(batch, -1)
        sin, cos = (
            torch.repeat_interleave(half[:, :, None, :], 2, 3)
            for half in torch.split(self.angles[places], self.turned // 2, dim=-1)
        )
        q, k = (self.rotated(part, cos, sin).permute(0, 2, 1, 3) for part in (q, k))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(SIZE) + mask
        made = torch.matmul(functional.softmax(scores, dim=-1), v.permute(0, 2, 1, 3))
        return self.out(joined(made))


def plain_norm() -> nn.Module:
    """Return a layer normalization."""
    return nn.LayerNorm(WIDTH)


class Layer(nn.Module):
    """Attention and two dense layers, each normalized; `first` says on which side."""

    def __init__(self, attention: type[nn.Module], first: bool, crosses: bool) -> None:
        super().__init__()
        norm = RootNorm if attention.__name__.startswith(("Grouped", "Partial")) else plain_norm
        self.attention, self.first = attention(), first
        self.cross = attention() if crosses else None
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.norms = nn.ModuleList(norm() for _ in range(3))

    def dense(self, x: Any) -> Any:
        return self.down(functional.gelu(self.up(x)))

    def forward(self, x: Any, mask: Any, other: Any) -> Any:
        a, b, c = self.norms
        if not self.first:
            x = a(self.attention(x, mask) + x)
            return b(self.dense(x) + x)
        x = x + self.attention(a(x), mask)
        if self.cross is not None:
            x = x + self.cross(c(x), None, other)
        return x + self.dense(b(x))


class Words(nn.Module):
    """An encoder or decoder of words."""

    def __init__(
        self, attention: type[nn.Module], *, first: bool, masked: str, crosses: bool = False
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(64, WIDTH)
        self.layers = nn.ModuleList(Layer(attention, first, crosses) for _ in range(LAYERS))
        self.masked = masked

    def forward(self, ids: Any, mask: Any = None, other: Any = None) -> Any:
        length = ids.size(1)
        x = self.words(ids) + self.places(torch.arange(length))[None]
        if self.masked == "padding":
            mask = (1.0 - mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
        elif self.masked == "later":
            mask = torch.full((length, length), torch.finfo(x.dtype).min).triu(1)[None, None]
        for layer in self.layers:
            x = layer(x, mask, other)
        return x


class Frames(nn.Module):
    """An encoder of patches of pictures, or of sound: what comes in is convolved first."""

    def __init__(self, attention: type[nn.Module], *, is_sound: bool) -> None:
        super().__init__()
        if is_sound:
            self.patches: nn.Module = nn.Conv1d(8, WIDTH, 3, padding=1)
            self.places = nn.Parameter(torch.randn(1, LENGTH, WIDTH) / 10)
        else:
            self.patches = nn.Conv2d(3, WIDTH, 4, 4)
            self.places = nn.Parameter(torch.randn(1, 17, WIDTH) / 10)
            self.first = nn.Parameter(torch.randn(1, 1, WIDTH) / 10)
        self.layers = nn.ModuleList(Layer(attention, True, False) for _ in range(LAYERS))
        self.is_sound = is_sound

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        if not self.is_sound:
            x = torch.cat((self.first.expand(x.size(0), -1, -1), x), dim=1)
        x = x + self.places
        for layer in self.layers:
            x = layer(x, None, None)
        return x


def models() -> dict[str, tuple[nn.Module, dict[str, Any]]]:
    """Return each model with its inputs by their names."""
    ids = torch.randint(0, WORDS, (BATCH, LENGTH))
    mask = torch.ones(BATCH, LENGTH, dtype=torch.int64)
    mask[1, 8:] = 0
    picture, sound = torch.randn(BATCH, 3, 16, 16), torch.randn(BATCH, 8, LENGTH)
    heard = {"ids": ids, "mask": None, "other": torch.randn(BATCH, 9, WIDTH)}
    masked = {"ids": ids, "mask": mask}
    return {
        "bert": (Words(BertAttention, first=False, masked="padding"), masked),
        "bert_sdpa": (Words(SdpaAttention, first=False, masked="padding"), masked),
        "gpt": (Words(GptAttention, first=True, masked=""), {"ids": ids}),
        "gpt_sdpa": (Words(GptSdpaAttention, first=True, masked=""), {"ids": ids}),
        "vit": (Frames(VitAttention, is_sound=False), {"x": picture}),
        "vit_hf": (Frames(BertAttention, is_sound=False), {"x": picture}),
        "vit_sdpa": (Frames(SdpaAttention, is_sound=False), {"x": picture}),
        "whisper_encoder": (Frames(WhisperAttention, is_sound=True), {"x": sound}),
        "whisper_decoder": (
            Words(WhisperAttention, first=True, masked="later", crosses=True),
            heard,
        ),
        "llama": (Words(RotaryAttention, first=True, masked="later"), {"ids": ids}),
        "grouped": (Words(GroupedAttention, first=True, masked="later"), {"ids": ids}),
        "grouped_sdpa": (Words(GroupedSdpaAttention, first=True, masked="later"), {"ids": ids}),
        "pairs": (Words(PairsAttention, first=True, masked="later"), {"ids": ids}),
        "partial": (Words(PartialAttention, first=True, masked="later"), {"ids": ids}),
    }


BLOCKS = {name: LAYERS for name in models()} | {"whisper_decoder": 2 * LAYERS}
"""How many attentions each of :func:`models` has."""


def export(folder: Path) -> None:
    """Write the models into a folder, with both exporters."""
    torch.manual_seed(0)
    for name, (module, inputs) in models().items():
        module.eval()
        given = {key: value for key, value in inputs.items() if value is not None}
        axes = {key: {0: "batch"} for key in given}
        for key in ("ids", "mask"):
            if key in given:
                axes[key][1] = "length"
        for exporter, opset in (("traced", 17), ("exported", 18)):
            path = folder / f"{name}_{exporter}.onnx"
            is_new = exporter == "exported"
            more: dict[str, Any] = (
                {"dynamic_shapes": {key: axes.get(key) for key in inputs}}
                if is_new
                else {"dynamic_axes": axes}
            )
            try:
                torch.onnx.export(
                    module, tuple(inputs.values()), path, input_names=list(given),
                    output_names=["out"], opset_version=opset, dynamo=is_new,
                    external_data=False, **more,
                )  # fmt: skip
            except Exception as error:  # noqa: BLE001 - whatever an exporter raises
                print(f"{path.name}: {type(error).__name__}: {str(error)[:300]}")


if __name__ == "__main__":
    export(Path(sys.argv[1]))
