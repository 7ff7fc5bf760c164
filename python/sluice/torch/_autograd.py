"""Gradients: of products of 16-bit operands, dense and grouped, which are such products again. Other operations say that they have none."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from ._ops import SCHEMAS, library


def _derivative(activation: str, z: Tensor) -> Tensor:
    """Of the activation at z, fp32. GELU is the tanh form, as in the kernels."""
    if activation == "silu":
        gate = torch.sigmoid(z)
        return gate * (1 + z * (1 - gate))
    rate, cubic = 0.7978845608028654, 0.044715  # sqrt(2 / pi)
    tanh = torch.tanh(rate * (z + cubic * z**3))
    return 0.5 * (1 + tanh) + 0.5 * z * (1 - tanh**2) * rate * (1 + 3 * cubic * z**2)


def _float(tensor: Optional[Tensor]) -> Optional[Tensor]:
    return None if tensor is None else tensor.float()


def _gemm_context(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Tensor) -> None:
    a, b, c, bias = inputs
    ctx.how = keyword_only_inputs
    relu = ctx.how["activation"] == "relu"
    smooth = ctx.how["activation"] in ("gelu", "silu")
    ctx.save_for_backward(a, b, c if smooth else None, bias if smooth else None, output if relu else None)
    ctx.c, ctx.bias = (None if each is None else (each.dtype, each.dim()) for each in (c, bias))


def _through_activation(ctx: Any, gradient: Tensor, output: Any, z: Any) -> Tensor:
    """The gradient of what the activation was applied to; z() gives that in fp32."""
    activation = ctx.how["activation"]
    if activation == "none":
        return gradient
    if activation == "relu":
        return gradient * (output > 0)
    return (gradient.float() * _derivative(activation, z())).to(gradient.dtype)


def _summed(gradient: Tensor, dimensions: int) -> Tensor:
    """Of an operand that the whole batch shares."""
    return gradient.sum(0) if gradient.dim() > dimensions else gradient


def _gemm_backward(ctx: Any, gradient: Tensor) -> tuple[Optional[Tensor], ...]:
    a, b, c, bias, output = ctx.saved_tensors
    alpha, beta, per_row = ctx.how["alpha"], ctx.how["beta"], ctx.how["bias_per_row"]
    gemm = torch.ops.sluice.gemm

    def z() -> Tensor:
        return gemm(a, b, _float(c), _float(bias), alpha=alpha, beta=beta, bias_per_row=per_row, out_dtype=torch.float32)

    g = _through_activation(ctx, gradient, output, z)
    g16 = g.to(a.dtype).contiguous()
    wanted = ctx.needs_input_grad
    da = _summed(gemm(g16, b.mT, alpha=alpha), a.dim()) if wanted[0] else None
    db = _summed(gemm(a.mT, g16, alpha=alpha), b.dim()) if wanted[1] else None
    dc = _summed(beta * g, ctx.c[1]).to(ctx.c[0]) if ctx.c and wanted[2] else None
    dbias = None
    if ctx.bias and wanted[3]:
        if ctx.bias[1] > 1:
            raise RuntimeError("gemm has no gradient for a bias of each matrix")
        kept = -2 if per_row else -1
        dbias = g.sum([d for d in range(g.dim()) if d != g.dim() + kept], dtype=torch.float32).to(ctx.bias[0])
    return da, db, dc, dbias


def _grouped_context(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Tensor) -> None:
    a, b, groups, bias, scale_a, scale_b = inputs
    if scale_a is not None or scale_b is not None or a.dtype not in (torch.bfloat16, torch.float16):
        ctx.how = None
        return
    ctx.how = keyword_only_inputs
    ctx.bias = None if bias is None else bias.dtype
    ctx.save_for_backward(a, b, groups, bias, output if ctx.how["activation"] == "relu" else None)


def _rows_of_groups(groups: Tensor, like: Tensor, grouping: str) -> Tensor:
    """Which rows of D belong to a group, to be multiplied with it."""
    rows = torch.arange(like.shape[-2], device=like.device)
    if grouping == "masked":
        return (rows[None, :] < groups[:, None])[..., None]
    return ((rows >= groups[0]) & (rows < groups[-1]))[:, None]


def _grouped_backward(ctx: Any, gradient: Tensor) -> tuple[Optional[Tensor], ...]:
    if ctx.how is None:
        raise RuntimeError("grouped_gemm has gradients for bf16 and fp16 operands alone")
    a, b, groups, bias, output = ctx.saved_tensors
    grouping = ctx.how["grouping"]
    rows = {name: ctx.how[name] for name in ("expected_rows", "most_rows")}
    product = torch.ops.sluice.grouped_gemm

    def z() -> Tensor:
        return product(a, b, groups, _float(bias), grouping=grouping, **rows, out_dtype=torch.float32)

    g = _through_activation(ctx, gradient, output, z)
    wanted = ctx.needs_input_grad
    if grouping == "along-k":
        if bias is not None and wanted[3]:
            raise RuntimeError("grouped_gemm along k has no gradient for a bias")
        g16 = g.to(a.dtype).contiguous()
        da = product(b, g16.mT, groups, grouping="ragged").mT if wanted[0] else None
        db = product(a.mT, g16, groups, grouping="ragged") if wanted[1] else None
        return da, db, None, None, None, None
    if bias is not None and bias.dim() > 1 and wanted[3]:
        raise RuntimeError("grouped_gemm has no gradient for a bias of each group")
    g = torch.where(_rows_of_groups(groups, g, grouping), g, 0)
    g16 = g.to(a.dtype).contiguous()
    da = product(g16, b.mT, groups, grouping=grouping, **rows) if wanted[0] else None
    db = None
    if wanted[1]:
        db = product(a.contiguous().mT, g16, groups, grouping="along-k") if grouping == "ragged" else _masked_weights(a, g16, groups)
        db = _summed(db, b.dim())
    dbias = g.sum(list(range(g.dim() - 1)), dtype=torch.float32).to(ctx.bias) if bias is not None and wanted[3] else None
    return da, db, None, dbias, None, None


def _masked_weights(a: Tensor, g16: Tensor, groups: Tensor) -> Tensor:
    """Rows behind a group's end may hold anything, NaN too, which times 0 is no 0."""
    counted = torch.where(_rows_of_groups(groups, a, "masked"), a, 0)
    return torch.ops.sluice.gemm(counted.mT, g16)


def _none(name: str) -> None:
    """An operation without gradients says so when they are asked for, rather than to cut them off."""

    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(f"sluice.{name} has no gradient; detach its inputs, or run it under torch.no_grad()")

    torch.library.register_autograd("sluice::" + name, backward, lib=library)


torch.library.register_autograd("sluice::gemm", _gemm_backward, setup_context=_gemm_context, lib=library)
torch.library.register_autograd("sluice::grouped_gemm", _grouped_backward, setup_context=_grouped_context, lib=library)
for _name in SCHEMAS:
    if _name not in ("gemm", "grouped_gemm"):
        _none(_name)
