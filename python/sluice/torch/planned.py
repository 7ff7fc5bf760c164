"""A product that is planned once and called many times, with as little Python as may be between the calls."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor

from .._library import library, raise_error
from . import _gpu
from ._products import ARGUMENTS_BYTES, How, pack_arguments, prepare, run


class PlannedGemm:
    """gemm() for tensors of these shapes, strides, types and device: `call = PlannedGemm(a, b, bias=bias); d = call(a, b, bias=bias)`.

    Arguments are those of gemm(); fp8 operands have scale_a and scale_b. `plan` says what was decided. It may be called by many threads, and
    captured in graphs. It is not seen by autograd, nor by torch.compile.
    Errors: those of gemm() when it is made, ValueError when it is called with tensors unlike those it was made for."""

    def __init__(
        self,
        a: Tensor,
        b: Tensor,
        *,
        c: Optional[Tensor] = None,
        bias: Optional[Tensor] = None,
        scale_a: Optional[Tensor] = None,
        scale_b: Optional[Tensor] = None,
        alpha: float = 1.0,
        beta: float = 1.0,
        activation: str = "none",
        out_dtype: Optional[torch.dtype] = None,
        constant_b: bool = False,
    ) -> None:
        how = How(alpha, beta, activation, False, out_dtype, constant_b=constant_b)
        operands = {"a": a, "b": b, "c": c, "bias": bias, "scale_a": scale_a, "scale_b": scale_b}
        self._made = prepare(operands, how)
        self.plan = self._made.plan
        self._index = -1 if self._made.device.index is None else self._made.device.index
        self._expected = {name: _looks(tensor) for name, tensor in operands.items() if tensor is not None}
        self._a, self._b = self._expected.pop("a"), self._expected.pop("b")
        self._launch = library().run

    def __call__(
        self,
        a: Tensor,
        b: Tensor,
        *,
        c: Optional[Tensor] = None,
        bias: Optional[Tensor] = None,
        scale_a: Optional[Tensor] = None,
        scale_b: Optional[Tensor] = None,
        out: Optional[Tensor] = None,
    ) -> Tensor:
        """The product, in `out` (dense, of the result's shape and type) or a new tensor."""
        made = self._made
        if (a.shape, a.stride(), a.dtype, a.get_device()) != self._a or (b.shape, b.stride(), b.dtype, b.get_device()) != self._b:
            self._refuse(a=a, b=b)
        others = (c, bias, scale_a, scale_b)
        if self._expected or others != (None, None, None, None):
            self._check_others(c=c, bias=bias, scale_a=scale_a, scale_b=scale_b)
        if out is None:
            d = torch.empty(made.shape, dtype=made.dtype, device=made.device)
        else:
            d = self._checked_out(out)
        index = self._index
        if index < 0 or index != _gpu.current_device():
            return self._elsewhere(a, b, d, *others)
        stream = _gpu.raw_stream(index)
        space = _gpu.workspace("gemm", index, stream, made.workspace_bytes)
        pointers = (0 if each is None else each.data_ptr() for each in others) if self._expected else (0, 0, 0, 0)
        at_c, at_bias, at_scale_a, at_scale_b = pointers
        arguments = pack_arguments(ARGUMENTS_BYTES, a.data_ptr(), b.data_ptr(), at_c, d.data_ptr(), at_bias, at_scale_a, at_scale_b, 0)
        status = self._launch(made.handle, arguments, space.pointer, space.size_bytes, stream)
        if status:
            raise_error(status)
        return d

    def _elsewhere(
        self, a: Tensor, b: Tensor, d: Tensor, c: Optional[Tensor], bias: Optional[Tensor], scale_a: Optional[Tensor], scale_b: Optional[Tensor]
    ) -> Tensor:
        """On the CPU, or on a GPU that is not the current one."""
        if self._index < 0:
            run(self._made, a, b, d, c, bias, scale_a, scale_b)
            return d
        with torch.cuda.device(self._index):
            run(self._made, a, b, d, c, bias, scale_a, scale_b)
        return d

    def _checked_out(self, out: Tensor) -> Tensor:
        made = self._made
        if out.shape != made.shape or out.dtype != made.dtype or out.get_device() != self._index or not out.is_contiguous():
            raise ValueError(f"out must be dense, {made.dtype} of shape {tuple(made.shape)} on {made.device}; it is {out.dtype} of shape {tuple(out.shape)} on {out.device}")
        return out

    def _check_others(self, **given: Optional[Tensor]) -> None:
        for name, tensor in given.items():
            if (tensor is None) != (name not in self._expected):
                raise ValueError(f"{name} was {'given' if tensor is None else 'not given'} when this was planned")
        self._refuse(**{name: tensor for name, tensor in given.items() if tensor is not None})

    def _refuse(self, **given: Tensor) -> None:
        """ValueError for a tensor unlike the one that this was made for."""
        for name, tensor in given.items():
            expected = {"a": self._a, "b": self._b, **self._expected}[name]
            if _looks(tensor) != expected:
                shape, strides, dtype, device = expected
                raise ValueError(
                    f"{name} must be {dtype} of shape {tuple(shape)} and strides {strides} on device {device}, as when this was planned; "
                    f"it is {tensor.dtype} of shape {tuple(tensor.shape)} and strides {tensor.stride()} on device {tensor.get_device()}"
                )


def _looks(tensor: Tensor) -> tuple[torch.Size, tuple[int, ...], torch.dtype, int]:
    return tensor.shape, tensor.stride(), tensor.dtype, tensor.get_device()
