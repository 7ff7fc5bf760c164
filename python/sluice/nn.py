"""Layers: linear ones whose weights are bf16 or fp16, FP8, or of 4 bits, those of experts, and `patch()`, which brings them into a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Optional, Union

import torch
from torch import Tensor

from . import checkpoints
from . import torch as ops
from .checkpoints import Source, join

Place = Union[torch.device, str, None]


def _rows(x: Tensor, features: int) -> Tensor:
    """As a matrix of contiguous rows. Errors: ValueError for a last dimension of another size."""
    if x.shape[-1] != features:
        raise ValueError(f"the input has shape {tuple(x.shape)}; its last dimension must be {features}")
    x = x.reshape(-1, features)
    return x if x.stride(1) == 1 or features == 1 else x.contiguous()


class Linear(torch.nn.Module):
    """y = activation(x W' + bias), W (out_features, in_features) in bf16 or fp16, as torch.nn.Linear has it, with gradients.

    constant_weights: no kernel that may still run writes the weights; for inference alone."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        activation: str = "none",
        constant_weights: bool = False,
        device: Place = None,
        dtype: torch.dtype = torch.bfloat16,
    ) -> None:
        super().__init__()
        made = torch.nn.Linear(in_features, out_features, bias, device=device, dtype=dtype)  # for its initialisation
        self.in_features, self.out_features = in_features, out_features
        self.weight, self.bias = made.weight, made.bias
        self.activation, self.constant_weights = activation, constant_weights

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, *, activation: str = "none", constant_weights: bool = False) -> Linear:
        """With the very parameters of this layer: nothing is copied, and what is tied to them stays so."""
        made = cls(linear.in_features, linear.out_features, False, activation=activation, constant_weights=constant_weights, device="meta")
        made.weight, made.bias = linear.weight, linear.bias
        return made.train(linear.training)

    @classmethod
    def from_checkpoint(cls, source: Source, layer: str, *, device: Place = None, dtype: Optional[torch.dtype] = None, activation: str = "none") -> Linear:
        """LAYER.weight (out, in) and, if it is there, LAYER.bias; fp32 becomes bf16. Its weights are constant, and have no gradients."""
        weight, bias = checkpoints.read_plain(source, layer, dtype)
        made = cls(weight.shape[1], weight.shape[0], False, activation=activation, constant_weights=True, device="meta")
        made.weight = torch.nn.Parameter(weight.to(device), requires_grad=False)
        made.bias = None if bias is None else torch.nn.Parameter(bias.to(device), requires_grad=False)
        return made

    def forward(self, x: Tensor) -> Tensor:
        y = ops.gemm(_rows(x, self.in_features), self.weight.t(), bias=self.bias, activation=self.activation, constant_b=self.constant_weights)
        return y.reshape(*x.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, dtype={self.weight.dtype}"


class Fp8Linear(torch.nn.Module):
    """y = x W' + bias, W in e4m3 with a scale for each 128 x 128 (DeepSeek's weight and weight_scale_inv). The rows of x, bf16 or fp16, are quantised
    with a scale for each 128 of them; y has x's type. in_features is a multiple of 16. No gradients."""

    weight: Tensor
    weight_scale_inv: Tensor
    bias: Optional[Tensor]

    def __init__(self, weight: Tensor, weight_scale_inv: Tensor, bias: Optional[Tensor] = None, *, activation: str = "none") -> None:
        super().__init__()
        given = checkpoints.read_fp8({"weight": weight, "weight_scale_inv": weight_scale_inv}, "")
        self.out_features, self.in_features = weight.shape
        if self.in_features % 16:
            raise ValueError(f"in_features = {self.in_features}: rows of FP8 weights must be multiples of 16; pad them with zeros")
        self.activation = activation
        self.register_buffer("weight", given.weight)
        self.register_buffer("weight_scale_inv", given.scale)
        self.register_buffer("bias", bias)

    @classmethod
    def from_checkpoint(cls, source: Source, layer: str, *, device: Place = None, activation: str = "none") -> Fp8Linear:
        """LAYER.weight, LAYER.weight_scale_inv and, if it is there, LAYER.bias."""
        read = checkpoints.read_fp8(source, layer)
        return cls(read.weight.to(device), read.scale.to(device), None if read.bias is None else read.bias.to(device), activation=activation)

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, *, activation: str = "none") -> Fp8Linear:
        """The weights of a layer, quantised."""
        with torch.no_grad():
            weight, scale = ops.quantize(linear.weight.detach().contiguous(), scaling="128x128")
            scale = scale.clone()  # a kernel of torch's: from here on the weights may be taken for constant (torch/_gpu.py, settle)
        return cls(weight, scale, None if linear.bias is None else linear.bias.detach(), activation=activation)

    def forward(self, x: Tensor) -> Tensor:
        rows, scales = ops.quantize(_rows(x, self.in_features))
        bias = self.bias if self.bias is None else self.bias.to(x.dtype)
        y = ops.fp8_gemm(rows, self.weight.t(), scales, self.weight_scale_inv.t(), bias, activation=self.activation, out_dtype=x.dtype, constant_b=True)
        return y.reshape(*x.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class W4Linear(torch.nn.Module):
    """y = x W' + bias, W of 4 bits with a scale (and a zero point) for each group of 32, 64 or 128 of in_features, or for all of them. x is bf16 or
    fp16, whichever the weights were packed for. in_features and out_features are multiples of 8. No gradients."""

    packed: Tensor
    order: Optional[Tensor]
    bias: Optional[Tensor]

    def __init__(
        self,
        packed: Tensor,
        in_features: int,
        out_features: int,
        *,
        group_size: int,
        zero_points: bool = False,
        order: Optional[Tensor] = None,
        bias: Optional[Tensor] = None,
        dtype: torch.dtype = torch.bfloat16,
        activation: str = "none",
    ) -> None:
        super().__init__()
        self.in_features, self.out_features, self.dtype = in_features, out_features, dtype
        self.group_size, self.zero_points, self.activation = group_size, zero_points, activation
        self.register_buffer("packed", packed)
        self.register_buffer("order", order)
        self.register_buffer("bias", None if bias is None else bias.to(dtype))

    @classmethod
    def from_checkpoint(
        cls,
        source: Source,
        layer: str,
        *,
        device: Place = None,
        dtype: Optional[torch.dtype] = None,
        gptq_v2: Optional[bool] = None,
        activation: str = "none",
    ) -> W4Linear:
        """A layer of GPTQ, AWQ or compressed-tensors: a .safetensors file, a folder, or a mapping of tensors. It is packed where `device` says.

        dtype: of the activations, that of the scales unless given (bf16 for fp32). Errors: ValueError for what is not there or not read."""
        read = checkpoints.read_w4(source, layer, gptq_v2=gptq_v2)
        to = dtype or (torch.bfloat16 if read.scales.dtype == torch.float32 else read.scales.dtype)
        codes, scales, zeros, order = (None if each is None else each.to(device) for each in (read.codes, read.scales, read.zeros, read.order))
        assert codes is not None and scales is not None
        packed = ops.pack_w4(codes, scales, zeros, order, source=read.source, dtype=to, zeros_as_stored=read.zeros_as_stored)
        bias = None if read.bias is None else read.bias.to(device)
        return cls(packed, read.k, read.n, group_size=read.group_size, zero_points=zeros is not None, order=order, bias=bias, dtype=to,
                   activation=activation)  # fmt: skip

    @classmethod
    def from_linear(cls, linear: torch.nn.Linear, *, group_size: int = 128, activation: str = "none") -> W4Linear:
        """The weights of a layer, each rounded to the nearest of 16 steps of its group. Calibrated methods keep models closer; this shows speed."""
        weight = linear.weight.detach()
        n, k = weight.shape
        if k % group_size:
            raise ValueError(f"in_features = {k} is no multiple of group_size = {group_size}")
        grouped = weight.float().reshape(n, -1, group_size)
        scales = (grouped.abs().amax(-1) / 7.5).clamp(min=1e-8).to(weight.dtype)
        codes = (torch.round(grouped / scales.float()[..., None]) + 8).clamp(0, 15).to(torch.uint8).reshape(n, k)
        packed = ops.pack_w4((codes[:, ::2] | codes[:, 1::2] << 4).contiguous(), scales.contiguous())
        bias = None if linear.bias is None else linear.bias.detach()
        return cls(packed, k, n, group_size=group_size, bias=bias, dtype=weight.dtype, activation=activation)

    def forward(self, x: Tensor) -> Tensor:
        if x.dtype != self.dtype:
            raise ValueError(f"the input is {x.dtype}; the weights were packed for {self.dtype}")
        y = ops.w4a16_gemm(_rows(x, self.in_features), self.packed, self.out_features, self.order, self.bias, group_size=self.group_size,
                           zero_points=self.zero_points, activation=self.activation)  # fmt: skip
        return y.reshape(*x.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        groups = f"group_size={self.group_size}, zero_points={self.zero_points}, act_order={self.order is not None}"
        return f"in_features={self.in_features}, out_features={self.out_features}, {groups}, bias={self.bias is not None}"


class GroupedLinear(torch.nn.Module):
    """A linear layer for each of `groups` experts: rows offsets[g] to offsets[g + 1] of x go through W[g] (out_features, in_features).

    W is bf16 or fp16 with gradients, or e4m3 with weight_scale_inv (groups, ceil(out/128), ceil(in/128)), and then x is quantised."""

    weight_scale_inv: Optional[Tensor]

    def __init__(self, weight: Tensor, weight_scale_inv: Optional[Tensor] = None, *, constant_weights: bool = False) -> None:
        super().__init__()
        if weight.dim() != 3:
            raise ValueError(f"weight has shape {tuple(weight.shape)}; it must be (groups, out_features, in_features)")
        fp8 = weight.dtype == torch.float8_e4m3fn
        if fp8 != (weight_scale_inv is not None):
            raise ValueError(f"weight is {weight.dtype}; weights of float8_e4m3fn, and no others, have weight_scale_inv")
        self.groups, self.out_features, self.in_features = weight.shape
        self.constant_weights = constant_weights
        self.weight = torch.nn.Parameter(weight, requires_grad=weight.requires_grad and not fp8)
        self.register_buffer("weight_scale_inv", weight_scale_inv)

    @classmethod
    def from_checkpoint(cls, source: Source, layers: Sequence[str], *, device: Place = None, dtype: Optional[torch.dtype] = None) -> GroupedLinear:
        """One layer for each expert, by their names; FP8 where they have weight_scale_inv. Errors: ValueError where their shapes differ."""
        checkpoint = checkpoints.as_checkpoint(source)
        scales: Optional[Tensor] = None
        if layers and join(layers[0], "weight_scale_inv") in checkpoint:
            read = [checkpoints.read_fp8(checkpoint, layer) for layer in layers]
            weights, scales = [each.weight for each in read], torch.stack([each.scale for each in read]).to(device)
        else:
            weights = [checkpoints.read_plain(checkpoint, layer, dtype)[0] for layer in layers]
        if len({tuple(each.shape) for each in weights}) != 1:
            raise ValueError(f"experts have weights of shapes {sorted({tuple(each.shape) for each in weights})}; they must be alike, and there must be some")
        stacked = torch.stack([each.view(torch.uint8) for each in weights]).view(weights[0].dtype) if scales is not None else torch.stack(weights)
        return cls(stacked.to(device), scales, constant_weights=True)

    def forward(self, x: Tensor, offsets: Tensor, *, expected_rows: int = 0, most_rows: int = 0) -> Tensor:
        """x: (T, in_features), sorted by expert; offsets: (groups + 1,) int32, from 0 to T -> (T, out_features). Rows of no expert are undefined."""
        rows = _rows(x, self.in_features)
        if self.weight_scale_inv is None:
            return self._product(rows, None, offsets, expected_rows, most_rows, x.dtype)
        return self._product(*ops.quantize(rows), offsets, expected_rows, most_rows, x.dtype)

    def of_gate(self, gate_and_up: Tensor, offsets: Tensor, *, expected_rows: int = 0, most_rows: int = 0) -> Tensor:
        """forward() of silu(gate) * up, both in one tensor side by side: in FP8 quantising takes them as they are."""
        gate, up = gate_and_up.chunk(2, -1)
        if self.weight_scale_inv is None:
            return self.forward(torch.nn.functional.silu(gate) * up, offsets, expected_rows=expected_rows, most_rows=most_rows)
        return self._product(*ops.quantize(gate, up), offsets, expected_rows, most_rows, gate.dtype)

    def _product(self, rows: Tensor, scales: Optional[Tensor], offsets: Tensor, expected_rows: int, most_rows: int, dtype: torch.dtype) -> Tensor:
        scales_b = None if self.weight_scale_inv is None else self.weight_scale_inv.mT
        return ops.grouped_gemm(rows, self.weight.mT, offsets, None, scales, scales_b, expected_rows=expected_rows, most_rows=most_rows,
                                constant_b=self.constant_weights, zero=False, out_dtype=dtype)  # fmt: skip

    def extra_repr(self) -> str:
        return f"groups={self.groups}, in_features={self.in_features}, out_features={self.out_features}, dtype={self.weight.dtype}"


class MoE(torch.nn.Module):
    """A mixture of experts, each down(silu(gate(x)) * up(x)), behind a router that is not part of it.

    gate_up: GroupedLinear to 2 * width features, the gate's first; down: GroupedLinear from width features. Nothing is copied to the host, so that it
    may be captured in a graph."""

    def __init__(self, gate_up: GroupedLinear, down: GroupedLinear) -> None:
        super().__init__()
        if gate_up.groups != down.groups or gate_up.out_features != 2 * down.in_features:
            raise ValueError(
                f"gate_up has {gate_up.groups} experts of {gate_up.out_features} features, down {down.groups} of {down.in_features}; "
                "there must be as many of them, and twice as many features"
            )
        self.gate_up, self.down = gate_up, down

    @classmethod
    def from_checkpoint(
        cls, source: Source, layer: str, experts: int, *, device: Place = None, dtype: Optional[torch.dtype] = None,
        names: Sequence[str] = ("gate_proj", "up_proj", "down_proj"),
    ) -> MoE:  # fmt: skip
        """LAYER.experts.0.gate_proj.weight and so on, bf16, fp16 or DeepSeek's FP8 (there the width must be a multiple of 128)."""
        checkpoint = checkpoints.as_checkpoint(source)
        gate, up, down = (
            GroupedLinear.from_checkpoint(checkpoint, [join(layer, f"experts.{e}.{name}") for e in range(experts)], device=device, dtype=dtype) for name in names
        )
        if gate.weight_scale_inv is not None and up.weight_scale_inv is not None:
            if gate.out_features % 128:
                raise ValueError(f"experts of {gate.out_features} features: blocks of scales of gate and up would overlap; it must be a multiple of 128")
            scales: Optional[Tensor] = torch.cat([gate.weight_scale_inv, up.weight_scale_inv], 1)
            both = torch.cat([gate.weight.data.view(torch.uint8), up.weight.data.view(torch.uint8)], 1).view(torch.float8_e4m3fn)
        else:
            scales, both = None, torch.cat([gate.weight.data, up.weight.data], 1)
        return cls(GroupedLinear(both, scales, constant_weights=True), down)

    def forward(self, x: Tensor, expert_ids: Tensor, expert_weights: Tensor) -> Tensor:
        """x: (T, features); expert_ids: (T, k), which experts each row goes to; expert_weights: (T, k), what their results are multiplied by."""
        tokens, k = expert_ids.shape
        chosen = expert_ids.reshape(-1).to(torch.int32)
        order = torch.argsort(chosen, stable=True)
        counts = ops.histogram(chosen, self.gate_up.groups)
        offsets = torch.nn.functional.pad(torch.cumsum(counts, 0, dtype=torch.int32), (1, 0))
        hidden = self.gate_up(x[order // k], offsets)
        y = self.down.of_gate(hidden, offsets)
        back = torch.empty_like(order).scatter_(0, order, torch.arange(tokens * k, device=x.device))
        return (y[back].view(tokens, k, -1) * expert_weights[..., None].to(y.dtype)).sum(1)


class Patched(NamedTuple):
    """What patch() did with one layer."""

    name: str
    before: str
    after: str  # "" where it was left
    why: str


def patch(model: torch.nn.Module, weights: str = "same", *, skip: Iterable[str] = (), group_size: int = 128, verbose: bool = True) -> list[Patched]:
    """Swaps the eligible torch.nn.Linear of a model, in place, and prints what it did and why not for the rest; returns the same.

    weights: "same" (bf16 or fp16 as they are, gradients kept), "fp8" (quantised, 128 x 128), or "w4" (rounded to 4 bits in groups of group_size).
    skip: names of layers, or ends of names ("lm_head"), to be left. A model in eval mode has its weights declared constant."""
    if weights not in ("same", "fp8", "w4"):
        raise ValueError(f"weights = '{weights}' is none of same, fp8, w4")
    done = []
    for name, module in list(model.named_modules()):
        if not isinstance(module, torch.nn.Linear):
            continue
        why = _why_not(name, module, weights, tuple(skip), group_size)
        after = ""
        if not why:
            made = _replacement(module, weights, group_size, constant=not model.training)
            parent, _, last = name.rpartition(".")
            setattr(model.get_submodule(parent), last, made)
            after = type(made).__name__
        done.append(Patched(name, f"{type(module).__name__} {module.in_features} -> {module.out_features} {module.weight.dtype}", after, why))
    if verbose:
        print(report(done))
    return done


def report(done: Sequence[Patched]) -> str:
    """A line for each layer."""
    width = max((len(each.name) for each in done), default=0)
    lines = [f"{each.name:<{width}}  {each.before}: " + (f"now {each.after}" if each.after else f"left, {each.why}") for each in done]
    return "\n".join([*lines, f"{sum(1 for each in done if each.after)} of {len(done)} linear layers swapped"])


def _why_not(name: str, module: torch.nn.Linear, weights: str, skip: tuple[str, ...], group_size: int) -> str:
    """Why a layer cannot be swapped, "" where it can."""
    dtype, k, n = module.weight.dtype, module.in_features, module.out_features
    if not name:
        return "it is the model itself"
    if any(name == each or name.endswith("." + each) for each in skip):
        return "it is to be skipped"
    if type(module) is not torch.nn.Linear:
        return "a subclass may compute something else"
    if torch.nn.utils.parametrize.is_parametrized(module) or module._forward_hooks or module._forward_pre_hooks:
        return "it has hooks or parametrisations, which would be lost"
    if dtype not in (torch.bfloat16, torch.float16):
        return f"its weights are {dtype}; bfloat16 and float16 are taken"
    if module.weight.device.type not in ("cuda", "cpu"):
        return f"its weights are on {module.weight.device}"
    if module.weight.is_cuda and torch.cuda.get_device_capability(module.weight.device) != (9, 0):
        return "its GPU is not Hopper"
    if weights == "fp8" and k % 16:
        return f"in_features = {k} is no multiple of 16"
    if weights == "w4" and (k % group_size or n % 8):
        return f"in_features = {k} is no multiple of {group_size}, or out_features = {n} none of 8"
    return ""


def _replacement(module: torch.nn.Linear, weights: str, group_size: int, constant: bool) -> torch.nn.Module:
    if weights == "same":
        return Linear.from_linear(module, constant_weights=constant)
    made: torch.nn.Module = Fp8Linear.from_linear(module) if weights == "fp8" else W4Linear.from_linear(module, group_size=group_size)
    return made.train(module.training)
