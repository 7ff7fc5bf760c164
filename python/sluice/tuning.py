"""Measured plans: `tune()` makes a plan file on the GPU that will use it, `use_plans()` makes the operations of this process obey it."""

from __future__ import annotations

import csv
import json
import os
import pathlib
import subprocess
import tempfile
from collections.abc import Iterable
from typing import Any, Union

from . import operations
from .plan import Plan

Path = Union[str, "os.PathLike[str]"]


def executable() -> str:
    """The command line tool that the wheel carries, or that $SLUICE_EXECUTABLE names. Errors: RuntimeError where there is none."""
    found = os.environ.get("SLUICE_EXECUTABLE") or str(pathlib.Path(__file__).parent / "bin" / "sluice")
    if not os.access(found, os.X_OK):
        raise RuntimeError(f"there is no program {found}: this package was built without the command line tool; name it in SLUICE_EXECUTABLE")
    return found


def tune(shapes: Iterable[tuple[int, int, int]], output: Path, *, constant_b: bool = False, rounds: int = 9) -> list[Plan]:
    """Times every candidate for these (m, n, k) on this machine's GPU and keeps the fastest plans in the file `output`.

    Operands are bf16, a with contiguous rows, b with contiguous columns (a linear layer's weights, transposed); with constant_b b is declared constant.
    Errors: RuntimeError with the tool's own words."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv", newline="") as file:
        csv.writer(file).writerows(shapes)
        file.flush()
        command = [executable(), "tune", "--shapes", file.name, "-o", os.fspath(output), "--rounds", str(rounds)]
        done = subprocess.run(command + ["--constant-b"] * constant_b, text=True, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or done.stdout.strip())
    return tuned_plans(output)


def tuned_plans(path: Path) -> list[Plan]:
    """The plans of a plan file. Errors: ValueError for a file that is none, or a plan that this library cannot carry out."""
    text = pathlib.Path(path).read_text()
    try:
        file: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: {error}") from None
    if not isinstance(file, dict) or file.get("format") != "sluice-plans" or not isinstance(file.get("plans"), list):
        raise ValueError(f"{path} is no plan file: its format is not 'sluice-plans'; `sluice tune` writes them")
    plans = []
    for index, entry in enumerate(file["plans"]):
        try:
            plans.append(Plan.from_json(json.dumps(entry["plan"])))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: plans[{index}]: {error}") from None
    return plans


def use_plans(path: Path) -> int:
    """From now on operations of this process take the plans of this file for exactly their problems on exactly their devices; says how many there are."""
    return operations.prefer(tuned_plans(path))
