"""Arrays of other libraries: what they say of themselves, as NumPy's, by `__cuda_array_interface__` and by DLPack."""

import numpy
import pytest
from sluice.arrays import view
from support import BF16, E4M3, random


class OnlyDlpack:
    """An array of which nothing is known but this."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device, self.streams = array, device, []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.array.__dlpack__()


class OnlyCudaArrayInterface:
    def __init__(self, array, device=0, read_only=False, strides=None):
        self.device = device
        self.__cuda_array_interface__ = {"data": (array.ctypes.data, read_only), "shape": array.shape, "strides": strides,
                                         "typestr": array.dtype.str, "version": 3}  # fmt: skip


def test_numpy():
    array = random(6, 10)
    seen = view(array[1:5, ::2])
    assert (seen.shape, seen.strides, seen.dtype, seen.device) == ((4, 5), (10, 2), "bf16", None)
    assert seen.pointer == array.ctypes.data + 20 and seen.span == 39 and seen.span_bytes == 78
    assert view(random(3, 4, dtype=E4M3)).dtype == "e4m3"
    assert view(numpy.zeros((0, 4), numpy.int32)).span == 0


def test_numpy_arrays_that_are_refused():
    array = random(6, 10)
    with pytest.raises(ValueError, match="negative strides"):
        view(array[::-1])
    with pytest.raises(ValueError, match="elements of type complex64"):
        view(numpy.zeros(3, numpy.complex64))
    array.flags.writeable = False
    view(array)
    with pytest.raises(ValueError, match="read-only"):
        view(array, written=True)
    with pytest.raises(ValueError, match="no whole numbers of elements"):
        view(numpy.zeros(4, [("x", "i4"), ("y", "i2")])["x"])


def test_dlpack_in_host_memory():
    array = random(6, 10, dtype=numpy.float32)
    seen = view(OnlyDlpack(array[:, 2:7]))
    assert (seen.pointer, seen.shape, seen.strides, seen.dtype, seen.device) == (array.ctypes.data + 8, (6, 5), (10, 1), "fp32", None)


def test_dlpack_on_a_gpu_is_told_the_stream():
    given = OnlyDlpack(random(6, 10, dtype=numpy.int32), device=(2, 0))
    assert view(given, stream=0x7F00).device == 0
    assert view(given).dtype == "int32"
    assert given.streams == [0x7F00, 1]  # 1: the legacy default stream, which is 0 in CUDA


def test_cuda_array_interface():
    array = random(6, 10, dtype=numpy.float16)
    seen = view(OnlyCudaArrayInterface(array, device=3))
    assert (seen.pointer, seen.shape, seen.strides, seen.dtype, seen.device) == (array.ctypes.data, (6, 10), (10, 1), "fp16", 3)
    assert view(OnlyCudaArrayInterface(array, strides=(2, 12))).strides == (1, 6)
    with pytest.raises(ValueError, match="read-only"):
        view(OnlyCudaArrayInterface(array, read_only=True), written=True)


def test_torch():
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(6, 10, dtype=torch.bfloat16).t()
    seen = view(tensor)
    assert (seen.pointer, seen.shape, seen.strides, seen.dtype, seen.device) == (tensor.data_ptr(), (10, 6), (1, 10), "bf16", None)


def test_what_is_no_array():
    with pytest.raises(TypeError, match="str is no array"):
        view("abc")


def test_alignment():
    memory = random(64)
    assert memory.dtype == BF16
    at = next(i for i in range(8) if (memory.ctypes.data + 2 * i) % 16 == 0)
    assert [view(memory[at + i :]).alignment for i in (0, 1, 2, 4)] == [16, 2, 4, 8]
