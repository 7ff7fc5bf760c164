"""Products of weights of 4 bits: planned, packed by `sluice pack` and multiplied, and what is told to whoever mixes things up."""

import random
import struct
import unittest

from support import Matrix, SluiceTest, UNIT_ROUNDOFF, encode, naive_product, npy_bytes, read_npy

TYPE = ("--type", "bf16,int4")
CUBE = ("--m", 16, "--n", 4096, "--k", 4096, *TYPE)


class W4Test(SluiceTest):
    def write_weights(self, n, k, group, zero_points, seed=1):
        """A file packed from random codes, and what they mean: k x n, every weight a bf16 number."""
        source = random.Random(seed)
        codes = [[source.randrange(16) for _ in range(k)] for _ in range(n)]
        size = group or k
        groups = -(-k // size)
        scales = [[source.choice((0.25, 0.3125, 0.5, 0.875)) for _ in range(groups)] for _ in range(n)]
        zeros = [[source.randrange(17) if zero_points else 8 for _ in range(groups)] for _ in range(n)]
        packed = bytes(row[i] | row[i + 1] << 4 for row in codes for i in range(0, k, 2))
        self.write("q.npy", npy_bytes((n, k // 2), packed, "|u1"))
        self.write("s.npy", npy_bytes((n, groups), encode([s for row in scales for s in row], "bf16"), "<V2"))
        self.write("z.npy", npy_bytes((n, groups), struct.pack(f"{n * groups}B", *(z for row in zeros for z in row)), "|u1"))
        self.succeed("pack", "q.npy", "--scales", "s.npy", *(("--zeros", "z.npy") if zero_points else ()), "--group-size", group, "-o", "w.npy")
        return Matrix(k, n, "fp32", [(codes[c][i] - zeros[c][i // size]) * scales[c][i // size] for i in range(k) for c in range(n)])

    def test_plans(self):
        def problem(*flags):
            return self.succeed_json("plan", *CUBE, "--device", "h200", *flags)["problem"]

        plain = problem()
        self.assertEqual([plain[field] for field in ("type_a", "type_b", "type_d")], ["bf16", "int4", "bf16"])
        self.assertNotIn("w4", plain)
        self.assertEqual(problem("--w4-group", 64, "--w4-zeros")["w4"], {"group_size": 64, "zero_points": True})
        self.assertEqual(problem("--w4-group", 0)["w4"], {"group_size": 0, "zero_points": False})
        spelt = self.succeed_json("plan", "--m", 1, "--n", 8, "--k", 8, "--type", "fp16xint4", "--device", "h200")["problem"]
        self.assertEqual([spelt[field] for field in ("type_a", "type_b", "type_d")], ["fp16", "int4", "fp16"])
        for command in ("plan", "explain", "simulate"):
            self.assertIn("bf16 x int4 -> bf16, groups of 32 with zero points", self.succeed(command, *CUBE, "--w4-group", 32, "--w4-zeros"))

    def test_plans_refused(self):
        self.refuse("plan", *CUBE, "--w4-group", 48, says=("w4.group_size = 48", "32, 64 or 128"))
        self.refuse("plan", "--m", 1, "--n", 8, "--k", 100, *TYPE, says=("k = 100 with type_b = int4", "pad to 104"))
        self.refuse("plan", *CUBE, "--layout", "rr", says=("layout_b = row-major", "packed weights"))
        self.refuse("plan", *CUBE, "--scaling-b", "tensor", says=("scaling_b = tensor with type_b = int4", "Scaling::none"))
        self.refuse("plan", "--m", 1, "--n", 8, "--k", 8, "--w4-zeros", says=("--w4-zeros is for weights of 4 bits", "--type bf16,int4"))
        self.refuse("plan", "--m", 1, "--n", 8, "--k", 8, "--w4-group", 64, says="--w4-group is for weights of 4 bits")
        self.refuse("plan", "--m", 1, "--n", 8, "--k", 8, "--type", "int4", says=("type_a = int4", "bf16, fp16 or e4m3"))
        self.refuse("plan", "--m", 1, "--n", 8, "--k", 8, "--type", "e5m2,int4", says=("type_a = e5m2 with type_b = int4", "bf16, fp16 or e4m3"))
        self.refuse("plan", "--m", 1, "--n", 8, "--k", 16, "--type", "e4m3,int4", "--scaling-a", "1x128", says=("scaling_a = 1x128 with type_b = int4", "vector, tensor"))

    def test_a_packed_file_is_multiplied(self):
        for n, k, group, zero_points in ((72, 96, 32, True), (128, 256, 128, False), (8, 64, 64, False), (72, 96, 0, True)):
            weights = self.write_weights(n, k, group, zero_points)
            a = Matrix.random(5, k, "bf16", 2)
            self.write_matrix("a.npy", a)
            flags = ("--w4-group", 0) if group == 0 else ()
            text = self.succeed("gemm", "a.npy", "w.npy", *TYPE, "--n", n, *flags, "--out-type", "fp32", "-o", "d.npy", "--check=all", "--backend", "reference")
            self.assertIn("whole columns" if group == 0 else f"groups of {group}", text)
            self.assertIn("all within the bound", text)
            kind, shape, values = read_npy(self.path("d.npy"))
            self.assertEqual((kind, shape), ("fp32", (5, n)))
            for got, (expected, size) in zip(values, naive_product(a, weights)):
                self.assertLessEqual(abs(got - expected), 2 * k * UNIT_ROUNDOFF["fp32"] * size)

    def test_beside_e4m3_weights_are_packed_otherwise_and_mean_the_same(self):
        weights = self.write_weights(72, 96, 32, True)
        self.succeed("pack", "q.npy", "--scales", "s.npy", "--zeros", "z.npy", "--group-size", 32, "--type", "e4m3", "-o", "w8.npy")
        a = Matrix(5, 96, "fp32", random.Random(7).choices((-3.0, -1.0, 0.0, 0.5, 2.0, 7.0), k=5 * 96))  # numbers of e4m3
        self.write_matrix("a.npy", a)
        flags = ("--type", "e4m3,int4", "--n", 72, "--out-type", "fp32", "--backend", "reference")
        text = self.succeed("gemm", "a.npy", "w8.npy", *flags, "-o", "d.npy", "--check=all")
        self.assertIn("converted to e4m3", text)
        self.assertIn("all within the bound", text)
        for got, (expected, size) in zip(read_npy(self.path("d.npy"))[2], naive_product(a, weights)):
            self.assertLessEqual(abs(got - expected), 2 * 96 * UNIT_ROUNDOFF["fp32"] * size)
        self.write("o.npy", npy_bytes((96,), struct.pack("<96i", *range(96)), "<i4"))
        self.refuse("gemm", "a.npy", "w8.npy", *flags, "--order", "o.npy", "--check", says=("--order is for activations of 16 bits", "before they become FP8"))
        self.refuse("gemm", "a.npy", "w8.npy", *flags, "--scaling-b", "tensor", "--check", says=("--scaling-b is for FP8", "packed"))

    def test_a_comes_in_the_order_of_its_weights(self):
        n, k = 72, 96
        self.write_weights(n, k, 32, True)
        for kind, fortran in (("bf16", False), ("fp32", True)):
            a = Matrix.random(5, k, kind, 2)
            order = random.Random(3).sample(range(k), k)
            ordered = Matrix(5, k, kind, [a.at(r, c) for r in range(5) for c in order])
            self.write_matrix("a.npy", a, fortran=fortran)
            self.write_matrix("ordered.npy", ordered)
            self.write("o.npy", npy_bytes((k,), struct.pack(f"<{k}i", *order), "<i4"))
            flags = ("w.npy", *TYPE, "--n", n, "--out-type", "fp32", "--backend", "reference")
            text = self.succeed("gemm", "a.npy", *flags, "--order", "o.npy", "-o", "d.npy", "--check=all")
            self.assertIn("A's columns brought into the order of o.npy", text)
            self.succeed("gemm", "ordered.npy", *flags, "-o", "expected.npy")
            self.assertEqual(read_npy(self.path("d.npy")), read_npy(self.path("expected.npy")))
        self.write("short.npy", npy_bytes((k - 1,), struct.pack(f"<{k - 1}i", *order[1:]), "<i4"))
        self.refuse("gemm", "a.npy", *flags, "-o", "d.npy", "--order", "short.npy", says=("short.npy has 95 numbers", "96 columns", "sluice pack --order"))
        for wrong, why in ((order[1], "comes twice"), (k, "is no column of A"), (-1, "is no column of A")):
            self.write("wrong.npy", npy_bytes((k,), struct.pack(f"<{k}i", wrong, *order[1:]), "<i4"))
            self.refuse("gemm", "a.npy", *flags, "-o", "d.npy", "--order", "wrong.npy", says=(f"{wrong} in wrong.npy {why}", "0 to 95 once"))
        self.write_matrix("plain.npy", Matrix.random(k, n, "bf16", 3))
        self.refuse("gemm", "a.npy", "plain.npy", "--order", "o.npy", "--check", says=("--order is for weights of 4 bits", "--type bf16,int4"))

    def test_a_batch_shares_the_weights(self):
        weights = self.write_weights(8, 64, 64, False)
        matrices = [Matrix.random(3, 64, "bf16", seed) for seed in (4, 5)]
        self.write_batch("a.npy", matrices)
        self.succeed("gemm", "a.npy", "w.npy", *TYPE, "--n", 8, "--out-type", "fp32", "-o", "d.npy", "--check", "--backend", "reference")
        _, shape, values = read_npy(self.path("d.npy"))
        self.assertEqual(shape, (2, 3, 8))
        expected = [pair for matrix in matrices for pair in naive_product(matrix, weights)]
        for got, (value, size) in zip(values, expected):
            self.assertLessEqual(abs(got - value), 128 * UNIT_ROUNDOFF["fp32"] * size)

    def test_a_in_another_order_and_type_is_converted(self):
        self.write_weights(8, 64, 64, False)
        self.write_matrix("a.npy", Matrix.random(3, 64, "fp32", 4), fortran=True)
        text = self.succeed("gemm", "a.npy", "w.npy", *TYPE, "--n", 8, "--check", "--backend", "reference")
        self.assertIn("copied to another order, converted to bf16", text)

    def test_random_weights(self):
        flags = ("--m", 5, "--n", 72, "--k", 96, "--check", "--backend", "reference")
        for kind in ("bf16", "fp16"):
            for group in (0, 32, 64, 128):
                answer = self.succeed_json("gemm", *flags, "--type", kind + ",int4", "--w4-group", group, "--w4-zeros")
                self.assertTrue(answer["check"]["ok"])
                self.assertEqual(answer["plan"]["problem"]["w4"], {"group_size": group, "zero_points": True})
        for scaling in ("none", "tensor", "vector"):
            answer = self.succeed_json("gemm", *flags, "--type", "e4m3,int4", "--scaling-a", scaling, "--w4-group", 64, "--w4-zeros")
            self.assertTrue(answer["check"]["ok"])
            self.assertEqual((answer["plan"]["problem"]["type_a"], answer["plan"]["problem"]["type_d"]), ("e4m3", "bf16"))
        ragged = self.succeed_json("gemm", "--grouping", "ragged", "--groups", "3,5", "--n", 72, "--k", 256, *TYPE, "--check", "--backend", "reference")
        self.assertTrue(ragged["check"]["ok"])

    def test_the_emulator_multiplies_them(self):
        if not self.built_with("emulator"):
            self.skipTest("this build has no emulator")
        flags = ("--m", 5, "--n", 72, "--k", 96, "--check", "--backend", "emulator", "--device", "h10")
        self.assertTrue(self.succeed_json("gemm", *flags, *TYPE, "--w4-group", 32, "--w4-zeros")["check"]["ok"])
        self.assertTrue(self.succeed_json("gemm", *flags, "--type", "e4m3,int4", "--scaling-a", "vector", "--w4-group", 64, "--w4-zeros")["check"]["ok"])

    def test_a_wrong_result_is_seen(self):
        self.write_weights(8, 64, 64, False)
        self.write_matrix("a.npy", Matrix.random(3, 64, "bf16", 4))
        self.succeed("gemm", "a.npy", "w.npy", *TYPE, "--n", 8, "--out-type", "fp32", "-o", "d.npy", "--backend", "reference")
        kind, shape, values = read_npy(self.path("d.npy"))
        values[7] += 1
        self.write("d.npy", npy_bytes(shape, encode(values, kind), "<f4"))
        done = self.run_sluice("gemm", "a.npy", "w.npy", *TYPE, "--n", 8, "--out-type", "fp32", "--check-file", "d.npy")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the result is wrong", done.stderr)

    def test_files_refused(self):
        self.write_weights(72, 96, 32, True)
        self.write_matrix("a.npy", Matrix.random(5, 96, "bf16", 2))
        self.write_matrix("long.npy", Matrix.random(5, 264, "bf16", 2))
        self.write_matrix("plain.npy", Matrix.random(96, 72, "bf16", 3))
        product, check = ("gemm", "a.npy", "w.npy", *TYPE), ("--check",)
        self.refuse(*product, *check, says=("w.npy does not say how many of its 128 columns", "--n"))
        self.refuse(*product, *check, "--n", 136, says=("n = 136", "w.npy holds weights with n from 8 to 128"))
        self.refuse("gemm", "long.npy", "w.npy", *TYPE, *check, "--n", 72, says=("k = 264", "k from 8 to 256"))
        self.refuse(*product, *check, "--n", 72, "--w4-group", 64, says=("--w4-group 64", "groups of 32"))
        self.refuse(*product, *check, "--n", 72, "--m", 5, says="--m and --k are for random operands")
        self.refuse(*product, *check, "--n", 72, "--b-is-nk", says="--transpose-b")
        self.refuse(*product, *check, "--n", 72, "--scaling-a", "tensor", says=("--scaling-a is for FP8", "packed"))
        self.refuse("gemm", "a.npy", "plain.npy", *TYPE, *check, "--n", 72, says=("plain.npy: holds bf16 (96, 72)", "sluice pack"))
        self.refuse("gemm", "a.npy", "w.npy", *check, says=("w.npy holds bytes", "--type bf16,int4"))
        self.refuse("gemm", "a.npy", "plain.npy", *check, "--w4-zeros", says="--w4-zeros is for weights of 4 bits")
        self.write_weights(72, 96, 32, False)
        self.refuse(*product, *check, "--n", 72, "--w4-zeros", says=("--w4-zeros", "no zero points"))


if __name__ == "__main__":
    unittest.main()
