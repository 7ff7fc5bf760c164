"""Every product of tensors: plans kept, pointers bound, enqueued on the current stream."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, Optional

import torch
from torch import Tensor

from .._library import library, raise_error
from ..operations import PLANS_KEPT, host_device, plan_caches, plan_of
from ..plan import Plan
from ..products import W4, product
from . import _gpu
from ._tensors import DTYPES, maybe_spec, name_of, one_device, spec_of

# sluice_arguments, packed: a new one for each call, so that threads do not meet in it.
_ARGUMENTS = struct.Struct("N8P")
pack_arguments = _ARGUMENTS.pack
ARGUMENTS_BYTES = _ARGUMENTS.size


class How(NamedTuple):
    """What is asked of a product beside its operands."""

    alpha: float = 1.0
    beta: float = 1.0
    activation: str = "none"
    bias_per_row: bool = False
    out_dtype: Optional[torch.dtype] = None
    grouping: str = "none"
    expected_rows: int = 0
    most_rows: int = 0
    constant_b: bool = False
    w4: Optional[W4] = None


class Made(NamedTuple):
    """A planned product."""

    plan: Plan
    handle: int
    workspace_bytes: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


_made: _gpu.Bounded[Any, Made] = _gpu.Bounded(PLANS_KEPT)
plan_caches.append(_made.clear)


def signature(tensor: Optional[Tensor]) -> Any:
    """All that a plan depends on, and the device."""
    if tensor is None:
        return None
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.data_ptr() & 15, tensor.get_device()


def prepare(operands: dict[str, Optional[Tensor]], how: How, out: Optional[Tensor] = None) -> Made:
    """Plans a product. Errors: those of planning; ValueError for operands that do not belong together."""
    device = one_device(**operands, out=out)
    specs: dict[str, Any] = {name: maybe_spec(tensor) for name, tensor in operands.items()}
    settings = how._asdict()
    settings["out_dtype"] = name_of(how.out_dtype)
    asked = product(**specs, **settings, out=None if out is None else spec_of(out))
    machine = _gpu.gpu(device.index) if device.type == "cuda" else host_device()
    plan = plan_of(frozenset(asked.fields.items()), machine)
    return Made(plan, plan.handle, plan.workspace_bytes, asked.shape, DTYPES[asked.dtype], device)


def multiply(
    a: Tensor,
    b: Tensor,
    how: How,
    *,
    c: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    scale_a: Optional[Tensor] = None,
    scale_b: Optional[Tensor] = None,
    groups: Optional[Tensor] = None,
    zero: bool = False,
) -> Tensor:
    """The product, in a new tensor. With `zero` what it does not write is 0."""
    key = (signature(a), signature(b), signature(c), signature(bias), signature(scale_a), signature(scale_b), signature(groups), how)
    made = _made.get(key)
    if made is None:
        operands = {"a": a, "b": b, "c": c, "bias": bias, "scale_a": scale_a, "scale_b": scale_b, "groups": groups}
        made = _made.put(key, prepare(operands, how))
    if made.device.index is not None and made.device.index != _gpu.current_device():
        with torch.cuda.device(made.device.index):
            return multiply(a, b, how, c=c, bias=bias, scale_a=scale_a, scale_b=scale_b, groups=groups, zero=zero)
    d = (torch.zeros if zero else torch.empty)(made.shape, dtype=made.dtype, device=made.device)
    run(made, a, b, d, c, bias, scale_a, scale_b, groups)
    return d


def _pointer(tensor: Optional[Tensor]) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def run(
    made: Made,
    a: Tensor,
    b: Tensor,
    d: Tensor,
    c: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    scale_a: Optional[Tensor] = None,
    scale_b: Optional[Tensor] = None,
    groups: Optional[Tensor] = None,
) -> None:
    """Enqueues what is planned on the current stream of its device, which is current; or computes it, on the CPU."""
    arguments = pack_arguments(
        ARGUMENTS_BYTES, a.data_ptr(), b.data_ptr(), _pointer(c), d.data_ptr(), _pointer(bias), _pointer(scale_a), _pointer(scale_b), _pointer(groups)
    )
    index = made.device.index
    if made.device.type == "cpu":
        status = library().run_on_cpu(made.handle, arguments, 0, None, None)
    else:
        stream = _gpu.raw_stream(index)
        space = _gpu.workspace("gemm", index, stream, made.workspace_bytes)
        status = library().run(made.handle, arguments, space.pointer, space.size_bytes, stream)
    if status:
        raise_error(status)
