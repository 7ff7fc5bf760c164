#!/usr/bin/env python3
"""Reads the machine code of a program or library and fails on main loops that move wgmma's descriptors out of registers of every lane (`R2UR`)
more than three times for each. ptxas does so when it takes the role for divergent: the loops of all kernels of 21 lines of the kernel list had
four such moves for each wgmma, and two fifths more instructions, from code that stood behind both roles (docs/decisions/0028-roles-end-apart.md).

Usage: check_main_loops.py CUOBJDUMP PROGRAM"""
import re
import subprocess
import sys

MOST_MOVES = 3  # for each wgmma: two is one for each operand, and ptxas short of uniform registers may need another
LONGEST_LOOP = 400  # instructions; what is longer is the loop over tiles


def main_loops(sass: str) -> list[tuple[str, int, int, int]]:
    """Of each loop that multiplies: its kernel, its instructions, wgmma among them, and moves into uniform registers."""
    loops = []
    for part in re.split(r"\n\s*Function : ", sass)[1:]:
        name = part.split("\n", 1)[0].strip()
        code = [(int(at, 16), what) for at, what in re.findall(r"/\*([0-9a-f]{4,5})\*/\s+(.*?);", part)]
        index = {at: i for i, (at, _) in enumerate(code)}
        for end, (at, what) in enumerate(code):
            jump = re.search(r"\bBRA\b.* 0x([0-9a-f]+)", what)
            begin = index.get(int(jump.group(1), 16)) if jump else None
            if begin is None or not begin < end < begin + LONGEST_LOOP:
                continue
            body = [what for _, what in code[begin : end + 1]]
            multiplications = sum("GMMA." in what for what in body)
            if multiplications:
                loops.append((name, len(body), multiplications, sum("R2UR" in what for what in body)))
    return loops


def problems(loops: list[tuple[str, int, int, int]]) -> list[str]:
    if not loops:
        return ["no main loop found: is this a program with kernels, and the dump one of machine code?"]
    return [
        f"{name}: a main loop of {instructions} instructions moves descriptors {moves} times for {multiplications} wgmma"
        for name, instructions, multiplications, moves in loops
        if moves > MOST_MOVES * multiplications
    ]


def main() -> int:
    dump = subprocess.run([sys.argv[1], "-sass", sys.argv[2]], capture_output=True, text=True, check=True).stdout
    loops = main_loops(dump)
    found = problems(loops)
    print("\n".join(found))
    print(f"{len(loops)} main loops in {len({loop[0] for loop in loops})} kernels, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
