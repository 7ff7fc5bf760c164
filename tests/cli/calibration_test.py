"""--calibration: the planner's constants from a file."""

import json
import pathlib
import re
import unittest

from support import Matrix, SluiceTest

BUILT_IN = pathlib.Path(__file__).resolve().parents[2] / "src/planner/calibration/h200.json"
PRODUCT = ("--m", 1024, "--n", 2048, "--k", 4096, "--device", "h200")


def key_of(name):
    """A kernel's name without type and layout."""
    return name.split("_", 2)[2]


class CalibrationTest(SluiceTest):
    def calibration(self, **changes):
        values = json.loads(BUILT_IN.read_text())
        values.update(changes)
        self.write("calibration.json", json.dumps(values))
        return ("--calibration", "calibration.json")

    def three_times_slower(self, kernel):
        """A calibration that knows this kernel to take three times as long as the built-in one does."""
        factors = json.loads(BUILT_IN.read_text())["kernel_factors"]
        rest = [factor for factor in factors if factor["kernel"] != key_of(kernel)]
        return self.calibration(kernel_factors=[*rest, {"kernel": key_of(kernel), "factor": 3}])

    def chosen(self, *flags):
        return self.succeed("plan", *PRODUCT, *flags).split("chosen")[1].split()[0].rstrip(",")

    def test_the_built_in_one_from_a_file_changes_nothing(self):
        for command in ("plan", "explain", "simulate"):
            self.assertEqual(self.succeed(command, *PRODUCT), self.succeed(command, *PRODUCT, *self.calibration()))

    def test_another_one_changes_the_choice(self):
        usual = self.chosen()
        flags = self.three_times_slower(usual)
        other = self.chosen(*flags)
        self.assertNotEqual(other, usual)
        self.assertIn(f"chosen   {other}", self.succeed("explain", *PRODUCT, *flags))
        self.assertIn(other, self.succeed("simulate", *PRODUCT, *flags))

    def test_gemm_takes_it_too(self):
        self.write_matrix("a.npy", Matrix.random(16, 32, "bf16", 1))
        self.write_matrix("b.npy", Matrix.random(32, 24, "bf16", 2))
        flags = ("gemm", "a.npy", "b.npy", "-o", "d.npy", "--device", "h200", "--backend", "reference")

        def kernel(*more):
            return next(line.split()[1].rstrip(",") for line in self.succeed(*flags, *more).splitlines() if line.startswith("plan "))

        usual = kernel()
        self.assertNotEqual(kernel(*self.three_times_slower(usual)), usual)

    def timings(self, slow):
        """As `sluice bench --planner --out` writes them: ten products whose candidates take what is predicted, but for some kernels."""
        results = []
        for n in range(1024, 11 * 1024, 1024):
            rows = self.succeed("explain", "--m", 512, "--n", n, "--k", 4096, "--device", "h200", "--most", 40)
            kernels = []
            for name, kind, total in re.findall(r"^ +\d+  (bf16_\w+) +(data-parallel|one-tile-per-cta) .*?% +\d+% +([\d.]+) ", rows, re.M):
                kernels.append({"kernel": name, "us": float(total) * (1.3 if slow in name else 1), "rounds": 3, "correct": True,
                                "scheduler": {"kind": kind, "splits": 1, "reduction": "workspace"}})
            self.assertGreater(len(kernels), 5)
            results.append({"suite": "made", "m": 512, "n": n, "k": 4096, "type": "bf16", "type_a": "bf16", "kernels": kernels})
        self.write("timings.json", json.dumps({"constant_b": False, "results": results}))

    def test_it_learns_from_recorded_times(self):
        self.timings(slow="_ping_")
        said = self.succeed("calibrate", "--timings", "timings.json", "--device", "h200", "--folds", 2, "-o", "learnt.json")
        self.assertIn("made                         10", said)
        self.assertIn("of 10 products left out of learning, one in 2 at a time", said)
        self.assertIn("wrote learnt.json", said)
        ping = [n for n in range(1024, 11 * 1024, 1024)
                if "_ping_" in self.succeed("plan", "--m", 512, "--n", n, "--k", 4096, "--device", "h200", "--calibration", "learnt.json")]
        self.assertLessEqual(len(ping), 1)
        learnt = json.loads(self.succeed("calibrate", "--timings", "timings.json", "--device", "h200", "--json"))
        self.assertEqual([one["operands"] for one in learnt["learnt"]], ["fp8", "w4", "16-bit"])  # what these times say nothing about stays
        self.assertEqual(learnt["kernel_factors"], json.loads(BUILT_IN.read_text())["kernel_factors"])

    def test_recorded_times_that_are_none_are_refused(self):
        self.write("timings.json", "{}")
        self.refuse("calibrate", "--timings", "timings.json", says=("timings.json is not what `sluice bench --planner --out` writes",))
        self.write("timings.json", json.dumps({"constant_b": False, "results": []}))
        self.refuse("calibrate", "--timings", "timings.json", says=("no time in these files",))
        self.write("timings.json", json.dumps({"constant_b": False, "results": [
            {"suite": "made", "m": 512, "n": 1024, "k": 4096, "type": "bf17", "type_a": "bf16", "kernels": []}]}))
        self.refuse("calibrate", "--timings", "timings.json", says=("timings.json has a product of bf16 beside bf17", "is no type"))
        self.refuse("calibrate", "--timings", "nonesuch.json", says="nonesuch.json")
        self.refuse("calibrate", "--folds", 3, says=("--folds requires --timings",))

    def test_a_wrong_file_is_refused_by_every_command(self):
        missing = ("--calibration", "nonesuch.json")
        outside = self.calibration(l2_factor=0)
        for command in (("plan", *PRODUCT), ("explain", *PRODUCT), ("simulate", *PRODUCT), ("bench",), ("calibrate",),
                        ("tune", "--shapes", "llm", "-o", "plans.json")):
            self.refuse(*command, *missing, says="nonesuch.json")
            self.refuse(*command, *outside, says=("calibration.json: l2_factor = 0 must be from 0.2 to 5",))
        self.refuse("plan", *PRODUCT, *self.calibration(l2_facter=1), says=("calibration.json: l2_facter", "remove it"))

    def test_it_contradicts_plans_that_are_there_already(self):
        flags = self.calibration()
        self.refuse("plan", *PRODUCT, "--plans", "plans.json", *flags, says=("--plans", "--calibration"))
        self.refuse("simulate", "--plan", "plan.json", *flags, says=("--plan", "--calibration"))
        self.write_matrix("a.npy", Matrix.random(4, 4, "bf16", 1))
        self.refuse("gemm", "a.npy", "a.npy", "-o", "d.npy", "--plan-file", "plan.json", *flags, says=("--plan-file", "--calibration"))


if __name__ == "__main__":
    unittest.main()
