"""Sluice multiplies matrices on NVIDIA Hopper GPUs, and plans, simulates, emulates and packs on any machine.

Planning: `plan()`, `Plan`, `Device`, `tune()`, `tuned_plans()`. Operations on arrays: `gemm()`, `grouped_gemm()`, `general_gemm()`, `quantize()`, `pack_w4()`,
`w4a16_gemm()`, `decode_attention()`, `histogram()`. For PyTorch: `sluice.torch` (operations on tensors) and `sluice.nn` (layers), which are
imported when they are first asked for, as nothing else here needs it.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._library import built_with_cuda, built_with_emulator, kernels
from ._library import version as _version
from .attention import decode_attention, prepare_attention_workspace
from .device import Device
from .general import GROUP_ARGUMENTS, general_gemm
from .operations import (
    gemm,
    grouped_gemm,
    histogram,
    order_of_groups,
    pack_w4,
    packed_w4_bytes,
    permute_columns,
    quantize,
    unpack_w4,
    w4a16_gemm,
)
from .plan import Plan, Simulation, plan, prepare_workspace
from .tuning import tune, tuned_plans, use_plans

__all__ = [
    "GROUP_ARGUMENTS",
    "Device",
    "Plan",
    "Simulation",
    "built_with_cuda",
    "built_with_emulator",
    "decode_attention",
    "gemm",
    "general_gemm",
    "grouped_gemm",
    "histogram",
    "kernels",
    "order_of_groups",
    "pack_w4",
    "packed_w4_bytes",
    "permute_columns",
    "plan",
    "prepare_attention_workspace",
    "prepare_workspace",
    "quantize",
    "tune",
    "tuned_plans",
    "unpack_w4",
    "use_plans",
    "w4a16_gemm",
]

_NEED_TORCH = ("torch", "nn", "checkpoints")


def __getattr__(name: str) -> Any:
    if name in _NEED_TORCH:
        return importlib.import_module("." + name, __name__)
    if name == "__version__":
        return _version()
    raise AttributeError(f"module 'sluice' has no attribute '{name}'")
