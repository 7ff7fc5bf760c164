"""From arrays to problems: what the shapes, strides and types of operands say about a product. Nothing here touches memory or a device.

The same rules hold for NumPy and for torch: matrices have two dimensions, or three with a batch or groups in front, of which either of the last
two is contiguous.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

FP8 = ("e4m3", "e5m2")
SIXTEEN_BITS = ("bf16", "fp16")
BLOCK = 128  # of K, and of vectors in blocks of 128 x 128, that share a scale


class Spec(NamedTuple):
    """An array without its memory."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    alignment: int = 16


class W4(NamedTuple):
    """Of weights of 4 bits, what their packed bytes do not say."""

    n: int
    group_size: int  # 0: whole columns
    zero_points: bool


class Product(NamedTuple):
    """A problem's fields, and the D that belongs to it."""

    fields: dict[str, Any]
    shape: tuple[int, ...]
    dtype: str


class _Matrix(NamedTuple):
    """How a matrix, or several, lie."""

    layout: str
    ld: int
    batch_stride: int


def blocks(size: int) -> int:
    return -(-size // BLOCK)


def lie(spec: Spec, name: str, fastest: Optional[int] = None) -> _Matrix:
    """Layout and strides of the last two dimensions; `fastest` says which of them must be contiguous, -1 or -2.

    Errors: ValueError where neither, or not that one, is contiguous."""
    (rows, columns), (down, across) = spec.shape[-2:], spec.strides[-2:]
    batch_stride = spec.strides[0] if len(spec.shape) == 3 else 0
    if fastest != -2 and (across == 1 or columns <= 1):
        return _Matrix("row-major", _distance(down, rows, columns), batch_stride)
    if fastest != -1 and (down == 1 or rows <= 1):
        return _Matrix("column-major", _distance(across, columns, rows), batch_stride)
    wanted = {None: "neither its rows nor its columns are contiguous", -1: "its rows are not contiguous", -2: "its columns are not contiguous"}
    raise ValueError(f"{name} has shape {spec.shape} and strides {spec.strides}: {wanted[fastest]}; pass a contiguous copy")


def _distance(stride: int, count: int, length: int) -> int:
    """The leading dimension. Of a single row (or column), or of empty ones, any will do, and one that 16 bytes divide is fast."""
    return stride if count > 1 and length > 0 else max(-(-length // 16), 1) * 16


def product(
    a: Spec,
    b: Spec,
    *,
    c: Optional[Spec] = None,
    bias: Optional[Spec] = None,
    scale_a: Optional[Spec] = None,
    scale_b: Optional[Spec] = None,
    groups: Optional[Spec] = None,
    grouping: str = "none",
    expected_rows: int = 0,
    most_rows: int = 0,
    out_dtype: Optional[str] = None,
    out: Optional[Spec] = None,
    w4: Optional[W4] = None,
    bias_per_row: bool = False,
    alpha: float = 1.0,
    beta: float = 1.0,
    activation: str = "none",
    constant_a: bool = False,
    constant_b: bool = False,
) -> Product:
    """The problem that these operands pose. `beta` counts with c alone.

    Errors: ValueError for operands that do not belong together; the library refuses what else is wrong when it plans."""
    m, n, k, batch, shape = _sizes(a, b, grouping, w4)
    dtype = (out.dtype if out else None) or out_dtype or (a.dtype if a.dtype in SIXTEEN_BITS else "bf16")
    along_k = grouping == "along-k"
    any_k = along_k and a.dtype not in FP8  # groups begin at any element of K, which so is a row in memory
    at_a = lie(a, "a", -2 if any_k else None)
    fields: dict[str, Any] = {
        "m": m, "n": n, "k": k, "batch": batch, "type_a": a.dtype, "type_d": dtype,
        "layout_a": at_a.layout, "lda": at_a.ld, "alignment_a_bytes": a.alignment, "alignment_d_bytes": 16,
        "alpha": alpha, "activation": activation, "constant_a": constant_a, "constant_b": constant_b, "expected_rows": expected_rows,
        "most_rows": most_rows,
    }  # fmt: skip
    if batch > 1 and grouping in ("none", "masked"):
        fields["batch_stride_a"] = at_a.batch_stride
    if w4 is not None:
        fields.update(type_b="int4", w4_group_size=w4.group_size, w4_zero_points=w4.zero_points)
        if batch > 1:
            fields["batch_stride_b"] = b.strides[0] if len(b.shape) == 2 else 0
    else:
        at_b = lie(b, "b", -1 if any_k else None)
        fields.update(type_b=b.dtype, layout_b=at_b.layout, ldb=at_b.ld, alignment_b_bytes=b.alignment)
        if batch > 1:
            fields["batch_stride_b"] = at_b.batch_stride
    _add_groups(fields, groups, grouping, batch)
    shape = tuple(fields["batch"] if size == -1 else size for size in shape)
    if out is not None:
        _add_out(fields, out, shape)
    if c is not None and beta != 0:
        _add_c(fields, c, shape, dtype, beta)
    if bias is not None:
        _add_bias(fields, bias, m if bias_per_row else n, dtype, bias_per_row)
    _add_scales(fields, "a", scale_a, a, k, grouping, m)
    _add_scales(fields, "b", transposed(scale_b), b, k, grouping, n)
    return Product(fields, shape, dtype)


def _sizes(a: Spec, b: Spec, grouping: str, w4: Optional[W4]) -> tuple[int, int, int, int, tuple[int, ...]]:
    """m, n, k, batch, and the shape of D."""
    rank = {"none": (2, 3), "ragged": (2,), "masked": (3,), "along-k": (2,)}.get(grouping)
    if rank is None:
        raise ValueError(f"grouping = '{grouping}' is none of none, ragged, masked, along-k")
    if len(a.shape) not in rank:
        raise ValueError(f"a has shape {a.shape}; with grouping '{grouping}' it must have {' or '.join(map(str, rank))} dimensions")
    m, k = a.shape[-2:]
    if w4 is not None:
        if b.dtype != "uint8" or len(b.shape) not in (1, 2):
            raise ValueError(f"packed weights are uint8 of shape (bytes,) or (batch, bytes), as pack_w4() gives them, not {b.dtype} {b.shape}")
        batch_b, k_b, n = (b.shape[0] if len(b.shape) == 2 else None), k, w4.n
    else:
        if len(b.shape) not in (2, 3):
            raise ValueError(f"b has shape {b.shape}; it must have 2 or 3 dimensions")
        batch_b, (k_b, n) = (b.shape[0] if len(b.shape) == 3 else None), b.shape[-2:]
    if k != k_b:
        raise ValueError(f"a has {k} columns and b {k_b} rows: shapes {a.shape} and {b.shape}; they must be the same")
    return _with_batch(a, b, grouping, batch_b, m, n, k)


def _with_batch(a: Spec, b: Spec, grouping: str, batch_b: Optional[int], m: int, n: int, k: int) -> tuple[int, int, int, int, tuple[int, ...]]:
    if grouping == "along-k":  # groups are counted by their numbers
        if batch_b is not None:
            raise ValueError(f"b has shape {b.shape}; with grouping 'along-k' it must have 2 dimensions")
        return m, n, k, -1, (-1, m, n)
    if grouping == "ragged":
        if batch_b is None:
            raise ValueError(f"b has shape {b.shape}; with grouping 'ragged' it must have a matrix for each group")
        return m, n, k, batch_b, (m, n)
    batch_a = a.shape[0] if len(a.shape) == 3 else None
    if batch_a is not None and batch_b is not None and batch_a != batch_b:
        raise ValueError(f"a has {batch_a} matrices and b {batch_b}: shapes {a.shape} and {b.shape}; they must be as many, or one without a batch")
    batch = batch_a if batch_a is not None else batch_b
    return m, n, k, (1 if batch is None else batch), ((m, n) if batch is None else (batch, m, n))


def _add_out(fields: dict[str, Any], out: Spec, shape: tuple[int, ...]) -> None:
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}; the result has {shape}")
    at = lie(out, "out", -1)
    fields.update(ldd=at.ld, alignment_d_bytes=min(fields["alignment_d_bytes"], out.alignment))
    if fields["batch"] > 1 and len(shape) == 3:
        fields["batch_stride_d"] = at.batch_stride


def _add_c(fields: dict[str, Any], c: Spec, shape: tuple[int, ...], dtype: str, beta: float) -> None:
    if c.shape[-2:] != shape[-2:] or len(c.shape) > len(shape) or (len(c.shape) == 3 and c.shape[0] != shape[0]):
        raise ValueError(f"c has shape {c.shape}; the result has {shape}")
    if c.dtype != dtype:
        raise ValueError(f"c holds {c.dtype}; it must be {dtype}, as the result")
    at = lie(c, "c", -1)
    fields.update(beta=beta, ldc=at.ld, alignment_d_bytes=min(fields["alignment_d_bytes"], c.alignment))
    if fields["batch"] > 1 and len(shape) == 3:
        fields["batch_stride_c"] = at.batch_stride


def _add_bias(fields: dict[str, Any], bias: Spec, size: int, dtype: str, per_row: bool) -> None:
    kind = "per-row" if per_row else "per-column"
    if not per_row and bias.shape == (fields["batch"], size) and bias.strides == (size, 1):
        kind = "per-group-column"
    elif bias.shape != (size,) or (size > 1 and bias.strides != (1,)):
        raise ValueError(f"bias has shape {bias.shape} and strides {bias.strides}; it must be {size} contiguous numbers")
    if bias.dtype != dtype:
        raise ValueError(f"bias holds {bias.dtype}; it must be {dtype}, as the result")
    fields.update(bias=kind, alignment_d_bytes=min(fields["alignment_d_bytes"], bias.alignment))


def transposed(scales: Optional[Spec]) -> Optional[Spec]:
    """Scales of B are given in B's own orientation; the library counts columns of B as it does rows of A."""
    if scales is None or len(scales.shape) < 2:
        return scales
    swap = [*range(len(scales.shape) - 2), -1, -2]
    return scales._replace(shape=tuple(scales.shape[i] for i in swap), strides=tuple(scales.strides[i] for i in swap))


def _add_scales(fields: dict[str, Any], which: str, scales: Optional[Spec], operand: Spec, k: int, grouping: str, vectors: int) -> None:
    """The kind of scales follows from their shape. Where two kinds have the same shape, they mean the same."""
    if scales is None:
        return
    if operand.dtype not in FP8:
        raise ValueError(f"scale_{which} is given, and {which} holds {operand.dtype}; only operands of e4m3 and e5m2 have scales")
    if scales.dtype != "fp32":
        raise ValueError(f"scale_{which} holds {scales.dtype}; scales are fp32")
    if grouping == "along-k" and len(scales.shape) == 3:
        raise ValueError(f"scale_{which} has shape {scales.shape}; with grouping 'along-k' all groups share a matrix of scales: 2 dimensions")
    kind, at = _scaling(scales, vectors, k, which)
    fields["scaling_" + which] = kind
    if kind in ("1x128", "128x128"):
        fields["scale_layout_" + which], fields["ld_scale_" + which] = at.layout, at.ld
    if fields["batch"] != 1 and not (which == "a" and grouping == "ragged"):
        fields["batch_stride_scale_" + which] = at.batch_stride


def _scaling(scales: Spec, vectors: int, k: int, which: str) -> tuple[str, _Matrix]:
    one = scales.shape[1:] if len(scales.shape) == 3 else scales.shape
    batch_stride = scales.strides[0] if len(scales.shape) == 3 else 0
    if one in ((), (1,), (1, 1)):
        return "tensor", _Matrix("row-major", 1, batch_stride)
    if one in ((vectors,), (vectors, 1)) and (len(one) == 1 or blocks(k) != 1):
        if scales.strides[len(scales.shape) - len(one)] != 1:
            raise ValueError(f"scale_{which} has strides {scales.strides}; scales for each vector must be contiguous")
        return "vector", _Matrix("row-major", 1, batch_stride)
    for kind, rows in (("1x128", vectors), ("128x128", blocks(vectors))):
        if one == (rows, blocks(k)):
            at = lie(scales, "scale_" + which)
            tight = {"row-major": one[1], "column-major": one[0]}[at.layout]
            return kind, at._replace(ld=max(at.ld, tight))
    found, *legal = (each if which == "a" else each[::-1] for each in (one, (vectors, 1), (vectors, blocks(k)), (blocks(vectors), blocks(k))))
    raise ValueError(f"scale_{which} has shape {found}; it may have one element, or be {legal[0]}, {legal[1]} or {legal[2]}")


def _add_groups(fields: dict[str, Any], groups: Optional[Spec], grouping: str, batch: int) -> None:
    if grouping == "none":
        if groups is not None:
            raise ValueError("groups are given, and grouping is 'none'; pass 'ragged', 'masked' or 'along-k'")
        return
    if groups is None:
        raise ValueError(f"grouping is '{grouping}', and groups are missing")
    if groups.dtype != "int32" or len(groups.shape) != 1 or (groups.shape[0] > 1 and groups.strides != (1,)):
        raise ValueError(f"groups are {groups.dtype} of shape {groups.shape}; they must be int32, contiguous, of one dimension")
    ends = 0 if grouping == "masked" else 1
    if batch == -1:
        batch = fields["batch"] = groups.shape[0] - ends
    if groups.shape[0] != batch + ends or batch < 0:
        raise ValueError(f"groups has {groups.shape[0]} numbers; {batch} groups, {grouping}, have {batch + ends}")
    fields["grouping"] = grouping
