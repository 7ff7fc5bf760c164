"""Operands of every operation on tensors, for tests that go through all of them."""

import torch

BF16, FP8 = torch.bfloat16, torch.float8_e4m3fn


def randn(*shape, device="cpu", dtype=BF16, seed=0, grad=False):
    generator = torch.Generator().manual_seed(seed + 1000 * len(shape) + sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float32).to(dtype).to(device).requires_grad_(grad)


def integers(low, high, shape, device="cpu", dtype=torch.int32, seed=0):
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed), dtype=dtype).to(device)


def offsets(*numbers, device="cpu"):
    return torch.tensor(numbers, dtype=torch.int32, device=device)


def fp8(*shape, device="cpu", seed=0):
    return randn(*shape, seed=seed).to(FP8).to(device)


def samples(device, grad=True):
    """{name: (operation, arguments, keyword arguments)}: each operation, with and without what it may have."""
    r = lambda *shape, **how: randn(*shape, device=device, **how)  # noqa: E731
    ops = torch.ops.sluice
    a, w, bias = r(40, 64, grad=grad), r(48, 64, seed=1, grad=grad), r(48, grad=grad)
    codes, scales = integers(0, 256, (48, 128), device, torch.uint8), r(48, 2).abs() + 0.1
    packed = ops.pack_w4(codes, scales)
    order = torch.randperm(256, generator=torch.Generator().manual_seed(0)).to(torch.int32).to(device)
    cache = r(2, 100, 2, 128, seed=1), r(2, 100, 2, 128, seed=2)
    turned = tuple(x.transpose(1, 2).contiguous() for x in cache)
    pages = r(6, 16, 2, 128, seed=1), r(6, 16, 2, 128, seed=2)
    table = offsets(3, 0, 5, 1, 4, 2, device=device).view(2, 3)
    heads = torch.ones(2, device=device)
    one = torch.tensor([[0.5]], device=device)
    return {
        "gemm": (ops.gemm, (a, w.t()), {}),
        "gemm, epilogue": (ops.gemm, (a, w.t(), r(40, 48, seed=2, grad=grad), bias), {"alpha": 0.5, "beta": 2.0, "activation": "gelu"}),
        "gemm, fp32, relu": (ops.gemm, (a, w.t()), {"activation": "relu", "out_dtype": torch.float32}),
        "gemm, batch": (ops.gemm, (r(3, 8, 64, grad=grad), r(3, 64, 16, grad=grad)), {"activation": "silu"}),
        "gemm, shared b": (ops.gemm, (r(3, 8, 64, grad=grad), w.t()), {"constant_b": True}),
        "gemm, bias of rows": (ops.gemm, (a, w.t(), None, r(40, grad=grad)), {"bias_per_row": True}),
        "fp8_gemm": (ops.fp8_gemm, (fp8(8, 256, device=device), fp8(48, 256, device=device).t(), r(8, 2, dtype=torch.float32).abs(),
                                    one.expand(1, 1)), {}),
        "fp8_gemm, blocks": (ops.fp8_gemm, (fp8(8, 256, device=device), fp8(144, 256, device=device).t(), r(8, 2, dtype=torch.float32).abs(),
                                            r(2, 2, dtype=torch.float32).abs().t(), r(144)), {"activation": "silu"}),
        "grouped_gemm": (ops.grouped_gemm, (a, r(3, 64, 16, grad=grad), offsets(0, 10, 10, 40, device=device), r(16, grad=grad)), {"activation": "relu"}),
        "grouped_gemm, masked": (ops.grouped_gemm, (r(3, 8, 64, grad=grad), r(3, 64, 16, grad=grad), offsets(3, 0, 8, device=device)), {"grouping": "masked"}),
        "grouped_gemm, along k": (ops.grouped_gemm, (r(64, 24, grad=grad).t(), r(64, 16, grad=grad), offsets(0, 10, 64, device=device)), {"grouping": "along-k"}),
        "grouped_gemm, fp8": (ops.grouped_gemm, (fp8(40, 256, device=device), fp8(3, 48, 256, device=device).mT, offsets(0, 10, 10, 40, device=device), None,
                                                 r(40, 2, dtype=torch.float32).abs(), r(3, 1, 2, dtype=torch.float32).abs().mT), {}),
        "w4a16_gemm": (ops.w4a16_gemm, (r(5, 256), packed, 48), {}),
        "w4a16_gemm, act-order": (ops.w4a16_gemm, (r(5, 256), packed, 48, order, bias.detach()), {"activation": "relu"}),
        "quantize": (ops.quantize, (r(130, 272),), {}),
        "quantize, gate": (ops.quantize, (r(130, 272), r(130, 272, seed=1)), {"scaling": "128x128", "column_major_scales": True}),
        "pack_w4": (ops.pack_w4, (codes, scales, integers(0, 16, (48, 2), device, torch.uint8), order), {}),
        "pack_w4, gptq": (ops.pack_w4, (integers(-(2**31), 2**31 - 1, (32, 48), device), r(2, 48), integers(-(2**31), 2**31 - 1, (2, 6), device)), {"source": "gptq"}),
        "pack_w4, awq": (ops.pack_w4, (integers(-(2**31), 2**31 - 1, (256, 6), device), r(2, 48), integers(-(2**31), 2**31 - 1, (2, 6), device)), {"source": "awq"}),
        "decode_attention": (ops.decode_attention, (r(2, 1, 4, 128), *cache, offsets(50, 100, device=device)), {"return_lse": True, "constant_cache": True}),
        "decode_attention, heads first": (ops.decode_attention, (r(2, 2, 4, 128), *turned), {"kv_layout": "heads-first", "window": 30}),
        "decode_attention, pages": (ops.decode_attention, (r(2, 1, 4, 128), *pages, offsets(40, 17, device=device), table), {"max_kv_len": 48}),
        "decode_attention, fp8": (ops.decode_attention, (r(2, 1, 4, 128), *(x.to(FP8) for x in cache), offsets(50, 100, device=device), None, heads, heads), {}),
        "histogram": (ops.histogram, (integers(-3, 300, (1000,), device),), {}),
        "histogram, floats": (ops.histogram, (r(1000, dtype=torch.float32), 64), {"lower": -2.0, "upper": 2.0, "dtype": torch.int64, "outside": "clamped"}),
    }  # fmt: skip


NAMES = [
    "gemm", "gemm, epilogue", "gemm, fp32, relu", "gemm, batch", "gemm, shared b", "gemm, bias of rows", "fp8_gemm", "fp8_gemm, blocks", "grouped_gemm",
    "grouped_gemm, masked", "grouped_gemm, along k", "grouped_gemm, fp8", "w4a16_gemm", "w4a16_gemm, act-order", "quantize", "quantize, gate", "pack_w4",
    "pack_w4, gptq", "pack_w4, awq", "decode_attention", "decode_attention, heads first", "decode_attention, pages", "decode_attention, fp8", "histogram",
    "histogram, floats",
]  # fmt: skip
