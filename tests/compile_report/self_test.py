#!/usr/bin/env python3
"""Each sample log has one fault, which the report must find, and the good one has none."""
import pathlib
import shutil
import tempfile
import unittest

from check_main_loops import main_loops, problems
from check_report import check

SAMPLES = pathlib.Path(__file__).parent / "samples"


class Report(unittest.TestCase):
    def check_samples(self, *names):
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                shutil.copy(SAMPLES / name, folder)
            return check(pathlib.Path(folder))

    def test_good(self):
        kernels, problems = self.check_samples("good.log")
        self.assertEqual(problems, [])
        self.assertEqual([(kernel.name, kernel.registers) for kernel in kernels], [("scale", 8)])

    def test_spills(self):
        _, problems = self.check_samples("good.log", "spill.log")
        self.assertIn("spill.log: spills: spills: 136 bytes stored, 140 bytes loaded", problems)

    def test_stack_frame(self):
        _, problems = self.check_samples("stack.log")
        self.assertEqual(problems, ["stack.log: indexes: stack frame of 256 bytes"])

    def test_serialised(self):
        _, problems = self.check_samples("serialised.log")
        self.assertTrue(any("wgmma serialised" in problem for problem in problems), problems)
        self.assertTrue(any("waited for too early" in problem for problem in problems), problems)

    def test_setmaxnreg(self):
        _, problems = self.check_samples("setmaxnreg.log")
        self.assertEqual(len(problems), 1, problems)
        self.assertIn("setmaxnreg ignored", problems[0])

    def test_nothing_compiled(self):
        _, problems = self.check_samples()
        self.assertEqual(len(problems), 1)

    def test_instances(self):
        _, problems = check(SAMPLES, ["good"])
        self.assertEqual(problems, [])
        _, problems = check(SAMPLES, ["good", "missing"])
        self.assertEqual(problems, [f"missing: no log of its compilation in {SAMPLES}"])

    def test_log_without_a_kernel(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "empty.log").write_text("ptxas info    : 0 bytes gmem\n")
            self.assertEqual(check(pathlib.Path(folder))[1], ["empty.log: no kernel in it"])


# Cut down from kernels of 26 November 2026, before and after: the move of a descriptor stands before its wgmma.
def loop(moves, multiplications=2):
    lines = ["SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R7+URZ+0x381c0], R6"]
    for _ in range(multiplications):
        lines += ["R2UR UR10, R12"] * moves + ["HGMMA.64x64x16.F32.BF16 R24, gdesc[UR8], R24"]
    lines += ["@!P2 BRA 0x0010", "EXIT", "BRA 0x0200"]
    code = "\n".join(f"        /*{16 * (i + 1):04x}*/                   {line} ;   /* 0x0 */" for i, line in enumerate(lines))
    return f"\n\t\tFunction : sluice_gemm_sample\n{code}\n"


class MainLoops(unittest.TestCase):
    def test_moves_are_counted(self):
        self.assertEqual(main_loops(loop(0)), [("sluice_gemm_sample", 4, 2, 0)])
        self.assertEqual(main_loops(loop(4) + loop(1)), [("sluice_gemm_sample", 12, 2, 8), ("sluice_gemm_sample", 6, 2, 2)])

    def test_more_than_three_for_each_wgmma_are_a_problem(self):
        self.assertEqual(problems(main_loops(loop(2))), [])
        self.assertEqual(
            problems(main_loops(loop(4))), ["sluice_gemm_sample: a main loop of 12 instructions moves descriptors 8 times for 2 wgmma"]
        )

    def test_nothing_found_is_a_problem(self):
        self.assertEqual(len(problems(main_loops("no code in it"))), 1)


if __name__ == "__main__":
    unittest.main()
