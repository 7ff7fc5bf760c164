"""Plans: how a product is computed on a device, as values that can be looked at, kept and carried out."""

from __future__ import annotations

import ctypes
import functools
import html
import json
import weakref
from typing import Any, Optional, Union

from . import _structures
from ._library import check, library, make, size_of, text_of
from .arrays import View, dense_strides, view
from .device import Device, as_device

_SIXTEEN_BITS = ("bf16", "fp16")
_OPTIONS = frozenset(field[0] for field in _structures.PlanOptions._fields_) - {"struct_size", "kernel_name", "forget_candidates"}
_OPERANDS = ("a", "b", "c", "bias", "scale_a", "scale_b", "groups")


def plan(m: int, n: int, k: int, *, device: Union[Device, str, None] = None, kernel: Optional[str] = None, **fields: Any) -> Plan:
    """Decides how to compute D = activation(alpha * A B + beta * C + bias) on a device: A is m x k, B is k x n, D is m x n.

    `device` is a Device, the name of a built-in one, or None for this machine's GPU. `kernel` takes exactly that one. Other fields are those
    of `sluice_problem` and `sluice_plan_options` in sluice.h, enumerations as words: type_a="e4m3", layout_b="row-major", batch=8,
    activation="gelu", grouping="ragged", scheduler="split-k", splits=4, determinism="batch-invariant". type_b is type_a unless given, and
    type_d is type_a where that has 16 bits, else bf16.

    Errors: ValueError for what can never be right and what no kernel does, TypeError for a field that there is none of."""
    options = {name: fields.pop(name) for name in list(fields) if name in _OPTIONS}
    type_a = fields.setdefault("type_a", "bf16")
    fields.setdefault("type_b", type_a)
    fields.setdefault("type_d", type_a if type_a in _SIXTEEN_BITS else "bf16")
    problem = make(_structures.Problem, m=m, n=n, k=k, **fields)
    return _create(problem, as_device(device), kernel=kernel, **options)


def _create(problem: _structures.Problem, device: Device, *, kernel: Optional[str] = None, **options: Any) -> Plan:
    restricted = make(_structures.PlanOptions, **({"kernel_name": kernel} if kernel else {}), **options) if kernel or options else None
    handle = ctypes.c_void_p()
    check(library().plan_create(ctypes.byref(problem), device.reference, restricted and ctypes.byref(restricted), ctypes.byref(handle)))
    return Plan(handle.value or 0)


class Plan:
    """A kernel, a schedule and a predicted time for one problem on one device. It never changes, and threads may share it.

    Made by `plan()`, `Plan.from_json()` and `tuned_plans()`; equal plans have equal JSON."""

    def __init__(self, handle: int) -> None:
        self.handle = handle  # of the C structure
        weakref.finalize(self, library().plan_destroy, handle)
        self.workspace_bytes: int = size_of(library().plan_workspace_bytes, handle)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """What `to_json()` or `sluice plan --json` has written. Errors: ValueError that names the field, or the kernel that this build lacks."""
        handle = ctypes.c_void_p()
        check(library().plan_from_json(text.encode(), ctypes.byref(handle)))
        return cls(handle.value or 0)

    def to_json(self) -> str:
        return text_of(library().plan_to_json, self.handle)

    @property
    def kernel(self) -> str:
        """The chosen kernel's name, "" where there is nothing to compute."""
        return str(library().plan_kernel_name(self.handle).decode())

    @property
    def problem(self) -> dict[str, Any]:
        """The problem, strides filled in, as JSON has it."""
        return dict(json.loads(self.to_json())["problem"])

    @functools.cached_property
    def _expects(self) -> dict[str, tuple[tuple[str, ...], int]]:
        return _expected(self.problem)

    @functools.cached_property
    def _is_general(self) -> bool:
        return bool(self.problem.get("grouping", "none") == "general")

    @property
    def info(self) -> dict[str, Any]:
        """Grid, workspace and the predicted time in parts: the fields of `sluice_plan_info`."""
        structure = make(_structures.PlanInfo)
        check(library().plan_get_info(self.handle, ctypes.byref(structure)))
        return {name: getattr(structure, name) for name in (field[0] for field in structure._fields_) if name != "struct_size"}

    def explain(self, most: int = 10) -> str:
        """Why the plan is as it is, with `most` candidates at most."""
        return text_of(library().plan_explain, self.handle, most)

    def simulate(self) -> Simulation:
        """The plan replayed on the CPU: coverage, waves, the timeline of every SM. Errors: ValueError for groups, whose sizes decide."""
        return Simulation(self)

    def run(
        self,
        a: Any,
        b: Any,
        d: Any,
        *,
        c: Any = None,
        bias: Any = None,
        scale_a: Any = None,
        scale_b: Any = None,
        groups: Any = None,
        workspace: Any = None,
        stream: int = 0,
        backend: str = "reference",
        threads: int = 0,
        **emulator: Any,
    ) -> None:
        """Carries the plan out on arrays that lie as its problem says; D is written in place.

        Arrays are NumPy's or any that speak DLPack or `__cuda_array_interface__`. In host memory `backend` "reference" computes by plain
        loops and "emulator" by the kernel on an emulated GPU (seed=, asynchrony=, resident_clusters=, diagnose=). In device memory the kernel is
        enqueued on `stream` (a cudaStream_t as a number) of the current device; `workspace` is then device memory of `workspace_bytes`, prepared
        once by `prepare_workspace()`.

        Errors: ValueError for arrays of other types or too few elements, in different places, or that are read-only where they are written."""
        if self._is_general:
            raise ValueError("the plan is for general groups, which have matrices of their own; pass an array of GROUP_ARGUMENTS to run_general()")
        given = dict(zip(_OPERANDS, (a, b, c, bias, scale_a, scale_b, groups)))
        views = {name: view(array, stream=stream) for name, array in given.items() if array is not None}
        views["d"] = view(d, stream=stream, written=True)
        _check_operands(self._expects, views)
        arguments = make(_structures.Arguments, **{name: each.pointer for name, each in views.items()})
        carry_out(self, arguments, one_place(views), workspace, stream, backend, threads, emulator)

    def run_general(
        self, groups: Any, *, workspace: Any = None, stream: int = 0, backend: str = "reference", threads: int = 0, **emulator: Any
    ) -> None:
        """Carries out a plan for general groups (grouping="general"). `groups` is memory for the problem's `batch` of `GROUP_ARGUMENTS`, one behind the
        other: an array of numpy.dtype(sluice.GROUP_ARGUMENTS), or bytes or words of any type, in host memory or on the GPU, with pointers of the same place.

        In device memory it is read when the kernels run, so that a graph may be replayed with other groups in it; the caller keeps what it points to.
        All else as in run(). Errors: ValueError for too few bytes; in host memory, for groups that break a promise, by number."""
        if not self._is_general:
            raise ValueError("the plan is not for general groups; plan with grouping='general', or call run()")
        if getattr(getattr(groups, "dtype", None), "names", None):  # a structured array of NumPy's
            groups = groups.view("uint8")
        at, size = view(groups, stream=stream), ctypes.sizeof(_structures.GroupArguments)
        if at.strides != dense_strides(at.shape) or at.span_bytes < self.problem["batch"] * size:
            raise ValueError(f"groups has shape {at.shape} and strides {at.strides} of {at.dtype}; the plan reads {self.problem['batch']} x {size} contiguous bytes")
        arguments = make(_structures.Arguments, group_arguments=at.pointer, group_arguments_size=size)
        carry_out(self, arguments, at.device, workspace, stream, backend, threads, emulator)

    def __str__(self) -> str:
        return text_of(library().plan_to_string, self.handle)

    def __repr__(self) -> str:
        written = json.loads(self.to_json())
        m, n, k = (written["problem"][size] for size in "mnk")
        return f"<sluice.Plan {m} x {n} x {k} on {written['device']['name']}: {self.kernel or 'nothing to compute'}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> Any:
        return Plan.from_json, (self.to_json(),)

    def _repr_html_(self) -> str:
        """In notebooks: the explanation, and the timeline where the plan can be simulated."""
        try:
            picture = self.simulate()._repr_html_()
        except ValueError:  # groups: only the sizes decide
            picture = ""
        return f"<pre>{html.escape(self.explain(5))}</pre>{picture}"


class Simulation:
    """What every SM does when, of one plan."""

    def __init__(self, simulated: Plan) -> None:
        self._plan = simulated
        self.data: dict[str, Any] = json.loads(text_of(library().plan_simulate_json, simulated.handle))  # refuses what cannot be simulated

    def svg(self) -> str:
        """The timeline as a picture."""
        return text_of(library().plan_simulate_svg, self._plan.handle)

    def text(self, width_columns: int = 100) -> str:
        """The timeline in characters."""
        return text_of(library().plan_simulate_text, self._plan.handle, width_columns)

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return f"<div>{self.svg()}</div>"


def carry_out(
    made: Plan, arguments: _structures.Arguments, place: Optional[int], workspace: Any, stream: int, backend: str, threads: int, emulator: dict[str, Any]
) -> None:
    """The plan on the GPU `place`, or in host memory. Errors: ValueError for a backend that is none, or emulator options with the reference."""
    if place is not None:
        space = None if workspace is None else view(workspace, stream=stream, written=True)
        check(library().run(made.handle, ctypes.byref(arguments), space and space.pointer, space.span_bytes if space else 0, stream))
        return
    if backend == "emulator":
        options = make(_structures.EmulatorOptions, **emulator)
        check(library().run_on_emulator(made.handle, ctypes.byref(arguments), ctypes.byref(options), None, None))
        return
    refuse_other_backends(backend, emulator)
    check(library().run_on_cpu(made.handle, ctypes.byref(arguments), threads, None, None))


def refuse_other_backends(backend: str, emulator: dict[str, Any]) -> None:
    if backend != "reference":
        raise ValueError(f"backend = '{backend}' is neither 'reference' nor 'emulator'")
    if emulator:
        raise ValueError(f"{', '.join(emulator)}: options of the emulator; pass backend='emulator' with them")


def one_place(views: dict[str, View]) -> Optional[int]:
    """The number of the GPU that all arrays lie on, None for host memory. Errors: ValueError where they lie in several places."""
    first, *others = views.items()
    for name, each in others:
        if each.device != first[1].device:
            raise ValueError(f"{first[0]} lies {first[1].place}, and {name} {each.place}; all must lie in one place")
    return first[1].device


def prepare_workspace(workspace: Any, stream: int = 0) -> None:
    """Clears the flags of a workspace in device memory, once, before the first plan uses it. Every run leaves it prepared."""
    space = view(workspace, stream=stream, written=True)
    check(library().prepare_workspace(space.pointer, space.span_bytes, stream))


def _check_operands(expected: dict[str, tuple[tuple[str, ...], int]], views: dict[str, View]) -> None:
    """Types and sizes of what is passed; the library itself says what is missing."""
    for name, (types, elements) in expected.items():
        if name not in views:
            continue
        given = views[name]
        if given.dtype not in types:
            raise ValueError(f"{name} holds {given.dtype}; the plan is for {' or '.join(types)}")
        if given.span < elements:
            raise ValueError(f"{name} has {given.span} elements from its first to its last; the plan reaches {elements}")


def _expected(p: dict[str, Any]) -> dict[str, tuple[tuple[str, ...], int]]:
    """Of each array, what types it may have, and how many elements the plan reaches."""

    def matrices(name: str, rows: int, columns: int, layout: str) -> int:
        count = 1 if name in shared else p["batch"]
        slow, fast = (rows, columns) if layout == "row-major" else (columns, rows)
        if 0 in (count, slow, fast):
            return 0
        return int((count - 1) * p["batch_stride_" + name] + (slow - 1) * p["ld" + name] + fast)

    m, n, k = p["m"], p["n"], p["k"]
    grouping = p.get("grouping", "none")
    shared = {"ragged": ("a", "c", "d"), "along-k": ("a", "b")}.get(grouping, ())
    bias = {"none": 0, "per-row": m, "per-column": n, "per-group-column": p["batch"] * n}[p["epilogue"]["bias"]]
    expected: dict[str, tuple[tuple[str, ...], int]] = {
        "a": ((p["type_a"],), matrices("a", m, k, p["layout_a"])),
        "c": ((p["type_d"],), matrices("c", m, n, "row-major") if p["epilogue"]["beta"] else 0),
        "d": ((p["type_d"],), matrices("d", m, n, "row-major")),
        "bias": ((p["type_d"],), bias),
        "groups": (("int32",), p["batch"] + (grouping != "masked")),
    }
    if p["type_b"] == "int4":
        expected["b"] = (("uint8",), _packed_bytes(p))
    else:
        expected["b"] = ((p["type_b"],), matrices("b", k, n, p["layout_b"]))
    for operand, vectors in (("a", m), ("b", n)):
        expected["scale_" + operand] = (("fp32",), _scale_elements(p, operand, vectors, operand in shared))
    return expected


def _packed_bytes(p: dict[str, Any]) -> int:
    """Of all matrices B of weights of 4 bits."""
    if 0 in (p["batch"], n := p["n"], p["k"]):
        return 0
    packing = make(_structures.PackW4Problem, n=n, k=p["k"], **p.get("w4", {}))
    return int((p["batch"] - 1) * p["batch_stride_b"]) + size_of(library().packed_w4_bytes, ctypes.byref(packing))


def _scale_elements(p: dict[str, Any], operand: str, vectors: int, shared: bool) -> int:
    """How many scales an operand has, from the first to the last that is read."""
    scaling, count = p["scaling_" + operand], 1 if shared else p["batch"]
    along_k = -(-p["k"] // 128)
    rows = -(-vectors // 128) if scaling == "128x128" else vectors
    if scaling == "none" or 0 in (count, vectors, p["k"]):
        return 0
    if scaling == "tensor":
        one = 1
    elif scaling == "vector":
        one = vectors
    else:
        slow, fast = (rows, along_k) if p["scale_layout_" + operand] == "row-major" else (along_k, rows)
        one = (slow - 1) * p["ld_scale_" + operand] + fast
    return int((count - 1) * p["batch_stride_scale_" + operand] + one)
