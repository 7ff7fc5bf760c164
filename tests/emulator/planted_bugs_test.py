#!/usr/bin/env python3
"""Plants bugs in the kernels' source, one at a time, and expects the emulator to name the cause of each.

planted_bugs_test.py SOURCE_DIR CXX DRIVER_ARCHIVE... : compiles one kernel against each changed header, puts it in front of the archives,
runs it over a problem and a few seeds."""
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from planted_bugs import BUGS, KERNELS, Bug

SOURCE, CXX, *ARCHIVES = sys.argv[1:] if len(sys.argv) > 3 else ("", "", "")
SEEDS = 6
LAYOUTS = ("rc", "rr", "cc", "cr")  # in the order of core/kernel_line.hpp


class Failed(Exception):
    pass


def command(*words):
    done = subprocess.run([str(word) for word in words], text=True, capture_output=True, timeout=300)
    if done.returncode != 0:
        raise Failed(" ".join(map(str, words)) + "\n" + done.stdout + done.stderr)


def run_kernel(folder, kernel, bug=None):
    """What the driver says about the kernel, with the bug in it: (exit status, text)."""
    source = pathlib.Path(SOURCE) / "src"
    overlay = folder / "src"
    overlay.mkdir()
    if bug:
        text = (source / bug.file).read_text()
        for old, new in bug.changes:
            if text.count(old) != 1:
                raise Failed(f"{bug.file} holds this {text.count(old)} times, not once; choose the text to be changed again: {old!r}")
            text = text.replace(old, new)
        (overlay / bug.file).parent.mkdir(parents=True)
        (overlay / bug.file).write_text(text)
    line, name, problem = KERNELS[kernel]
    if name == "attention":
        return build_and_run(folder, overlay, f'#include "kernel/attention/attention_instance.cuh"\n\nSLUICE_ATTENTION_ENTRY({line})\n', name, problem)
    if name == "general":
        text = f'#include "kernel/general/general_instance.cuh"\n#include "kernel/general/prepare_groups_instance.cuh"\n\nSLUICE_GENERAL_ENTRY(changed, {problem.split("_")[0]}, {line})\nSLUICE_PREPARE_GROUPS_KERNEL\n'
        return build_and_run(folder, overlay, text, name, problem)
    types, layouts = name.split("_")[:2]
    type_a, type_b = types.split("x") if "x" in types else (types, types)
    if line.startswith("streaming"):
        text = f'#include "kernel/streaming/streaming_instance.cuh"\n\nSLUICE_STREAMING_ENTRY(changed, {types}, {type_a}, {type_b}, {line})\n'
    else:
        text = f'#include "kernel/kernel_instance.cuh"\n\nSLUICE_GEMM_ENTRY(changed, {types}, {type_a}, {type_b}, {layouts}, {LAYOUTS.index(layouts)}, {line})\n'
        text += '#include "kernel/short_instance.cuh"\n\n'
        listed = (source / "core/kernel_list.def").read_text()
        for scope in ("plain", "groups"):  # whichever a call takes has the bug
            if f"SLUICE_SHORT_KERNEL({scope}, {'fp8' if types == 'e4m3' else types}, {line})" in listed:
                text += f"SLUICE_SHORT_ENTRY({scope}, changed, {types}, {line})\n"
    return build_and_run(folder, overlay, text, name, problem)


def build_and_run(folder, overlay, text, name, problem):
    instance = folder / "instance.cpp"
    instance.write_text(text)
    command(CXX, "-std=c++20", "-O1", "-w", "-I", overlay, "-I", pathlib.Path(SOURCE) / "src", "-I", pathlib.Path(SOURCE) / "include", "-c", instance,
            "-o", folder / "instance.o")
    # The first definition of a kernel wins.
    command(CXX, "-Wl,-z,muldefs", "-o", folder / "driver", folder / "instance.o", *ARCHIVES, "-pthread", "-ldl", "-lrt")
    ran = subprocess.run([folder / "driver", name, *problem.split(), str(SEEDS)], text=True, capture_output=True, timeout=300)
    return ran.returncode, ran.stdout + ran.stderr


def attempt(kernel, bug=None):
    with tempfile.TemporaryDirectory() as folder:
        try:
            return run_kernel(pathlib.Path(folder), kernel, bug)
        except (Failed, subprocess.TimeoutExpired) as failed:
            return None, str(failed)


class PlantedBugs(unittest.TestCase):
    """One test for each bug and each control, run two at a time."""

    @classmethod
    def setUpClass(cls):
        workers = concurrent.futures.ThreadPoolExecutor(2)
        cls.results = {("right", kernel): workers.submit(attempt, kernel) for kernel in KERNELS}
        cls.results |= {("bug", bug.name): workers.submit(attempt, bug.kernel, bug) for bug in BUGS}

    def test_a_text_that_has_gone_is_an_error(self):
        for text in ("this stands nowhere", "arch::"):
            status, message = attempt("plain", Bug("none", "plain", "kernel/pipeline.cuh", [(text, "")], ""))
            self.assertIsNone(status)
            self.assertIn("times, not once", message)

    def test_there_are_enough(self):
        self.assertGreaterEqual(len({bug.name for bug in BUGS}), 50)


def control(kernel):
    def test(self):
        status, text = self.results["right", kernel].result()
        self.assertEqual(status, 0, text)
    return test


def planted(bug):
    def test(self):
        status, text = self.results["bug", bug.name].result()
        self.assertEqual(status, 1, f"not caught: {text}")
        self.assertTrue(re.search(bug.message, text, re.DOTALL), f"caught, but not by its cause. Wanted: {bug.message}\nGot: {text}")
    return test


for each in KERNELS:
    setattr(PlantedBugs, f"test_without_a_bug_{each}", control(each))
for each in BUGS:
    setattr(PlantedBugs, f"test_{each.name}", planted(each))

if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
