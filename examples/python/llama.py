"""A Llama-like model with random weights that decodes under one CUDA graph: tokens per second of plain PyTorch, of torch.compile, and of the same
model with Sluice's layers and attention in bf16, FP8 and 4-bit weights.

    python examples/python/llama.py                              # on a Hopper GPU: batches of 1, 8 and 64
    python examples/python/llama.py --device cpu --small         # anywhere: a model of a few numbers, checked and not timed

Every variant decodes greedily from the same weights and the same cache. All but `eager` are captured in a CUDA graph of one step, which is replayed;
those named `compiled` went through torch.compile before. What lies between Sluice's products are the three Triton kernels of between_products.py, beside which
products fetch their weights early; `sluice bf16, compiled` has what torch.compile makes of it instead. Torch attends over the whole room of the
cache under a mask, as static caches do, by scaled_dot_product_attention() or by two products, whichever is faster; Sluice over the tokens that are there.

Eight layers and 32,000 words: the head then has the share of the whole that it has in Llama 3 8B, with 32 layers and 128,256 words.
"""

import argparse
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional

import sluice.nn
import sluice.torch
from between_products import ByTorch, Overlapped

VARIANTS = {  # name: (weights for sluice.nn.patch(), or None; attention; what lies between; a graph)
    "torch, eager": (None, "sdpa", "torch", False),
    "torch": (None, "sdpa", "torch", True),
    "torch, compiled": (None, "sdpa", "compiled", True),
    "torch, compiled, by products": (None, "products", "compiled", True),
    "sluice bf16, compiled": ("same", "sluice", "compiled", True),
    "sluice bf16": ("same", "sluice", "overlapped", True),
    "sluice fp8": ("fp8", "sluice", "overlapped", True),
    "sluice w4a16": ("w4", "sluice", "overlapped", True),
    "sluice w4a16, head too": ("w4, head", "sluice", "overlapped", True),
}
# How far logits may be from plain PyTorch's: what rounding, and quantising without calibration, do to random weights.
ALLOWED = {None: 0.05, "same": 0.05, "fp8": 0.4, "w4": 0.8, "w4, head": 0.8}


class Attention(nn.Module):
    def __init__(self, how, kind):
        super().__init__()
        self.heads, self.key_heads, self.size, self.kind = how.heads, how.key_heads, how.head_size, kind
        self.qkv = nn.Linear(how.hidden, (how.heads + 2 * how.key_heads) * how.head_size, bias=False)
        self.out = nn.Linear(how.heads * how.head_size, how.hidden, bias=False)
        self.register_buffer("keys", torch.zeros(how.batch, how.room, how.key_heads, how.head_size))
        self.register_buffer("values", torch.zeros(how.batch, how.room, how.key_heads, how.head_size))

    def forward(self, x, between, positions, lengths, cos, sin):
        q = between.rotate_and_keep(self.qkv(x), positions, cos, sin, self.keys, self.values)
        if self.kind == "sluice":
            o = sluice.torch.decode_attention(q[:, None].contiguous(), self.keys, self.values, lengths, constant_cache=True)
        else:
            # The heads that share a key head are as the new tokens of one: keys and values are read once.
            grouped = q.view(x.shape[0], self.key_heads, -1, self.size)
            seen = (torch.arange(self.keys.shape[1], device=x.device)[None, :] <= positions[:, None])[:, None, None]
            attend = functional.scaled_dot_product_attention if self.kind == "sdpa" else by_products
            o = attend(grouped, self.keys.transpose(1, 2), self.values.transpose(1, 2), seen)
        return self.out(o.reshape(x.shape[0], -1))


def by_products(q, k, v, seen):
    scores = (q @ k.mT).float() * q.shape[-1] ** -0.5
    return torch.softmax(scores.masked_fill(~seen, -float("inf")), -1).to(v.dtype) @ v


class Block(nn.Module):
    def __init__(self, how, kind):
        super().__init__()
        self.attention = Attention(how, kind)
        self.gate_up, self.down = nn.Linear(how.hidden, 2 * how.width, bias=False), nn.Linear(how.width, how.hidden, bias=False)
        self.before, self.between = nn.RMSNorm(how.hidden, 1e-5), nn.RMSNorm(how.hidden, 1e-5)

    def forward(self, x, delta, between, *where):
        x, normed = between.add_and_norm(x, delta, self.before)
        x, normed = between.add_and_norm(x, self.attention(normed, between, *where), self.between)
        return x, self.down(between.gate(self.gate_up(normed)))


class Model(nn.Module):
    def __init__(self, how, kind):
        super().__init__()
        self.embedding = nn.Embedding(how.vocabulary, how.hidden)
        self.blocks = nn.ModuleList(Block(how, kind) for _ in range(how.layers))
        self.norm, self.head = nn.RMSNorm(how.hidden, 1e-5), nn.Linear(how.hidden, how.vocabulary, bias=False)
        angles = torch.outer(torch.arange(how.room), 10000.0 ** -(torch.arange(0, how.head_size, 2) / how.head_size))
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())
        self.overlaps = False

    def forward(self, tokens, positions):
        """The logits of the next token of each sequence."""
        x, delta = self.embedding(tokens), None
        between = Overlapped((self.cos, self.sin)) if self.overlaps else ByTorch
        cos, sin = (None, None) if self.overlaps else (self.cos[positions][:, None], self.sin[positions][:, None])
        lengths = (positions + 1).to(torch.int32)
        for block in self.blocks:
            x, delta = block(x, delta, between, positions, lengths, cos, sin)
        return self.head(between.add_and_norm(x, delta, self.norm)[1])


def build(how, weights, kind):
    """The same numbers for every variant."""
    torch.manual_seed(0)
    with torch.device(how.device):
        model = Model(how, kind).to(torch.bfloat16).eval().requires_grad_(False)
    generator = torch.Generator(how.device).manual_seed(0)
    for parameter in model.parameters():
        if parameter.dim() == 2:
            parameter.normal_(0, 0.02, generator=generator)
    for block in model.blocks:
        for cache in (block.attention.keys, block.attention.values):
            cache.normal_(0, 1, generator=generator)
    if weights is not None:
        sluice.nn.patch(model, weights.removesuffix(", head"), skip=[] if weights.endswith("head") else ["head"], verbose=False)
        sluice.nn.patch(model, "same", verbose=False)  # what is left: the head, in bf16 unless the variant says otherwise
    return model


class Decoder:
    """Steps of decoding in place: tokens and positions are where a graph finds them."""

    def __init__(self, how, model, between, in_graph):
        model.overlaps = between == "overlapped" and how.device == "cuda"
        self.model = torch.compile(model, fullgraph=True) if between == "compiled" and how.device == "cuda" else model
        self.tokens = torch.arange(how.batch, device=how.device) % how.vocabulary
        self.positions = torch.full((how.batch,), how.context, device=how.device)
        self.logits = None
        self.replay = self.step
        self.start = self.tokens.clone(), self.positions.clone()
        if in_graph and how.device == "cuda":
            self.capture()

    def step(self):
        self.logits = self.model(self.tokens, self.positions)
        self.tokens.copy_(self.logits.argmax(-1))
        self.positions.add_(1)

    def reset(self):
        self.tokens.copy_(self.start[0])
        self.positions.copy_(self.start[1])

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.reset()
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        self.reset()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph), sluice.torch.graph_workspace():
            self.step()
        self.replay = graph.replay


def first_logits(decoder):
    decoder.reset()
    decoder.replay()
    return decoder.logits.float().clone()


def tokens_per_second(how, decoder):
    """The median of some runs of `steps` steps."""
    times = []
    for _ in range(how.runs):
        decoder.reset()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(how.steps):
            decoder.replay()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return how.batch * how.steps / statistics.median(times)


def compare(how, names):
    print(f"\nbatch {how.batch}: {how.layers} layers of {how.hidden}, width {how.width}, {how.heads} heads over {how.key_heads}, {how.context} tokens in the cache, {how.steps} steps")
    print(f"{'':<28} {'tokens/s':>10} {'ms/step':>9} {'to the best of torch':>21} {'logits differ by':>17}")
    expected, base = None, None
    for name in names:
        weights, kind, between, in_graph = VARIANTS[name]
        torch._dynamo.reset()
        with torch.no_grad():
            decoder = Decoder(how, build(how, weights, kind), between, in_graph)
            logits = first_logits(decoder)
            expected = logits if expected is None else expected
            difference = (logits - expected).norm() / expected.norm()
            rate = tokens_per_second(how, decoder) if how.device == "cuda" else None
        base = max(rate, base or 0.0) if rate and weights is None else base
        timed = [f"{rate:.1f}", f"{1e3 * how.batch / rate:.3f}", f"{rate / base:.2f}" if base and weights else "-"] if rate else ["-"] * 3
        print(f"{name:<28} {timed[0]:>10} {timed[1]:>9} {timed[2]:>21} {difference:>17.4f}")
        assert torch.isfinite(logits).all() and difference < ALLOWED[weights], f"{name} computes something else"
        del decoder
        if how.device == "cuda":
            torch.cuda.empty_cache()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--small", action="store_true", help="a model of a few numbers")
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--context", type=int, default=1000, help="tokens in the cache before the first step")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=list(VARIANTS), help="some of the variants")
    how = parser.parse_args()
    sizes = {"hidden": 4096, "width": 14336, "heads": 32, "key_heads": 8, "head_size": 128, "vocabulary": 32000}  # Llama 3 8B, with fewer words
    if how.small:
        sizes = {"hidden": 256, "width": 384, "heads": 4, "key_heads": 2, "head_size": 64, "vocabulary": 256}
        how.layers, how.context, how.steps, how.batch = 2, 20, 4, [1, 3]
    vars(how).update(sizes)
    how.room = -(-(how.context + how.steps + 1) // 128) * 128
    return how


def main():
    how = arguments()
    if how.device == "cuda" and not (torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)):
        sys.exit("llama.py: there is no Hopper GPU here, or this torch has no CUDA; --device cpu --small checks the model without timing it")
    print(f"{torch.cuda.get_device_name() if how.device == 'cuda' else 'CPU, not timed'}, torch {torch.__version__}, sluice {sluice.__version__}")
    for how.batch in list(how.batch):
        compare(how, how.only or VARIANTS)


if __name__ == "__main__":
    main()
