"""Layers, and checkpoints that these tests write themselves in the exact layouts of four formats:

GPTQ                AutoGPTQ, auto_gptq/nn_modules/qlinear/qlinear_cuda.py, pack(): qweight packs 8 rows of K to a word of int32, the first in the
                    lowest bits; qzeros packs 8 columns to a word, less one; scales (groups, n) fp16; g_idx (k,) int32
AWQ                 AutoAWQ, awq/modules/linear/gemm.py, from_linear(): qweight (k, n / 8) and qzeros (groups, n / 8) pack 8 columns to a word in the
                    order 0, 2, 4, 6, 1, 3, 5, 7; scales (groups, n) fp16
compressed-tensors  compressed_tensors/compressors/quantized_compressors/pack_quantized.py: weight_packed (n, k / 8) packs 8 columns of K to a word, each
                    signed code 8 higher; weight_scale (n, groups); weight_zero_point packs 8 rows to a word; weight_shape (2,) int64
DeepSeek FP8        DeepSeek-V3, inference/kernel.py, weight_dequant(), and README_WEIGHTS.md: weight (n, k) e4m3, weight_scale_inv (ceil(n / 128),
                    ceil(k / 128)) fp32, by which blocks of 128 x 128 are multiplied
"""

import json

import pytest

torch = pytest.importorskip("torch")
safetensors_torch = pytest.importorskip("safetensors.torch")

from sluice import checkpoints, nn  # noqa: E402
from torch_support import BF16, FP8, fp8, integers, offsets, randn  # noqa: E402

N, K, GROUP = 72, 256, 64
AWQ = (0, 2, 4, 6, 1, 3, 5, 7)


def words(codes, dim, order=tuple(range(8))):
    """Eight codes along a dimension to a word of int32, the first of `order` in its lowest bits."""
    codes = codes.to(torch.int64).movedim(dim, -1)
    codes = codes.reshape(*codes.shape[:-1], -1, 8)[..., list(order)]
    packed = sum(codes[..., i] << 4 * i for i in range(8))
    return torch.where(packed >= 2**31, packed - 2**32, packed).to(torch.int32).movedim(-1, dim).contiguous()


def quantised(seed=0, symmetric=False):
    """codes (n, k), scales (n, groups) fp16, zeros (n, groups), bias, all as they are before they are stored."""
    groups = K // GROUP
    codes = integers(0, 16, (N, K), seed=seed)
    scales = (randn(N, groups, dtype=torch.float32, seed=seed).abs() * 0.02 + 0.01).half()
    zeros = torch.full((N, groups), 8) if symmetric else integers(1, 16, (N, groups), seed=seed + 1)
    return codes, scales, zeros, randn(N, dtype=torch.float16, seed=seed)


def dequantised(codes, scales, zeros, group_of):
    return (codes - zeros[:, group_of]).double() * scales.double()[:, group_of]


def gptq(layer, codes, scales, zeros, bias, group_of, v2=False):
    return {
        f"{layer}.qweight": words(codes.t(), 0), f"{layer}.qzeros": words(zeros.t() - int(not v2), 1), f"{layer}.scales": scales.t().contiguous(),
        f"{layer}.g_idx": group_of.to(torch.int32), f"{layer}.bias": bias,
    }  # fmt: skip


def awq(layer, codes, scales, zeros, bias, _):
    return {f"{layer}.qweight": words(codes.t(), 1, AWQ), f"{layer}.qzeros": words(zeros.t(), 1, AWQ), f"{layer}.scales": scales.t().contiguous(), f"{layer}.bias": bias}


def compressed(layer, codes, scales, zeros, bias, _):
    return {
        f"{layer}.weight_packed": words(codes, 1), f"{layer}.weight_scale": scales.to(BF16), f"{layer}.weight_zero_point": words(zeros, 0),
        f"{layer}.weight_shape": torch.tensor([N, K]), f"{layer}.bias": bias,
    }  # fmt: skip


def compressed_bytes(layer, codes, scales, zeros, bias, _):
    """Zero points as signed bytes, which checkpoints have that do not pack them."""
    return {**compressed(layer, codes, scales, zeros, bias, _), f"{layer}.weight_zero_point": (zeros - 8).to(torch.int8)}


IN_PLACE = torch.arange(K) // GROUP
ACT_ORDER = IN_PLACE[torch.randperm(K, generator=torch.Generator().manual_seed(7))]
FORMATS = {
    "gptq": (gptq, IN_PLACE, {}),
    "gptq, act-order": (gptq, ACT_ORDER, {}),
    "gptq_v2": (lambda *layer: gptq(*layer, v2=True), IN_PLACE, {"bits": 4, "checkpoint_format": "gptq_v2"}),
    "awq": (awq, IN_PLACE, {"bits": 4}),
    "compressed-tensors": (compressed, IN_PLACE, {}),
    "compressed-tensors, bytes": (compressed_bytes, IN_PLACE, {}),
}


def write(folder, tensors, config=None):
    """Two files and a config.json, as large checkpoints have them."""
    names = sorted(tensors)
    for index, part in enumerate((names[::2], names[1::2])):
        safetensors_torch.save_file({name: tensors[name].contiguous() for name in part}, folder / f"model-0000{index + 1}-of-00002.safetensors")
    (folder / "config.json").write_text(json.dumps({"quantization_config": config or {}}))
    return folder


def assert_layer_is(layer, weights, bias, x, rounding):
    """y = x W' + bias beside float64, where the layer may round weights and must round y."""
    expected = x.cpu().double() @ weights.t() + bias.double()
    magnitude = x.cpu().double().abs() @ weights.abs().t()
    got = layer(x)
    assert got.dtype == x.dtype
    error = (got.cpu().double() - expected).abs()
    assert (error <= rounding * (magnitude + expected.abs()) + 1e-6).all(), (error / magnitude).max()


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_w4_checkpoints(name, symmetric, device, tmp_path):
    store, group_of, config = FORMATS[name]
    codes, scales, zeros, bias = quantised(symmetric=symmetric)
    folder = write(tmp_path, store("model.layers.0.up", codes, scales, zeros, bias, group_of), config)
    layer = nn.W4Linear.from_checkpoint(folder, "model.layers.0.up", device=device)
    stored = scales.to(BF16) if name.startswith("compressed") else scales
    assert (layer.in_features, layer.out_features, layer.group_size, layer.dtype) == (K, N, GROUP, stored.dtype)
    assert layer.zero_points == (not symmetric) and (layer.order is not None) == ("act-order" in name)
    x = randn(2, 3, K, dtype=stored.dtype, device=device)
    rounding = 2**-7 if stored.dtype == BF16 else 2**-10
    assert_layer_is(layer, dequantised(codes, stored, zeros, group_of), bias, x, rounding)


@pytest.mark.parametrize("shape", [(144, 272), (128, 256), (300, 528)])
def test_deepseek_checkpoints(shape, device, tmp_path):
    n, k = shape
    weight, bias = fp8(n, k), randn(n)
    scale = randn(-(-n // 128), -(-k // 128), dtype=torch.float32).abs() * 0.01 + 0.005
    folder = write(tmp_path, {"mlp.up_proj.weight": weight, "mlp.up_proj.weight_scale_inv": scale, "mlp.up_proj.bias": bias})
    layer = nn.Fp8Linear.from_checkpoint(folder, "mlp.up_proj", device=device)
    full = weight.double() * scale.double().repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
    x = randn(7, k, device=device)
    assert_layer_is(layer, full, bias, x, 2**-4)  # x is quantised: each element within 2^-4 of its own, and of its largest neighbour
    expected = x.cpu().double() @ full.t() + bias.double()
    assert (layer(x).cpu().double() - expected).norm() < 0.04 * expected.norm()


@pytest.mark.parametrize("dtype", [BF16, torch.float16, torch.float32])
def test_plain_checkpoints(dtype, device, tmp_path):
    weight = randn(48, 64, dtype=dtype)
    safetensors_torch.save_file({"lm_head.weight": weight}, tmp_path / "model.safetensors")
    layer = nn.Linear.from_checkpoint(tmp_path / "model.safetensors", "lm_head", device=device)
    to = BF16 if dtype == torch.float32 else dtype
    assert layer.weight.dtype == to and layer.bias is None and not layer.weight.requires_grad
    x = randn(3, 64, dtype=to, device=device)
    assert_layer_is(layer, weight.to(to).double(), torch.zeros(48), x, 2**-8)


def test_checkpoints_that_are_refused(tmp_path):
    codes, scales, zeros, bias = quantised()
    good = gptq("up", codes, scales, zeros, bias, IN_PLACE)
    for match, change in {
        "has no layer 'down' of 4 bits": {},
        "do not belong together": {"up.qweight": good["up.qweight"][:, :-8].contiguous()},
        "has no tensor up.qzeros; of up it has .*up.scales": {"up.qzeros": None},
        "the scales are for 3 groups": {"up.scales": good["up.scales"][:3], "up.qzeros": good["up.qzeros"][:3]},
        "g_idx": {"up.g_idx": torch.zeros(K, dtype=torch.int32)},
    }.items():
        tensors = {name: each for name, each in {**good, **change}.items() if each is not None}
        with pytest.raises(ValueError, match=match):
            checkpoints.read_w4(tensors, "up" if change else "down")
    with pytest.raises(ValueError, match="config.json says 8 bits"):
        checkpoints.read_w4(write(tmp_path, good, {"bits": 8}), "up")
    with pytest.raises(ValueError, match="no .safetensors file is there"):
        checkpoints.Checkpoint(tmp_path / "nothing.safetensors")
    with pytest.raises(ValueError, match=r"weight \(144, 272\) has \(2, 3\) blocks"):
        checkpoints.read_fp8({"x.weight": fp8(144, 272), "x.weight_scale_inv": torch.ones(2, 2)}, "x")
    with pytest.raises(ValueError, match="is not 4 bits of each of"):
        checkpoints.read_w4({**compressed("up", codes, scales, zeros, bias, None), "up.weight_shape": torch.tensor([N, K // 2])}, "up")


def test_linear_is_torchs(device):
    torch.manual_seed(0)
    theirs = torch.nn.Linear(64, 48, dtype=BF16, device=device)
    ours = nn.Linear.from_linear(theirs)
    x = randn(2, 5, 64, device=device)
    torch.testing.assert_close(ours(x), theirs(x), rtol=2**-6, atol=2**-6)
    assert ours.weight is theirs.weight
    ours(x).float().square().sum().backward()
    got, theirs.weight.grad = theirs.weight.grad, None
    theirs(x).float().square().sum().backward()
    torch.testing.assert_close(got, theirs.weight.grad, rtol=2**-5, atol=2**-3)
    with pytest.raises(ValueError, match="its last dimension must be 64"):
        ours(randn(5, 63, device=device))


def test_state_dicts_go_round(device):
    linear = torch.nn.Linear(128, 72, dtype=BF16, device=device)
    for one, other in ((nn.Fp8Linear.from_linear(linear), nn.Fp8Linear(fp8(72, 128, device=device), torch.ones(1, 1, device=device), randn(72, device=device))),
                       (nn.W4Linear.from_linear(linear, group_size=64), nn.W4Linear.from_linear(torch.nn.Linear(128, 72, dtype=BF16, device=device), group_size=64))):  # fmt: skip
        other.load_state_dict(one.state_dict())
        x = randn(3, 128, device=device)
        assert torch.equal(one(x), other(x))


def test_layers_compile_as_one_graph(device):
    linear = torch.nn.Linear(256, 144, dtype=BF16, device=device).requires_grad_(False)
    model = torch.nn.Sequential(nn.Linear.from_linear(linear), torch.nn.Linear(144, 256, dtype=BF16, device=device).requires_grad_(False),
                                nn.W4Linear.from_linear(linear), torch.nn.Linear(144, 256, dtype=BF16, device=device).requires_grad_(False),
                                nn.Fp8Linear.from_linear(linear))  # fmt: skip
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="inductor" if device == "cuda" else "aot_eager")
    x = randn(3, 256, device=device)
    torch.testing.assert_close(compiled(x), model(x), rtol=2**-5, atol=2**-5)


def experts(count, out_features, in_features, seed):
    return randn(count, out_features, in_features, seed=seed) * 0.1


@pytest.mark.parametrize("kind", ["bf16", "fp8"])
def test_mixture_of_experts(kind, device, tmp_path):
    count, features, width, tokens, k = 4, 256, 128, 19, 2
    gate, up, down = experts(count, width, features, 1), experts(count, width, features, 2), experts(count, features, width, 3)
    tensors = {}
    for e in range(count):
        for name, weights in (("gate_proj", gate), ("up_proj", up), ("down_proj", down)):
            layer = f"mlp.experts.{e}.{name}"
            if kind == "bf16":
                tensors[layer + ".weight"] = weights[e]
            else:
                made = nn.Fp8Linear.from_linear(linear_of(weights[e]))
                tensors[layer + ".weight"], tensors[layer + ".weight_scale_inv"] = made.weight, made.weight_scale_inv
    moe = nn.MoE.from_checkpoint(write(tmp_path, tensors), "mlp", count, device=device)
    x = randn(tokens, features, device=device)
    ids = torch.stack([torch.randperm(count - 1, generator=torch.Generator().manual_seed(t))[:k] for t in range(tokens)]).to(device)  # the last has none
    weights = torch.rand(tokens, k, generator=torch.Generator().manual_seed(0)).to(device)
    expected = torch.zeros(tokens, features, dtype=torch.float64)
    for t in range(tokens):
        for e, weight in zip(ids[t].tolist(), weights[t].tolist()):
            row = x[t].cpu().double()
            hidden = torch.nn.functional.silu(row @ gate[e].double().t()) * (row @ up[e].double().t())
            expected[t] += weight * (hidden @ down[e].double().t())
    got = moe(x, ids, weights).cpu().double()
    assert (got - expected).norm() < (0.01 if kind == "bf16" else 0.08) * expected.norm()
    with pytest.raises(ValueError, match="experts of"):
        nn.MoE(moe.gate_up, nn.GroupedLinear(randn(count, features, width - 8)))


def linear_of(weight):
    made = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False, dtype=weight.dtype)
    made.weight.data = weight
    return made


def test_grouped_linear_learns(device):
    layer = nn.GroupedLinear(randn(3, 16, 64, device=device).requires_grad_())
    ends = (0, 5, 5, 12)
    x = randn(12, 64, device=device)
    layer(x, offsets(*ends, device=device)).float().sum().backward()
    expected = torch.stack([x[begin:end].float().sum(0).expand(16, 64) for begin, end in zip(ends, ends[1:])])
    torch.testing.assert_close(layer.weight.grad.float(), expected, rtol=2**-6, atol=2**-4)
    with pytest.raises(ValueError, match="weights of float8_e4m3fn, and no others, have weight_scale_inv"):
        nn.GroupedLinear(randn(3, 16, 64), torch.ones(3, 1, 1))


class Subclass(torch.nn.Linear):
    pass


def model(device="cpu"):
    made = torch.nn.ModuleDict({
        "up": torch.nn.Linear(256, 144, dtype=BF16), "odd": torch.nn.Linear(250, 8, dtype=BF16), "wide": torch.nn.Linear(64, 8),
        "lm_head": torch.nn.Linear(256, 64, bias=False, dtype=BF16), "special": Subclass(64, 64, dtype=BF16),
        "inner": torch.nn.Sequential(torch.nn.Linear(128, 64, dtype=BF16), torch.nn.ReLU()),
    })  # fmt: skip
    return made.to(device).eval()


@pytest.mark.parametrize("weights, swapped, kind", [("same", ["up", "odd", "inner.0"], nn.Linear), ("fp8", ["up", "inner.0"], nn.Fp8Linear), ("w4", ["up", "inner.0"], nn.W4Linear)])
def test_patch(weights, swapped, kind, device, capsys):
    patched = model(device)
    x = randn(3, 256, device=device)
    before = patched["up"](x)
    done = nn.patch(patched, weights, skip=["lm_head"])
    assert [each.name for each in done if each.after] == swapped
    assert all(isinstance(patched.get_submodule(name), kind) for name in swapped)
    said = capsys.readouterr().out
    assert f"{len(swapped)} of 6 linear layers swapped" in said and "left, it is to be skipped" in said
    assert "left, a subclass may compute something else" in said and "left, its weights are torch.float32" in said
    error = (patched["up"](x) - before).float().norm() / before.float().norm()
    assert error < {"same": 0.01, "fp8": 0.06, "w4": 0.2}[weights]
    with pytest.raises(ValueError, match="is none of same, fp8, w4"):
        nn.patch(patched, "int8")


def test_patch_leaves_what_would_be_lost(capsys):
    hooked = torch.nn.Sequential(torch.nn.Linear(64, 64, dtype=BF16), torch.nn.Linear(64, 64, dtype=BF16, device="meta"))
    hooked[0].register_forward_hook(lambda *_: None)
    assert [each.why for each in nn.patch(hooked, verbose=False)] == ["it has hooks or parametrisations, which would be lost", "its weights are on meta"]
    assert nn.patch(torch.nn.Linear(64, 64, dtype=BF16), verbose=False)[0].why == "it is the model itself"
    assert capsys.readouterr().out == ""
