"""What only a GPU shows: streams, workspaces, CUDA graphs, several devices, arrays of other libraries in device memory."""

import gc

import pytest

torch = pytest.importorskip("torch")

import sluice  # noqa: E402
import sluice.torch as st  # noqa: E402
from sluice import nn  # noqa: E402
from sluice.torch import _gpu  # noqa: E402
from torch_support import BF16, NAMES, integers, offsets, randn, samples  # noqa: E402

pytestmark = pytest.mark.gpu

SPLIT = (64, 2112, 7168)  # m, n, k whose plan cuts tiles, and so needs a workspace


def split_operands(seed=0, device="cuda"):
    m, n, k = SPLIT
    return randn(m, k, seed=seed, device=device), randn(n, k, seed=seed + 1, device=device).t()


def garbage(mib=256):
    """What is free now is overwritten with all ones: flags and NaN."""
    for _ in range(2):
        torch.full((mib << 20,), 255, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()


def captured(call, stream=None, **how):
    """(graph, what it writes), warmed up before."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream, **how):
        results = call()
    return graph, results


def test_the_plan_of_these_tests_needs_a_workspace():
    a, b = split_operands()
    assert st.PlannedGemm(a, b).plan.workspace_bytes > 0


def test_work_goes_to_the_current_stream():
    a, b = split_operands()
    expected = st.gemm(a, b)
    side, later = torch.cuda.Stream(), torch.full_like(a, float("nan"))
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        later.copy_(a)
        got = st.gemm(later, b)
        planned = st.PlannedGemm(later, b)(later, b)
    side.synchronize()
    assert torch.equal(got, expected) and torch.equal(planned, expected)


def test_streams_have_workspaces_of_their_own():
    work = [split_operands(seed) for seed in range(4)]
    expected = [st.gemm(*each) for each in work]
    streams = [torch.cuda.Stream() for _ in work]
    torch.cuda.synchronize()
    for _ in range(50):
        got = []
        for stream, each in zip(streams, work):
            with torch.cuda.stream(stream):
                got.append(st.gemm(*each))
        torch.cuda.synchronize()
        assert all(torch.equal(one, other) for one, other in zip(got, expected))


def test_workspaces_are_bounded_and_calls_leave_no_memory(monkeypatch):
    a, b = split_operands()
    expected = st.gemm(a, b)
    monkeypatch.setattr(_gpu, "_held", _gpu.Bounded(2))
    for _ in range(6):
        with torch.cuda.stream(torch.cuda.Stream()):
            st.gemm(a, b)
        assert len(_gpu._held) <= 2
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    for _ in range(200):
        got = st.gemm(a, b)
    assert torch.equal(got, expected)
    del got
    assert torch.cuda.memory_allocated() == before


@pytest.mark.parametrize("name", NAMES)
def test_graphs_are_replayed_with_other_numbers(name):
    operation, arguments, how = samples("cuda", grad=False)[name]
    graph, results = captured(lambda: operation(*arguments, **how))
    results = results if isinstance(results, tuple) else (results,)
    first = arguments[0]
    for _ in range(3):
        if first.is_floating_point() and first.dtype.itemsize > 1:
            first.mul_(-0.5)
        else:
            raw = first.view(torch.uint8) if first.element_size() == 1 else first  # FP8 has no flip of its own
            raw.copy_(raw.flip(0))
        garbage(16)
        for each in results:
            each.view(torch.uint8).fill_(255) if each.is_contiguous() else each.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        expected = operation(*arguments, **how)
        for one, other in zip(results, expected if isinstance(expected, tuple) else (expected,)):
            assert torch.equal(one.contiguous().view(torch.uint8), other.contiguous().view(torch.uint8))


def test_sizes_of_groups_change_between_replays():
    a, b, groups = randn(64, 256, device="cuda"), randn(4, 256, 128, device="cuda"), offsets(0, 10, 20, 30, 64, device="cuda")
    graph, got = captured(lambda: st.grouped_gemm(a, b, groups))
    for ends in ((0, 0, 0, 64, 64), (0, 1, 2, 3, 4), (5, 5, 40, 41, 60)):
        groups.copy_(offsets(*ends))
        graph.replay()
        assert torch.equal(got, st.grouped_gemm(a, b, groups))


@pytest.mark.parametrize("shared", [False, True])
def test_graphs_of_many_products_with_workspaces(shared):
    """Two graphs replayed at once on two streams, beside eager products of the stream they were captured on, after all free memory was overwritten."""
    work = [split_operands(seed) for seed in range(3)]
    q = randn(4, 1, 32, 128, device="cuda")
    k, v = randn(4, 3000, 8, 128, device="cuda"), randn(4, 3000, 8, 128, seed=1, device="cuda")

    def call():
        return [st.gemm(*each) for each in work] + [st.decode_attention(q, k, v), st.gemm(*work[0])]

    def shared_call():
        with st.graph_workspace():
            return call()

    expected = call()
    graphs = [captured(shared_call if shared else call) for _ in range(2)]
    gc.collect()
    garbage()
    streams = [torch.cuda.Stream() for _ in graphs]
    for _ in range(20):
        for (graph, results), stream in zip(graphs, streams):
            with torch.cuda.stream(stream):
                for each in results:
                    each.fill_(float("nan"))
                graph.replay()
        eager = st.gemm(*work[1])
        torch.cuda.synchronize()
        assert torch.equal(eager, expected[1])
        for _, results in graphs:
            assert all(torch.equal(one, other) for one, other in zip(results, expected))


def test_one_graph_with_work_on_two_streams():
    one, two = split_operands(0), split_operands(5)
    expected = st.gemm(*one), st.gemm(*two)
    side = torch.cuda.Stream()

    def call():
        with st.graph_workspace():
            side.wait_stream(torch.cuda.current_stream())
            first = [st.gemm(*one) for _ in range(4)]
            with torch.cuda.stream(side):
                second = [st.gemm(*two) for _ in range(4)]
            torch.cuda.current_stream().wait_stream(side)
            return first + second

    graph, results = captured(call)
    for _ in range(20):
        graph.replay()
        torch.cuda.synchronize()
        assert all(torch.equal(each, expected[index // 4]) for index, each in enumerate(results))


def test_graph_trees_of_torch_compile():
    """mode="reduce-overhead" captures by itself, and refuses memory that it does not know of."""
    linear = torch.nn.Linear(SPLIT[2], SPLIT[1], bias=False, dtype=BF16, device="cuda").requires_grad_(False)
    model = torch.nn.Sequential(nn.Linear.from_linear(linear), torch.nn.ReLU())
    compiled = torch.compile(model, mode="reduce-overhead", fullgraph=True)
    for seed in range(5):
        x = randn(SPLIT[0], SPLIT[2], seed=seed, device="cuda")
        with torch.no_grad():
            assert torch.equal(compiled(x).clone(), model(x))


def test_plans_and_arrays_of_other_libraries():
    from arrays_test import OnlyDlpack

    class Interface:
        def __init__(self, tensor):
            self.__cuda_array_interface__, self.device = tensor.__cuda_array_interface__, 0

    class Dlpack(OnlyDlpack):
        def __dlpack__(self, stream=None):
            return self.array.__dlpack__(stream=stream)

    a, b = randn(48, 64, device="cuda", dtype=torch.float16), randn(64, 80, device="cuda", dtype=torch.float16)
    expected = st.gemm(a, b)
    stream = torch.cuda.current_stream().cuda_stream
    for wrap in (Interface, lambda tensor: Dlpack(tensor, (2, 0)), lambda tensor: tensor):
        out = torch.full((48, 80), float("nan"), device="cuda", dtype=torch.float16)
        sluice.gemm(wrap(a), wrap(b), out=out, stream=stream)
        assert torch.equal(out, expected)
    with pytest.raises(ValueError, match="out is missing"):
        sluice.gemm(a, b)
    one, two = split_operands()
    made = sluice.plan(*SPLIT)
    out = torch.empty(SPLIT[0], SPLIT[1], device="cuda", dtype=BF16)
    with pytest.raises(ValueError, match="workspace"):
        made.run(one, two.t(), out, stream=stream)
    workspace = torch.empty(made.workspace_bytes, dtype=torch.uint8, device="cuda")
    sluice.prepare_workspace(workspace, stream=stream)
    made.run(one, two.t(), out, workspace=workspace, stream=stream)
    assert torch.equal(out, st.gemm(one, two))


def test_operations_on_arrays_in_device_memory():
    x, codes, scales = randn(8, 256, device="cuda"), integers(0, 256, (48, 128), "cuda", torch.uint8), randn(48, 2, device="cuda").abs()
    stream = torch.cuda.current_stream().cuda_stream
    q, scale = torch.empty(8, 256, dtype=torch.float8_e4m3fn, device="cuda"), torch.empty(8, 2, device="cuda")
    sluice.quantize(x, out=(q, scale), stream=stream)
    assert all(torch.equal(one.view(torch.uint8), other.view(torch.uint8)) for one, other in zip((q, scale), st.quantize(x)))
    packed = torch.empty(sluice.packed_w4_bytes(48, 256), dtype=torch.uint8, device="cuda")
    sluice.pack_w4(codes, scales, out=packed, stream=stream)
    assert torch.equal(packed, st.pack_w4(codes, scales))
    counts = torch.empty(256, dtype=torch.int32, device="cuda")
    sluice.histogram(codes, out=counts, stream=stream)
    assert torch.equal(counts, st.histogram(codes))


two_devices = pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.device_count() < 2, reason="needs two GPUs")


@two_devices
@pytest.mark.parametrize("name", NAMES)
def test_the_device_is_that_of_the_operands(name):
    operation, arguments, how = samples("cuda:0", grad=False)[name]
    there = [each.to("cuda:1") if isinstance(each, torch.Tensor) else each for each in arguments]
    for one, other in zip(arguments, there):  # a transposed operand stays one
        assert not isinstance(one, torch.Tensor) or one.stride() == other.stride()
    expected, got = operation(*arguments, **how), operation(*there, **how)
    assert torch.cuda.current_device() == 0
    for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (got, expected))):
        assert one.device.index == 1
        assert torch.equal(one.cpu().contiguous().view(torch.uint8), other.cpu().contiguous().view(torch.uint8))


@two_devices
def test_two_devices_at_once():
    work = [split_operands(0, "cuda:0"), split_operands(0, "cuda:1")]
    planned = [st.PlannedGemm(*each) for each in work]
    expected = st.gemm(*work[0])
    for _ in range(30):
        got = [st.gemm(*each) for each in work] + [call(*each) for call, each in zip(planned, work)]
        for each in got:
            assert torch.equal(each.cpu(), expected.cpu())
    assert torch.cuda.current_device() == 0
    with pytest.raises(ValueError, match="a is on cuda:0, and b on cuda:1"):
        st.gemm(work[0][0], work[1][1])


def test_weights_may_be_used_as_soon_as_they_are_made():
    """Products take packed weights, and those of layers, for constant, and fetch them early: not before they are written."""
    n, k = 8192, 8192
    codes, scales = integers(0, 256, (n, k // 2), "cuda", torch.uint8), randn(n, k // 128, device="cuda").abs() * 0.01
    linear = torch.nn.Linear(k, n, bias=False, dtype=BF16, device="cuda").requires_grad_(False)
    x = randn(1, k, device="cuda")
    packed, layer = st.pack_w4(codes, scales), nn.Fp8Linear.from_linear(linear)
    torch.cuda.synchronize()
    expected = st.w4a16_gemm(x, packed, n), layer(x)
    del packed, layer
    for _ in range(20):
        garbage(64)
        assert torch.equal(st.w4a16_gemm(x, st.pack_w4(codes, scales), n), expected[0])
        assert torch.equal(nn.Fp8Linear.from_linear(linear)(x), expected[1])
