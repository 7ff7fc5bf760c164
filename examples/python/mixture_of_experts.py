"""A mixture-of-experts layer with random weights: the router is PyTorch's, the experts are one launch each of two grouped products.

    python examples/python/mixture_of_experts.py                            # on a Hopper GPU: bf16 and FP8 beside a loop over the experts
    python examples/python/mixture_of_experts.py --device cpu --small       # anywhere: checked and not timed
"""

import argparse
import statistics
import sys
import time

import torch
from torch.nn import functional

import sluice
import sluice.nn


class Layer(torch.nn.Module):
    """softmax(x R') chooses `chosen` experts for each token, whose results are weighted with it."""

    def __init__(self, router, experts, chosen):
        super().__init__()
        self.router, self.experts, self.chosen = router, experts, chosen

    def forward(self, x):
        weights, ids = torch.topk(torch.softmax(self.router(x).float(), -1), self.chosen)
        return self.experts(x, ids, weights / weights.sum(-1, keepdim=True))


class Loop(torch.nn.Module):
    """The same as PyTorch writes it: expert by expert, with rows found on the host."""

    def __init__(self, gate_up, down):
        super().__init__()
        self.gate_up, self.down = gate_up, down

    def forward(self, x, ids, weights):
        out = torch.zeros_like(x)
        for e in range(self.gate_up.shape[0]):
            rows, place = torch.where(ids == e)
            gate, up = (x[rows] @ self.gate_up[e].t()).chunk(2, -1)
            y = (functional.silu(gate) * up) @ self.down[e].t()
            out.index_add_(0, rows, y * weights[rows, place, None].to(y.dtype))
        return out


def fp8(weight):
    """(experts, out, in) in e4m3 with a scale for each 128 x 128."""
    made = [sluice.torch.quantize(each.contiguous(), scaling="128x128") for each in weight]
    q = torch.stack([each.view(torch.uint8) for each, _ in made]).view(torch.float8_e4m3fn)
    return sluice.nn.GroupedLinear(q, torch.stack([scale for _, scale in made]), constant_weights=True)


def milliseconds(layer, x, runs=20):
    times = []
    for _ in range(runs):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        layer(x)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times)


def graphed(layer, x):
    """The layer in a CUDA graph: nothing in it waits for the host, whatever the router decides."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        layer(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), sluice.torch.graph_workspace():
        y = layer(x)

    def replay(_):
        graph.replay()
        return y

    return replay


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 256, 4096])
    how = parser.parse_args()
    if how.device == "cuda" and not (torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)):
        sys.exit("mixture_of_experts.py: there is no Hopper GPU here, or this torch has no CUDA; --device cpu --small checks the layer without timing it")
    experts, features, width, chosen = (4, 128, 128, 2) if how.small else (64, 2048, 1408, 6)
    how.tokens = [5, 17] if how.small else how.tokens
    torch.manual_seed(0)
    normal = lambda *shape: torch.randn(*shape, dtype=torch.bfloat16, device=how.device) * shape[-1] ** -0.5  # noqa: E731
    router = torch.nn.Linear(features, experts, bias=False, dtype=torch.bfloat16, device=how.device)
    gate_up, down = normal(experts, 2 * width, features), normal(experts, features, width)
    grouped = lambda weight: sluice.nn.GroupedLinear(weight, constant_weights=True)  # noqa: E731
    layers = {
        "a loop of torch": Loop(gate_up, down),
        "sluice bf16": sluice.nn.MoE(grouped(gate_up), grouped(down)),
        "sluice fp8": sluice.nn.MoE(fp8(gate_up), fp8(down)),
    }
    print(f"{experts} experts of {features} -> {width}, {chosen} for each token")
    with torch.no_grad():
        for tokens in how.tokens:
            x = torch.randn(tokens, features, dtype=torch.bfloat16, device=how.device)
            expected = None
            for name, experts_of in layers.items():
                layer = Layer(router, experts_of, chosen)
                y = layer(x).float()
                expected = y if expected is None else expected
                error = float((y - expected).norm() / expected.norm())
                assert error < 0.1, f"{name} computes something else: {error}"
                line = f"{tokens:>6} tokens  {name:<16} differs by {error:.4f}"
                if how.device == "cuda":
                    line += f"  {milliseconds(layer, x):.3f} ms"
                    if name != "a loop of torch":
                        replay = graphed(layer, x)
                        line += f", in a graph {milliseconds(replay, x):.3f} ms"
                print(line)


if __name__ == "__main__":
    main()
