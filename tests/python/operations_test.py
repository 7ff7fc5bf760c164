"""Operations on NumPy arrays beside the same in double precision, by plain loops and by the kernels on the emulated GPU."""

import numpy
import pytest
import sluice
from support import BF16, E4M3, E5M2, assert_near, exact, random, spread

BACKENDS = ["reference", pytest.param("emulator", marks=pytest.mark.skipif(not sluice.built_with_emulator(), reason="built without the emulator"))]


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


def activated(name, x):
    return {
        "none": lambda: x,
        "relu": lambda: numpy.maximum(x, 0),
        "silu": lambda: x / (1 + numpy.exp(-x)),
        "gelu": lambda: 0.5 * x * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (x + 0.044715 * x**3))),
    }[name]()


@pytest.mark.parametrize("dtype", [BF16, numpy.float16])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_gemm_takes_rows_or_columns(dtype, turned, backend):
    a, b = random(40, 72, dtype=dtype), random(72, 56, dtype=dtype, seed=1)
    given = [numpy.asfortranarray(x) if turn else x for x, turn in zip((a, b), turned)]
    got = sluice.gemm(*given, out_dtype="fp32", backend=backend)
    assert_near(got, exact(a) @ exact(b), abs(exact(a)) @ abs(exact(b)), "float32")


@pytest.mark.parametrize("activation", ["none", "relu", "gelu", "silu"])
def test_gemm_with_an_epilogue(activation):
    a, b, c, bias = random(33, 50), random(50, 17, seed=1), random(33, 40, seed=2)[:, 5:22], random(17, seed=3)
    z = 0.5 * exact(a) @ exact(b) - 2 * exact(c) + exact(bias)
    magnitude = abs(exact(a)) @ abs(exact(b)) + 2 * abs(exact(c)) + abs(exact(bias)) + 4
    got = sluice.gemm(a, b, c=c, bias=bias, alpha=0.5, beta=-2.0, activation=activation)
    assert got.dtype == BF16
    assert_near(got, activated(activation, z), magnitude, "bfloat16")


def test_gemm_with_a_bias_for_each_row():
    a, b, bias = random(9, 16), random(16, 24, seed=1), random(9, seed=3)
    got = sluice.gemm(a, b, bias=bias, bias_per_row=True)
    assert_near(got, exact(a) @ exact(b) + exact(bias)[:, None], abs(exact(a)) @ abs(exact(b)) + 4, "bfloat16")


@pytest.mark.parametrize("shapes", [((3, 9, 16), (3, 16, 24)), ((3, 9, 16), (16, 24)), ((9, 16), (3, 16, 24)), ((1, 9, 16), (1, 16, 24))])
def test_gemm_of_a_batch(shapes):
    a, b = random(*shapes[0]), random(*shapes[1], seed=1)
    assert_near(sluice.gemm(a, b, out_dtype="fp32"), exact(a) @ exact(b), abs(exact(a)) @ abs(exact(b)), "float32")


def test_gemm_of_slices_and_of_nothing():
    a, b = random(20, 100)[3:12, 17:50], random(33, 40, seed=1)[:, 1:38]
    out = numpy.full((9, 50), 7, numpy.float32)
    assert sluice.gemm(a, b, out=out[:, 5:42]).base is not None
    assert_near(out[:, 5:42], exact(a) @ exact(b), abs(exact(a)) @ abs(exact(b)), "float32")
    assert (out[:, :5] == 7).all() and (out[:, 42:] == 7).all()
    assert sluice.gemm(random(0, 8), random(8, 4)).shape == (0, 4)
    assert (sluice.gemm(random(3, 0), random(0, 4)) == 0).all()
    assert_near(sluice.gemm(random(1, 30), random(30, 1)), exact(random(1, 30)) @ exact(random(30, 1)), 30, "bfloat16")


SCALES = {
    "tensor": lambda m, kb: (1, 1),
    "vector": lambda m, kb: (m, 1),
    "1x128": lambda m, kb: (m, kb),
    "128x128": lambda m, kb: (-(-m // 128), kb),
}


@pytest.mark.parametrize("kind_b", SCALES)
@pytest.mark.parametrize("kind_a", SCALES)
def test_gemm_of_fp8_with_scales(kind_a, kind_b):
    m, n, k = 130, 144, 272
    a, b = random(m, k, dtype=E4M3), random(n, k, dtype=E5M2, seed=1)
    kb = -(-k // 128)
    scale_a, scale_b = (abs(random(*SCALES[kind](size, kb), dtype=numpy.float32, seed=seed)) + 0.5 for kind, size, seed in ((kind_a, m, 2), (kind_b, n, 3)))
    got = sluice.gemm(a, b.T, scale_a=numpy.asfortranarray(scale_a), scale_b=scale_b.T, out_dtype="fp32")
    full_a, full_b = exact(a) * spread(scale_a, (m, k)), exact(b) * spread(scale_b, (n, k))
    assert_near(got, full_a @ full_b.T, abs(full_a) @ abs(full_b).T, "float32")


def test_products_that_are_refused():
    a, b = random(8, 16), random(16, 24)
    for match, call in {
        "a has 16 columns and b 15 rows": lambda: sluice.gemm(a, b[:15]),
        "a has 2 matrices and b 3": lambda: sluice.gemm(random(2, 8, 16), random(3, 16, 24)),
        "neither its rows nor its columns are contiguous": lambda: sluice.gemm(random(16, 32)[::2, ::2], b),
        "c holds fp32; it must be bf16": lambda: sluice.gemm(a, b, c=numpy.zeros((8, 24), numpy.float32)),
        r"c has shape \(8, 23\); the result has \(8, 24\)": lambda: sluice.gemm(a, b, c=random(8, 23)),
        "it must be 24 contiguous numbers": lambda: sluice.gemm(a, b, bias=random(8)),
        r"out has shape \(8, 8\)": lambda: sluice.gemm(a, b, out=random(8, 8)),
        "only operands of e4m3 and e5m2 have scales": lambda: sluice.gemm(a, b, scale_a=numpy.ones(1, numpy.float32)),
        r"scale_b has shape \(3, 3\); it may have one element, or be \(1, 32\), \(2, 32\) or \(2, 1\)": lambda: sluice.gemm(
            random(8, 256, dtype=E4M3), random(32, 256, dtype=E4M3).T, scale_b=numpy.ones((3, 3), numpy.float32)),
        "grouping = 'rows' is none of": lambda: sluice.grouped_gemm(a, b, numpy.zeros(2, numpy.int32), grouping="rows"),
        "groups has 2 numbers; 3 groups, ragged, have 4": lambda: sluice.grouped_gemm(a, random(3, 16, 24), numpy.zeros(2, numpy.int32)),
        "multiples of 16 bytes": lambda: sluice.gemm(random(8, 100, dtype=E4M3), random(24, 100, dtype=E4M3).T),
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=match):
            call()


def test_gemm_refuses_device_memory_without_out(monkeypatch):
    from arrays_test import OnlyCudaArrayInterface

    a = OnlyCudaArrayInterface(random(8, 16, dtype=numpy.float16))
    with pytest.raises(ValueError, match="out is missing"):
        sluice.gemm(a, OnlyCudaArrayInterface(random(16, 8, dtype=numpy.float16)))
    with pytest.raises(ValueError, match="a lies on GPU 0, and b in host memory"):
        sluice.gemm(a, random(16, 8, dtype=numpy.float16))


def test_ragged_groups(backend):
    sizes, k, n = (3, 0, 9, 1), 24, 16
    offsets = numpy.array([1, *(1 + numpy.cumsum(sizes))], numpy.int32)
    a, b, bias = random(15, k), random(4, k, n, seed=1), random(n, seed=2)
    got = sluice.grouped_gemm(a, b, offsets, bias=bias, backend=backend)
    expected, magnitude = numpy.zeros((15, n)), numpy.zeros((15, n))
    for g in range(4):
        rows = slice(offsets[g], offsets[g + 1])
        expected[rows] = exact(a)[rows] @ exact(b)[g] + exact(bias)
        magnitude[rows] = abs(exact(a))[rows] @ abs(exact(b))[g] + 4
    assert_near(got, expected, magnitude, "bfloat16")


def test_groups_and_batches_with_a_bias_each(backend):
    a, b, bias = random(12, 24), random(3, 24, 16, seed=1), random(3, 16, seed=2)
    offsets = numpy.array([0, 5, 5, 12], numpy.int32)
    got = sluice.grouped_gemm(a, b, offsets, bias=bias, out_dtype="bf16", backend=backend)
    for g in range(3):
        rows = slice(offsets[g], offsets[g + 1])
        assert_near(got[rows], exact(a)[rows] @ exact(b)[g] + exact(bias)[g], abs(exact(a))[rows] @ abs(exact(b))[g] + 4, "bfloat16")
    x = random(3, 9, 24, seed=3)
    got = sluice.gemm(x, b, bias=bias, backend=backend)
    assert_near(got, exact(x) @ exact(b) + exact(bias)[:, None], abs(exact(x)) @ abs(exact(b)) + 4, "bfloat16")
    with pytest.raises(ValueError, match=r"bias has shape \(2, 16\)"):
        sluice.gemm(x, b, bias=bias[:2], backend=backend)


def test_masked_groups_and_groups_along_k(backend):
    a, b, counts = random(3, 10, 24), random(3, 24, 16, seed=1), numpy.array([4, 0, 10], numpy.int32)
    got = sluice.grouped_gemm(a, b, counts, grouping="masked", out_dtype="fp32", backend=backend)
    keep = numpy.arange(10)[None, :, None] < counts[:, None, None]
    assert_near(got, keep * (exact(a) @ exact(b)), abs(exact(a)) @ abs(exact(b)), "float32")
    x, y, offsets = random(30, 16), random(30, 24, seed=1), numpy.array([0, 7, 7, 30], numpy.int32)
    got = sluice.grouped_gemm(x.T, y, offsets, grouping="along-k", out_dtype="fp32", backend=backend)
    for g in range(3):
        rows = slice(offsets[g], offsets[g + 1])
        assert_near(got[g], exact(x)[rows].T @ exact(y)[rows], abs(exact(x))[rows].T @ abs(exact(y))[rows] + 1e-9, "float32")


@pytest.mark.parametrize("column_major", [False, True])
def test_groups_along_k_in_fp8(column_major, backend):
    """As gradients of weights are: rows of K, filled up to 128 for each group, quantised and multiplied."""
    x, y, offsets = random(16, 512, dtype=numpy.float32), random(24, 512, dtype=numpy.float32, seed=1), numpy.array([0, 128, 128, 384], numpy.int32)
    (a, scale_a), (b, scale_b) = (sluice.quantize(each, column_major_scales=column_major) for each in (x, y))
    got = sluice.grouped_gemm(a, b.T, offsets, scale_a=scale_a, scale_b=scale_b.T, grouping="along-k", out_dtype="fp32", backend=backend)
    full_a, full_b = exact(a) * spread(scale_a, x.shape), exact(b) * spread(scale_b, y.shape)
    coarser = 1 if backend == "reference" else 2**8  # tensor cores add FP8 products with 14 bits
    for g in range(3):
        k = slice(offsets[g], offsets[g + 1])
        assert_near(got[g], full_a[:, k] @ full_b[:, k].T, coarser * abs(full_a[:, k]) @ abs(full_b[:, k]).T + 1e-9, "float32")
    with pytest.raises(ValueError, match=r"groups\[1\] = 100 .* multiples of 128"):
        sluice.grouped_gemm(a, b.T, numpy.array([0, 100, 384], numpy.int32), grouping="along-k", backend=backend)
    with pytest.raises(ValueError, match="all groups share a matrix of scales"):
        sluice.grouped_gemm(a, b.T, offsets, scale_a=scale_a[None], grouping="along-k", backend=backend)


@pytest.mark.parametrize("scaling", ["vector", "1x128", "128x128"])
@pytest.mark.parametrize("column_major", [False, True])
def test_quantize(scaling, column_major, backend):
    x = random(130, 272, dtype=numpy.float32)
    q, scale = sluice.quantize(x, scaling=scaling, column_major_scales=column_major, backend=backend)
    assert q.dtype == E4M3 and scale.shape == sluice.operations.scale_shape(130, 272, scaling)
    assert scale.strides[0 if column_major else 1] == 4
    back = exact(q) * spread(scale, x.shape)
    assert (abs(back - x) <= abs(x) * 2.0**-4 + spread(scale, x.shape) * 2.0**-10).all()
    assert (abs(exact(q)) <= 448).all() and abs(exact(q)).max() == 448


def test_quantize_of_a_gate():
    x, y = random(5, 256), random(5, 256, seed=1)
    q, scale = sluice.quantize(x, y=y, power_of_two_scales=True, dtype="e5m2")
    value = exact(x) / (1 + numpy.exp(-exact(x))) * exact(y)
    assert q.dtype == E5M2 and (numpy.log2(scale) % 1 == 0).all()
    assert (abs(exact(q) * spread(scale, x.shape) - value) <= abs(value) * 2.0**-2.9 + spread(scale, x.shape) * 2.0**-16).all()
    with pytest.raises(ValueError, match="y is bf16 of shape"):
        sluice.quantize(x, y=y[:, :100])
    with pytest.raises(ValueError, match="is neither 'vector' nor '1x128' nor '128x128'"):
        sluice.quantize(x, scaling="tensor")


def words(codes, axis, order=range(8)):
    """Eight codes of 4 bits along an axis to a word, the first of `order` in its lowest bits."""
    codes = numpy.moveaxis(codes.astype(numpy.uint32), axis, -1)
    codes = codes.reshape(*codes.shape[:-1], -1, 8)[..., list(order)]
    packed = (codes << numpy.arange(0, 32, 4, dtype=numpy.uint32)).sum(-1, dtype=numpy.uint32)
    return numpy.ascontiguousarray(numpy.moveaxis(packed, -1, axis).view(numpy.int32))


def w4_layer(n, k, group_size, seed=0):
    generator = numpy.random.default_rng(seed)
    groups = -(-k // group_size) if group_size else 1
    codes, zeros = generator.integers(0, 16, (n, k)), generator.integers(1, 16, (n, groups))
    scales = generator.uniform(0.01, 0.1, (n, groups)).astype(BF16)
    every = numpy.arange(k) // (group_size or k)
    return codes, scales, zeros, (codes - zeros[:, every]) * exact(scales)[:, every]


@pytest.mark.parametrize("group_size", [32, 64, 128, 0])
@pytest.mark.parametrize("source", ["plain", "plain words", "gptq", "gptq_v2", "awq"])
def test_pack_w4_and_its_product(source, group_size, backend):
    n, k = 72, 256
    codes, scales, zeros, weights = w4_layer(n, k, group_size)
    awq = (0, 2, 4, 6, 1, 3, 5, 7)
    given = {
        "plain": lambda: ((codes[:, ::2] | codes[:, 1::2] << 4).astype(numpy.uint8), scales, zeros.astype(numpy.uint8)),
        "plain words": lambda: (words(codes, 1), scales, zeros.astype(numpy.uint8)),
        "gptq": lambda: (words(codes.T, 0), scales.T.copy(), words(zeros.T - 1, 1)),
        "gptq_v2": lambda: (words(codes.T, 0), scales.T.copy(), words(zeros.T, 1)),
        "awq": lambda: (words(codes.T, 1, awq), scales.T.copy(), words(zeros.T, 1, awq)),
    }[source]()
    packed = sluice.pack_w4(*given, source=source.split("_")[0].split()[0], zeros_as_stored=source == "gptq_v2", backend=backend)
    assert packed.nbytes == sluice.packed_w4_bytes(n, k, group_size, True)
    unpacked = sluice.unpack_w4(packed, n, k, group_size=group_size, zero_points=True)
    assert (unpacked == weights.astype(BF16)).all()
    a = random(5, k)
    got = sluice.w4a16_gemm(a, packed, n, group_size=group_size, zero_points=True, backend=backend)
    assert_near(got, exact(a) @ weights.T, abs(exact(a)) @ abs(weights).T * (1 + 2.0**-6) * 2.0**10, "bfloat16")


def test_beside_e4m3_weights_are_unpacked_as_they_are():
    n, k, group_size = 72, 256, 64
    codes, scales, zeros, weights = w4_layer(n, k, group_size)
    how = {"group_size": group_size, "zero_points": True}
    packed = sluice.pack_w4((codes[:, ::2] | codes[:, 1::2] << 4).astype(numpy.uint8), scales, zeros.astype(numpy.uint8), dtype="e4m3")
    assert packed.nbytes == sluice.packed_w4_bytes(n, k, group_size, True)
    unpacked = sluice.unpack_w4(packed, n, k, dtype="e4m3", **how)
    assert unpacked.dtype == numpy.float32 and (unpacked == weights).all()


def test_act_order():
    n, k, size = 64, 256, 64
    codes, scales, _, _ = w4_layer(n, k, size)
    group_of = numpy.random.default_rng(5).permutation(numpy.arange(k) // size).astype(numpy.int32)
    order = sluice.order_of_groups(group_of, size)
    packed = sluice.pack_w4((codes[:, ::2] | codes[:, 1::2] << 4).astype(numpy.uint8), scales, order=order)
    weights = (codes - 8) * exact(scales)[:, group_of]
    a = random(5, k)
    got = sluice.w4a16_gemm(a, packed, n, group_size=size, order=order, out_dtype="fp32")
    rounding = abs(exact(a)) @ abs(weights).T * 2.0**-8
    assert (abs(got - exact(a) @ weights.T) <= rounding).all()
    assert (sluice.permute_columns(a, order) == a[:, order]).all()
    with pytest.raises(ValueError):
        sluice.order_of_groups(numpy.zeros(k, numpy.int32), size)


def test_packing_that_is_refused():
    codes, scales = numpy.zeros((64, 128), numpy.uint8), numpy.zeros((64, 2), BF16)
    for match, call in {
        "source = 'marlin' is none of": lambda: sluice.pack_w4(codes.view(numpy.int32), scales, source="marlin"),
        "of 'gptq' they are int32 words": lambda: sluice.pack_w4(codes, scales, source="gptq"),
        "codes of shape .* are 64 columns": lambda: sluice.pack_w4(codes, scales[:63]),
        "the scales are for 3 groups of k = 256": lambda: sluice.pack_w4(codes, numpy.zeros((64, 3), BF16)),
        "zeros are bf16 of shape": lambda: sluice.pack_w4(codes, scales, scales),
    }.items():
        with pytest.raises(ValueError, match=match):
            call()


def attention(q, k, v, lengths, scale=None, soft_cap=0.0, window=0):
    """(o, lse) by the formulas of docs/attention.md; k and v are (batch, tokens, key heads, D)."""
    q, k, v = exact(q), exact(k), exact(v)
    o, lse = numpy.zeros(q.shape), numpy.full(q.shape[:3], -numpy.inf)
    for b, t, h in numpy.ndindex(q.shape[:3]):
        i = lengths[b] - q.shape[1] + t
        seen = slice(max(0, i - window + 1) if window else 0, i + 1)
        g = h // (q.shape[2] // k.shape[2])
        s = k[b, seen, g] @ q[b, t, h] * (scale or q.shape[3] ** -0.5)
        s = soft_cap * numpy.tanh(s / soft_cap) if soft_cap else s
        lse[b, t, h] = numpy.log(numpy.exp(s).sum())
        o[b, t, h] = numpy.exp(s - lse[b, t, h]) @ v[b, seen, g]
    return o, lse


@pytest.mark.parametrize("how", [{}, {"window": 20}, {"soft_cap": 5.0, "scale": 0.2}, {"constant_cache": True}])
def test_decode_attention(how, backend):
    q, k, v = random(2, 2, 4, 64), random(2, 70, 2, 64, seed=1), random(2, 70, 2, 64, seed=2)
    lengths = numpy.array([70, 33], numpy.int32)
    got, lse = sluice.decode_attention(q, k, v, lengths=lengths, return_lse=True, backend=backend, **how)
    expected, sums = attention(q, k, v, lengths, **{name: x for name, x in how.items() if name != "constant_cache"})
    assert abs(exact(got) - expected).max() < 0.03 and abs(lse - sums).max() < 1e-3
    turned = [numpy.ascontiguousarray(x.swapaxes(1, 2)) for x in (k, v)]
    again = sluice.decode_attention(q, *turned, lengths=lengths, kv_layout="heads-first", backend=backend, **how)
    assert abs(exact(again) - expected).max() < 0.03


def test_decode_attention_over_pages():
    q, k, v = random(2, 1, 4, 128), random(6, 16, 1, 128, seed=1), random(6, 16, 1, 128, seed=2)
    table, lengths = numpy.array([[3, 0, 5], [1, 4, 2]], numpy.int32), numpy.array([40, 17], numpy.int32)
    got = sluice.decode_attention(q, k, v, block_table=table, lengths=lengths, max_kv_len=48)
    expected, _ = attention(q, k[table].reshape(2, 48, 1, 128), v[table].reshape(2, 48, 1, 128), lengths)
    assert abs(exact(got) - expected).max() < 0.03
    with pytest.raises(ValueError, match="max_kv_len is missing"):
        sluice.decode_attention(q, k, v, block_table=table)
    with pytest.raises(ValueError, match="block_table has room for 3 pages of 16 tokens"):
        sluice.decode_attention(q, k, v, block_table=table, max_kv_len=49)
    with pytest.raises(ValueError, match="room for 6 sequences"):
        sluice.decode_attention(q, k, v)
    with pytest.raises(ValueError, match="k_scales and v_scales are missing"):
        sluice.decode_attention(q, k.astype(E4M3), v.astype(E4M3), block_table=table, max_kv_len=48)


def test_histogram(backend):
    samples = numpy.random.default_rng(0).integers(-5, 300, (30, 7)).astype(numpy.int32)
    got = sluice.histogram(samples, 256, backend=backend)
    assert (got == numpy.bincount(samples[(samples >= 0) & (samples < 256)], minlength=256)).all()
    clamped = sluice.histogram(samples, 10, first=3, outside="clamped", count_type="int64", backend=backend)
    assert clamped.dtype == numpy.int64 and (clamped == numpy.bincount(samples.clip(3, 12).ravel() - 3, minlength=10)).all()
    sluice.histogram(samples, 256, out=got, accumulate=True, backend=backend)
    assert got.sum() == 2 * ((samples >= 0) & (samples < 256)).sum()
    floats = numpy.linspace(-1, 2, 301, dtype=numpy.float32)
    assert sluice.histogram(floats, 4, lower=0.0, upper=1.0).sum() == ((floats >= 0) & (floats < 1)).sum()
    with pytest.raises(ValueError, match="accumulate adds to what is in out"):
        sluice.histogram(samples, accumulate=True)
    with pytest.raises(ValueError, match="samples is fp64"):
        sluice.histogram(floats.astype(numpy.float64))
