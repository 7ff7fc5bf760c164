"""Every operation on tensors, on the CPU and on a GPU: registration, fake kernels, compilation, results beside NumPy's, gradients beside float64."""

import pytest

torch = pytest.importorskip("torch")

import sluice  # noqa: E402
import sluice.torch as st  # noqa: E402
from support import assert_near  # noqa: E402
from torch_support import BF16, FP8, NAMES, fp8, integers, offsets, randn, samples  # noqa: E402

OPERATIONS = {"gemm", "fp8_gemm", "grouped_gemm", "w4a16_gemm", "quantize", "pack_w4", "decode_attention", "histogram"}


def is_fp8(arguments):
    return any(isinstance(each, torch.Tensor) and each.dtype == FP8 for each in arguments)


def test_samples_are_of_every_operation():
    found = samples("cpu")
    assert list(found) == NAMES
    assert {str(operation).split(".")[1] for operation, _, _ in found.values()} == OPERATIONS == set(sluice.torch._ops.SCHEMAS)


@pytest.mark.parametrize("name", NAMES)
def test_opcheck(name, device):
    operation, arguments, how = samples(device)[name]
    tests = ["test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic"]
    if is_fp8(arguments):
        tests.remove("test_schema")  # it compares tensors by torch.allclose(), which knows no FP8; test_inputs_are_left_alone does it in its place
    torch.library.opcheck(operation, arguments, how, test_utils=tests)


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_left_alone(name, device):
    operation, arguments, how = samples(device, grad=False)[name]
    bits = lambda: [each.clone(memory_format=torch.contiguous_format).view(torch.uint8) for each in arguments if isinstance(each, torch.Tensor)]  # noqa: E731
    before = bits()
    operation(*arguments, **how)
    assert all(torch.equal(one, other) for one, other in zip(before, bits()))


@pytest.mark.parametrize("name", NAMES)
def test_compiled_as_one_graph(name, device):
    """The same bits, with shapes that may change; on the CPU without Inductor's own code, for which it needs a compiler."""
    operation, arguments, how = samples(device, grad=False)[name]
    torch._dynamo.reset()

    def between(*arguments):  # something to compile on either side
        first, *others = arguments
        doubled = first if first.dtype in (FP8, torch.int32, torch.uint8) else first * 2
        results = operation(doubled, *others, **how)
        return [each.view(torch.uint8) + 0 if each.dtype == FP8 else each + 0 for each in (results if isinstance(results, tuple) else (results,))]

    compiled = torch.compile(between, fullgraph=True, backend="inductor" if device == "cuda" else "aot_eager")
    for got, expected in zip(compiled(*arguments), between(*arguments)):
        assert got.shape == expected.shape and got.stride() == expected.stride()
        assert torch.equal(got, expected)


def test_a_graph_compiled_once_serves_many_rows(device):
    weight = randn(48, 64, device=device)
    compiled = torch.compile(lambda x: st.gemm(x, weight.t()), fullgraph=True, dynamic=True, backend="aot_eager")
    for rows in (3, 8, 21):
        x = randn(rows, 64, device=device)
        assert torch.equal(compiled(x), st.gemm(x, weight.t()))


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("gemm", "w4a16", "histogram", "quantize", "decode", "pack", "fp8", "grouped"))])
def test_fake_tensors_tell_shapes_types_and_strides(name):
    from torch._subclasses.fake_tensor import FakeTensorMode

    operation, arguments, how = samples("cpu", grad=False)[name]
    real = operation(*arguments, **how)
    with FakeTensorMode() as mode:
        fake = operation(*(mode.from_tensor(each) if isinstance(each, torch.Tensor) else each for each in arguments), **how)
    for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (real, fake))):
        assert (one.shape, one.dtype, one.stride(), one.device) == (other.shape, other.dtype, other.stride(), other.device)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_the_gpu_gives_what_the_cpu_gives(name):
    """Sums are formed in another order: near, where results are not exact by promise."""
    operation, arguments, how = samples("cpu", grad=False)[name]
    expected = operation(*arguments, **how)
    got = operation(*(each.cuda() if isinstance(each, torch.Tensor) else each for each in arguments), **how)
    for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (got, expected))):
        one = one.cpu()
        if name in ("quantize", "pack_w4", "pack_w4, gptq", "pack_w4, awq", "histogram", "histogram, floats"):
            assert torch.equal(one.view(torch.uint8), other.view(torch.uint8))
        elif name != "quantize, gate":
            loose = 1.0 if name.startswith("w4a16") else 2e-2  # weights may be rounded, or not: by 2^-9 each, of |a| |w| that sum up to 650
            torch.testing.assert_close(one.float(), other.float(), rtol=2**-6, atol=loose)


def test_products_are_right(device):
    a, w, bias = randn(40, 64, device=device), randn(48, 64, device=device, seed=1), randn(48, device=device)
    exact = lambda x: x.cpu().double()  # noqa: E731
    got = st.gemm(a, w.t(), bias=bias, alpha=0.5)
    magnitude = exact(a).abs() @ exact(w).abs().t() + exact(bias).abs()
    assert_near(exact(got), 0.5 * exact(a) @ exact(w).t() + exact(bias), magnitude, "bfloat16")
    transposed = st.gemm(a.t().contiguous().t(), w.t().contiguous(), bias=bias, alpha=0.5)
    assert_near(exact(transposed), 0.5 * exact(a) @ exact(w).t() + exact(bias), magnitude, "bfloat16")


def test_fp8_products_are_right(device):
    x, w = randn(33, 272, device=device), randn(144, 272, device=device, seed=1)
    (q, scale), (v, blocks) = st.quantize(x), st.quantize(w, scaling="128x128")
    got = st.fp8_gemm(q, v.t(), scale, blocks.t(), out_dtype=torch.float32).cpu().double()
    back = q.float() * scale.repeat_interleave(128, 1)[:, :272], v.float() * blocks.repeat_interleave(128, 0)[:144].repeat_interleave(128, 1)[:, :272]
    one, other = (each.cpu().double() for each in back)
    assert (got - one @ other.t()).abs().max() <= 2**-9 * (one.abs() @ other.abs().t()).max()
    assert (got - x.cpu().double() @ w.cpu().double().t()).abs().mean() < 0.06 * (x.cpu().double() @ w.cpu().double().t()).abs().mean()


def gradients(function, *tensors):
    leaves = [each.detach().requires_grad_() for each in tensors]
    result = function(*leaves)
    cotangent = randn(*result.shape, dtype=torch.float32, seed=9).to(result)
    result.backward(cotangent)
    return [each.grad for each in leaves]


def near_gradients(function, exactly, *tensors):
    """Beside autograd in float64, within what bf16 operands and results lose."""
    got = gradients(function, *tensors)
    expected = gradients(exactly, *(each.cpu().double() for each in tensors))
    for one, other in zip(got, expected):
        assert one.shape == other.shape
        error = (one.cpu().double() - other).abs().max() / other.abs().max()
        assert error < 2e-2, error


ACTIVATIONS = {"none": lambda x: x, "relu": torch.relu, "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"), "silu": torch.nn.functional.silu}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("out_dtype", [None, torch.float32])
def test_gradients_of_gemm(activation, out_dtype, device):
    to = out_dtype or BF16
    operands = randn(40, 64, device=device), randn(48, 64, device=device, seed=1), randn(40, 48, device=device, dtype=to), randn(48, device=device, dtype=to)
    near_gradients(
        lambda a, w, c, bias: st.gemm(a, w.t(), c, bias, alpha=0.25, beta=0.5, activation=activation, out_dtype=out_dtype),
        lambda a, w, c, bias: ACTIVATIONS[activation](0.25 * a @ w.t() + 0.5 * c + bias),
        *operands,
    )


@pytest.mark.parametrize("shapes", [((3, 8, 64), (3, 64, 16)), ((3, 8, 64), (64, 16)), ((8, 64), (3, 64, 16))])
def test_gradients_of_batches(shapes, device):
    near_gradients(lambda a, b: st.gemm(a, b), lambda a, b: a @ b, randn(*shapes[0], device=device), randn(*shapes[1], device=device))


def test_gradients_of_a_bias_of_rows(device):
    operands = randn(40, 64, device=device), randn(64, 48, device=device), randn(40, device=device)
    near_gradients(lambda a, b, bias: st.gemm(a, b, bias=bias, bias_per_row=True), lambda a, b, bias: a @ b + bias[:, None], *operands)


def ragged(ends):
    def exactly(a, b, *bias):
        rows = [a[begin:end] @ b[g] + (bias[0] if bias else 0) for g, (begin, end) in enumerate(zip(ends, ends[1:]))]
        outside = [torch.zeros(size, b.shape[2], dtype=a.dtype) for size in (ends[0], a.shape[0] - ends[-1])]
        return torch.cat([outside[0], *rows, outside[1]])

    return exactly


@pytest.mark.parametrize("activation", ["none", "relu", "silu"])
def test_gradients_of_ragged_groups(activation, device):
    ends = (2, 12, 12, 37)
    groups = offsets(*ends, device=device)
    operands = randn(40, 64, device=device), randn(3, 64, 16, device=device), randn(16, device=device)
    act = ACTIVATIONS[activation]
    near_gradients(
        lambda a, b, bias: st.grouped_gemm(a, b, groups, bias, activation=activation),
        lambda a, b, bias: act(ragged(ends)(a, b, bias)),
        *operands,
    )


def test_gradients_of_masked_groups(device):
    counts = offsets(3, 0, 8, device=device)
    keep = torch.arange(8)[None, :, None] < counts.cpu()[:, None, None]
    a = randn(3, 8, 64, device=device)
    a[0, 3:] = float("nan")  # room that nobody has filled
    clean = torch.where(keep, a.cpu().double(), 0)
    b = randn(3, 64, 16, device=device)
    got = gradients(lambda a, b: st.grouped_gemm(a, b, counts, grouping="masked"), a, b)
    expected = gradients(lambda a, b: torch.where(keep, a @ b, 0), clean, b.cpu().double())
    for one, other in zip(got, expected):
        assert (one.cpu().double() - other).abs().max() < 2e-2 * other.abs().max()


def test_gradients_along_k(device):
    ends = (0, 10, 64)
    groups = offsets(*ends, device=device)
    near_gradients(
        lambda x, y: st.grouped_gemm(x.t(), y, groups, grouping="along-k", out_dtype=torch.float32),
        lambda x, y: torch.stack([x[begin:end].t() @ y[begin:end] for begin, end in zip(ends, ends[1:])]),
        randn(64, 24, device=device),
        randn(64, 16, device=device),
    )


def test_functions_show_their_calls_to_whoever_looks(device):
    """They call kernels directly, except where a mode, a transform, a gradient or a tensor without memory is about."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Recorder(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            seen.append(str(function))
            return function(*arguments, **(keywords or {}))

    a, w = randn(8, 64, device=device), randn(48, 64, device=device)
    plain = st.gemm(a, w.t())
    with Recorder():
        assert torch.equal(st.gemm(a, w.t()), plain)
    assert "sluice.gemm.default" in seen
    assert st.gemm(a.to("meta"), w.to("meta").t()).device.type == "meta"
    assert st.gemm(a, w.requires_grad_().t()).requires_grad and not st.gemm(a, w.detach().t()).requires_grad
    with torch.no_grad():
        assert not st.gemm(a, w.t()).requires_grad
    batch = randn(3, 8, 64, device=device)
    transformed = torch.vmap(lambda x: st.gemm(x, w.detach().t()))(batch)  # one after another, as torch does without a rule
    assert torch.equal(transformed, torch.stack([st.gemm(x, w.detach().t()) for x in batch]))


def test_what_has_no_gradient_says_so(device):
    x = randn(8, 256, device=device, grad=True)
    packed = st.pack_w4(integers(0, 256, (48, 128), device, torch.uint8), randn(48, 2, device=device))
    with pytest.raises(RuntimeError, match="sluice.w4a16_gemm has no gradient"):
        st.w4a16_gemm(x, packed, 48).sum().backward()


def test_bad_input_is_refused_before_anything_runs(device):
    a, w = randn(8, 64, device=device), randn(48, 64, device=device)
    packed = st.pack_w4(integers(0, 256, (48, 128), device, torch.uint8), randn(48, 2, device=device))
    for match, call in {
        "a has 64 columns and b 48 rows": lambda: st.gemm(a, w),
        "torch.float64 is a type that no operation of Sluice takes": lambda: st.gemm(a.double(), w.double().t()),
        "activation = 'tanh' is none of": lambda: st.gemm(a, w.t(), activation="tanh"),
        "packed has .* bytes; 136 columns": lambda: st.w4a16_gemm(randn(5, 256, device=device), packed, 136),
        "only operands of e4m3 and e5m2 have scales": lambda: st.fp8_gemm(a, w.t(), torch.ones(1, 1, device=device)),
        "samples have strides": lambda: st.histogram(integers(0, 9, (8, 8), device).t()),
        "order is int64": lambda: st.w4a16_gemm(randn(5, 256, device=device), packed, 48, torch.arange(256, device=device)),
        "x has strides": lambda: st.quantize(randn(64, 64, device=device).t()),
    }.items():
        with pytest.raises(ValueError, match=match):
            call()
    assert torch.isfinite(st.gemm(a, w.t()).float()).all()


@pytest.mark.gpu
def test_operands_in_several_places_are_refused():
    with pytest.raises(ValueError, match="a is on cuda:0, and b on cpu"):
        st.gemm(randn(8, 64, device="cuda"), randn(64, 48))


def test_a_planned_product(device):
    a, w, bias = randn(8, 64, device=device), randn(48, 64, device=device), randn(48, device=device)
    plain, whole = st.PlannedGemm(a, w.t()), st.PlannedGemm(a, w.t(), bias=bias, c=randn(8, 48, device=device), activation="relu")
    assert torch.equal(plain(a, w.t()), st.gemm(a, w.t()))
    c = randn(8, 48, device=device, seed=5)
    assert torch.equal(whole(a, w.t(), bias=bias, c=c), st.gemm(a, w.t(), c, bias, activation="relu"))
    out = torch.empty(8, 48, dtype=BF16, device=device)
    assert plain(a, w.t(), out=out) is out and torch.equal(out, st.gemm(a, w.t()))
    q, scale = st.quantize(randn(8, 256, device=device))
    of_fp8 = st.PlannedGemm(q, fp8(48, 256, device=device).t(), scale_a=scale)
    assert torch.equal(of_fp8(q, fp8(48, 256, device=device).t(), scale_a=scale), st.fp8_gemm(q, fp8(48, 256, device=device).t(), scale))
    assert plain.plan.problem["m"] == 8
    for match, call in {
        r"a must be torch.bfloat16 of shape \(8, 64\)": lambda: plain(a[:7], w.t()),
        "b must be": lambda: plain(a, w.t().contiguous()),
        "bias was not given when this was planned": lambda: plain(a, w.t(), bias=bias),
        "c was given when this was planned": lambda: whole(a, w.t(), bias=bias),
        "out must be dense": lambda: plain(a, w.t(), out=out.t().contiguous().t()),
    }.items():
        with pytest.raises(ValueError, match=match):
            call()


def test_tensors_that_begin_anywhere(device):
    """The same shapes and strides at other alignments are other problems."""
    memory, w = randn(8 * 64 + 8, device=device), randn(48, 64, device=device)
    expected = [st.gemm(memory[i : i + 512].view(8, 64).clone(), w.t()) for i in range(8)]
    for i in (0, 1, 2, 4):
        a = memory[i : i + 512].view(8, 64)
        torch.testing.assert_close(st.gemm(a, w.t()), expected[i], rtol=2**-7, atol=2**-7)
    planned = st.PlannedGemm(memory[:512].view(8, 64), w.t())
    with pytest.raises(ValueError, match="align|multiple"):
        planned(memory[1:513].view(8, 64), w.t())


def test_plans_of_a_file_take_the_place_of_those_made_before(monkeypatch):
    from sluice import operations
    from sluice.torch import _products

    monkeypatch.setattr(operations, "_preferred", {})
    a, w = randn(48, 64), randn(80, 64)
    before = st.PlannedGemm(a, w.t()).plan
    st.gemm(a, w.t())
    options = {name: before.problem[name] for name in ("lda", "ldb", "alignment_a_bytes", "alignment_b_bytes")}
    other = sluice.plan(48, 80, 64, device="h200", kernel="bf16_rc_coop_128x128x64_c1x1", **options)
    assert other.kernel != before.kernel
    operations.prefer([other])
    assert len(_products._made) == 0 and st.PlannedGemm(a, w.t()).plan.kernel == other.kernel
    monkeypatch.undo()
    operations.prefer([])  # forgets what this test has preferred


def test_the_plan_cache_is_bounded(device, monkeypatch):
    from sluice.torch import _products
    from sluice.torch._gpu import Bounded

    monkeypatch.setattr(_products, "_made", Bounded(3))
    for rows in range(1, 9):
        st.gemm(randn(rows, 16, device=device), randn(16, 16, device=device))
        assert len(_products._made) == min(rows, 3)
    assert torch.equal(st.gemm(randn(1, 16, device=device), randn(16, 16, device=device)).cpu(), st.gemm(randn(1, 16), randn(16, 16))) or device == "cuda"


def test_many_threads(device):
    from concurrent.futures import ThreadPoolExecutor

    work = [(randn(rows, 64, device=device), randn(48, 64, device=device, seed=rows)) for rows in range(1, 25)]
    expected = [st.gemm(a, w.t()) for a, w in work]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(4):
            got = list(threads.map(lambda each: st.gemm(each[0], each[1].t()), work))
            assert all(torch.equal(one, other) for one, other in zip(got, expected))
