"""How long a call keeps the host, beside torch.matmul's own: microseconds per call, while the GPU is never waited for.

    python examples/python/call_overhead.py       # on a Hopper GPU

`launch alone` is sluice_run() called with everything at hand; what the others take more is their Python.
"""

import sys
import time

import torch

import sluice.torch
from sluice._library import library
from sluice.torch._products import ARGUMENTS_BYTES, pack_arguments


def microseconds(call, calls=500, rounds=40):
    """Per call, the least of some rounds: fewer calls than the queue of launches holds, so that none waits for the GPU."""
    best = float("inf")
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - begin) / calls)
    return 1e6 * best


def main():
    if not (torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)):
        sys.exit("call_overhead.py: there is no Hopper GPU here, or this torch has no CUDA")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, sluice {sluice.__version__}, Python {sys.version.split()[0]}")
    for m, n, k in ((16, 128, 128), (16, 2112, 7168)):
        a = torch.randn(m, k, dtype=torch.bfloat16, device="cuda")
        b = torch.randn(n, k, dtype=torch.bfloat16, device="cuda").t()
        out = torch.empty(m, n, dtype=torch.bfloat16, device="cuda")
        planned = sluice.torch.PlannedGemm(a, b)
        stream = torch.cuda.current_stream().cuda_stream
        workspace = torch.empty(max(planned.plan.workspace_bytes, 1), dtype=torch.uint8, device="cuda")
        sluice.prepare_workspace(workspace, stream)
        arguments = pack_arguments(ARGUMENTS_BYTES, a.data_ptr(), b.data_ptr(), 0, out.data_ptr(), 0, 0, 0, 0)
        run, handle = library().run, planned.plan.handle
        calls = {
            "launch alone": lambda: run(handle, arguments, workspace.data_ptr(), workspace.numel(), stream),
            "PlannedGemm, out=": lambda: planned(a, b, out=out),
            "PlannedGemm": lambda: planned(a, b),
            "sluice.torch.gemm": lambda: sluice.torch.gemm(a, b),
            "torch.matmul, out=": lambda: torch.matmul(a, b, out=out),
            "torch.matmul": lambda: torch.matmul(a, b),
        }
        print(f"{m} x {n} x {k}, workspace {planned.plan.workspace_bytes} bytes")
        with torch.no_grad():
            times = {name: microseconds(call) for name, call in calls.items()}
        for name, took in times.items():
            print(f"  {name:<20} {took:6.2f} us, {took - times['launch alone']:+6.2f} beside the launch")


if __name__ == "__main__":
    main()
