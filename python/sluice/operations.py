"""Operations on arrays: NumPy's in host memory (by plain loops, or by the kernels on an emulated GPU), and device memory of any library that
speaks DLPack or `__cuda_array_interface__`, on a Hopper GPU. `sluice.torch` has the same for tensors, with autograd.

All take `backend` "reference" or "emulator" and the emulator's options (seed=, asynchrony=, resident_clusters=, diagnose=) in host memory. In
device memory they take `out` (there is nothing here to allocate it with) and `stream`, a cudaStream_t as a number, of the current device.
Arrays of bf16 and FP8 in host memory are those of the package ml_dtypes.
Errors: ValueError for what does not belong together, with the value and what it should be; RuntimeError for what the machine cannot do.
"""

from __future__ import annotations

import ctypes
import functools
import json
from collections.abc import Callable
from typing import Any, Optional, Union

from . import _structures
from ._library import built_with_cuda, check, library, make, size_of
from .arrays import NAMES, View, dense_strides, view
from .device import Device
from .plan import Plan, _create, carry_out, one_place, refuse_other_backends
from .products import W4, Product, Spec, product

# Plans of the operations below: so many are kept in a process, those that were used last.
PLANS_KEPT = 4096


# Plans that measurement chose, by problem and device as JSON has them.
_preferred: dict[tuple[str, str], Plan] = {}


def _question(made: Plan) -> tuple[str, str]:
    """What a plan answers: its problem with all strides, and its device."""
    text = json.loads(made.to_json())
    return json.dumps(text["problem"], sort_keys=True), json.dumps(text["device"], sort_keys=True)


def prefer(plans: list[Plan]) -> int:
    """These answer their questions from now on. Returns how many they are."""
    _preferred.update({_question(each): each for each in plans})
    for forget in plan_caches:
        forget()
    return len(plans)


@functools.lru_cache(maxsize=None)
def host_device() -> Device:
    """What operations in host memory are planned for: they divide the work as an H200 would."""
    return Device.find("h200")


@functools.lru_cache(maxsize=None)
def _gpu(number: int) -> Device:
    if not built_with_cuda():
        raise RuntimeError("this build of Sluice has no kernels for GPUs (it was built without CUDA); arrays in host memory it can multiply")
    return Device.current()


@functools.lru_cache(maxsize=PLANS_KEPT)
def plan_of(fields: frozenset[tuple[str, Any]], device: Device) -> Plan:
    """The plan of the problem with these fields, made once."""
    made = _create(make(_structures.Problem, **dict(fields)), device, forget_candidates=1)
    return _preferred.get(_question(made), made) if _preferred else made


# Whatever keeps plans forgets them when others are preferred.
plan_caches: list[Callable[[], None]] = [plan_of.cache_clear]


def spec(array: View) -> Spec:
    return Spec(array.shape, array.strides, array.dtype, array.alignment)


def empty(shape: tuple[int, ...], dtype: str) -> Any:
    """A NumPy array. Errors: ImportError where the type needs the package ml_dtypes and there is none."""
    import numpy

    if dtype in ("bf16", "e4m3", "e5m2"):
        try:
            import ml_dtypes
        except ImportError:
            raise ImportError(f"NumPy has no {NAMES[dtype]}; install the package ml_dtypes, which has, or pass out_dtype") from None
        return aligned_empty(shape, numpy.dtype(getattr(ml_dtypes, NAMES[dtype])))
    return aligned_empty(shape, numpy.dtype(NAMES[dtype]))


def aligned_empty(shape: tuple[int, ...], dtype: Any, alignment: int = 256) -> Any:
    """NumPy aligns to 16 bytes by chance alone."""
    import numpy

    size = int(numpy.prod(shape)) * dtype.itemsize
    memory = numpy.empty(size + alignment, numpy.uint8)
    begin = -memory.ctypes.data % alignment
    return memory[begin : begin + size].view(dtype).reshape(shape)


def _result(out: Any, views: dict[str, Optional[View]], shape: tuple[int, ...], dtype: str, what: str = "out") -> Any:
    """`out` itself, or a new NumPy array where the operands lie in host memory."""
    if out is not None:
        return out
    if one_place({name: each for name, each in views.items() if each is not None}) is not None:
        raise ValueError(f"{what} is missing: operands in device memory need it, {shape} of {dtype}; sluice.torch allocates it")
    return empty(shape, dtype)


def _views(stream: int, arrays: dict[str, Any]) -> dict[str, Optional[View]]:
    return {name: None if array is None else view(array, stream=stream) for name, array in arrays.items()}


def _multiply(arrays: dict[str, Any], out: Any, stream: int, workspace: Any, backend: str, threads: int, emulator: dict[str, Any], **how: Any) -> Any:
    views = _views(stream, arrays)
    specs = {name: spec(each) if each is not None else None for name, each in views.items()}
    given = None if out is None else view(out, stream=stream, written=True)
    problem = product(**specs, out=None if given is None else spec(given), **how)  # type: ignore[arg-type]
    d = _result(out, views, problem.shape, problem.dtype)
    if out is None and views.get("groups") is not None:
        d[...] = 0  # rows of no group are not written
    place = one_place({name: each for name, each in {**views, "out": given}.items() if each is not None})
    made = plan_of(frozenset(problem.fields.items()), host_device() if place is None else _gpu(place))
    pointers = {name: each.pointer for name, each in {**views, "d": view(d, stream=stream, written=True)}.items() if each is not None}
    arguments = make(_structures.Arguments, **pointers)
    carry_out(made, arguments, place, workspace, stream, backend, threads, emulator)
    return d


def gemm(
    a: Any,
    b: Any,
    *,
    c: Any = None,
    bias: Any = None,
    scale_a: Any = None,
    scale_b: Any = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    activation: str = "none",
    bias_per_row: bool = False,
    out_dtype: Optional[str] = None,
    out: Any = None,
    stream: int = 0,
    workspace: Any = None,
    backend: str = "reference",
    threads: int = 0,
    **emulator: Any,
) -> Any:
    """activation(alpha * a @ b + beta * c + bias), rounded once.

    a: (M, K) or (batch, M, K); b: (K, N) or (batch, K, N): bf16, fp16, or e4m3 and e5m2 in any combination (a with contiguous rows, b with
    contiguous columns). c: as the result. bias: (N,), (B, N) for a batch of B or B groups, or (M,) with bias_per_row, of the result's type. activation: none, relu, gelu (tanh), silu.
    scale_a, scale_b, fp32, of FP8 operands alone: one number; (M, 1), (1, N); (M, ceil(K/128)), (ceil(K/128), N); or blocks of 128 x 128:
    (ceil(M/128), ceil(K/128)), (ceil(K/128), ceil(N/128)); with the batch in front where they differ.
    out_dtype: bf16, fp16 or fp32; a's, or bf16 for FP8, unless given."""
    arrays = {"a": a, "b": b, "c": c, "bias": bias, "scale_a": scale_a, "scale_b": scale_b}
    return _multiply(arrays, out, stream, workspace, backend, threads, emulator, alpha=alpha, beta=beta, activation=activation,
                     bias_per_row=bias_per_row, out_dtype=out_dtype)  # fmt: skip


def grouped_gemm(
    a: Any,
    b: Any,
    groups: Any,
    *,
    grouping: str = "ragged",
    bias: Any = None,
    scale_a: Any = None,
    scale_b: Any = None,
    activation: str = "none",
    expected_rows: int = 0,
    most_rows: int = 0,
    out_dtype: Optional[str] = None,
    out: Any = None,
    stream: int = 0,
    workspace: Any = None,
    backend: str = "reference",
    threads: int = 0,
    **emulator: Any,
) -> Any:
    """Products of groups of rows, whose sizes are read when it runs.

    ragged: a (T, K), b (G, K, N), groups (G + 1) int32 -> (T, N): rows groups[g] to groups[g + 1] of a with b[g].
    masked: a (G, M, K), b (G, K, N), groups (G) int32 -> (G, M, N): the first groups[g] rows of a[g] with b[g].
    along-k: a (M, T), b (T, N), groups (G + 1) int32 -> (G, M, N): columns groups[g] to groups[g + 1] of a with these rows of b; 16-bit operands,
    a with contiguous columns, b with contiguous rows, or FP8, a with contiguous rows, b with contiguous columns, and all of groups multiples of 128.
    Rows of no group are not written: they are 0 in a new array. Types, scales, bias and activation are those of gemm().
    expected_rows, most_rows: about how many rows a group has, and how many at most, for the planner."""
    arrays = {"a": a, "b": b, "groups": groups, "bias": bias, "scale_a": scale_a, "scale_b": scale_b}
    return _multiply(arrays, out, stream, workspace, backend, threads, emulator, grouping=grouping, activation=activation,
                     expected_rows=expected_rows, most_rows=most_rows, out_dtype=out_dtype)  # fmt: skip


def w4a16_gemm(
    a: Any,
    packed: Any,
    n: int,
    *,
    group_size: int = 128,
    zero_points: bool = False,
    order: Any = None,
    bias: Any = None,
    activation: str = "none",
    constant_b: bool = False,
    out_dtype: Optional[str] = None,
    out: Any = None,
    stream: int = 0,
    workspace: Any = None,
    backend: str = "reference",
    threads: int = 0,
    **emulator: Any,
) -> Any:
    """activation(a @ B + bias), with B (K, N) the weights of 4 bits that pack_w4() has packed.

    a: (M, K), bf16 or fp16 with contiguous rows; packed: uint8 as pack_w4() gives it; order: (K,) int32, act-order's, in host memory alone. constant_b: in device
    memory, the caller's word that no kernel that packs them may still run (pack_w4() does not wait for its own)."""
    if order is not None:
        a = permute_columns(a, order)
    how = {"w4": W4(n, group_size, zero_points), "activation": activation, "out_dtype": out_dtype, "constant_b": constant_b}
    return _multiply({"a": a, "b": packed, "bias": bias}, out, stream, workspace, backend, threads, emulator, **how)


def quantize_fields(x: Spec, y: Optional[Spec], scaling: str, dtype: str, power_of_two_scales: bool, column_major_scales: bool) -> dict[str, Any]:
    """The problem of quantising x, without its results' strides, which are dense."""
    if len(x.shape) != 2:
        raise ValueError(f"x has shape {x.shape}; it must have 2 dimensions")
    if y is not None and (y.shape != x.shape or y.dtype != x.dtype):
        raise ValueError(f"y is {y.dtype} of shape {y.shape}, and x {x.dtype} of {x.shape}; they must be the same")
    for name, each in (("x", x), ("y", y)):
        if each is not None and each.strides[1] != 1 and each.shape[1] > 1:
            raise ValueError(f"{name} has strides {each.strides}; its rows must be contiguous")
    fields = {"m": x.shape[0], "k": x.shape[1], "type_x": x.dtype, "type_q": dtype, "scaling": scaling, "power_of_two_scales": power_of_two_scales,
              "scale_layout": "column-major" if column_major_scales else "row-major", "input": "plain" if y is None else "silu-times"}  # fmt: skip
    if x.shape[0] > 1:
        fields.update({"ldx": x.strides[0], **({"ldy": y.strides[0]} if y is not None else {})})
    return fields


def scale_shape(m: int, k: int, scaling: str) -> tuple[int, int]:
    """Of the scales that quantize() makes. Errors: ValueError for a scaling that it does not make."""
    if scaling == "vector":
        return m, 1
    if scaling not in ("1x128", "128x128"):
        raise ValueError(f"scaling = '{scaling}' is neither 'vector' nor '1x128' nor '128x128'")
    return (m if scaling == "1x128" else -(-m // 128)), -(-k // 128)


def quantize(
    x: Any,
    *,
    y: Any = None,
    scaling: str = "1x128",
    dtype: str = "e4m3",
    power_of_two_scales: bool = False,
    column_major_scales: bool = False,
    out: Optional[tuple[Any, Any]] = None,
    stream: int = 0,
    backend: str = "reference",
    threads: int = 0,
    **emulator: Any,
) -> tuple[Any, Any]:
    """FP8 numbers and their scales: (q, scale), with q * scale about x, or about silu(x) * y where y is given.

    x, y: (M, K), bf16, fp16 or fp32 with contiguous rows. scaling "vector": scale is (M, 1); "1x128": (M, ceil(K/128)); "128x128": (ceil(M/128), ceil(K/128)).
    dtype: e4m3 or e5m2. column_major_scales: scales of one 128 of K are adjacent."""
    views = _views(stream, {"x": x, "y": y})
    at_x, at_y = views["x"], views["y"]
    assert at_x is not None
    fields = quantize_fields(spec(at_x), spec(at_y) if at_y else None, scaling, dtype, power_of_two_scales, column_major_scales)
    shape = scale_shape(fields["m"], fields["k"], scaling)
    if out is None:
        q = _result(None, views, at_x.shape, dtype)
        scale = _result(None, views, shape[::-1] if column_major_scales else shape, "fp32")
        out = (q, scale.T if column_major_scales else scale)
    at_q, at_scale = (view(each, stream=stream, written=True) for each in out)
    expect("out[0]", at_q, at_x.shape, dtype)
    expect("out[1]", at_scale, shape, "fp32", transposed=column_major_scales)
    pointers = make(_structures.QuantizeArguments, x=at_x.pointer, y=at_y.pointer if at_y else None, q=at_q.pointer, scale=at_scale.pointer)
    place = one_place({"x": at_x, **({"y": at_y} if at_y else {}), "out[0]": at_q, "out[1]": at_scale})
    _run("quantize", make(_structures.QuantizeProblem, **fields), pointers, place, stream, backend, threads, emulator)
    return out


def expect(name: str, array: View, shape: tuple[int, ...], dtype: Union[str, tuple[str, ...]], transposed: bool = False) -> None:
    """A dense array of this shape and type. Errors: ValueError that says what it is and should be."""
    types = (dtype,) if isinstance(dtype, str) else dtype
    strides = dense_strides(shape[::-1])[::-1] if transposed else dense_strides(shape)
    lies = all(size <= 1 or has == wants for size, has, wants in zip(shape, array.strides, strides))
    if array.shape != tuple(shape) or array.dtype not in types or (0 not in shape and not lies):
        raise ValueError(
            f"{name} is {array.dtype} of shape {array.shape} and strides {array.strides}; it must be {' or '.join(types)} of shape {tuple(shape)} and strides {strides}"
        )


def _run(name: str, problem: Any, arguments: Any, place: Optional[int], stream: int, backend: str, threads: int, emulator: dict[str, Any]) -> None:
    """One of the operations that need no plan, wherever its arrays lie."""
    at = ctypes.byref(problem), ctypes.byref(arguments)
    if place is not None:
        _gpu(place)  # refuses a build without kernels
        check(getattr(library(), name)(*at, stream))
    elif backend == "emulator":
        check(getattr(library(), name + "_on_emulator")(*at, ctypes.byref(make(_structures.EmulatorOptions, **emulator))))
    else:
        refuse_other_backends(backend, emulator)
        check(getattr(library(), name + "_on_cpu")(*at, threads))


def pack_w4_fields(codes: Spec, scales: Spec, zeros: Optional[Spec], source: str, dtype: Optional[str], zeros_as_stored: bool) -> dict[str, Any]:
    """The problem of packing these. The group size follows from how many scales a column has.

    Errors: ValueError for shapes that no layout of the source has."""
    if len(codes.shape) != 2 or len(scales.shape) != 2:
        raise ValueError(f"codes and scales have shapes {codes.shape} and {scales.shape}; they have 2 dimensions")
    rows, columns = codes.shape
    in_a_word = 2 if codes.dtype == "uint8" else 8
    if codes.dtype not in (("uint8", "int32") if source == "plain" else ("int32",)):
        raise ValueError(f"codes hold {codes.dtype}; of '{source}' they are int32 words{', or uint8' if source == 'plain' else ''}")
    n, k = weights_of_codes(source, rows, columns, in_a_word)
    groups = scales.shape[1 if source == "plain" else 0]
    if scales.shape != ((n, groups) if source == "plain" else (groups, n)):
        raise ValueError(f"scales have shape {scales.shape}; codes of shape {codes.shape} are {n} columns of B, each with scales of its own")
    if zeros is not None:
        wanted = ("uint8", (n, groups)) if source == "plain" else ("int32", (groups, n // 8))
        if (zeros.dtype, zeros.shape) != wanted:
            raise ValueError(f"zeros are {zeros.dtype} of shape {zeros.shape}; they must be {wanted[0]} of {wanted[1]}")
    given = dtype or ("bf16" if scales.dtype == "fp32" else scales.dtype)
    return {"n": n, "k": k, "group_size": group_size_of(k, groups), "zero_points": zeros is not None, "source": source, "type": given,
            "type_scales": scales.dtype, "zeros_as_stored": zeros_as_stored}  # fmt: skip


def weights_of_codes(source: str, rows: int, columns: int, in_a_word: int) -> tuple[int, int]:
    """N and K of a matrix of codes; in_a_word: of plain ones. Errors: ValueError for a source that is none."""
    shapes = {"plain": (rows, columns * in_a_word), "gptq": (columns, rows * 8), "awq": (columns * 8, rows)}
    if source not in shapes:
        raise ValueError(f"source = '{source}' is none of plain, gptq, awq")
    return shapes[source]


def group_size_of(k: int, groups: int) -> int:
    """The size of so many groups of k rows, 0 for whole columns. Errors: ValueError where no size of 32, 64 or 128 gives as many."""
    for size in (0, 128, 64, 32):
        if (1 if size == 0 else -(-k // size)) == groups:
            return size
    raise ValueError(f"the scales are for {groups} groups of k = {k}; groups of 32, 64 or 128 would be {-(-k // 32)}, {-(-k // 64)} or {-(-k // 128)}, whole columns 1")


def packed_w4_bytes(n: int, k: int, group_size: int = 128, zero_points: bool = False) -> int:
    """How many bytes pack_w4() makes."""
    return size_of(library().packed_w4_bytes, ctypes.byref(make(_structures.PackW4Problem, n=n, k=k, group_size=group_size, zero_points=zero_points)))


def pack_w4(
    codes: Any,
    scales: Any,
    zeros: Any = None,
    *,
    source: str = "plain",
    dtype: Optional[str] = None,
    order: Any = None,
    zeros_as_stored: bool = False,
    out: Any = None,
    stream: int = 0,
    backend: str = "reference",
    threads: int = 0,
    **emulator: Any,
) -> Any:
    """Weights of 4 bits, B (K, N), as w4a16_gemm() reads them: uint8 of one dimension, for activations of `dtype` (bf16, fp16 or e4m3; that of the scales).

    plain: codes uint8 (N, K/2), the low 4 bits first, or int32 (N, K/8); scales (N, groups); zeros uint8 (N, groups).
    gptq: codes int32 (K/8, N); scales (groups, N); zeros int32 (groups, N/8), less one unless zeros_as_stored.
    awq: codes int32 (K, N/8); scales (groups, N); zeros int32 (groups, N/8), both in AWQ's order of columns.
    Without zeros the zero point is 8. Groups have 32, 64 or 128 rows of K, or all. order: (K,) int32, as order_of_groups() makes it."""
    arrays = {"codes": codes, "scales": scales, "zeros": zeros, "order": order}
    views = _views(stream, arrays)
    at = {name: each for name, each in views.items() if each is not None}
    for name, each in at.items():
        expect(name, each, each.shape, each.dtype)
    fields = pack_w4_fields(spec(at["codes"]), spec(at["scales"]), spec(at["zeros"]) if zeros is not None else None, source, dtype, zeros_as_stored)
    if order is not None:
        expect("order", at["order"], (fields["k"],), "int32")
    problem = make(_structures.PackW4Problem, **fields)
    shape = (size_of(library().packed_w4_bytes, ctypes.byref(problem)),)
    out = _result(out, views, shape, "uint8")
    at["out"] = view(out, stream=stream, written=True)
    expect("out", at["out"], shape, "uint8")
    pointers = make(_structures.PackW4Arguments, **{"packed" if name == "out" else name: each.pointer for name, each in at.items()})
    _run("pack_w4", problem, pointers, one_place(at), stream, backend, threads, emulator)
    return out


def unpack_w4(packed: Any, n: int, k: int, *, group_size: int = 128, zero_points: bool = False, dtype: str = "bf16") -> Any:
    """What packed weights are: (N, K) of `dtype` (that they were packed for; of fp32 where that is e4m3), in host memory; row i is column i of B."""
    at = view(packed)
    if at.device is not None:
        raise ValueError(f"packed lies {at.place}; weights are unpacked in host memory alone")
    problem = make(_structures.PackW4Problem, n=n, k=k, group_size=group_size, zero_points=zero_points, type=dtype)
    expect("packed", at, (size_of(library().packed_w4_bytes, ctypes.byref(problem)),), "uint8")
    weights = empty((n, k), "fp32" if dtype == "e4m3" else dtype)
    check(library().unpack_w4_on_cpu(ctypes.byref(problem), at.pointer, view(weights).pointer))
    return weights


def order_of_groups(group_of: Any, group_size: int) -> Any:
    """The order of K that brings rows of one group together, (K,) int32; group_of: (K,) int32, GPTQ's g_idx, in host memory."""
    at = view(group_of)
    expect("group_of", at, at.shape[:1], "int32")
    order = empty(at.shape, "int32")
    check(library().w4_order_of_groups(at.shape[0], group_size, at.pointer, view(order).pointer))
    return order


def permute_columns(x: Any, order: Any) -> Any:
    """x[:, order] of 16-bit x (M, K) in host memory, order (K,) int32."""
    at, by = view(x), view(order)
    if len(at.shape) != 2 or at.dtype not in ("bf16", "fp16") or at.device is not None or at.strides[1] != 1:
        raise ValueError(f"x is {at.dtype} of shape {at.shape} and strides {at.strides} {at.place}; it must be bf16 or fp16 of 2 dimensions, with contiguous rows, in host memory")
    expect("order", by, at.shape[1:], "int32")
    to = empty(at.shape, at.dtype)
    check(library().permute_columns_on_cpu(*at.shape, at.pointer, at.strides[0] if at.shape[0] > 1 else -1, by.pointer, view(to).pointer, -1))
    return to


def histogram_fields(samples: Spec, bins: int, first: int, lower: float, upper: float, count_type: str, outside: str) -> dict[str, Any]:
    sample = {"fp32": "float32"}.get(samples.dtype, samples.dtype)
    size = 1
    for each in samples.shape:
        size *= each
    return {"n": size, "bins": bins, "first": first, "lower": lower, "upper": upper, "sample": sample, "count_type": count_type, "outside": outside}


def histogram(
    samples: Any,
    bins: int = 256,
    *,
    first: int = 0,
    lower: float = 0.0,
    upper: float = 1.0,
    count_type: str = "int32",
    outside: str = "ignored",
    out: Any = None,
    accumulate: bool = False,
    stream: int = 0,
    backend: str = "reference",
    threads: int = 0,
    **emulator: Any,
) -> Any:
    """How often each value occurs, exactly: (bins,) of int32 or int64. samples: int32, uint8 or fp32, dense, of any shape.

    Integers: bin i counts first + i. Floats: bins of equal width from `lower` to below `upper`. outside: "ignored" or "clamped" into the first and last
    bin. A NaN counts nowhere. accumulate: adds to what is in out."""
    views = _views(stream, {"samples": samples})
    at = views["samples"]
    assert at is not None
    expect("samples", at, at.shape, ("int32", "uint8", "fp32"))
    if accumulate and out is None:
        raise ValueError("accumulate adds to what is in out, and out is missing")
    fields = histogram_fields(spec(at), bins, first, lower, upper, count_type, outside)
    problem = make(_structures.HistogramProblem, accumulate=accumulate, **fields)
    out = _result(out, views, (bins,), count_type)
    counts = view(out, stream=stream, written=True)
    expect("out", counts, (bins,), count_type)
    pointers = make(_structures.HistogramArguments, samples=at.pointer, counts=counts.pointer)
    _run("histogram", problem, pointers, one_place({"samples": at, "out": counts}), stream, backend, threads, emulator)
    return out
