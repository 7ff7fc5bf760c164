#!/usr/bin/env python3
"""Compiles, for every pair of rooms, a file of the first that includes a header of the second: it must work exactly if the rule allows it."""
import pathlib
import subprocess
import sys

from rules import KNOWS


def compiles(compiler: str, folders: list[str], header: str) -> bool:
    command = [compiler, "-std=c++20", "-E", "-x", "c++", "-o", "/dev/null", *(f"-I{folder}" for folder in folders), "-"]
    text = f'#if !__has_include("{header}")\n#error "{header} is not visible"\n#endif\n'
    return subprocess.run(command, input=text, text=True, capture_output=True).returncode == 0


def main() -> int:
    root, visible, compiler = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    rooms = dict(line.split("=", 1) for line in visible.read_text().splitlines() if line)
    problems, allowed, refused = [], 0, 0
    for room, folders in rooms.items():
        folders = folders.split(":")
        if not compiles(compiler, folders, "sluice/plan.hpp"):
            problems.append(f"{room} does not see the public headers")
        for other in KNOWS:
            headers = sorted(path for path in (root / "src" / other).rglob("*") if path.suffix in (".hpp", ".cuh"))
            if not headers:
                continue
            header = headers[0].relative_to(root / "src").as_posix()
            may = other == room or other in KNOWS[room]
            allowed, refused = allowed + may, refused + (not may)
            if compiles(compiler, folders, header) != may:
                problems.append(f"a file of src/{room} {'cannot' if may else 'can'} include {header}, though the rule says "
                                f"{room} {'may' if may else 'must not'} know {other}")
    if allowed < 8 or refused < 8:
        problems.append(f"only {allowed} allowed and {refused} forbidden pairs were tried: are the rooms where they were?")
    print("\n".join(problems) or f"{allowed} allowed pairs of rooms compile, {refused} forbidden ones do not")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
