"""What lies between the products of a Llama-like block: normalisation, rotation of queries and keys, the gate. Once in PyTorch's own words, which torch.compile
fuses, and once as three Triton kernels that let their successor start before they have: a product whose weights are constant then fetches them while the kernel
before it still works (docs/decisions/0010-constant-operands-are-fetched-early.md), and no gap is left between two kernels.

Such a kernel must wait for its predecessor (gdc_wait) before it touches anything that another kernel writes or reads, in each of its CTAs; then whoever waits
for it has waited for all that came before."""

import torch
from torch.nn import functional

try:
    import triton
    import triton.language as tl
except ImportError:  # a torch without CUDA
    triton = None


class ByTorch:
    """x: (batch, hidden). delta: what the layer before has added to x, or None."""

    @staticmethod
    def add_and_norm(x, delta, norm):
        x = x if delta is None else x + delta
        return x, norm(x)

    @staticmethod
    def rotate_and_keep(qkv, positions, cos, sin, keys, values):
        """Puts this token's keys and values, (batch, heads, size), into the cache, and returns its queries."""
        batch, key_heads, size = keys.shape[0], keys.shape[2], keys.shape[3]
        heads = qkv.shape[1] // size - 2 * key_heads
        q, k, v = (each.view(batch, -1, size) for each in qkv.split([n * size for n in (heads, key_heads, key_heads)], -1))
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        rows = torch.arange(batch, device=qkv.device)
        keys[rows, positions] = k
        values[rows, positions] = v
        return q

    @staticmethod
    def gate(gate_up):
        gate, up = gate_up.chunk(2, -1)
        return functional.silu(gate) * up


def rotated(x, cos, sin):
    one, other = x.chunk(2, -1)
    return torch.cat([one * cos - other * sin, one * sin + other * cos], -1).to(x.dtype)


if triton is not None:

    @triton.jit
    def add_and_norm_kernel(x, delta, weight, sums, normed, columns, eps, adds: tl.constexpr, block: tl.constexpr):
        tl.extra.cuda.gdc_launch_dependents()
        at = tl.arange(0, block)
        there = at < columns
        w = tl.load(weight + at, there, 0.0).to(tl.float32)  # a parameter: nobody writes it
        tl.extra.cuda.gdc_wait()
        row = tl.program_id(0) * columns
        value = tl.load(x + row + at, there, 0.0).to(tl.float32)
        if adds:
            value = (value + tl.load(delta + row + at, there, 0.0).to(tl.float32)).to(sums.dtype.element_ty)
            tl.store(sums + row + at, value, there)
            value = value.to(tl.float32)
        scale = tl.rsqrt(tl.sum(value * value) / columns + eps)
        tl.store(normed + row + at, value * scale * w, there)

    @triton.jit
    def rotate_and_keep_kernel(qkv, positions, cos, sin, keys, values, queries, room, heads: tl.constexpr, key_heads: tl.constexpr, size: tl.constexpr):
        tl.extra.cuda.gdc_launch_dependents()
        row, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
        half: tl.constexpr = size // 2
        at = tl.arange(0, half)
        tl.extra.cuda.gdc_wait()
        position = tl.load(positions + row)
        source = qkv + (row * (heads + 2 * key_heads) + head) * size
        one, other = tl.load(source + at), tl.load(source + half + at)
        cache = ((row * room + position) * key_heads + head - heads) * size
        target = queries + (row * heads + head) * size
        if head >= heads + key_heads:
            target = values + cache - key_heads * size
        elif head >= heads:
            target = keys + cache
        if head < heads + key_heads:
            c, s = tl.load(cos + position * half + at).to(tl.float32), tl.load(sin + position * half + at).to(tl.float32)
            x, y = one.to(tl.float32), other.to(tl.float32)
            one, other = (x * c - y * s).to(one.dtype), (x * s + y * c).to(one.dtype)
        tl.store(target + at, one)
        tl.store(target + half + at, other)

    @triton.jit
    def gate_kernel(gate_up, gated, columns, block: tl.constexpr):
        tl.extra.cuda.gdc_launch_dependents()
        row, at = tl.program_id(1).to(tl.int64), tl.program_id(0) * block + tl.arange(0, block)
        there = at < columns
        tl.extra.cuda.gdc_wait()
        gate = tl.load(gate_up + row * 2 * columns + at, there, 0.0).to(tl.float32)
        up = tl.load(gate_up + row * 2 * columns + columns + at, there, 0.0).to(tl.float32)
        tl.store(gated + row * columns + at, (gate / (1 + tl.exp(-gate))).to(gated.dtype.element_ty).to(tl.float32) * up, there)


class Overlapped:
    """The same for CUDA tensors of contiguous rows. `tables`: cos and sin of all positions."""

    def __init__(self, tables):
        self.cos, self.sin = tables

    @staticmethod
    def add_and_norm(x, delta, norm):
        columns, normed = x.shape[1], torch.empty_like(x)
        sums = x if delta is None else torch.empty_like(x)
        add_and_norm_kernel[(x.shape[0],)](
            x, delta, norm.weight, sums, normed, columns, norm.eps, adds=delta is not None, block=triton.next_power_of_2(columns), num_warps=8, launch_pdl=True)
        return sums, normed

    def rotate_and_keep(self, qkv, positions, _cos, _sin, keys, values):
        batch, room, key_heads, size = keys.shape
        heads = qkv.shape[1] // size - 2 * key_heads
        queries = torch.empty(batch, heads, size, dtype=qkv.dtype, device=qkv.device)
        rotate_and_keep_kernel[(batch, heads + 2 * key_heads)](
            qkv, positions, self.cos, self.sin, keys, values, queries, room, heads=heads, key_heads=key_heads, size=size, num_warps=1, launch_pdl=True)
        return queries

    @staticmethod
    def gate(gate_up):
        columns, block = gate_up.shape[1] // 2, 1024
        gated = torch.empty(gate_up.shape[0], columns, dtype=gate_up.dtype, device=gate_up.device)
        gate_kernel[(triton.cdiv(columns, block), gate_up.shape[0])](gate_up, gated, columns, block=block, num_warps=4, launch_pdl=True)
        return gated
