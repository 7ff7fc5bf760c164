"""Arrays of any library as pointer, shape, strides and type: NumPy, PyTorch, and what speaks `__cuda_array_interface__` (CuPy, Numba) or DLPack (JAX)."""

from __future__ import annotations

import ctypes
import sys
from typing import Any, NamedTuple, Optional

# Types of elements by the names that array libraries have for them.
TYPES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "float32": "fp32",
    "float64": "fp64",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    **{name: name for name in ("uint8", "int8", "int16", "int32", "int64", "uint32")},
}
NAMES = {ours: theirs for theirs, ours in TYPES.items()}
BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "fp64": 8, "e4m3": 1, "e5m2": 1, "uint8": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint32": 4}

_CUDA_DEVICES = (2, 13)  # DLPack: device memory, managed memory
_HOST_DEVICES = (1, 3)  # and host memory, pinned or not
_DLPACK_KINDS = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 10: "float8_e4m3fn", 12: "float8_e5m2"}


class View(NamedTuple):
    """Where an array lies and how. Strides are in elements."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: Optional[int]  # the GPU's number, None for host memory
    owner: Any  # keeps the memory

    @property
    def place(self) -> str:
        return "in host memory" if self.device is None else f"on GPU {self.device}"

    @property
    def span(self) -> int:
        """Elements from the first to the last."""
        if 0 in self.shape:
            return 0
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides))

    @property
    def span_bytes(self) -> int:
        return self.span * BYTES[self.dtype]

    @property
    def alignment(self) -> int:
        """Of the first element, in bytes, 16 at most."""
        return alignment_of(self.pointer)


def alignment_of(pointer: int) -> int:
    return 16 if pointer % 16 == 0 else pointer & -pointer


def view(array: Any, *, stream: int = 0, written: bool = False) -> View:
    """Nothing is copied. `stream` is told to the array's library where that asks for it, so that its pending work comes first.

    Errors: ValueError for elements of other types, negative strides, a read-only array that is to be written; TypeError for what is no array."""
    found = _view(array, stream, written)
    if any(stride < 0 and size > 1 for size, stride in zip(found.shape, found.strides)):
        raise ValueError(f"strides {found.strides}: no array of negative strides is taken; pass a copy")
    return found


def _view(array: Any, stream: int, written: bool) -> View:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        device = array.get_device() if array.is_cuda else None
        return View(array.data_ptr(), tuple(array.shape), array.stride(), _type(str(array.dtype)[len("torch.") :]), device, array)
    if hasattr(array, "__array_interface__"):
        return _of_numpy(array, written)
    if hasattr(array, "__cuda_array_interface__") and not hasattr(array, "__dlpack__"):
        return _of_cuda_array_interface(array, written)
    if hasattr(array, "__dlpack__"):
        return _of_dlpack(array, stream)
    raise TypeError(f"{type(array).__name__} is no array: neither NumPy's, nor one with __dlpack__ or __cuda_array_interface__")


def _type(name: str) -> str:
    if name not in TYPES:
        raise ValueError(f"elements of type {name}; known are {', '.join(TYPES)}")
    return TYPES[name]


def _of_numpy(array: Any, written: bool) -> View:
    if written and not array.flags.writeable:
        raise ValueError("the array to be written is read-only; pass a copy")
    size = array.dtype.itemsize
    if any(stride % size for stride in array.strides):
        raise ValueError(f"strides of {array.strides} bytes are no whole numbers of elements; pass a copy")
    strides = tuple(stride // size for stride in array.strides)
    return View(array.ctypes.data, array.shape, strides, _type(array.dtype.name), None, array)


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Of an array in C order without gaps, in elements."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= max(size, 1)
    return tuple(strides)


def _of_cuda_array_interface(array: Any, written: bool) -> View:
    """https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html, version 3."""
    interface = array.__cuda_array_interface__
    pointer, read_only = interface["data"]
    if written and read_only:
        raise ValueError("the array to be written is read-only; pass a copy")
    kind, size = interface["typestr"][1], int(interface["typestr"][2:])
    dtype = _type({"f": "float", "i": "int", "u": "uint"}.get(kind, kind) + str(8 * size))
    shape = tuple(interface["shape"])
    strides = interface.get("strides")
    found = dense_strides(shape) if strides is None else tuple(stride // size for stride in strides)
    device = getattr(array, "device", 0)
    return View(pointer, shape, found, dtype, int(getattr(device, "id", device if isinstance(device, int) else 0)), array)


class _DLTensor(ctypes.Structure):
    """https://dmlc.github.io/dlpack/latest/c_api.html; the first field of a DLManagedTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def _of_dlpack(array: Any, stream: int) -> View:
    on_gpu = array.__dlpack_device__()[0] in _CUDA_DEVICES
    # 0 is ambiguous in this protocol; 1 is the legacy default stream.
    capsule = array.__dlpack__(stream=stream or 1) if on_gpu else array.__dlpack__()
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _DLTensor.from_address(get(capsule, b"dltensor"))
    if not on_gpu and tensor.device_type not in _HOST_DEVICES:
        raise ValueError(f"the array lies on a device of DLPack's type {tensor.device_type}, neither CUDA nor the host")
    kind = _DLPACK_KINDS.get(tensor.code, f"type {tensor.code} of ")
    dtype = _type(kind if kind.startswith("float8") else f"{kind}{tensor.bits}")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else dense_strides(shape)
    # The capsule is not renamed: it frees the array's loan when the view goes.
    return View((tensor.data or 0) + tensor.byte_offset, shape, strides, dtype, tensor.device_id if on_gpu else None, (array, capsule))
