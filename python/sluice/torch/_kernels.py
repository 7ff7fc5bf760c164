"""What the operations do with tensors on a GPU or a CPU: one function for each, registered for both by _ops.py."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, Optional

import torch
from torch import Tensor

from .. import _structures
from .._library import check, library, make, size_of
from ..attention import attention_fields, check_companions
from ..operations import expect, histogram_fields, pack_w4_fields, packed_w4_bytes, quantize_fields, scale_shape
from ..arrays import view
from ..products import W4
from . import _gpu
from ._products import How, multiply
from ._tensors import DTYPES, maybe_spec, name_of, one_device, spec_of


def gemm(
    a: Tensor, b: Tensor, c: Optional[Tensor] = None, bias: Optional[Tensor] = None, *, alpha: float = 1.0, beta: float = 1.0,
    activation: str = "none", bias_per_row: bool = False, out_dtype: Optional[torch.dtype] = None, constant_b: bool = False,
) -> Tensor:  # fmt: skip
    how = How(alpha, beta, activation, bias_per_row, out_dtype, constant_b=constant_b)
    return multiply(a, b, how, c=c, bias=bias)


def fp8_gemm(
    a: Tensor, b: Tensor, scale_a: Optional[Tensor] = None, scale_b: Optional[Tensor] = None, bias: Optional[Tensor] = None, *,
    alpha: float = 1.0, activation: str = "none", out_dtype: Optional[torch.dtype] = None, constant_b: bool = False,
) -> Tensor:  # fmt: skip
    how = How(alpha, 1.0, activation, False, out_dtype, constant_b=constant_b)
    return multiply(a, b, how, bias=bias, scale_a=scale_a, scale_b=scale_b)


def grouped_gemm(
    a: Tensor, b: Tensor, groups: Tensor, bias: Optional[Tensor] = None, scale_a: Optional[Tensor] = None, scale_b: Optional[Tensor] = None, *,
    grouping: str = "ragged", activation: str = "none", expected_rows: int = 0, most_rows: int = 0, out_dtype: Optional[torch.dtype] = None,
    constant_b: bool = False, zero: bool = True,
) -> Tensor:  # fmt: skip
    how = How(1.0, 1.0, activation, False, out_dtype, grouping, expected_rows, most_rows, constant_b)
    return multiply(a, b, how, bias=bias, scale_a=scale_a, scale_b=scale_b, groups=groups, zero=zero and grouping != "along-k")


def w4a16_gemm(
    a: Tensor, packed: Tensor, n: int, order: Optional[Tensor] = None, bias: Optional[Tensor] = None, *, group_size: int = 128,
    zero_points: bool = False, activation: str = "none", out_dtype: Optional[torch.dtype] = None,
) -> Tensor:  # fmt: skip
    if order is not None:
        a = permute_columns(a, order)
    check_packed(packed, n, a.shape[-1], group_size, zero_points)
    how = How(1.0, 1.0, activation, False, out_dtype, constant_b=True, w4=W4(n, group_size, zero_points))
    return multiply(a, packed, how, bias=bias)


def check_packed(packed: Tensor, n: int, k: int, group_size: int, zero_points: bool) -> None:
    """The bytes of packed weights say nothing of themselves: their number must be right. Errors: ValueError."""
    size = packed_bytes(n, k, group_size, zero_points)
    if packed.shape[-1] != size or packed.stride(-1) != 1:
        raise ValueError(f"packed has {packed.shape[-1]} bytes; {n} columns of {k} weights in groups of {group_size} have {size}")


packed_bytes = functools.lru_cache(maxsize=1024)(packed_w4_bytes)


def permute_columns(x: Tensor, order: Tensor) -> Tensor:
    device = one_device(x=x, order=order)
    if x.dim() != 2 or x.dtype not in (torch.bfloat16, torch.float16) or (x.stride(1) != 1 and x.shape[1] > 1):
        raise ValueError(f"x is {x.dtype} of shape {tuple(x.shape)} and strides {x.stride()}; it must be bfloat16 or float16 of 2 dimensions with contiguous rows")
    expect("order", view(order), (x.shape[1],), "int32")
    to = torch.empty(x.shape, dtype=x.dtype, device=device)
    how = (*x.shape, x.data_ptr(), x.stride(0) if x.shape[0] > 1 else -1, order.data_ptr(), to.data_ptr(), -1)
    with _on(device) as stream:
        check(library().permute_columns_on_cpu(*how) if stream is None else library().permute_columns(*how, stream))
    return to


class _on:
    """Inside, the device is current. Gives its stream, None for the CPU."""

    def __init__(self, device: torch.device) -> None:
        self._guard = torch.cuda.device(device) if device.type == "cuda" else None
        self._index = device.index

    def __enter__(self) -> Optional[int]:
        if self._guard is None:
            return None
        _gpu.gpu(self._index)  # refuses what is not Hopper, and a build without kernels
        self._guard.__enter__()
        return int(_gpu.raw_stream(self._index))

    def __exit__(self, *error: Any) -> None:
        if self._guard is not None:
            self._guard.__exit__(*error)


def _run(name: str, problem: Any, arguments: Any, device: torch.device) -> None:
    at = ctypes.byref(problem), ctypes.byref(arguments)
    with _on(device) as stream:
        if stream is None:
            check(getattr(library(), name + "_on_cpu")(*at, 0))
        else:
            check(getattr(library(), name)(*at, stream))


def quantize(
    x: Tensor, y: Optional[Tensor] = None, *, scaling: str = "1x128", dtype: Optional[torch.dtype] = None, power_of_two_scales: bool = False,
    column_major_scales: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    device = one_device(x=x, y=y)
    to = dtype or torch.float8_e4m3fn
    fields = quantize_fields(spec_of(x), maybe_spec(y), scaling, name_of(to) or "", power_of_two_scales, column_major_scales)
    q, scale = empty_quantized(x, scaling, to, column_major_scales)
    if q.stride(0) != q.shape[1] and q.shape[0] > 1:
        fields["ldq"] = q.stride(0)
    pointers = make(_structures.QuantizeArguments, x=x.data_ptr(), y=None if y is None else y.data_ptr(), q=q.data_ptr(), scale=scale.data_ptr())
    _run("quantize", make(_structures.QuantizeProblem, **fields), pointers, device)
    return q, scale


def empty_quantized(x: Tensor, scaling: str, dtype: torch.dtype, column_major_scales: bool) -> tuple[Tensor, Tensor]:
    rows, columns = scale_shape(x.shape[0], x.shape[1], scaling)
    q = x.new_empty((x.shape[0], x.shape[1]), dtype=dtype)
    if column_major_scales:
        return q, x.new_empty((columns, rows), dtype=torch.float32).t()
    return q, x.new_empty((rows, columns), dtype=torch.float32)


def pack_w4(
    codes: Tensor, scales: Tensor, zeros: Optional[Tensor] = None, order: Optional[Tensor] = None, *, source: str = "plain",
    dtype: Optional[torch.dtype] = None, zeros_as_stored: bool = False,
) -> Tensor:  # fmt: skip
    given = {"codes": codes, "scales": scales, "zeros": zeros, "order": order}
    device = one_device(**given)
    for name, tensor in given.items():
        if tensor is not None and not tensor.is_contiguous():
            raise ValueError(f"{name} has strides {tensor.stride()}; it must be contiguous")
    fields = pack_w4_fields(spec_of(codes), spec_of(scales), maybe_spec(zeros), source, name_of(dtype), zeros_as_stored)
    if order is not None:
        expect("order", view(order), (fields["k"],), "int32")
    problem = make(_structures.PackW4Problem, **fields)
    packed = aligned_bytes(size_of(library().packed_w4_bytes, ctypes.byref(problem)), device)
    pointers = {name: tensor.data_ptr() for name, tensor in given.items() if tensor is not None}
    _run("pack_w4", problem, make(_structures.PackW4Arguments, packed=packed.data_ptr(), **pointers), device)
    if device.type == "cpu":
        return packed.clone()  # as the fake kernel has it: a tensor that begins with its memory
    with torch.cuda.device(device):
        _gpu.settle(device)  # w4a16_gemm() takes them for constant
    return packed


def aligned_bytes(size: int, device: torch.device) -> Tensor:
    """At 256 bytes: on a GPU all memory begins so, on a CPU at 64."""
    if device.type == "cuda":
        return torch.empty(size, dtype=torch.uint8, device=device)
    memory = torch.empty(size + 256, dtype=torch.uint8)
    begin = -memory.data_ptr() % 256
    return memory[begin : begin + size]


_ATTENTION_PROBLEMS: _gpu.Bounded[Any, tuple[Any, int]] = _gpu.Bounded(1024)


def decode_attention(
    q: Tensor, k: Tensor, v: Tensor, lengths: Optional[Tensor] = None, block_table: Optional[Tensor] = None, k_scales: Optional[Tensor] = None,
    v_scales: Optional[Tensor] = None, *, max_kv_len: int = 0, kv_layout: str = "tokens-first", scale: float = 0.0, soft_cap: float = 0.0,
    window: int = 0, causal: bool = True, constant_cache: bool = False, return_lse: bool = False,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    given = {"q": q, "k": k, "v": v, "lengths": lengths, "block_table": block_table, "k_scales": k_scales, "v_scales": v_scales}
    device = one_device(**given)
    views = {name: view(tensor) for name, tensor in given.items() if tensor is not None}
    fields = attention_fields(spec_of(q), spec_of(k), spec_of(v), block_table=maybe_spec(block_table), max_kv_len=max_kv_len, kv_layout=kv_layout,
                              scale=scale, soft_cap=soft_cap, window=window, causal=causal, constant_cache=constant_cache,
                              lse=return_lse)  # fmt: skip
    check_companions(fields, views)
    expect("q", views["q"], tuple(q.shape), ("bf16", "fp16"))
    problem, size = _attention_problem(fields, device)
    o = torch.empty(q.shape, dtype=q.dtype, device=device)
    lse = torch.empty(q.shape[:3] if return_lse else (0,), dtype=torch.float32, device=device)
    pointers = {name: each.pointer for name, each in views.items()}
    arguments = make(_structures.AttentionArguments, o=o.data_ptr(), **({"lse": lse.data_ptr()} if return_lse else {}), **pointers)
    if block_table is not None:
        arguments.block_table_stride = block_table.stride(0) if q.shape[0] > 1 else block_table.shape[1]
    asked, passed = ctypes.byref(problem), ctypes.byref(arguments)
    with _on(device) as stream:
        if stream is None:
            check(library().attention_on_cpu(asked, passed, 0))
        else:
            space = _gpu.workspace("attention", device.index, stream, size)
            check(library().attention(asked, _gpu.gpu(device.index).reference, passed, space.pointer, space.size_bytes, stream))
    return o, lse


def _attention_problem(fields: dict[str, Any], device: torch.device) -> tuple[Any, int]:
    """The problem as the library has it, and the bytes of its workspace."""
    key = (frozenset(fields.items()), device)
    found = _ATTENTION_PROBLEMS.get(key)
    if found is None:
        problem = make(_structures.AttentionProblem, **fields)
        size = 0
        if device.type == "cuda":
            size = size_of(library().attention_workspace_bytes, ctypes.byref(problem), _gpu.gpu(device.index).reference)
        found = _ATTENTION_PROBLEMS.put(key, (problem, size))
    return found


def histogram(
    samples: Tensor, bins: int = 256, *, first: int = 0, lower: float = 0.0, upper: float = 1.0, dtype: Optional[torch.dtype] = None,
    outside: str = "ignored",
) -> Tensor:  # fmt: skip
    device = one_device(samples=samples)
    if not samples.is_contiguous():
        raise ValueError(f"samples have strides {samples.stride()}; they must be contiguous")
    fields = histogram_fields(spec_of(samples), bins, first, lower, upper, name_of(dtype or torch.int32) or "", outside)
    problem = make(_structures.HistogramProblem, **fields)
    counts = torch.empty(bins, dtype=dtype or torch.int32, device=device)
    _run("histogram", problem, make(_structures.HistogramArguments, samples=samples.data_ptr(), counts=counts.data_ptr()), device)
    return counts
