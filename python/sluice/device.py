"""GPUs as data: plans are made for one of them, there or on any other machine."""

from __future__ import annotations

import ctypes
import json
from typing import Any, Union

from . import _structures
from ._library import check, library, make, text_of


class Device:
    """A GPU as the planner sees it. Equal devices have equal fields.

    `Device.find("h200")`, `Device.current()` and `Device.from_json(text)` make one; fields are those of `sluice_device`, such as `sm_count`.
    """

    def __init__(self, structure: _structures.Device) -> None:
        self._structure = structure

    @classmethod
    def find(cls, name: str) -> Device:
        """One of the built-in devices. Errors: ValueError that lists them."""
        return cls._filled(library().device_find, name.encode())

    @classmethod
    def current(cls) -> Device:
        """The GPU that is current in the CUDA runtime. Errors: ValueError for a build without CUDA, RuntimeError where there is no Hopper GPU."""
        return cls._filled(library().device_current)

    @classmethod
    def from_json(cls, text: str) -> Device:
        """What `to_json()` has written. Errors: ValueError that names the field."""
        return cls._filled(library().device_from_json, text.encode())

    @classmethod
    def _filled(cls, function: Any, *arguments: Any) -> Device:
        """By a function whose last argument is a structure to be filled."""
        made = cls(make(_structures.Device))
        check(function(*arguments, made.reference))
        return made

    @staticmethod
    def names() -> list[str]:
        """Built-in devices."""
        return [library().device_name(index).decode() for index in range(library().device_count())]

    def to_json(self) -> str:
        return text_of(library().device_to_json, self.reference)

    @property
    def reference(self) -> Any:
        """The C structure, as functions of the library take it."""
        return ctypes.byref(self._structure)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._structure, name)
        return value.decode() if isinstance(value, bytes) else value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and json.loads(self.to_json()) == json.loads(other.to_json())

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __repr__(self) -> str:
        return f"<sluice.Device {self.name}: {self.sm_count} SMs>"


def as_device(device: Union[Device, str, None]) -> Device:
    """The device itself, that of a name, or the machine's own GPU for None.

    Errors: ValueError that lists the names where None is given and there is no Hopper GPU."""
    if isinstance(device, Device):
        return device
    if device is not None:
        return Device.find(device)
    try:
        return Device.current()
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"device is not given, and this machine's cannot be planned for ({error}); name one of {', '.join(Device.names())}") from None
