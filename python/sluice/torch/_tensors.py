"""Tensors as the rest of the package sees arrays."""

from __future__ import annotations

from typing import Optional

import torch

from ..arrays import alignment_of
from ..products import Spec

# torch's types by ours, and ours by torch's.
DTYPES = {
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "fp32": torch.float32,
    "e4m3": torch.float8_e4m3fn,
    "e5m2": torch.float8_e5m2,
    "uint8": torch.uint8,
    "int32": torch.int32,
    "int64": torch.int64,
}
NAMES = {theirs: ours for ours, theirs in DTYPES.items()}


def name_of(dtype: Optional[torch.dtype]) -> Optional[str]:
    """Errors: ValueError for a type that no operation takes."""
    if dtype is None:
        return None
    if dtype not in NAMES:
        raise ValueError(f"{dtype} is a type that no operation of Sluice takes; known are {', '.join(map(str, NAMES))}")
    return NAMES[dtype]


def spec_of(tensor: torch.Tensor) -> Spec:
    return Spec(tuple(tensor.shape), tensor.stride(), name_of(tensor.dtype) or "", alignment_of(tensor.data_ptr()))


def maybe_spec(tensor: Optional[torch.Tensor]) -> Optional[Spec]:
    return None if tensor is None else spec_of(tensor)


def one_device(**tensors: Optional[torch.Tensor]) -> torch.device:
    """Where all of them lie. Errors: ValueError where they lie in several places, RuntimeError for one on neither a CPU nor a CUDA GPU."""
    given = {name: tensor.device for name, tensor in tensors.items() if tensor is not None}
    (first, device), *others = given.items()
    for name, other in others:
        if other != device:
            raise ValueError(f"{first} is on {device}, and {name} on {other}; all must be on one device")
    if device.type not in ("cuda", "cpu"):
        raise RuntimeError(f"{first} is on {device}; Sluice runs on CUDA GPUs, and by plain loops on the CPU")
    return device
