"""libsluice: where it is, its functions, and its errors as Python's own."""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
from typing import Any, TypeVar

from ._structures import STRUCTURES, WORDS, Structure

# Statuses that speak of what the caller passed: invalid argument, misaligned, unsupported, too large, workspace too small, not found,
# bad format. All others are the machine's or the library's.
_CALLERS = frozenset({1, 2, 3, 4, 5, 7, 8})

_p, _size, _i32, _i64 = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32, ctypes.c_int64
_text, _out = ctypes.c_char_p, ctypes.c_void_p  # strings go in as bytes, and come out through a pointer to a pointer

# Functions that return a status, by their names without "sluice_". Structures are passed by address.
_STATUS_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    **{name[len("sluice_") :] + "_init": (_p, _size) for name, kind in STRUCTURES.items() if issubclass(kind, Structure)},
    "device_find": (_text, _p),
    "device_current": (_p,),
    "device_from_json": (_text, _p),
    "device_to_json": (_p, _out),
    "plan_create": (_p, _p, _p, _out),
    "plan_from_json": (_text, _out),
    "plan_workspace_bytes": (_p, _p),
    "plan_get_info": (_p, _p),
    "plan_explain": (_p, _i32, _out),
    "plan_to_string": (_p, _out),
    "plan_to_json": (_p, _out),
    "plan_simulate_svg": (_p, _out),
    "plan_simulate_text": (_p, _i32, _out),
    "plan_simulate_json": (_p, _out),
    "prepare_workspace": (_p, _size, _p),
    "run": (_p, _p, _p, _size, _p),
    "run_on_cpu": (_p, _p, _i32, _p, _p),
    "run_on_emulator": (_p, _p, _p, _p, _p),
    "quantize_scale_count": (_p, _p),
    "quantize": (_p, _p, _p),
    "quantize_on_cpu": (_p, _p, _i32),
    "quantize_on_emulator": (_p, _p, _p),
    "packed_w4_bytes": (_p, _p),
    "pack_w4": (_p, _p, _p),
    "pack_w4_on_cpu": (_p, _p, _i32),
    "pack_w4_on_emulator": (_p, _p, _p),
    "unpack_w4_on_cpu": (_p, _p, _p),
    "w4_order_of_groups": (_i64, _i32, _p, _p),
    "permute_columns": (_i64, _i64, _p, _i64, _p, _p, _i64, _p),
    "permute_columns_on_cpu": (_i64, _i64, _p, _i64, _p, _p, _i64),
    "histogram": (_p, _p, _p),
    "histogram_on_cpu": (_p, _p, _i32),
    "histogram_on_emulator": (_p, _p, _p),
    "attention_workspace_bytes": (_p, _p, _p),
    "attention_prepare_workspace": (_p, _size, _p),
    "attention": (_p, _p, _p, _p, _size, _p),
    "attention_on_cpu": (_p, _p, _i32),
    "attention_on_emulator": (_p, _p, _p, _p),
}
# And those that return something else.
_OTHER_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "version": (_text, ()),
    "built_with_cuda": (_i32, ()),
    "built_with_emulator": (_i32, ()),
    "status_name": (_text, (_i32,)),
    "last_error": (_text, ()),
    "string_free": (None, (_p,)),
    "kernel_count": (_size, ()),
    "kernel_name": (_text, (_size,)),
    "device_count": (_size, ()),
    "device_name": (_text, (_size,)),
    "plan_destroy": (None, (_p,)),
    "plan_kernel_name": (_text, (_p,)),
}

S = TypeVar("S", bound=Structure)


class Library:
    """The functions of sluice.h as attributes, without "sluice_": `library().run(...)`."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            loaded = ctypes.CDLL(path)
        except OSError as error:
            raise ImportError(f"libsluice cannot be loaded: {error}") from None
        for name, arguments in _STATUS_FUNCTIONS.items():
            self._declare(loaded, name, _i32, arguments)
        for name, (result, arguments) in _OTHER_FUNCTIONS.items():
            self._declare(loaded, name, result, arguments)

    def _declare(self, loaded: ctypes.CDLL, name: str, result: Any, arguments: tuple[Any, ...]) -> None:
        function = getattr(loaded, "sluice_" + name)
        function.restype, function.argtypes = result, arguments
        setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:  # for the type checker: functions are attributes made above
        raise AttributeError(f"libsluice has no function sluice_{name}")


def _path() -> str:
    """$SLUICE_LIBRARY, or what the wheel carries."""
    if given := os.environ.get("SLUICE_LIBRARY"):
        return given
    carried = pathlib.Path(__file__).parent / "lib" / "libsluice.so"
    if not carried.exists():
        raise ImportError("this package carries no libsluice.so; install its wheel, or name one in the environment variable SLUICE_LIBRARY")
    return str(carried)


@functools.lru_cache(maxsize=None)
def library() -> Library:
    """Loaded when it is first needed."""
    return Library(_path())


def check(status: int) -> None:
    """Raises ValueError or RuntimeError, with the library's own words, unless the status says that all went well."""
    if status:
        raise_error(status)


def raise_error(status: int) -> None:
    words = library().last_error().decode() or library().status_name(status).decode()
    raise (ValueError if status in _CALLERS else RuntimeError)(words)


def make(kind: type[S], **fields: Any) -> S:
    """A structure with the library's defaults and these fields. Words stand for the numbers of enumerations.

    Errors: TypeError for a field that there is none of, ValueError for a word that is none of its field's."""
    made = kind()
    name = next(name for name, each in STRUCTURES.items() if each is kind)
    check(getattr(library(), name[len("sluice_") :] + "_init")(ctypes.byref(made), ctypes.sizeof(made)))
    known = {field[0] for field in kind._fields_}
    for field, value in fields.items():
        if field not in known or field == "struct_size":
            raise TypeError(f"{name[len('sluice_') :]} has no field '{field}'")
        setattr(made, field, number(field, value))
    return made


def number(field: str, value: Any) -> Any:
    """What a field of a structure holds: words of enumerations as numbers, strings as bytes."""
    if not isinstance(value, str):
        return value
    words = WORDS.get(field)
    if words is None:
        return value.encode()
    if value not in words:
        raise ValueError(f"{field} = '{value}' is none of {', '.join(words)}")
    return words.index(value)


def text_of(function: Any, *arguments: Any) -> str:
    """What a function hands out through its last argument, a `char**`."""
    text = ctypes.c_void_p()
    check(function(*arguments, ctypes.byref(text)))
    try:
        return ctypes.string_at(text.value or 0).decode()
    finally:
        library().string_free(text)


def size_of(function: Any, *arguments: Any) -> int:
    """What a function hands out through its last argument, a `size_t*`."""
    size = ctypes.c_size_t()
    check(function(*arguments, ctypes.byref(size)))
    return size.value


def built_with_cuda() -> bool:
    """Whether this library holds the kernels for the GPU."""
    return bool(library().built_with_cuda())


def built_with_emulator() -> bool:
    """Whether this library holds the kernels for the emulated GPU."""
    return bool(library().built_with_emulator())


def version() -> str:
    """The library's version: "0.1.0"."""
    return str(library().version().decode())


def kernels() -> list[str]:
    """The names of the kernels that plans may choose from."""
    return [library().kernel_name(index).decode() for index in range(library().kernel_count())]
