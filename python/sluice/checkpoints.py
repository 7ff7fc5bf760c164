"""Weights from .safetensors checkpoints: GPTQ, AWQ and compressed-tensors of 4 bits, DeepSeek-style FP8, and plain bf16 and fp16.

The layouts are those of docs/w4.md, which names their sources.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional, Union

import torch
from torch import Tensor

from .operations import group_size_of, order_of_groups

Source = Union[str, "os.PathLike[str]", Mapping[str, Tensor], "Checkpoint"]


class Checkpoint:
    """Tensors by name, from a .safetensors file, a folder of them (with config.json, if there is one), or a mapping such as a state_dict.

    Tensors are read when they are asked for. Errors: ValueError where there is no such file, ImportError without the package safetensors."""

    def __init__(self, source: Union[str, os.PathLike[str], Mapping[str, Tensor]]) -> None:
        self.config: dict[str, Any] = {}
        self._tensors: dict[str, Any] = {}  # the tensor itself, or the open file that has it
        if isinstance(source, Mapping):
            self._tensors.update(source)
            self.place = "the mapping"
            return
        self.place = os.fspath(source)
        path = pathlib.Path(source)
        files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
        if not files or not all(file.is_file() for file in files):
            raise ValueError(f"{path}: no .safetensors file is there")
        for file in files:
            self._open(file)
        config = (path if path.is_dir() else path.parent) / "config.json"
        if config.is_file():
            self.config = json.loads(config.read_text()).get("quantization_config") or {}

    def _open(self, file: pathlib.Path) -> None:
        try:
            from safetensors import safe_open
        except ImportError:
            raise ImportError("checkpoints are read with the package safetensors, which is not installed") from None
        opened: Any = safe_open(str(file), framework="pt")
        self._tensors.update(dict.fromkeys(opened.keys(), opened))

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def __iter__(self) -> Any:
        return iter(self._tensors)

    def get(self, name: str) -> Optional[Tensor]:
        found = self._tensors.get(name)
        return found if found is None or isinstance(found, torch.Tensor) else found.get_tensor(name)

    def need(self, name: str) -> Tensor:
        """Errors: ValueError that says which tensors there are beside the missing one."""
        found = self.get(name)
        if found is None:
            layer = name.rpartition(".")[0]
            beside = [each for each in self._tensors if each.rpartition(".")[0] == layer]
            raise ValueError(f"{self.place} has no tensor {name}" + (f"; of {layer} it has {', '.join(beside)}" if beside else ""))
        return found


def as_checkpoint(source: Source) -> Checkpoint:
    return source if isinstance(source, Checkpoint) else Checkpoint(source)


def join(layer: str, name: str) -> str:
    return f"{layer}.{name}" if layer else name


class W4Tensors(NamedTuple):
    """A layer of 4 bits as pack_w4() takes it."""

    codes: Tensor
    scales: Tensor
    zeros: Optional[Tensor]
    order: Optional[Tensor]  # act-order's
    source: str
    zeros_as_stored: bool
    n: int
    k: int
    group_size: int
    bias: Optional[Tensor]


def read_w4(source: Source, layer: str, *, gptq_v2: Optional[bool] = None) -> W4Tensors:
    """A layer of GPTQ, AWQ or compressed-tensors, told apart by the names and shapes of its tensors.

    gptq_v2: whether GPTQ's zero points are stored as they are; from the checkpoint's config.json unless given.
    Errors: ValueError for a layer that is not there, of other bits than 4, or in a layout that is none of these."""
    checkpoint = as_checkpoint(source)
    bits = checkpoint.config.get("bits", checkpoint.config.get("w_bit", 4))
    if bits != 4:
        raise ValueError(f"{checkpoint.place}: config.json says {bits} bits; weights of 4 are read")
    if join(layer, "weight_packed") in checkpoint:
        return _read_compressed_tensors(checkpoint, layer)
    if join(layer, "qweight") in checkpoint:
        v2 = checkpoint.config.get("checkpoint_format") == "gptq_v2" if gptq_v2 is None else gptq_v2
        return _read_gptq_or_awq(checkpoint, layer, v2)
    raise ValueError(f"{checkpoint.place} has no layer '{layer}' of 4 bits: neither {join(layer, 'qweight')} nor {join(layer, 'weight_packed')}")


def _read_gptq_or_awq(checkpoint: Checkpoint, layer: str, v2: bool) -> W4Tensors:
    """AutoGPTQ's qlinear_cuda.py: qweight (k / 8, n); AutoAWQ's gemm.py: qweight (k, n / 8); scales (groups, n), qzeros (groups, n / 8) in both."""
    codes, scales, zeros = (checkpoint.need(join(layer, name)) for name in ("qweight", "scales", "qzeros"))
    groups, n = scales.shape
    if codes.dim() == 2 and codes.shape[1] == n:
        source, k = "gptq", codes.shape[0] * 8
    elif codes.dim() == 2 and codes.shape[1] * 8 == n:
        source, k = "awq", codes.shape[0]
    else:
        raise ValueError(
            f"{layer}: qweight {tuple(codes.shape)} and scales {tuple(scales.shape)} do not belong together: of GPTQ they are (k / 8, n) and (groups, n), "
            "of AWQ (k, n / 8) and (groups, n); other bits than 4, and AWQ's GEMV and Marlin versions, are not read"
        )
    as_stored = source == "gptq" and v2
    middle = 0x77777777 if source == "gptq" and not v2 else 0x88888888
    kept = None if bool((zeros == _signed(middle)).all()) else zeros.contiguous()
    size = group_size_of(k, groups)
    order = _order(checkpoint.get(join(layer, "g_idx")), size, join(layer, "g_idx"), k)
    return W4Tensors(codes.contiguous(), scales.contiguous(), kept, order, source, as_stored, n, k, size, checkpoint.get(join(layer, "bias")))


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def _read_compressed_tensors(checkpoint: Checkpoint, layer: str) -> W4Tensors:
    """pack_quantized.py of compressed-tensors: weight_packed (n, k / 8), weight_scale (n, groups), and zero points, which are 8 higher than signed
    ones: weight_zero_point (n / 8, groups), eight columns to a word, or (n, groups) of signed bytes, which are not."""
    codes, scales = checkpoint.need(join(layer, "weight_packed")), checkpoint.need(join(layer, "weight_scale"))
    n, k = codes.shape[0], codes.shape[1] * 8
    shape = checkpoint.get(join(layer, "weight_shape"))
    if shape is not None and shape.tolist() != [n, k]:
        raise ValueError(f"{layer}: weight_packed {tuple(codes.shape)} is not 4 bits of each of {shape.tolist()} weights (weight_shape)")
    if scales.dim() != 2 or scales.shape[0] != n:
        raise ValueError(f"{layer}: weight_scale {tuple(scales.shape)} does not belong to weight_packed {tuple(codes.shape)}: it must have {n} rows")
    groups = scales.shape[1]
    zeros = _compressed_zeros(checkpoint.get(join(layer, "weight_zero_point")), n, groups, layer)
    size = group_size_of(k, groups)
    order = _order(checkpoint.get(join(layer, "weight_g_idx")), size, join(layer, "weight_g_idx"), k)
    return W4Tensors(codes.contiguous(), scales.contiguous(), zeros, order, "plain", False, n, k, size, checkpoint.get(join(layer, "bias")))


def _compressed_zeros(given: Optional[Tensor], n: int, groups: int, layer: str) -> Optional[Tensor]:
    if given is None:
        return None
    if given.dtype == torch.int8 and given.shape == (n, groups):
        zeros = given.to(torch.int16) + 8
    elif given.dtype == torch.int32 and given.shape == (-(-n // 8), groups):
        shifts = torch.arange(0, 32, 4, dtype=torch.int32, device=given.device)
        zeros = ((given[:, None, :] >> shifts[None, :, None]) & 15).reshape(-1, groups)[:n]
    else:
        raise ValueError(f"{layer}: weight_zero_point is {given.dtype} {tuple(given.shape)}; it must be int32 ({-(-n // 8)}, {groups}), or int8 ({n}, {groups})")
    if bool(((zeros < 0) | (zeros > 15)).any()):
        raise ValueError(f"{layer}: weight_zero_point holds numbers that no 4 bits are")
    return None if bool((zeros == 8).all()) else zeros.to(torch.uint8).contiguous()


def _order(group_of: Optional[Tensor], group_size: int, name: str, k: int) -> Optional[Tensor]:
    """None where rows lie in the order of their groups."""
    if group_of is None or bool((group_of == -1).all()):
        return None
    if group_of.shape != (k,):
        raise ValueError(f"{name} has shape {tuple(group_of.shape)}; it must be the group of each of {k} rows")
    try:
        order = torch.from_numpy(order_of_groups(group_of.to(torch.int32).cpu().contiguous(), group_size or k))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return None if bool((order.diff() > 0).all()) else order


class Fp8Tensors(NamedTuple):
    weight: Tensor  # (n, k), e4m3
    scale: Tensor  # (ceil(n / 128), ceil(k / 128)), what the numbers of the block are to be multiplied by
    bias: Optional[Tensor]


def read_fp8(source: Source, layer: str) -> Fp8Tensors:
    """A layer as DeepSeek-V3 stores it (README_WEIGHTS.md of its repository): weight in e4m3, weight_scale_inv for blocks of 128 x 128.

    Errors: ValueError for a layer that is not there, or of other types and shapes."""
    checkpoint = as_checkpoint(source)
    weight, scale = checkpoint.need(join(layer, "weight")), checkpoint.need(join(layer, "weight_scale_inv"))
    if weight.dtype != torch.float8_e4m3fn or weight.dim() != 2:
        raise ValueError(f"{layer}: weight is {weight.dtype} {tuple(weight.shape)}; FP8 weights are float8_e4m3fn of 2 dimensions")
    wanted = (-(-weight.shape[0] // 128), -(-weight.shape[1] // 128))
    if tuple(scale.shape) != wanted:
        raise ValueError(f"{layer}: weight_scale_inv has shape {tuple(scale.shape)}; weight {tuple(weight.shape)} has {wanted} blocks of 128 x 128")
    return Fp8Tensors(weight.contiguous(), scale.to(torch.float32).contiguous(), checkpoint.get(join(layer, "bias")))


def read_plain(source: Source, layer: str, dtype: Optional[torch.dtype]) -> tuple[Tensor, Optional[Tensor]]:
    """weight (n, k) and bias, in `dtype` or as they are. Errors: ValueError for what is not there, or neither bf16, fp16 nor fp32."""
    checkpoint = as_checkpoint(source)
    weight, bias = checkpoint.need(join(layer, "weight")), checkpoint.get(join(layer, "bias"))
    if weight.dtype not in (torch.bfloat16, torch.float16, torch.float32):
        raise ValueError(f"{layer}: weight is {weight.dtype}; Linear takes bfloat16, float16 and float32 (which becomes bfloat16)")
    to = dtype or (torch.bfloat16 if weight.dtype == torch.float32 else weight.dtype)
    return weight.to(to).contiguous(), None if bias is None else bias.to(to)
