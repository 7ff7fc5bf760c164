"""General groups: products of many sizes in one launch. `general_gemm()` takes lists of arrays in host memory; `Plan.run_general()` takes an array of
`GROUP_ARGUMENTS` in the memory of any place, which whoever likes may have filled, a kernel included."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from . import _structures
from ._library import make
from .arrays import View, view
from .operations import empty, host_device, plan_of, spec
from .plan import carry_out, one_place
from .products import FP8, SIXTEEN_BITS, Spec, blocks, lie, transposed

_FORMATS: dict[Any, str] = {ctypes.c_void_p: "u8", ctypes.c_int32: "i4", ctypes.c_int64: "i8"}
# numpy.dtype(GROUP_ARGUMENTS): what one group is, sluice_group_arguments in sluice.h. Pointers are numbers. -1 in a leading dimension: packed.
GROUP_ARGUMENTS = {
    "names": [field[0] for field in _structures.GroupArguments._fields_],
    "formats": [_FORMATS[field[1]] for field in _structures.GroupArguments._fields_],
    "offsets": [getattr(_structures.GroupArguments, field[0]).offset for field in _structures.GroupArguments._fields_],
    "itemsize": ctypes.sizeof(_structures.GroupArguments),
}


class _Scales(NamedTuple):
    """What all groups' scales of one operand are, and the leading dimension of each."""

    kind: str
    layout: str
    leading: list[int]


def general_gemm(
    a: Sequence[Any],
    b: Sequence[Any],
    *,
    c: Optional[Sequence[Any]] = None,
    bias: Optional[Sequence[Any]] = None,
    scale_a: Optional[Sequence[Any]] = None,
    scale_b: Optional[Sequence[Any]] = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    activation: str = "none",
    bias_per_row: bool = False,
    expected_rows: int = 0,
    out_dtype: Optional[str] = None,
    out: Optional[Sequence[Any]] = None,
    backend: str = "reference",
    threads: int = 0,
    **emulator: Any,
) -> list[Any]:
    """[activation(alpha * a[g] @ b[g] + beta * c[g] + bias[g]) for g], in one plan, of sizes that have nothing in common.

    a[g]: (M, K) with contiguous rows, b[g]: (K, N) with contiguous columns, each row and column at a multiple of 16 bytes; all of bf16, fp16 or e4m3.
    Scales of FP8, one array for each group, all of one kind, have the shapes that gemm() takes; so have bias and c. Arrays in host memory.
    expected_rows: for the planner; the mean unless given."""
    lists = {"b": b, "c": c if beta != 0 else None, "bias": bias, "scale_a": scale_a, "scale_b": scale_b, "out": out}
    given = {"a": list(a), **{name: list(each) for name, each in lists.items() if each is not None}}
    for name, each in given.items():
        if len(each) != len(given["a"]):
            raise ValueError(f"{name} has {len(each)} arrays, and a {len(given['a'])}; each group needs one")
    if not given["a"]:
        return []
    views = {name: [view(array, written=name == "out") for array in each] for name, each in given.items()}
    _refuse_device_memory(views)
    dtype = views["out"][0].dtype if out is not None else out_dtype or (views["a"][0].dtype if views["a"][0].dtype in SIXTEEN_BITS else "bf16")
    _check_types(views, dtype)
    groups, fields = _describe(views, dtype, bias_per_row)
    results = given["out"] if out is not None else [empty((g.m, g.n), dtype) for g in groups]
    for g, result in zip(groups, results):
        at = view(result, written=True)
        g.d, g.ldd = at.pointer, _distance(at, "out", -1)
    fields.update(alpha=alpha, beta=beta if c is not None else 0.0, activation=activation)
    fields["alignment_d_bytes"] = min(view(each).alignment for each in [*results, *given.get("c", []), *given.get("bias", [])])
    fields["expected_rows"] = expected_rows or max(1, -(-sum(g.m for g in groups) // len(groups)))
    made = plan_of(frozenset(fields.items()), host_device())
    size = ctypes.sizeof(_structures.GroupArguments)
    arguments = make(_structures.Arguments, group_arguments=ctypes.addressof(groups), group_arguments_size=size)
    carry_out(made, arguments, None, None, 0, backend, threads, emulator)
    return results


def _refuse_device_memory(views: dict[str, list[View]]) -> None:
    place = one_place({f"{name}[{i}]": each for name, all_of_them in views.items() for i, each in enumerate(all_of_them)})
    if place is not None:
        raise ValueError(
            f"a[0] lies on GPU {place}; general_gemm() takes arrays in host memory: fill an array of GROUP_ARGUMENTS there, and pass it to Plan.run_general()"
        )


def _check_types(views: dict[str, list[View]], dtype: str) -> None:
    wanted = {"a": views["a"][0].dtype, "b": views["b"][0].dtype, "scale_a": "fp32", "scale_b": "fp32"}
    for name, each in views.items():
        for i, one in enumerate(each):
            if one.dtype != wanted.get(name, dtype):
                raise ValueError(f"{name}[{i}] holds {one.dtype}; it must be {wanted.get(name, dtype)}, as all of {name} {'are' if name in 'ab' else 'is'}")


def _describe(views: dict[str, list[View]], dtype: str, bias_per_row: bool) -> tuple[Any, dict[str, Any]]:
    """The groups, without D, and the fields of their problem that follow from them."""
    groups = (_structures.GroupArguments * len(views["a"]))()
    for i, g in enumerate(groups):
        a, b = views["a"][i], views["b"][i]
        if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
            raise ValueError(f"group {i}: a has shape {a.shape} and b {b.shape}; they must be (M, K) and (K, N)")
        g.m, g.k, g.n = *a.shape, b.shape[1]
        g.a, g.b, g.lda, g.ldb = a.pointer, b.pointer, _distance(a, f"a[{i}]", -1), _distance(b, f"b[{i}]", -2)
        g.ldc = g.ld_scale_a = g.ld_scale_b = -1
        _expect(views, "out", i, (g.m, g.n))
        if (c := _expect(views, "c", i, (g.m, g.n))) is not None:
            g.c, g.ldc = c.pointer, _distance(c, f"c[{i}]", -1)
        if (bias := _expect(views, "bias", i, (g.m if bias_per_row else g.n,))) is not None:
            if bias.shape[0] > 1 and bias.strides != (1,):
                raise ValueError(f"bias[{i}] has strides {bias.strides}; its numbers must be contiguous")
            g.bias = bias.pointer
    fields: dict[str, Any] = {
        "m": max(g.m for g in groups), "n": max(g.n for g in groups), "k": max(g.k for g in groups), "batch": len(groups), "grouping": "general",
        "type_a": views["a"][0].dtype, "type_b": views["b"][0].dtype, "type_d": dtype, "layout_a": "row-major", "layout_b": "column-major",
    }  # fmt: skip
    if "bias" in views:
        fields["bias"] = "per-row" if bias_per_row else "per-column"
    for which in "ab":
        _add_scales(fields, groups, views, which)
    return groups, fields


def _distance(matrix: View, name: str, contiguous: int) -> int:
    """The leading dimension. Of a matrix of nothing NumPy's strides say nothing, and nobody looks."""
    return -1 if 0 in matrix.shape else lie(spec(matrix), name, contiguous).ld


def _expect(views: dict[str, list[View]], name: str, i: int, shape: tuple[int, ...]) -> Optional[View]:
    if name not in views:
        return None
    if views[name][i].shape != shape:
        raise ValueError(f"{name}[{i}] has shape {views[name][i].shape}; it must be {shape}")
    return views[name][i]


def _add_scales(fields: dict[str, Any], groups: Any, views: dict[str, list[View]], which: str) -> None:
    name = "scale_" + which
    if name not in views:
        return
    if fields["type_" + which] not in FP8:
        raise ValueError(f"{name} is given, and {which} holds {fields['type_' + which]}; only operands of e4m3 and e5m2 have scales")
    specs = [spec(each) for each in views[name]]
    if which == "b":
        specs = [transposed(each) or each for each in specs]
    scales = _scales(name, specs, [g.m if which == "a" else g.n for g in groups], [g.k for g in groups])
    fields["scaling_" + which] = scales.kind
    if scales.kind in ("1x128", "128x128"):
        fields["scale_layout_" + which] = scales.layout
    for g, each, leading in zip(groups, views[name], scales.leading):
        setattr(g, name, each.pointer)
        setattr(g, "ld_" + name, leading)


def _scales(name: str, specs: list[Spec], vectors: list[int], depths: list[int]) -> _Scales:
    """One kind and one layout that all groups' scales have: small ones may have several."""
    kinds = [kind for kind in ("tensor", "vector", "1x128", "128x128") if all(_is(kind, each.shape, v, k) for each, v, k in zip(specs, vectors, depths))]
    for kind in kinds:
        if kind == "tensor" or (kind == "vector" and all(each.strides[0] == 1 or each.shape[0] <= 1 for each in specs)):
            return _Scales(kind, "row-major", [-1] * len(specs))
        for layout in ("row-major", "column-major"):
            leading = [_leading(each, layout) for each in specs]
            if kind != "vector" and None not in leading:
                return _Scales(kind, layout, [each for each in leading if each is not None])
    if kinds:
        raise ValueError(f"{name}: of these scales ({kinds[-1]}) neither all rows nor all columns are contiguous; pass contiguous copies")
    shapes = ", ".join(str(each.shape if name == "scale_a" else each.shape[::-1]) for each in specs[:4])
    raise ValueError(f"{name} has shapes {shapes}{', ...' if len(specs) > 4 else ''}, of no one kind: each may have one element, or each a scale for each "
                     "row (column, of b), for each of these and each 128 of K, or for each 128 x 128")  # fmt: skip


def _is(kind: str, shape: tuple[int, ...], vectors: int, k: int) -> bool:
    return shape in {
        "tensor": ((), (1,), (1, 1)),
        "vector": ((vectors,), (vectors, 1)),
        "1x128": ((vectors, blocks(k)),),
        "128x128": ((blocks(vectors), blocks(k)),),
    }[kind]


def _leading(scales: Spec, layout: str) -> Optional[int]:
    """From one run of adjacent scales to the next; None where they do not lie so."""
    (rows, columns), (down, across) = (scales.shape, scales.strides) if layout == "row-major" else (scales.shape[::-1], scales.strides[::-1])
    if columns > 1 and across != 1:
        return None
    if rows <= 1 or columns == 0:
        return max(columns, 1)
    return down if down >= max(columns, 1) else None
