"""The machine below torch's operations: the current device and stream, workspaces, and a bounded cache."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, NamedTuple, Optional, TypeVar

import torch

from .._library import built_with_cuda, check, library
from ..device import Device

# One CUDA stream has one workspace of each kind; so many are kept in a process.
WORKSPACES_KEPT = 32
LEAST_WORKSPACE_BYTES = 1 << 20

raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None) or (lambda index: torch.cuda.current_stream(index).cuda_stream)
current_device = getattr(torch._C, "_cuda_getDevice", None) or torch.cuda.current_device

Key = TypeVar("Key")
Value = TypeVar("Value")


class Bounded(Generic[Key, Value]):
    """A cache that forgets what it has had longest. Safe from many threads; looking up is one dictionary access."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._values: dict[Key, Value] = {}
        self._lock = threading.Lock()
        self.get = self._values.get

    def put(self, key: Key, value: Value) -> Value:
        with self._lock:
            self._values.pop(key, None)
            while len(self._values) >= self.capacity:
                del self._values[next(iter(self._values))]
            self._values[key] = value
        return value

    def clear(self) -> None:
        with self._lock:
            self._values.clear()

    def __len__(self) -> int:
        return len(self._values)


@functools.lru_cache(maxsize=None)
def gpu(index: int) -> Device:
    """The GPU of this number. Errors: RuntimeError for a build without kernels, and for a GPU that is not Hopper."""
    if not built_with_cuda():
        raise RuntimeError("this build of Sluice has no kernels for GPUs (it was built without CUDA); tensors on the CPU it can multiply")
    with torch.cuda.device(index):
        return Device.current()


def settle(device: torch.device) -> None:
    """Weights that a kernel of ours has just written may be declared constant from here on. Kernels of ours let their successors start early, and one
    that takes weights for constant would not wait for them; a kernel of torch's, such as this, starts when all before it has ended, and ours after it."""
    if device.type == "cuda":
        torch.zeros(1, device=device)


class Workspace(NamedTuple):
    pointer: int
    size_bytes: int
    memory: Optional[torch.Tensor]


NO_WORKSPACE = Workspace(0, 0, None)
_held: Bounded[tuple[str, int, int], Workspace] = Bounded(WORKSPACES_KEPT)
_scope = threading.local()


def workspace(kind: str, index: int, stream: int, size_bytes: int) -> Workspace:
    """Prepared memory for the next launch on `stream`, the current stream of the current device `index`. `kind` is "gemm" or "attention".

    Launches on a stream follow one another, so they share one. While a stream is captured, work of other streams and graphs may later run
    beside the graph's: then each launch has memory of its own, cleared inside the graph, or shares that of graph_workspace()."""
    if not size_bytes:
        return NO_WORKSPACE
    if torch.cuda.is_current_stream_capturing():
        return _captured(kind, index, stream, size_bytes)
    held = _held.get((kind, index, stream))
    if held is None or held.size_bytes < size_bytes:
        held = _held.put((kind, index, stream), _lasting(kind, index, stream, size_bytes))
    return held


def _prepare(kind: str, memory: torch.Tensor, stream: int) -> Workspace:
    made = Workspace(memory.data_ptr(), memory.numel(), memory)
    function = library().prepare_workspace if kind == "gemm" else library().attention_prepare_workspace
    check(function(made.pointer, made.size_bytes, stream))
    return made


@functools.lru_cache(maxsize=None)
def _allocating_stream(index: int) -> torch.cuda.Stream:
    return torch.cuda.Stream(index)


def _shared_size(size_bytes: int) -> int:
    """Of memory that launches share: the next one that wants a little more has it, too."""
    return max(LEAST_WORKSPACE_BYTES, 1 << (size_bytes - 1).bit_length())


def _lasting(kind: str, index: int, stream: int, size_bytes: int) -> Workspace:
    """Memory that outlives the call. It is allocated on a stream of our own and by a thread of its own, so that it never comes from a pool that somebody
    has begun for the current stream or thread (as CUDA graph trees do, which must know of all that lives in theirs). When it goes, what was enqueued
    here runs first."""
    size = _shared_size(size_bytes)
    with ThreadPoolExecutor(1) as thread:
        memory = thread.submit(_allocate, size, index).result()
    memory.record_stream(torch.cuda.current_stream(index))
    return _prepare(kind, memory, stream)


def _allocate(size_bytes: int, index: int) -> torch.Tensor:
    with torch.cuda.device(index), torch.cuda.stream(_allocating_stream(index)):
        return torch.empty(size_bytes, dtype=torch.uint8, device=torch.device("cuda", index))


def _captured(kind: str, index: int, stream: int, size_bytes: int) -> Workspace:
    """Memory of the graph's own pool, cleared by a node of the graph. It may go when the launch is enqueued: whoever has it next in the graph comes
    later on the stream."""
    shared: Optional[dict[Any, Workspace]] = getattr(_scope, "workspaces", None)
    key = (kind, index, stream, _capture_id(stream)) if shared is not None else None
    if shared is not None and (found := shared.get(key)) is not None and found.size_bytes >= size_bytes:
        return found
    size = size_bytes if shared is None else _shared_size(size_bytes)
    made = _prepare(kind, torch.empty(size, dtype=torch.uint8, device=torch.device("cuda", index)), stream)
    if shared is not None:
        shared[key] = made
    return made


@contextlib.contextmanager
def graph_workspace() -> Iterator[None]:
    """Launches that are captured inside share one workspace for each stream, which the graph clears once, instead of one each:

        with torch.cuda.graph(graph), sluice.torch.graph_workspace():
            ...

    It spares a clearing of 64 KiB for each product whose plan needs a workspace, and one of all of it for each attention. Leave it before the
    capture ends, as this order does. Not for torch.compile(mode="reduce-overhead"), which forbids memory that outlives an operation."""
    outer = getattr(_scope, "workspaces", None)
    _scope.workspaces = {}
    try:
        yield
    finally:
        _scope.workspaces = outer


@functools.lru_cache(maxsize=None)
def _capture_info() -> Any:
    function = ctypes.CDLL("libcuda.so.1").cuStreamGetCaptureInfo_v2  # torch has no name for a capture
    function.restype, function.argtypes = ctypes.c_int, (ctypes.c_void_p,) * 6
    return function


def _capture_id(stream: int) -> int:
    """The driver's number of the capture that this stream is part of."""
    status, number = ctypes.c_int(), ctypes.c_uint64()
    if failed := _capture_info()(stream, ctypes.byref(status), ctypes.byref(number), None, None, None):
        raise RuntimeError(f"the CUDA driver does not say which capture the stream is part of (error {failed})")
    return number.value
