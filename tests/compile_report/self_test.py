#!/usr/bin/env python3
"""Each sample log has one fault, which the report must find, and the good one has none."""
import pathlib
import shutil
import tempfile
import unittest

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


if __name__ == "__main__":
    unittest.main()
