#!/usr/bin/env python3
"""run_example.py PROGRAM ARGUMENTS...: passes where the program ends well, and, without a Hopper GPU, where it says so and ends with 77."""
import subprocess
import sys

NO_HOPPER = 77

done = subprocess.run(sys.argv[1:], text=True, capture_output=True, timeout=120, check=False)
print(done.stdout + done.stderr, end="")
if done.returncode == NO_HOPPER:
    sys.exit(0 if "(Hopper)" in done.stderr and not done.stdout else 1)
sys.exit(1 if done.returncode != 0 or "WRONG" in done.stdout else 0)
