"""Sluice's operations on torch's tensors: on a Hopper GPU, on the current stream; on the CPU by plain loops, for tests.

Each is a custom operation `torch.ops.sluice.NAME` with a fake kernel, so that torch.compile(fullgraph=True) takes it, and may be captured in a
CUDA graph. gemm() and grouped_gemm() of bf16 and fp16 have gradients; the others say so when they are asked for one. torch.float16 and
torch.bfloat16 are as they are everywhere; FP8 is torch.float8_e4m3fn and torch.float8_e5m2.

Errors: ValueError for operands that do not belong together, with what they are and should be, before anything is launched; RuntimeError for what
the machine cannot do.
"""

from __future__ import annotations

from typing import Any, Optional, Union

import torch
from torch import Tensor

from . import _autograd, _kernels, _ops  # noqa: F401  they register themselves
from ._gpu import graph_workspace
from .planned import PlannedGemm

__all__ = [
    "PlannedGemm",
    "decode_attention",
    "fp8_gemm",
    "gemm",
    "graph_workspace",
    "grouped_gemm",
    "histogram",
    "pack_w4",
    "quantize",
    "w4a16_gemm",
]


_PLAIN = (Tensor, torch.nn.Parameter)


def _call(name: str, *arguments: Any, **how: Any) -> Any:
    """torch.ops.sluice.NAME, or, where nobody but the operation itself would look at the call, its kernel: the way through the dispatcher and its
    Python takes longer than all else."""
    if not torch.compiler.is_compiling() and _nobody_looks(arguments):
        return getattr(_kernels, name)(*arguments, **how)
    return getattr(torch.ops.sluice, name)(*arguments, **how)


def _nobody_looks(arguments: tuple[Any, ...]) -> bool:
    """No gradients, modes (fake tensors, tracing, counting), transforms, subclasses or tensors without memory."""
    if torch._C._len_torch_dispatch_stack() or torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    differentiated = torch.is_grad_enabled()
    for each in arguments:
        if isinstance(each, Tensor) and (type(each) not in _PLAIN or (differentiated and each.requires_grad) or not (each.is_cuda or each.is_cpu)):
            return False
    return True


def gemm(
    a: Tensor,
    b: Tensor,
    c: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    activation: str = "none",
    bias_per_row: bool = False,
    out_dtype: Optional[torch.dtype] = None,
    constant_b: bool = False,
) -> Tensor:
    """activation(alpha * a @ b + beta * c + bias), summed in fp32 and rounded once.

    a: (M, K) or (batch, M, K); b: (K, N) or (batch, K, N), bf16 or fp16, rows or columns contiguous in each (x.t() is as good as x); one without a batch
    goes with all of the other's. c: as the result; beta counts with it alone. bias: (N,), or (M,) with bias_per_row; both of the result's type.
    activation: none, relu, gelu (tanh), silu. out_dtype: bf16, fp16 or fp32; that of a unless given.
    constant_b: the caller's word that no kernel still running writes b (weights): it is fetched before the kernel before this one has ended. What
    quantize() has just written is not constant until a kernel of torch's has run behind it."""
    return _call("gemm", a, b, c, bias, alpha=alpha, beta=beta, activation=activation, bias_per_row=bias_per_row, out_dtype=out_dtype,
                                 constant_b=constant_b)  # fmt: skip


def fp8_gemm(
    a: Tensor,
    b: Tensor,
    scale_a: Optional[Tensor] = None,
    scale_b: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    *,
    alpha: float = 1.0,
    activation: str = "none",
    out_dtype: Optional[torch.dtype] = None,
    constant_b: bool = False,
) -> Tensor:
    """activation(alpha * (a * scale_a) @ (b * scale_b) + bias), of FP8 numbers and their scales.

    a: (M, K) or (batch, M, K) with contiguous rows; b: (K, N) or (batch, K, N) with contiguous columns (the transpose of weights (N, K)); e4m3 or e5m2
    each, K a multiple of 16. Scales are fp32 in the orientation of their operand: one number; (M, 1) and (1, N), contiguous; (M, ceil(K/128)) and
    (ceil(K/128), N); or (ceil(M/128), ceil(K/128)) and (ceil(K/128), ceil(N/128)); with the batch in front where each matrix has its own.
    out_dtype: bf16 unless given. No gradients."""
    return _call("fp8_gemm", a, b, scale_a, scale_b, bias, alpha=alpha, activation=activation, out_dtype=out_dtype, constant_b=constant_b)


def grouped_gemm(
    a: Tensor,
    b: Tensor,
    groups: Tensor,
    bias: Optional[Tensor] = None,
    scale_a: Optional[Tensor] = None,
    scale_b: Optional[Tensor] = None,
    *,
    grouping: str = "ragged",
    activation: str = "none",
    expected_rows: int = 0,
    most_rows: int = 0,
    out_dtype: Optional[torch.dtype] = None,
    constant_b: bool = False,
    zero: bool = True,
) -> Tensor:
    """Products of groups of rows in one launch. The device reads their sizes, `groups` (int32), so that a graph may be replayed with others.

    ragged: a (T, K), b (G, K, N), groups (G + 1,) -> (T, N): rows groups[g] to groups[g + 1] of a with b[g].
    masked: a (G, M, K), b (G, K, N), groups (G,) -> (G, M, N): the first groups[g] rows of a[g] with b[g].
    along-k: a (M, T), b (T, N), groups (G + 1,) -> (G, M, N): columns groups[g] to groups[g + 1] of a with these rows of b, as gradients of weights
    are; 16-bit operands, a with contiguous columns, b with contiguous rows, M and N multiples of 8; or FP8, a with contiguous rows, b with contiguous
    columns, and T and all of groups multiples of 128 (on the device another number counts as the multiple below it).
    Rows of no group are not computed; they are 0, or, with zero=False, which spares a pass over the result, undefined. bias: (N,), the same for all, or (G, N).
    expected_rows, most_rows: about how many a group has, and how many at most, for the planner. Scales, activation and types as in gemm() and fp8_gemm()."""
    return _call("grouped_gemm", a, b, groups, bias, scale_a, scale_b, grouping=grouping, activation=activation, expected_rows=expected_rows,
                                         most_rows=most_rows, out_dtype=out_dtype, constant_b=constant_b, zero=zero)  # fmt: skip


def w4a16_gemm(
    a: Tensor,
    packed: Tensor,
    n: int,
    order: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    *,
    group_size: int = 128,
    zero_points: bool = False,
    activation: str = "none",
    out_dtype: Optional[torch.dtype] = None,
) -> Tensor:
    """activation(a @ B + bias), with B (K, n) the weights of 4 bits that pack_w4() has packed; they are declared constant (which pack_w4() sees to).

    a: (M, K), bf16 or fp16 as they were packed for, with contiguous rows; packed: uint8 (bytes,); order: (K,) int32 where weights were packed in
    act-order; group_size (0: whole columns) and zero_points as they were packed. No gradients."""
    return _call("w4a16_gemm", a, packed, n, order, bias, group_size=group_size, zero_points=zero_points, activation=activation,
                                       out_dtype=out_dtype)  # fmt: skip


def quantize(
    x: Tensor,
    y: Optional[Tensor] = None,
    *,
    scaling: str = "1x128",
    dtype: torch.dtype = torch.float8_e4m3fn,
    power_of_two_scales: bool = False,
    column_major_scales: bool = False,
) -> tuple[Tensor, Tensor]:
    """(q, scale) with q * scale about x, or about silu(x) * y where y is given.

    x, y: (M, K), bf16, fp16 or fp32 with contiguous rows. scaling "vector": scale is fp32 (M, 1); "1x128": (M, ceil(K/128)); "128x128": (ceil(M/128), ceil(K/128)).
    column_major_scales: the same shape, but scales of one 128 of K are adjacent. No gradients."""
    return _call("quantize", x, y, scaling=scaling, dtype=dtype, power_of_two_scales=power_of_two_scales,
                                     column_major_scales=column_major_scales)  # fmt: skip


def pack_w4(
    codes: Tensor,
    scales: Tensor,
    zeros: Optional[Tensor] = None,
    order: Optional[Tensor] = None,
    *,
    source: str = "plain",
    dtype: Optional[torch.dtype] = None,
    zeros_as_stored: bool = False,
) -> Tensor:
    """Weights of 4 bits, B (K, N), as w4a16_gemm() reads them: uint8 (bytes,), for activations of `dtype` (that of the scales, bf16 for fp32).

    plain: codes uint8 (N, K/2), the low 4 bits first, or int32 (N, K/8); scales (N, groups); zeros uint8 (N, groups).
    gptq: codes int32 (K/8, N); scales (groups, N); zeros int32 (groups, N/8), less one unless zeros_as_stored.
    awq: codes int32 (K, N/8); scales (groups, N); zeros int32 (groups, N/8), both in AWQ's order of columns.
    Without zeros the zero point is 8. Groups have 32, 64 or 128 rows of K, or all. order: (K,) int32, sluice.order_of_groups(g_idx)."""
    return _call("pack_w4", codes, scales, zeros, order, source=source, dtype=dtype, zeros_as_stored=zeros_as_stored)


def decode_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    lengths: Optional[Tensor] = None,
    block_table: Optional[Tensor] = None,
    k_scales: Optional[Tensor] = None,
    v_scales: Optional[Tensor] = None,
    *,
    max_kv_len: int = 0,
    kv_layout: str = "tokens-first",
    scale: float = 0.0,
    soft_cap: float = 0.0,
    window: int = 0,
    causal: bool = True,
    constant_cache: bool = False,
    return_lse: bool = False,
) -> Union[Tensor, tuple[Tensor, Tensor]]:
    """softmax(scale * q k') v of one to eight new tokens of each sequence over its cache, which holds their own keys and values already.

    q: (batch, new tokens, heads, D), bf16 or fp16, D of 64, 128 or 256. k, v: (batch, room, key heads, D), or (batch, key heads, room, D) with kv_layout
    "heads-first"; of q's type, or e4m3 with k_scales and v_scales (key heads,) fp32. With block_table (batch, pages of a sequence) int32, k and v are
    pages, (pages, 16 | 64 | 128, key heads, D), and max_kv_len says how long a sequence may be. lengths: (batch,) int32, with the new tokens; all are
    full unless given. scale: 1/sqrt(D) unless given. return_lse: (o, lse), lse fp32 (batch, new tokens, heads). No gradients.
    constant_cache promises that lengths, block_table, and keys and values of other than new tokens were written by nothing that may still run: 1 to 4 us."""
    o, lse = _call("decode_attention", q, k, v, lengths, block_table, k_scales, v_scales, max_kv_len=max_kv_len, kv_layout=kv_layout, scale=scale,
                                               soft_cap=soft_cap, window=window, causal=causal, constant_cache=constant_cache,
                                               return_lse=return_lse)  # fmt: skip
    return (o, lse) if return_lse else o


def histogram(
    samples: Tensor,
    bins: int = 256,
    *,
    first: int = 0,
    lower: float = 0.0,
    upper: float = 1.0,
    dtype: torch.dtype = torch.int32,
    outside: str = "ignored",
) -> Tensor:
    """How often each value occurs, exactly: (bins,) of int32 or int64. samples: int32, uint8 or fp32, contiguous, of any shape.

    Integers: bin i counts first + i. Floats: bins of equal width from `lower` to below `upper`. outside: "ignored", or "clamped" into the first and last
    bin. A NaN counts nowhere."""
    return _call("histogram", samples, bins, first=first, lower=lower, upper=upper, dtype=dtype, outside=outside)
