"""Decode attention on arrays: a few new tokens of each sequence look at a long cache of keys and values."""

from __future__ import annotations

import ctypes
from typing import Any, Optional

from . import _structures
from ._library import check, library, make
from .arrays import View, view
from .operations import _gpu, _result, expect, host_device, spec
from .plan import one_place, refuse_other_backends
from .products import Spec


def attention_fields(
    q: Spec,
    k: Spec,
    v: Spec,
    *,
    block_table: Optional[Spec] = None,
    max_kv_len: int = 0,
    kv_layout: str = "tokens-first",
    scale: float = 0.0,
    soft_cap: float = 0.0,
    window: int = 0,
    causal: bool = True,
    constant_cache: bool = False,
    lse: bool = False,
) -> dict[str, Any]:
    """The problem that these arrays pose. Errors: ValueError for shapes that do not belong together."""
    if len(q.shape) != 4 or len(k.shape) != 4 or k.shape != v.shape:
        raise ValueError(f"q, k and v have shapes {q.shape}, {k.shape} and {v.shape}; they have 4 dimensions, and k and v are alike")
    if k.strides != v.strides or k.dtype != v.dtype:
        raise ValueError(f"k and v lie differently: {k.dtype} {k.strides} and {v.dtype} {v.strides}; they must be alike")
    batch, query_len, heads_q, head_size = q.shape
    tokens, heads_kv = (k.shape[1], k.shape[2]) if kv_layout == "tokens-first" else (k.shape[2], k.shape[1])
    if k.shape[3] != head_size:
        raise ValueError(f"heads of q have {head_size} numbers, those of k {k.shape[3]}; they must be as many")
    inner = (k.shape[2] * k.shape[3], k.shape[3], 1)
    if k.strides[1:] != inner:
        raise ValueError(f"k has strides {k.strides}; its last three dimensions must be dense")
    fields: dict[str, Any] = {
        "batch": batch, "query_len": query_len, "heads_q": heads_q, "heads_kv": heads_kv, "head_size": head_size, "max_kv_len": max_kv_len or tokens,
        "kv_stride": k.strides[0] if k.shape[0] > 1 else k.shape[1] * inner[0],
        "scale": scale, "soft_cap": soft_cap, "window": window, "causal": causal, "constant_cache": constant_cache, "lse": lse, "type": q.dtype, "kv_type": k.dtype, "kv_layout": kv_layout,
    }  # fmt: skip
    if block_table is None:
        if k.shape[0] != batch or (max_kv_len and max_kv_len > tokens):
            raise ValueError(f"k has shape {k.shape}: room for {k.shape[0]} sequences of {tokens} tokens; q has {batch}, and max_kv_len is {max_kv_len or tokens}")
        return fields
    if not max_kv_len:
        raise ValueError("max_kv_len is missing: with pages the arrays do not say how long a sequence may be")
    if block_table.dtype != "int32" or len(block_table.shape) != 2 or block_table.shape[0] != batch or block_table.strides[1] != 1:
        raise ValueError(f"block_table is {block_table.dtype} of shape {block_table.shape}; it must be int32 of shape ({batch}, pages of a sequence) with contiguous rows")
    if block_table.shape[1] * tokens < max_kv_len:
        raise ValueError(f"block_table has room for {block_table.shape[1]} pages of {tokens} tokens; max_kv_len = {max_kv_len} is more")
    fields.update(page_size=tokens, pages=k.shape[0])
    return fields


def check_companions(fields: dict[str, Any], views: dict[str, View]) -> None:
    """Types and sizes of what comes beside q, k and v. Errors: ValueError that says what they must be."""
    for name, size, dtype in (("lengths", fields["batch"], "int32"), ("k_scales", fields["heads_kv"], "fp32"), ("v_scales", fields["heads_kv"], "fp32")):
        if name in views:
            expect(name, views[name], (size,), dtype)
    if fields["kv_type"] in ("e4m3", "e5m2") and not ("k_scales" in views and "v_scales" in views):
        raise ValueError(f"k_scales and v_scales are missing: {fields['kv_type']} keys and values have one for each of {fields['heads_kv']} heads")


def decode_attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    lengths: Any = None,
    block_table: Any = None,
    k_scales: Any = None,
    v_scales: Any = None,
    max_kv_len: int = 0,
    kv_layout: str = "tokens-first",
    scale: float = 0.0,
    soft_cap: float = 0.0,
    window: int = 0,
    causal: bool = True,
    constant_cache: bool = False,
    return_lse: bool = False,
    out: Any = None,
    lse: Any = None,
    workspace: Any = None,
    stream: int = 0,
    backend: str = "reference",
    threads: int = 0,
    **emulator: Any,
) -> Any:
    """softmax(scale * q k' ) v of one to eight new tokens of each sequence over its cache; (o, lse) with return_lse, else o.

    q: (batch, new tokens, heads, D), bf16 or fp16, D of 64, 128 or 256. k, v: (batch, room, key heads, D), or (batch, key heads, room, D) with
    kv_layout "heads-first", of q's type, or e4m3 with k_scales and v_scales (key heads,) fp32. With block_table, (batch, pages of a sequence) int32, k
    and v are pages: (pages, 16 | 64 | 128, key heads, D), and max_kv_len says how long a sequence may be. lengths: (batch,) int32, of sequences with
    their new tokens; all are max_kv_len unless given. constant_cache promises that no kernel which may still run writes lengths, block_table, or keys and
    values of other than new tokens, which are then read before the kernel before has ended. scale: 1/sqrt(D) unless given. lse: (batch, new tokens, heads) fp32, natural logarithms of
    sums. In device memory `workspace` is needed, prepared by prepare_attention_workspace()."""
    arrays = {"q": q, "k": k, "v": v, "lengths": lengths, "block_table": block_table, "k_scales": k_scales, "v_scales": v_scales}
    at = {name: view(array, stream=stream) for name, array in arrays.items() if array is not None}
    fields = attention_fields(spec(at["q"]), spec(at["k"]), spec(at["v"]), block_table=spec(at["block_table"]) if block_table is not None else None,
                              max_kv_len=max_kv_len, kv_layout=kv_layout, scale=scale, soft_cap=soft_cap, window=window, causal=causal,
                              constant_cache=constant_cache, lse=return_lse)  # fmt: skip
    check_companions(fields, at)
    expect("q", at["q"], at["q"].shape, ("bf16", "fp16"))
    o = _result(out, dict(at), at["q"].shape, at["q"].dtype)
    at["o"] = view(o, stream=stream, written=True)
    expect("out", at["o"], at["q"].shape, at["q"].dtype)
    if return_lse:
        lse = _result(lse, dict(at), at["q"].shape[:3], "fp32", "lse")
        at["lse"] = view(lse, stream=stream, written=True)
        expect("lse", at["lse"], at["q"].shape[:3], "fp32")
    arguments = make(_structures.AttentionArguments, **{name: each.pointer for name, each in at.items()})
    if block_table is not None:
        arguments.block_table_stride = at["block_table"].strides[0] if fields["batch"] > 1 else at["block_table"].shape[1]
    _attend(make(_structures.AttentionProblem, **fields), arguments, one_place(at), workspace, stream, backend, threads, emulator)
    return (o, lse) if return_lse else o


def _attend(problem: Any, arguments: Any, place: Optional[int], workspace: Any, stream: int, backend: str, threads: int, emulator: dict[str, Any]) -> None:
    asked, given = ctypes.byref(problem), ctypes.byref(arguments)
    if place is not None:
        if workspace is None:
            raise ValueError("workspace is missing: attention in device memory needs one, prepared by prepare_attention_workspace(); sluice.torch has its own")
        space = view(workspace, stream=stream, written=True)
        check(library().attention(asked, _gpu(place).reference, given, space.pointer, space.span_bytes, stream))
    elif backend == "emulator":
        check(library().attention_on_emulator(asked, host_device().reference, given, ctypes.byref(make(_structures.EmulatorOptions, **emulator))))
    else:
        refuse_other_backends(backend, emulator)
        check(library().attention_on_cpu(asked, given, threads))


def prepare_attention_workspace(workspace: Any, stream: int = 0) -> None:
    """Once for each workspace in device memory, before its first use. Every launch leaves it prepared."""
    space = view(workspace, stream=stream, written=True)
    check(library().attention_prepare_workspace(space.pointer, space.span_bytes, stream))
