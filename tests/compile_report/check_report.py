#!/usr/bin/env python3
"""Reads what `-Xptxas -v` said while the kernels were compiled (one log for each instance file) and fails on spills, stack frames,
wgmma that the compiler serialised, and setmaxnreg that it ignored. Prints the registers of each kernel.

Usage: check_report.py FOLDER [INSTANCES]     INSTANCES: a file that names the logs that must be there; others are not read"""
import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys


@dataclasses.dataclass
class Kernel:
    name: str
    log: str
    registers: int = -1
    faults: list[str] = dataclasses.field(default_factory=list)


# Said of a whole file or of a named function, before the function's own lines.
FAULTS = (
    (re.compile(r"wgmma\.mma_async instructions are serialized[^\n]*"), "wgmma serialised: "),
    (re.compile(r"'setmaxnreg' ignored[^\n]*"), "setmaxnreg ignored: "),
    (re.compile(r"warpgroup\.wait is injected[^\n]*"), "wgmma waited for too early: "),
)


def read_log(path: pathlib.Path) -> tuple[list[Kernel], list[str]]:
    """The kernels of one log, and the faults that concern the file as a whole."""
    text = path.read_text()
    kernels: list[Kernel] = []
    of_file = [f"{path.name}: {label}{match.group(0)}" for pattern, label in FAULTS for match in [pattern.search(text)] if match]
    if re.search(r"\b(error|fatal)\b\s*:", text):
        of_file.append(f"{path.name}: the compiler reported an error")
    current = None
    for line in text.splitlines():
        if match := re.search(r"Compiling entry function '([^']+)'", line):
            current = Kernel(match.group(1), path.name)
            kernels.append(current)
        elif current is None:
            continue
        elif match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            frame, stores, loads = map(int, match.groups())
            if stores or loads:
                current.faults.append(f"spills: {stores} bytes stored, {loads} bytes loaded")
            if frame:
                current.faults.append(f"stack frame of {frame} bytes")
        elif match := re.search(r"Used (\d+) registers", line):
            current.registers = int(match.group(1))
    return kernels, of_file


def readable(names: list[str]) -> list[str]:
    if not shutil.which("c++filt"):
        return names
    output = subprocess.run(["c++filt"], input="\n".join(names), text=True, capture_output=True).stdout
    return [line.removeprefix("void ") for line in output.splitlines()]


def check(folder: pathlib.Path, instances: list[str] | None = None) -> tuple[list[Kernel], list[str]]:
    kernels, problems = [], []
    logs = sorted(folder.glob("*.log"))
    if instances is not None:
        problems += [f"{name}: no log of its compilation in {folder}" for name in instances if folder / f"{name}.log" not in logs]
        logs = [log for log in logs if log.stem in instances]
    if not logs:
        problems.append(f"no *.log in {folder}: nothing was compiled, or the logs are written elsewhere")
    for log in logs:
        found, of_file = read_log(log)
        kernels += found
        problems += of_file
        if not found:
            problems.append(f"{log.name}: no kernel in it")
    for kernel in kernels:
        if kernel.registers < 0:
            kernel.faults.append("ptxas did not say how many registers it uses")
        problems += [f"{kernel.log}: {kernel.name}: {fault}" for fault in kernel.faults]
    return kernels, problems


def main() -> int:
    instances = pathlib.Path(sys.argv[2]).read_text().split() if len(sys.argv) > 2 else None
    kernels, problems = check(pathlib.Path(sys.argv[1]), instances)
    print(f"{'registers':>9}  {'instance':44}  kernel")
    for kernel, name in zip(kernels, readable([kernel.name for kernel in kernels])):
        print(f"{kernel.registers:9}  {kernel.log.removesuffix('.log'):44}  {name[:60]}")
    print(f"{len(kernels)} kernels, {len(problems)} faults")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
