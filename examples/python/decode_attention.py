"""Decode attention beside PyTorch's scaled_dot_product_attention, and beside the bytes of keys and values at the memory's rate.

    python examples/python/decode_attention.py       # on a Hopper GPU

One new token of each sequence, bf16, heads of 128, microseconds in CUDA graphs over caches that are together larger than L2. PyTorch has keys and values as it
likes them, (batch, heads, tokens, 128), and the fastest of its backends counts. Sluice is told that the cache is constant, as a model's is but for new tokens.
"""

import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

import sluice.torch

L2_BYTES = 60e6
# batch, heads, key heads, tokens
CASES = ((1, 32, 8, 8192), (1, 64, 8, 32768), (1, 32, 32, 16384), (1, 32, 8, 131072), (4, 32, 8, 32768), (16, 32, 8, 8192), (8, 64, 8, 16384),
         (64, 32, 8, 4096), (128, 64, 8, 2048), (16, 32, 32, 4096))  # fmt: skip
BACKENDS = (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION)


def microseconds(call, sets, rounds=9):
    """Per call, the median of some replays of a graph that calls with each set in turn."""
    calls = sets * max(1, 20 // sets)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for i in range(sets):
            call(i)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream), sluice.torch.graph_workspace():
        for i in range(calls):
            call(i % sets)
    times = []
    for _ in range(rounds + 2):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(1e3 * begin.elapsed_time(end) / calls)
    return sorted(times[2:])[rounds // 2]


def sdpa(q, keys, values, sets):
    """The fastest backend's time and name."""
    best = (float("inf"), "none")
    for backend in BACKENDS:
        def call(i):
            with sdpa_kernel([backend]):
                return scaled_dot_product_attention(q, keys[i], values[i], enable_gqa=True)  # fmt: skip

        try:
            best = min(best, (microseconds(call, sets), backend.name.removesuffix("_ATTENTION").lower()))
        except RuntimeError:  # it does not take this problem
            torch.cuda.synchronize()
    return best


def measure(batch, heads, key_heads, tokens):
    kv_bytes = 2 * batch * tokens * key_heads * 128 * 2
    sets = max(2, int(3 * L2_BYTES / kv_bytes) + 1)
    q = torch.randn(batch, 1, heads, 128, dtype=torch.bfloat16, device="cuda")
    keys = [torch.randn(batch, tokens, key_heads, 128, dtype=torch.bfloat16, device="cuda") for _ in range(sets)]
    values = [torch.randn(batch, tokens, key_heads, 128, dtype=torch.bfloat16, device="cuda") for _ in range(sets)]
    ours = microseconds(lambda i: sluice.torch.decode_attention(q, keys[i], values[i], constant_cache=True), sets)
    got = sluice.torch.decode_attention(q, keys[0], values[0])
    for each in (keys, values):
        for i in range(sets):
            each[i] = each[i].transpose(1, 2).contiguous()
    q_first = q.transpose(1, 2).contiguous()
    expected = scaled_dot_product_attention(q_first, keys[0], values[0], enable_gqa=True).transpose(1, 2)
    torch.testing.assert_close(got, expected, rtol=2e-2, atol=2e-3)
    theirs, backend = sdpa(q_first, keys, values, sets)
    return kv_bytes, ours, theirs, backend


def main():
    if not (torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)):
        sys.exit("decode_attention.py: there is no Hopper GPU here, or this torch has no CUDA")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, sluice {sluice.__version__}")
    print(f"{'batch, heads, key heads, tokens':32} {'MB':>6} {'sluice us':>10} {'torch us':>10}  backend     ratio")
    for case in CASES:
        kv_bytes, ours, theirs, backend = measure(*case)
        print(f"{', '.join(map(str, case)):32} {1e-6 * kv_bytes:6.0f} {ours:10.1f} {theirs:10.1f}  {backend:10} {theirs / ours:6.2f}")


if __name__ == "__main__":
    main()
