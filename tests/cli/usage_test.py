"""Commands, versions, and what is said of a command line that cannot be understood."""

import json
import unittest

from support import Matrix, SluiceTest

COMMANDS = ("devices", "list", "plan", "explain", "simulate", "gemm", "quantize", "histogram", "bench", "bench-quantize", "bench-histogram", "bench-attention", "tune", "calibrate")
PRODUCT = ("--m", 64, "--n", 64, "--k", 64)


class UsageTest(SluiceTest):
    def test_version(self):
        self.assertRegex(self.succeed("--version"), r"^sluice \d+\.\d+\.\d+ \((with|without) CUDA kernels, (with|without) the emulator\)\n$")
        answer = self.succeed_json("--version")
        self.assertIn(answer["version"], self.succeed("--version"))
        self.assertIsInstance(answer["built_with_cuda"], bool)
        self.assertIsInstance(answer["built_with_emulator"], bool)

    def test_help_lists_every_command_and_each_has_its_own(self):
        text = self.succeed("--help")
        for command in COMMANDS:
            self.assertIn(command, text)
            self.assertIn("--json", self.succeed(command, "--help"))

    def test_without_a_command(self):
        self.refuse(says=COMMANDS)

    def test_unknown_command(self):
        self.refuse("multiply", says=("'multiply'", *COMMANDS))

    def test_two_json_flags_are_one(self):
        json.loads(self.succeed("--json", "devices", "--json"))
        json.loads(self.succeed("--json", "devices"))

    def test_unknown_option(self):
        self.refuse("plan", *PRODUCT, "--tile", 3, says=("no option is called --tile", "sluice plan --help"))

    def test_missing_option(self):
        self.refuse("plan", "--m", 1, "--k", 1, says="--n is required")

    def test_missing_value(self):
        self.refuse("plan", *PRODUCT, "--device", says="--device")

    def test_stray_word(self):
        self.refuse("plan", "big", *PRODUCT, says="'big'")

    def test_not_a_number(self):
        self.refuse("plan", "--m", "many", "--n", 1, "--k", 1, says=("--m", "many"))

    def test_not_positive(self):
        self.refuse("plan", *PRODUCT, "--tile-m", -64, says=("--tile-m", "-64 must be above 0"))
        self.refuse("explain", *PRODUCT, "--most", 0, says=("--most", "0 must be above 0"))

    def test_words_that_are_not_among_the_choices(self):
        for option, choices in (
            ("--type", ("bf16", "fp16")),
            ("--out-type", ("bf16", "fp16", "fp32")),
            ("--layout", ("rc", "rr", "cc", "cr")),
            ("--bias", ("none", "per_row", "per_column", "per_group_column")),
            ("--activation", ("none", "relu", "gelu_tanh", "silu")),
            ("--schedule", ("cooperative", "pingpong")),
            ("--scheduler", ("one-tile-per-cta", "data-parallel")),
            ("--raster", ("along-m", "along-n")),
        ):
            with self.subTest(option):
                self.refuse("plan", *PRODUCT, option, "sideways", says=(option, "'sideways'", *choices))

    def test_a_type_the_kernels_do_not_read(self):
        self.refuse("plan", *PRODUCT, "--type", "fp32", says=("'fp32'", "bf16, fp16"))

    def test_unknown_kernel(self):
        self.refuse("plan", *PRODUCT, "--kernel", "fastest", says=("'fastest'", "sluice list"))

    def test_scale_that_is_not_finite(self):
        self.refuse("plan", *PRODUCT, "--alpha", "inf", says="--alpha")
        self.refuse("plan", *PRODUCT, "--beta", "nan", says="--beta")

    def test_bench_refuses_what_it_does_not_know(self):
        self.refuse("bench", "--suite", "nonesuch", says=("nonesuch", "square, wave, splitk, llm"))
        self.refuse("bench", "--suite", "wave,nonesuch", says=("'nonesuch'", "random"))
        self.refuse("bench", "--seed", "dice", says="--seed")
        self.refuse("bench", "--against", "cublaslt,mkl", says=("mkl", "cublaslt-best"))

    def test_bench_refuses_chains_it_cannot_build(self):
        self.refuse("bench", "--chain", "gpt", says=("'gpt'", "llama3-8b, llama3-70b, all"))
        self.refuse("bench", "--chain", "all", "--chain-rows", "1,0", says=("chain_rows = 0", "from 1 to 8192"))
        self.refuse("bench", "--chain", "all", "--chain-blocks", 0, says=("chain_blocks = 0", "from 1 to 128"))
        self.refuse("bench", "--chain-rows", 4, says="--chain")
        for flag in (("--suite", "llm"), ("--shape", "1x"), ("--m-min", 2), ("--constant-b",)):
            self.refuse("bench", "--chain", "all", *flag, says=("--chain", flag[0]))

    def test_bench_refuses_what_says_nothing_about_groups(self):
        self.refuse("bench", "--grouped", "nonesuch", says=("--grouped 'nonesuch'", "all"))
        about_suites = (("--suite", "llm"), ("--seed", 3), ("--type", "e4m3"), ("--shape", "1x"), ("--m-min", 2), ("--m-max", 9), ("--constant-b",))
        for flag in (*about_suites, ("--chain", "all")):
            self.refuse("bench", "--grouped", "all", *flag, says=("--grouped", flag[0]))

    def test_tune_refuses_what_it_cannot_do(self):
        self.refuse("tune", "-o", "plans.json", says="--shapes")
        self.refuse("tune", "--shapes", "llm", says="--output")
        self.refuse("tune", "--shapes", "nonesuch", "-o", "plans.json", says=("--shapes", "'nonesuch'", "square, wave, splitk, llm"))
        self.refuse("tune", "--shapes", "llm", "-o", "no/such/plans.json", says=("no/such is not a folder",))
        self.write("shapes.csv", "1,2,9\n")
        self.refuse("tune", "--shapes", "shapes.csv", "-o", "plans.json", says=("shapes.csv:1", "multiple of 8"))

    def test_calibrate_refuses_what_it_cannot_do(self):
        self.refuse("calibrate", "--minutes", 0, says=("--minutes", "0 must be above 0"))
        self.refuse("calibrate", "--suites", "nonesuch", says=("--suites", "'nonesuch'", "square, wave, splitk, llm"))
        self.refuse("calibrate", "-o", "no/such/calibration.json", says=("no/such is not a folder",))
        self.refuse("calibrate", "--calibration", "nonesuch.json", says="nonesuch.json")

    def test_bench_without_cuda(self):
        if self.succeed_json("--version")["built_with_cuda"]:
            self.skipTest("this build has CUDA kernels")
        self.refuse("bench", says=("no CUDA kernels", "-DSLUICE_CUDA=ON"))
        self.refuse("tune", "--shapes", "llm", "-o", "plans.json", says=("no CUDA kernels", "-DSLUICE_CUDA=ON"))
        self.refuse("calibrate", "-o", "calibration.json", says=("no CUDA kernels", "-DSLUICE_CUDA=ON"))
        self.refuse("gemm", self.a_file(), self.a_file(), "-o", "d.npy", "--gpu", 0, says=("no CUDA kernels", "-DSLUICE_CUDA=ON"))

    def a_file(self):
        return self.write_matrix("a.npy", Matrix.random(4, 4, "bf16", 1))


if __name__ == "__main__":
    unittest.main()
