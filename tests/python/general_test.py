"""General groups beside the same in double precision: lists of arrays, and arrays of GROUP_ARGUMENTS."""

import ctypes

import numpy
import pytest
import sluice
from sluice._structures import GroupArguments
from support import BF16, E4M3, assert_near, exact, random, spread

BACKENDS = ["reference", pytest.param("emulator", marks=pytest.mark.skipif(not sluice.built_with_emulator(), reason="built without the emulator"))]
SIZES = ((40, 24, 72), (1, 136, 8), (0, 16, 64), (70, 7, 0), (130, 200, 304))


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


def operands(dtype, sizes=SIZES):
    """Matrices whose rows of A and columns of B all begin at multiples of 16 bytes."""
    a = [random(m, k, dtype=dtype, seed=i) for i, (m, n, k) in enumerate(sizes)]
    b = [random(n, k, dtype=dtype, seed=100 + i).T for i, (m, n, k) in enumerate(sizes)]
    return a, b


@pytest.mark.parametrize("dtype", [BF16, numpy.float16])
def test_products_of_many_sizes(dtype, backend):
    a, b = operands(dtype)
    bias = [random(n, dtype=numpy.float32, seed=i) for i, (m, n, k) in enumerate(SIZES)]
    c = [random(m, n, dtype=numpy.float32, seed=50 + i) for i, (m, n, k) in enumerate(SIZES)]
    got = sluice.general_gemm(a, b, c=c, bias=bias, alpha=2, beta=0.5, out_dtype="fp32", backend=backend)
    for each, x, y, z, v in zip(got, a, b, c, bias):
        assert each.shape == (x.shape[0], y.shape[1])
        expected = 2 * (exact(x) @ exact(y)) + 0.5 * exact(z) + exact(v)
        assert_near(each, expected, 2 * (abs(exact(x)) @ abs(exact(y))) + abs(exact(z)) + abs(exact(v)) + 1e-6, "float32")


def test_each_result_has_its_place(backend):
    a, b = operands(BF16)
    out = [numpy.full((m, n + 8), numpy.nan, numpy.float32) for m, n, k in SIZES]
    rows = [random(m, dtype=numpy.float32, seed=i) for i, (m, n, k) in enumerate(SIZES)]
    parts = [each[:, :n] for each, (m, n, k) in zip(out, SIZES)]
    got = sluice.general_gemm(a, b, bias=rows, bias_per_row=True, activation="relu", out=parts, backend=backend)
    assert all(x is y for x, y in zip(got, parts))
    for each, x, y, v, (m, n, k) in zip(out, a, b, rows, SIZES):
        expected = numpy.maximum(exact(x) @ exact(y) + exact(v)[:, None], 0)
        assert_near(each[:, :n], expected, abs(exact(x)) @ abs(exact(y)) + abs(exact(v))[:, None] + 1e-6, "float32")
        assert numpy.isnan(each[:, n:]).all(), "written beside D"


@pytest.mark.parametrize("column_major", [False, True])
@pytest.mark.parametrize("scaling_a, scaling_b", [("1x128", "128x128"), ("1x128", "1x128"), ("vector", "vector"), ("128x128", "1x128")])
def test_fp8_with_scales_of_each_group(scaling_a, scaling_b, column_major, backend):
    sizes = ((40, 24, 80), (1, 136, 16), (70, 7, 0), (132, 200, 304), (4, 129, 400))
    x, y = operands(numpy.float32, sizes)
    quantised_a = [sluice.quantize(each, scaling=scaling_a, column_major_scales=column_major) for each in x]
    quantised_b = [sluice.quantize(each.T, scaling=scaling_b) for each in y]
    got = sluice.general_gemm([q for q, _ in quantised_a], [q.T for q, _ in quantised_b], scale_a=[s for _, s in quantised_a],
                              scale_b=[s.T for _, s in quantised_b], out_dtype="fp32", backend=backend)  # fmt: skip
    coarser = 1 if backend == "reference" else 2**8  # tensor cores add FP8 products with 14 bits
    for each, (a, scale_a), (b, scale_b) in zip(got, quantised_a, quantised_b):
        if a.shape[1] == 0:
            assert (each == 0).all()
            continue
        full_a, full_b = exact(a) * spread(scale_a, a.shape), exact(b) * spread(scale_b, b.shape)
        assert_near(each, full_a @ full_b.T, coarser * (abs(full_a) @ abs(full_b).T) + 1e-9, "float32")


def test_one_scale_for_each_tensor(backend):
    a, b = operands(E4M3, ((8, 16, 128), (3, 5, 256)))
    scales = [numpy.array([0.5], numpy.float32), numpy.array([4], numpy.float32)]
    got = sluice.general_gemm(a, b, scale_a=scales, out_dtype="fp32", backend=backend)
    for each, x, y, s in zip(got, a, b, scales):
        assert_near(each, s * (exact(x) @ exact(y)), 2**8 * s * (abs(exact(x)) @ abs(exact(y))) + 1e-9, "float32")


def described(a, b, d):
    """As a kernel of the caller's would fill it."""
    groups = numpy.zeros(len(a), numpy.dtype(sluice.GROUP_ARGUMENTS))
    for name in ("lda", "ldb", "ldc", "ldd", "ld_scale_a", "ld_scale_b"):
        groups[name] = -1
    for g, x, y, z in zip(groups, a, b, d):
        g["a"], g["b"], g["d"] = x.ctypes.data, y.ctypes.data, z.ctypes.data
        g["m"], g["k"], g["n"] = *x.shape, y.shape[1]
    return groups


def test_plans_run_on_arrays_of_groups(backend):
    a, b = operands(BF16)
    d = [sluice.operations.empty((m, n), "fp32") for m, n, k in SIZES]
    groups = described(a, b, d)
    assert groups.itemsize == ctypes.sizeof(GroupArguments) == 120
    plan = sluice.plan(130, 200, 304, batch=len(SIZES), grouping="general", type_d="fp32", device="h10")
    for given in (groups, groups.view(numpy.int64), groups.view(numpy.uint8).reshape(-1, 120)):
        for each in d:
            each[...] = numpy.nan
        plan.run_general(given, backend=backend)
        for each, x, y in zip(d, a, b):
            assert_near(each, exact(x) @ exact(y), abs(exact(x)) @ abs(exact(y)) + 1e-9, "float32")
    with pytest.raises(ValueError, match="5 x 120 contiguous bytes"):
        plan.run_general(groups[:4], backend=backend)
    with pytest.raises(ValueError, match="pass an array of GROUP_ARGUMENTS to run_general"):
        plan.run(a[0], b[0], d[0])
    with pytest.raises(ValueError, match="not for general groups"):
        sluice.plan(8, 8, 8, device="h10").run_general(groups)
    groups["lda"][4] = 8
    with pytest.raises(ValueError, match="group 4: lda = 8 is shorter than"):
        plan.run_general(groups, backend=backend)


def test_what_does_not_belong_together():
    a, b = operands(BF16)
    q, r = operands(E4M3, ((8, 16, 128), (8, 16, 256)))
    one = numpy.ones(1, numpy.float32)
    for match, call in {
        "b has 4 arrays, and a 5": lambda: sluice.general_gemm(a, b[:4]),
        r"b\[1\] holds fp16; it must be bf16": lambda: sluice.general_gemm(a, [b[0], b[1].astype(numpy.float16), *b[2:]]),
        r"group 1: a has shape \(1, 8\) and b \(72, 24\)": lambda: sluice.general_gemm(a[:2], [b[0], b[0]]),
        r"b\[0\] has shape .* its columns are not contiguous": lambda: sluice.general_gemm(a[:1], [numpy.ascontiguousarray(b[0])]),
        r"bias\[0\] has shape \(7,\); it must be \(24,\)": lambda: sluice.general_gemm(a[:1], b[:1], bias=[random(7)]),
        "only operands of e4m3 and e5m2 have scales": lambda: sluice.general_gemm(a[:1], b[:1], scale_a=[one]),
        r"scale_a has shapes \(1,\), \(8, 2\), of no one kind": lambda: sluice.general_gemm(q, r, scale_a=[one, numpy.ones((8, 2), numpy.float32)]),
        "neither all rows nor all columns are contiguous": lambda: sluice.general_gemm(
            q, r, scale_a=[numpy.ones((8, 1), numpy.float32), numpy.ones((16, 4), numpy.float32)[::2, ::2]]),
        "group 0: lda = 100": lambda: sluice.general_gemm([random(8, 100, dtype=E4M3)], [random(24, 100, dtype=E4M3).T]),
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=match):
            call()
    assert sluice.general_gemm([], []) == []


def test_device_memory_is_left_to_plans():
    from arrays_test import OnlyCudaArrayInterface

    there = [OnlyCudaArrayInterface(random(8, 16, dtype=numpy.float16))]
    with pytest.raises(ValueError, match=r"a\[0\] lies on GPU 0; general_gemm\(\) takes arrays in host memory"):
        sluice.general_gemm(there, there)


def test_tensors_of_words_are_arrays_of_groups(device):
    """FP8 with block scales, described by torch where the operands are."""
    torch = pytest.importorskip("torch")
    import sluice.torch as st

    sizes = ((40, 24, 80), (3, 130, 272), (0, 8, 16), (200, 256, 512))
    words, groups = torch.full((len(sizes), 15), -1, dtype=torch.int64), []
    for row, (m, n, k) in zip(words, sizes):
        generator = torch.Generator().manual_seed(m + n + k)
        x, w = (torch.randn(size, k, generator=generator).to(device) for size in (m, n))
        (a, scale_a), (b, scale_b), d = st.quantize(x), st.quantize(w, scaling="128x128"), torch.full((m, n), torch.nan, device=device)
        groups.append((a, b, d, scale_a, scale_b))
        pointers = (a.data_ptr(), b.data_ptr(), 0, d.data_ptr(), 0, scale_a.data_ptr(), scale_b.data_ptr())
        row[:9] = torch.tensor([*pointers, m | n << 32, k], dtype=torch.int64)
    problem = {"batch": len(sizes), "grouping": "general", "type_a": "e4m3", "type_d": "fp32", "scaling_a": "1x128", "scaling_b": "128x128"}
    plan = sluice.plan(200, 256, 512, device="h200" if device == "cpu" else None, **problem)
    workspace, stream = None, 0
    if device != "cpu":
        workspace, stream = torch.empty(plan.workspace_bytes, dtype=torch.uint8, device=device), torch.cuda.current_stream().cuda_stream
        sluice.prepare_workspace(workspace, stream)
    plan.run_general(words.to(device), workspace=workspace, stream=stream)
    for a, b, d, scale_a, scale_b in groups:
        full_a, full_b = (exact(q.float().cpu()) * spread(s.cpu().numpy(), q.shape) for q, s in ((a, scale_a), (b, scale_b)))
        assert_near(d.cpu().numpy(), full_a @ full_b.T, 2**8 * (abs(full_a) @ abs(full_b).T) + 1e-9, "float32")
