"""`torch.ops.sluice.*`: schemas, kernels for CUDA and the CPU, and fake kernels, by which torch.compile knows shapes and types."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from ..operations import group_size_of, weights_of_codes
from . import _kernels
from ._kernels import empty_quantized

library = torch.library.Library("sluice", "DEF")

SCHEMAS = {
    "gemm": "(Tensor a, Tensor b, Tensor? c=None, Tensor? bias=None, *, float alpha=1.0, float beta=1.0, str activation='none', "
    "bool bias_per_row=False, ScalarType? out_dtype=None, bool constant_b=False) -> Tensor",
    "fp8_gemm": "(Tensor a, Tensor b, Tensor? scale_a=None, Tensor? scale_b=None, Tensor? bias=None, *, float alpha=1.0, "
    "str activation='none', ScalarType? out_dtype=None, bool constant_b=False) -> Tensor",
    "grouped_gemm": "(Tensor a, Tensor b, Tensor groups, Tensor? bias=None, Tensor? scale_a=None, Tensor? scale_b=None, *, "
    "str grouping='ragged', str activation='none', int expected_rows=0, int most_rows=0, ScalarType? out_dtype=None, "
    "bool constant_b=False, bool zero=True) -> Tensor",
    "w4a16_gemm": "(Tensor a, Tensor packed, int n, Tensor? order=None, Tensor? bias=None, *, int group_size=128, bool zero_points=False, "
    "str activation='none', ScalarType? out_dtype=None) -> Tensor",
    "quantize": "(Tensor x, Tensor? y=None, *, str scaling='1x128', ScalarType? dtype=None, bool power_of_two_scales=False, "
    "bool column_major_scales=False) -> (Tensor, Tensor)",
    "pack_w4": "(Tensor codes, Tensor scales, Tensor? zeros=None, Tensor? order=None, *, str source='plain', ScalarType? dtype=None, "
    "bool zeros_as_stored=False) -> Tensor",
    "decode_attention": "(Tensor q, Tensor k, Tensor v, Tensor? lengths=None, Tensor? block_table=None, Tensor? k_scales=None, "
    "Tensor? v_scales=None, *, int max_kv_len=0, str kv_layout='tokens-first', float scale=0.0, float soft_cap=0.0, int window=0, "
    "bool causal=True, bool constant_cache=False, bool return_lse=False) -> (Tensor, Tensor)",
    "histogram": "(Tensor samples, int bins=256, *, int first=0, float lower=0.0, float upper=1.0, ScalarType? dtype=None, "
    "str outside='ignored') -> Tensor",
}


def _product_dtype(a: Tensor, out_dtype: Optional[torch.dtype]) -> torch.dtype:
    return out_dtype or (a.dtype if a.dtype in (torch.bfloat16, torch.float16) else torch.bfloat16)


def _fake_product(a: Tensor, n: Any, batch: Optional[Any], out_dtype: Optional[torch.dtype]) -> Tensor:
    rows = a.shape[-2]
    return a.new_empty((rows, n) if batch is None else (batch, rows, n), dtype=_product_dtype(a, out_dtype))


def _fake_gemm(a: Tensor, b: Tensor, *_: Any, out_dtype: Optional[torch.dtype] = None, **__: Any) -> Tensor:
    torch._check(a.dim() in (2, 3) and b.dim() in (2, 3), lambda: f"a and b have {a.dim()} and {b.dim()} dimensions; they must have 2 or 3")
    torch._check(a.shape[-1] == b.shape[-2], lambda: f"a has {a.shape[-1]} columns and b {b.shape[-2]} rows; they must be the same")
    batch = a.shape[0] if a.dim() == 3 else b.shape[0] if b.dim() == 3 else None
    return _fake_product(a, b.shape[-1], batch, out_dtype)


def _fake_grouped(a: Tensor, b: Tensor, groups: Tensor, *_: Any, grouping: str = "ragged", out_dtype: Optional[torch.dtype] = None, **__: Any) -> Tensor:
    batch = {"ragged": None, "masked": groups.shape[0], "along-k": groups.shape[0] - 1}
    torch._check(grouping in batch, lambda: f"grouping = '{grouping}' is none of ragged, masked, along-k")
    return _fake_product(a, b.shape[-1], batch[grouping], out_dtype)


def _fake_w4a16(a: Tensor, packed: Tensor, n: int, *_: Any, out_dtype: Optional[torch.dtype] = None, **__: Any) -> Tensor:
    return _fake_product(a, n, packed.shape[0] if packed.dim() == 2 else a.shape[0] if a.dim() == 3 else None, out_dtype)


def _fake_quantize(
    x: Tensor, y: Optional[Tensor] = None, *, scaling: str = "1x128", dtype: Optional[torch.dtype] = None, column_major_scales: bool = False, **_: Any
) -> tuple[Tensor, Tensor]:
    torch._check(x.dim() == 2, lambda: f"x has {x.dim()} dimensions; it must have 2")
    return empty_quantized(x, scaling, dtype or torch.float8_e4m3fn, column_major_scales)


def _fake_pack(
    codes: Tensor, scales: Tensor, zeros: Optional[Tensor] = None, order: Optional[Tensor] = None, *, source: str = "plain", **_: Any
) -> Tensor:
    """Shapes of weights are constants: the library says how many bytes they take."""
    n, k = weights_of_codes(source, int(codes.shape[0]), int(codes.shape[1]), 2 if codes.dtype == torch.uint8 else 8)
    groups = int(scales.shape[1 if source == "plain" else 0])
    return codes.new_empty(_kernels.packed_bytes(n, k, group_size_of(k, groups), zeros is not None), dtype=torch.uint8)


def _fake_attention(q: Tensor, k: Tensor, v: Tensor, *_: Any, return_lse: bool = False, **__: Any) -> tuple[Tensor, Tensor]:
    return q.new_empty(q.shape), q.new_empty(q.shape[:3] if return_lse else (0,), dtype=torch.float32)


def _fake_histogram(samples: Tensor, bins: int = 256, *, dtype: Optional[torch.dtype] = None, **_: Any) -> Tensor:
    return samples.new_empty(bins, dtype=dtype or torch.int32)


FAKES = {
    "gemm": _fake_gemm,
    "fp8_gemm": _fake_gemm,
    "grouped_gemm": _fake_grouped,
    "w4a16_gemm": _fake_w4a16,
    "quantize": _fake_quantize,
    "pack_w4": _fake_pack,
    "decode_attention": _fake_attention,
    "histogram": _fake_histogram,
}

# Compiled code must pass operands as they lie in eager code: what is contiguous decides which kernel is planned, and whether there is one.
_TAGS = (torch.Tag.pt2_compliant_tag, getattr(torch.Tag, "needs_exact_strides", None) or torch.Tag.needs_fixed_stride_order)

for _name, _schema in SCHEMAS.items():
    library.define(_name + _schema, tags=_TAGS)
    for _key in ("CUDA", "CPU"):
        library.impl(_name, getattr(_kernels, _name), _key)
    torch.library.register_fake("sluice::" + _name, FAKES[_name], lib=library)
