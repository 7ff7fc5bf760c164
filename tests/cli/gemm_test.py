"""gemm against a naive product: layouts, types, batches, epilogues, plans, checks."""

import json
import os
import unittest

from support import Matrix, SluiceTest, encode, naive_product, npy_bytes, read_npy

SHAPE = (21, 34, 45)  # m, n, k: tiles with edges in every direction


class GemmTest(SluiceTest):
    def product(self, kind="bf16", integers=True, shape=SHAPE):
        m, n, k = shape
        return Matrix.random(m, k, kind, 1, integers), Matrix.random(k, n, kind, 2, integers)

    def write_product(self, *arguments, **more):
        a, b = self.product(*arguments, **more)
        self.write_matrix("a.npy", a)
        self.write_matrix("b.npy", b)
        return a, b

    def assert_exact(self, path, kind, expected):
        got_kind, _, values = read_npy(self.path(path))
        self.assertEqual((got_kind, len(values)), (kind, len(expected)))
        # Not assertEqual on the lists: it takes minutes to tell long ones apart.
        wrong = [i for i, (got, (want, _)) in enumerate(zip(values, expected)) if got != want]
        self.assertFalse(wrong[:10], f"{len(wrong)} wrong elements in {path}")


class LayoutAndTypeTest(GemmTest):
    def test_every_way_a_file_can_lie(self):
        a, b = self.product()
        expected = naive_product(a, b)
        for fortran_a in (False, True):
            for fortran_b in (False, True):
                for transposed_a in (False, True):
                    for transposed_b in (False, True):
                        flags = (["--transpose-a"] if transposed_a else []) + (["--b-is-nk"] if transposed_b else [])
                        with self.subTest(flags=flags, fortran=(fortran_a, fortran_b)):
                            self.write_matrix("a.npy", a.transposed() if transposed_a else a, fortran_a)
                            self.write_matrix("b.npy", b.transposed() if transposed_b else b, fortran_b)
                            text = self.succeed("gemm", "a.npy", "b.npy", "-o", "d.npy", "--check", "--out-type", "fp32", *flags)
                            self.assert_exact("d.npy", "fp32", expected)
                            # No copy was needed: the layout says where the elements are.
                            layouts = ["column-major" if x else "row-major" for x in (fortran_a != transposed_a, fortran_b != transposed_b)]
                            self.assertIn(f"A {layouts[0]}, B {layouts[1]}", text)
                            self.assertNotIn("copied", text)

    def test_types_in_and_out(self):
        for kind in ("bf16", "fp16"):
            a, b = self.write_product(kind, integers=False)
            for out in ("bf16", "fp16", "fp32"):
                with self.subTest(kind=kind, out=out):
                    self.succeed("gemm", "a.npy", "b.npy", "-o", "d.npy", "--check=all", "--out-type", out)
                    self.assert_close("d.npy", out, (21, 34), naive_product(a, b))

    def test_wide_inputs_are_converted_and_said_so(self):
        for kind in ("fp32", "fp64"):
            wide_a, wide_b = self.write_product(kind, integers=False)
            for target in ("bf16", "fp16"):
                with self.subTest(kind=kind, target=target):
                    text = self.succeed("gemm", "a.npy", "b.npy", "-o", "d.npy", "--check", "--type", target)
                    self.assertEqual(text.count(f"{kind}, row-major, converted to {target}"), 2)
                    a, b = (Matrix(x.rows, x.columns, target, x.values) for x in (wide_a, wide_b))
                    self.assert_close("d.npy", target, (21, 34), naive_product(a, b))
        self.assertIn("converted to bf16", self.succeed("gemm", "a.npy", "b.npy", "-o", "d.npy"))

    def test_a_narrow_input_decides_the_type(self):
        a, b = self.product("fp16")
        self.write_matrix("a.npy", Matrix(a.rows, a.columns, "fp32", a.values))
        self.write_matrix("b.npy", b)
        self.succeed("gemm", "a.npy", "b.npy", "-o", "d.npy")
        self.assert_exact("d.npy", "fp16", naive_product(a, b))

    def test_two_narrow_types_need_a_word(self):
        a, b = self.product()
        self.write_matrix("a.npy", a)
        self.write_matrix("b.npy", Matrix(b.rows, b.columns, "fp16", b.values))
        self.refuse("gemm", "a.npy", "b.npy", "-o", "d.npy", says=("holds bf16", "holds fp16", "--type"))
        self.succeed("gemm", "a.npy", "b.npy", "-o", "d.npy", "--type", "fp16")
        self.assert_exact("d.npy", "fp16", naive_product(a, b))

    def test_double_is_rounded_once(self):
        # Just above the middle of two bf16 numbers: rounding to fp32 first would land on the middle, and then on the even one below.
        value = 1 + 2.0**-8 + 2.0**-40
        for sign in (1, -1):
            self.write("a.npy", npy_bytes((1, 1), encode([sign * value], "fp64"), "<f8"))
            self.write("b.npy", npy_bytes((1, 1), encode([1.0], "fp64"), "<f8"))
            self.succeed("gemm", "a.npy", "b.npy", "-o", "d.npy")
            self.assertEqual(read_npy(self.path("d.npy")), ("bf16", (1, 1), [sign * (1 + 2.0**-7)]))

    def test_elements_that_become_infinite_are_warned_of(self):
        self.write("a.npy", npy_bytes((1, 2), encode([1e6, 1.0], "fp32"), "<f4"))
        self.write("b.npy", npy_bytes((2, 1), encode([1.0, 1.0], "fp32"), "<f4"))
        done = self.run_sluice("gemm", "a.npy", "b.npy", "-o", "d.npy", "--type", "fp16")
        self.assertEqual(done.returncode, 0)
        self.assertIn("1 element of A is too large for fp16", done.stderr)
        self.assertEqual(len(self.succeed_json("gemm", "a.npy", "b.npy", "-o", "d.npy", "--type", "fp16")["warnings"]), 1)

    def test_no_elements(self):
        for m, n, k in ((0, 4, 5), (4, 0, 5), (4, 5, 0)):
            with self.subTest(shape=(m, n, k)):
                self.write_product(shape=(m, n, k))
                self.succeed("gemm", "a.npy", "b.npy", "-o", "d.npy", "--check")
                self.assertEqual(read_npy(self.path("d.npy")), ("bf16", (m, n), [0.0] * (m * n)))


class BatchTest(GemmTest):
    def test_batches_and_single_matrices(self):
        batch_a = [Matrix.random(9, 8, "bf16", seed, True) for seed in range(3)]
        batch_b = [Matrix.random(8, 10, "bf16", 10 + seed, True) for seed in range(3)]
        for count_a, count_b in ((3, 3), (3, 1), (1, 3)):
            with self.subTest(batches=(count_a, count_b)):
                self.write_batch("a.npy", batch_a) if count_a == 3 else self.write_matrix("a.npy", batch_a[0])
                self.write_batch("b.npy", batch_b) if count_b == 3 else self.write_matrix("b.npy", batch_b[0])
                self.succeed("gemm", "a.npy", "b.npy", "-o", "d.npy", "--check")
                expected = [x for i in range(3) for x in naive_product(batch_a[i % count_a], batch_b[i % count_b])]
                self.assert_exact("d.npy", "bf16", expected)
                self.assertEqual(read_npy(self.path("d.npy"))[1], (3, 9, 10))

    def test_batch_in_fortran_order(self):
        batch = [Matrix.random(9, 8, "bf16", seed, True) for seed in range(3)]
        interleaved = [batch[i].at(r, c) for c in range(8) for r in range(9) for i in range(3)]
        self.write("a.npy", npy_bytes((3, 9, 8), encode(interleaved, "bf16"), "<V2", fortran=True))
        b = Matrix.random(8, 10, "bf16", 7, True)
        self.write_matrix("b.npy", b)
        self.assertIn("copied to another order", self.succeed("gemm", "a.npy", "b.npy", "-o", "d.npy", "--check"))
        self.assert_exact("d.npy", "bf16", [x for a in batch for x in naive_product(a, b)])

    def test_batches_that_do_not_meet(self):
        self.write_batch("a.npy", [Matrix.random(4, 4, "bf16", 1)] * 3)
        self.write_batch("b.npy", [Matrix.random(4, 4, "bf16", 1)] * 2)
        self.refuse("gemm", "a.npy", "b.npy", "-o", "d.npy", says=("3 matrices", "holds 2"))


class EpilogueTest(GemmTest):
    def test_scales_bias_and_activation(self):
        a, b = self.write_product(integers=False)
        c = Matrix.random(21, 34, "fp32", 3)
        self.write_matrix("c.npy", c)
        biases = {kind: Matrix.random(1, count, "fp32", 4) for kind, count in (("per_row", 21), ("per_column", 34))}
        for kind, bias in biases.items():
            self.write(kind + ".npy", npy_bytes((bias.columns,), encode(bias.values, "fp32"), "<f4"))
        for kind in biases:
            for activation in ("none", "relu", "gelu_tanh", "silu"):
                with self.subTest(bias=kind, activation=activation):
                    flags = ("-C", "c.npy", "--alpha", 0.125, "--beta", -0.5, "--bias", kind + ".npy", "--bias-kind", kind)
                    self.succeed("gemm", "a.npy", "b.npy", "-o", "d.npy", "--check", "--out-type", "fp32", "--activation", activation, *flags)
                    rows, columns = (biases[kind].values if kind == which else None for which in ("per_row", "per_column"))
                    expected = naive_product(a, b, 0.125, -0.5, c, rows, columns, activation)
                    self.assert_close("d.npy", "fp32", (21, 34), expected)

    def test_beta_is_one_where_c_is_given_and_c_may_lie_in_any_order(self):
        a, b = self.write_product()
        c = Matrix.random(21, 34, "bf16", 3, True)
        for fortran in (False, True):
            self.write_matrix("c.npy", c, fortran)
            self.succeed("gemm", "a.npy", "b.npy", "-C", "c.npy", "-o", "d.npy", "--out-type", "fp32", "--check")
            self.assert_exact("d.npy", "fp32", naive_product(a, b, beta=1.0, c=c))

    def test_c_may_be_overwritten(self):
        a, b = self.write_product()
        c = Matrix.random(21, 34, "fp32", 3, True)
        self.write_matrix("c.npy", c)
        self.succeed("gemm", "a.npy", "b.npy", "-C", "c.npy", "-o", "c.npy", "--out-type", "fp32", "--check")
        self.assert_exact("c.npy", "fp32", naive_product(a, b, beta=1.0, c=c))

    def test_one_c_for_a_batch(self):
        batch = [Matrix.random(9, 8, "bf16", seed, True) for seed in range(2)]
        b, c = Matrix.random(8, 10, "bf16", 5, True), Matrix.random(9, 10, "bf16", 6, True)
        self.write_batch("a.npy", batch)
        self.write_matrix("b.npy", b)
        self.write_matrix("c.npy", c)
        self.succeed("gemm", "a.npy", "b.npy", "-C", "c.npy", "-o", "d.npy", "--check")
        self.assert_exact("d.npy", "bf16", [x for a in batch for x in naive_product(a, b, beta=1.0, c=c)])

    def test_what_does_not_fit(self):
        self.write_product()
        self.write_matrix("c.npy", Matrix.random(20, 34, "bf16", 3))
        self.write("bias.npy", npy_bytes((21,), encode([0.0] * 21, "bf16"), "<V2"))
        self.write("short.npy", npy_bytes((5,), encode([0.0] * 5, "bf16"), "<V2"))
        run = ("gemm", "a.npy", "b.npy", "-o", "d.npy")
        self.refuse(*run, "--beta", 2, says=("--beta 2", "-C"))
        self.refuse(*run, "-C", "c.npy", says=("20 x 34", "21 x 34"))
        self.refuse(*run, "--bias", "bias.npy", says=("21 elements", "needs 34", "--bias-kind per_row"))
        self.refuse(*run, "--bias", "short.npy", says=("5 elements", "needs 34"))
        self.refuse(*run, "--bias", "a.npy", says="one dimension")
        self.refuse(*run, "--bias", "bias.npy", "--bias-kind", "none", says="--bias-kind none")


class PlaceAndPlanTest(GemmTest):
    def test_cpu_by_the_plan_of_any_device(self):
        a, b = self.write_product(shape=(200, 150, 40))
        expected = naive_product(a, b)
        for device in ("h10", "h200"):
            for threads in (1, 3):
                answer = self.succeed_json(
                    "gemm", "a.npy", "b.npy", "-o", "d.npy", "--backend", "reference", "--device", device, "--threads", threads, "--out-type", "fp32"
                )
                self.assertEqual((answer["backend"], answer["device"]), ("reference", device))
                self.assert_exact("d.npy", "fp32", expected)

    def test_says_where_it_ran_with_what_and_how_long(self):
        self.write_product()
        text = self.succeed("gemm", "a.npy", "b.npy", "-o", "d.npy", "--backend", "reference")
        self.assertRegex(text, r"(?m)^plan bf16_rr_\w+, made for ")
        self.assertRegex(text, r"(?m)^ran  on the CPU by the reference \(--backend reference\): [0-9.]+ (us|ms|s), ")
        answer = self.succeed_json("gemm", "a.npy", "b.npy", "-o", "d.npy")
        self.assertIn(answer["backend"], ("cuda", "emulator", "reference"))
        self.assertTrue(answer["why"])
        self.assertGreater(answer["seconds"], 0)
        self.assertEqual(answer["shape"], [21, 34])
        self.assertEqual(answer["plan"]["problem"]["k"], 45)

    def test_every_kernel_that_can(self):
        a, b = self.write_product(shape=(72, 80, 64))
        expected = naive_product(a, b)
        kernels = [kernel["name"] for kernel in self.succeed_json("list", "--type", "bf16", "--layout", "rr")["kernels"]]
        self.assertTrue(kernels)
        for kernel in kernels:
            with self.subTest(kernel):
                answer = self.succeed_json("gemm", "a.npy", "b.npy", "-o", "d.npy", "--kernel", kernel, "--out-type", "fp32", "--check")
                self.assertEqual(answer["kernel"], kernel)
                self.assert_exact("d.npy", "fp32", expected)

    def test_plan_from_a_file(self):
        a, b = self.write_product()
        flags = ("--m", 21, "--n", 34, "--k", 45, "--layout", "rr", "--out-type", "fp32")
        self.write("plan.json", self.succeed("plan", *flags, "--json"))
        self.succeed("gemm", "a.npy", "b.npy", "-o", "d.npy", "--plan-file", "plan.json", "--out-type", "fp32", "--backend", "reference", "--check")
        self.assert_exact("d.npy", "fp32", naive_product(a, b))
        run = ("gemm", "a.npy", "b.npy", "-o", "d.npy", "--plan-file", "plan.json")
        self.refuse(*run, says=("plan.json", "bf16 -> fp32", "bf16 -> bf16"))
        self.refuse(*run, "--out-type", "fp32", "--alpha", 2, says=("plan.json", "alpha"))
        self.refuse(*run, "--device", "h20", says=("--plan-file", "--device"))
        self.refuse("gemm", "a.npy", "b.npy", "-o", "d.npy", "--plan-file", "no.json", says="no.json")

    def test_where_not_to_run(self):
        self.write_product()
        run = ("gemm", "a.npy", "b.npy", "-o", "d.npy")
        self.refuse(*run, "--backend", "tpu", says=("--backend 'tpu'", "cuda, emulator, reference"))
        self.refuse(*run, "--backend", "reference", "--gpu", 0, says=("--gpu", "--backend cuda"))
        self.refuse(*run, "--backend", "reference", "--threads", 0, says="--threads")
        self.refuse(*run, "--threads", 2, says=("--threads", "--backend reference"))
        for flag, value in (("--seed", 1), ("--resident", 1), ("--asynchrony", "lazy")):
            for backend in ((), ("--backend", "reference")):
                self.refuse(*run, flag, value, *backend, says=(flag, "--backend emulator"))
        if not self.built_with("cuda"):
            self.refuse(*run, "--backend", "cuda", says=("no CUDA kernels", "-DSLUICE_CUDA=ON"))
        if not self.built_with("emulator"):
            self.refuse(*run, "--backend", "emulator", says=("no emulator", "-DSLUICE_EMULATOR=ON", "--backend reference"))
        self.refuse("gemm", "a.npy", "b.npy", "-o", "d.npy", "--device", "gtx", says=("'gtx'", "h100-sxm"))

    def test_where_not_to_write(self):
        self.write_product()
        self.refuse("gemm", "a.npy", "b.npy", says=("-o D.npy", "--check"))
        self.refuse("gemm", "a.npy", "b.npy", "-o", "no/d.npy", says="no is not a folder")
        if os.path.exists("/dev/full"):
            self.refuse("gemm", "a.npy", "b.npy", "-o", "/dev/full", code=1, says="/dev/full")


class EmulatorTest(GemmTest):
    """Build and machine decide what is there, so what is chosen automatically is asked of the answer."""

    RUN = ("gemm", "a.npy", "b.npy", "-o", "d.npy", "--out-type", "fp32")
    EMULATED = (*RUN, "--backend", "emulator")

    def setUp(self):
        super().setUp()
        if not self.built_with("emulator"):
            self.skipTest("this build has no emulator")

    def test_says_so_and_how(self):
        a, b = self.write_product(shape=(200, 150, 80))
        expected = naive_product(a, b)
        text = self.succeed(*self.EMULATED, "--seed", 7, "--check")
        self.assertRegex(text, r"(?m)^ran  on the emulator, seed 7 \(--backend emulator\): [0-9.]+ (us|ms|s), ")
        self.assert_exact("d.npy", "fp32", expected)
        for asynchrony in ("random", "eager", "lazy", "mixed"):
            for resident in (1, 3):
                flags = ("--asynchrony", asynchrony, "--resident", resident, "--seed", 2**64 - 1)
                answer = self.succeed_json(*self.EMULATED, *flags, "--device", "h200")
                self.assertEqual(answer["backend"], "emulator")
                self.assertEqual(answer["emulator"], {"seed": 2**64 - 1, "asynchrony": asynchrony, "resident_clusters": resident})
                self.assert_exact("d.npy", "fp32", expected)

    def test_flags_that_mean_nothing(self):
        self.write_product()
        self.refuse(*self.EMULATED, "--asynchrony", "slow", says=("--asynchrony 'slow'", "random, eager, lazy, mixed"))
        self.refuse(*self.EMULATED, "--resident", 0, says="--resident")
        self.refuse(*self.EMULATED, "--seed", "x", says="--seed")
        self.refuse(*self.EMULATED, "--seed", -1, says="--seed")
        self.refuse(*self.EMULATED, "--threads", 2, says=("--threads", "--backend reference"))
        self.refuse(*self.EMULATED, "--gpu", 0, says=("--gpu", "--backend cuda"))

    def test_schedules_that_cut_tiles(self):
        a, b = self.write_product(shape=(40, 50, 600))
        ways = (("split-k", "--splits", 2), ("stream-k",), ("hybrid",), ("data-parallel", "--claim", "ticket"))
        meetings = (("split-k", "--splits", 2, "--reduction", "separate"), ("split-k", "--splits", 2, "--reduction", "cluster"))
        for schedules, fortran_b in ((ways, False), (meetings, True)):  # meetings: where K is contiguous
            self.write_matrix("b.npy", b, fortran_b)
            for schedule in schedules:
                with self.subTest(schedule):
                    self.succeed(*self.EMULATED, "--scheduler", *schedule, "--check")
                    self.assert_exact("d.npy", "fp32", naive_product(a, b))

    def test_a_small_product_is_emulated_where_there_is_no_gpu(self):
        a, b = self.write_product()
        answer = self.succeed_json(*self.RUN)
        if answer["backend"] != "cuda":
            self.assertEqual(answer["backend"], "emulator")
            self.assertIn("no GPU", answer["why"])
        self.assert_exact("d.npy", "fp32", naive_product(a, b))

    def test_a_large_one_is_not(self):
        # A tile for each product of two numbers: quick to add up, slow to emulate.
        batch = 1 << 15
        self.write("a.npy", npy_bytes((batch, 1, 1), bytes(2 * batch), "<V2"))
        self.write("b.npy", npy_bytes((batch, 1, 1), bytes(2 * batch), "<V2"))
        answer = self.succeed_json("gemm", "a.npy", "b.npy", "-o", "d.npy")
        if answer["backend"] != "cuda":
            self.assertEqual(answer["backend"], "reference")
            self.assertIn("the emulator would take about", answer["why"])


class CheckTest(GemmTest):
    def test_right_results_pass(self):
        a, b = self.write_product(integers=False)
        for check, count in (("--check", a.rows * b.columns), ("--check=all", a.rows * b.columns), ("--check=100", 100)):
            report = self.succeed_json("gemm", "a.npy", "b.npy", check)["check"]
            self.assertEqual((report["ok"], report["wrong"], report["not_a_number"]), (True, 0, 0))
            self.assertEqual(report["checked"], count)

    def test_one_wrong_element_fails(self):
        self.write_product(integers=False)
        self.succeed("gemm", "a.npy", "b.npy", "-o", "d.npy", "--out-type", "fp32")
        check = ("gemm", "a.npy", "b.npy", "--check-file", "d.npy", "--out-type", "fp32")
        self.assertTrue(self.succeed_json(*check)["check"]["ok"])
        for wrong, field in ((7.25, "wrong"), (float("nan"), "not_a_number")):
            _, shape, values = read_npy(self.path("d.npy"))
            values[5 * 34 + 3] += wrong
            self.write("bad.npy", npy_bytes(shape, encode(values, "fp32"), "<f4"))
            done = self.run_sluice("gemm", "a.npy", "b.npy", "--check-file", "bad.npy", "--out-type", "fp32")
            self.assertEqual(done.returncode, 1)
            self.assertIn("sluice: the result is wrong", done.stderr)
            self.assertIn("row 5, column 3", done.stderr)
            report = json.loads(
                self.run_sluice("gemm", "a.npy", "b.npy", "--check-file", "bad.npy", "--out-type", "fp32", "--json").stdout
            )["check"]
            self.assertEqual((report["ok"], report[field], report["worst"]["row"]), (False, 1, 5))

    def test_a_file_that_is_no_result_of_this_product(self):
        self.write_product()
        self.refuse("gemm", "a.npy", "b.npy", "--check-file", "b.npy", says=("45 x 34", "21 x 34"))
        self.write_matrix("d.npy", Matrix.random(21, 34, "fp16", 1))
        self.refuse("gemm", "a.npy", "b.npy", "--check-file", "d.npy", says=("holds fp16", "--out-type"))
        self.refuse("gemm", "a.npy", "b.npy", "--check-file", "d.npy", "-o", "e.npy", says=("--check-file", "-o"))

    def test_bad_numbers_of_samples(self):
        self.write_product()
        for samples in ("0", "-4", "some", "3x"):
            self.refuse("gemm", "a.npy", "b.npy", f"--check={samples}", says=f"--check={samples}")

    def test_a_file_name_behind_check_stays_one(self):
        self.write_product()
        self.succeed("gemm", "--check", "a.npy", "b.npy")


if __name__ == "__main__":
    unittest.main()
