#!/usr/bin/env python3
"""Writes a random matrix as .npy with nothing but the standard library.

Usage: make_matrix.py FILE ROWS COLUMNS [--type fp16|fp32] [--seed N]     values uniform in [-1, 1)"""
import argparse
import random
import struct

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("file")
arguments.add_argument("rows", type=int)
arguments.add_argument("columns", type=int)
arguments.add_argument("--type", choices=("fp16", "fp32"), default="fp16")
arguments.add_argument("--seed", type=int, default=1)
given = arguments.parse_args()

letter, code = ("e", "<f2") if given.type == "fp16" else ("f", "<f4")
header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': ({given.rows}, {given.columns}), }}"
# The format wants magic, version, header length and header to fill a multiple of 64 bytes, newline last.
header = header.ljust(-(len("\x93NUMPY") + 2 + 2 + len(header) + 1) % 64 + len(header)) + "\n"
draw = random.Random(given.seed)
with open(given.file, "wb") as out:
    out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1"))
    for _ in range(given.rows):
        out.write(struct.pack(f"<{given.columns}{letter}", *(draw.uniform(-1, 1) for _ in range(given.columns))))
