"""gemm with a D in FP8: its scales given, found and checked, and what is refused; plans for it."""

import math
import struct
import unittest

from support import Matrix, SluiceTest, encode, npy_bytes, read_npy

M, N, K = 20, 200, 144


class Fp8ResultTest(SluiceTest):
    """D in fp32 of small integers is exact, and is quantised here by the letter of docs/quantize.md."""

    def setUp(self):
        super().setUp()
        self.a, self.b = Matrix.random(M, K, "e4m3", 1, True), Matrix.random(N, K, "e4m3", 2, True)
        self.write("a.npy", npy_bytes((M, K), encode(self.a.values, "e4m3"), "|u1"))
        self.write("b.npy", npy_bytes((N, K), encode(self.b.values, "e4m3"), "|u1"))
        self.d = [sum(x * y for x, y in zip(self.a.values[i * K : i * K + K], self.b.values[j * K : j * K + K])) for i in range(M) for j in range(N)]

    def gemm(self, *flags, out="d.npy"):
        return ("gemm", "a.npy", "b.npy", "--b-is-nk", "--type", "e4m3", "--out-type", "e4m3", "--backend", "reference", *flags, *(("-o", out) if out else ()))

    def write_scale(self, value, name="sd.npy", shape=()):
        self.write(name, npy_bytes(shape, encode([value] * math.prod(shape), "fp32"), "<f4"))

    def bytes_of_d(self):
        with open(self.path("d.npy"), "rb") as file:
            content = file.read()
        self.assertIn(f"'descr': '|u1', 'fortran_order': False, 'shape': ({M}, {N})".encode(), content)
        return content[-M * N :]

    def test_one_scale_that_is_given(self):
        self.write_scale(8.0)
        text = self.succeed(*self.gemm("--scaling-d", "tensor", "--scale-d", "sd.npy", "--check=all"))
        self.assertIn("D scaled tensor", text)
        self.assertEqual(self.bytes_of_d(), encode([x / 8 for x in self.d], "e4m3"))
        self.succeed(*self.gemm("--scaling-d", "tensor", "--scale-d", "sd.npy", "--check-file", "d.npy", out=None))
        self.write_scale(16.0)
        done = self.run_sluice(*self.gemm("--scaling-d", "tensor", "--scale-d", "sd.npy", "--check-file", "d.npy", out=None))
        self.assertNotEqual(done.returncode, 0, "another scale makes them other numbers")

    def test_no_scale(self):
        self.succeed(*self.gemm("--check"))
        self.assertEqual(self.bytes_of_d(), encode(self.d, "e4m3"))

    def test_scales_that_are_found_feed_the_next_product(self):
        answer = self.succeed_json(*self.gemm("--scaling-d", "1x128", "--scale-d", "sd.npy", "--check=all"))
        self.assertEqual((answer["output"], answer["scales"]), ("d.npy", "sd.npy"))
        kind, shape, scales = read_npy(self.path("sd.npy"))
        self.assertEqual((kind, tuple(shape)), ("fp32", (M, 2)))
        single = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]
        codes = []
        for i in range(M):
            for block, (first, end) in enumerate(((0, 128), (128, N))):
                largest = max(abs(x) for x in self.d[i * N + first : i * N + end])
                scale = single(largest / 448) if largest else 1.0
                self.assertEqual(scales[2 * i + block], scale)
                codes += [single(x * single(1 / scale)) for x in self.d[i * N + first : i * N + end]]
        self.assertEqual(self.bytes_of_d(), encode(codes, "e4m3"))
        self.succeed(*self.gemm("--scaling-d", "1x128", "--scale-d", "sd.npy", "--check-file", "d.npy", out=None))
        self.write("next.npy", npy_bytes((16, N), encode([1.0] * 16 * N, "e4m3"), "|u1"))
        text = self.succeed("gemm", "d.npy", "next.npy", "--b-is-nk", "--type", "e4m3", "--scale-a", "sd.npy", "--check", "-o", "e.npy")
        self.assertIn("scales 1x128 and none", text)
        for i, x in enumerate(read_npy(self.path("e.npy"))[2]):
            row = self.d[i // 16 * N : i // 16 * N + N]
            self.assertAlmostEqual(x, sum(row), delta=0.07 * sum(map(abs, row)) + 1)

    def test_a_wide_bias_and_an_activation(self):
        self.write("bias.npy", npy_bytes((N,), encode([0.25 * j for j in range(N)], "fp64"), "<f8"))
        text = self.succeed(*self.gemm("--bias", "bias.npy", "--activation", "relu", "--check=all"))
        self.assertIn("converted to fp32", text)
        self.assertEqual(self.bytes_of_d(), encode([max(0.0, x + 0.25 * (i % N)) for i, x in enumerate(self.d)], "e4m3"))

    def test_batches(self):
        self.write("a3.npy", npy_bytes((3, M, K), encode(self.a.values * 3, "e4m3"), "|u1"))
        self.succeed("gemm", "a3.npy", *self.gemm("--scaling-d", "1x128", "--scale-d", "sd.npy", "--check=all")[2:])
        self.assertEqual(tuple(read_npy(self.path("sd.npy"))[1]), (3, M, 2))

    def test_what_does_not_fit(self):
        self.write_scale(1.0)
        self.write_scale(1.0, "two.npy", (2,))
        self.refuse(*self.gemm("--scaling-d", "tensor"), says=("--scaling-d tensor needs the scale of D", "--scale-d FILE"))
        self.refuse(*self.gemm("--scale-d", "sd.npy"), says=("given or found", "--scaling-d tensor"))
        self.refuse(*self.gemm("--scaling-d", "1x128"), says=("numbers without their scales", "--scale-d SD.npy"))
        self.refuse(*self.gemm("--scaling-d", "128x128"), says=("scaling_d = 128x128",))
        self.refuse(*self.gemm("--scaling-d", "tensor", "--scale-d", "two.npy"), says=("two.npy: has shape (2,)", "the scales of D have () or (1,)"))
        self.refuse(*self.gemm("--scaling-d", "1x128", "--scale-d", "sd.npy", "--check-file", "a.npy", out=None), says=("sd.npy: has shape ()", "(20, 2)"))
        self.write("c.npy", npy_bytes((M, N), encode([1.0] * M * N, "fp32"), "<f4"))
        self.refuse(*self.gemm("-C", "c.npy"), says=("beta = 1", "type_d = e4m3", "C cannot be added"))
        wide = ("gemm", "a.npy", "b.npy", "--b-is-nk", "--type", "e4m3", "-o", "d.npy")
        self.refuse(*wide, "--scaling-d", "tensor", says=("--scaling-d is for a D in FP8 alone", "--out-type e4m3"))
        self.refuse(*wide, "--scale-d", "sd.npy", says=("--scale-d is for a D in FP8 alone",))

    def test_plans(self):
        plan = ("plan", "--m", 64, "--n", 1000, "--k", 512, "--type", "e4m3", "--out-type", "e4m3", "--device", "h200")
        flags = ("--scaling-d", "1x128", "--scale-layout-d", "column-major", "--ld-scale-d", 68)
        problem = self.succeed_json(*plan, *flags)["problem"]
        self.assertEqual([problem[field] for field in ("scaling_d", "scale_layout_d", "ld_scale_d")], ["1x128", "column-major", 68])
        text = self.succeed("explain", *plan[1:], *flags)
        self.assertIn("cannot find scales for each 128 columns of D", text)
        self.refuse(*plan, "--scaling-d", "1x128", "--scheduler", "split-k", "--reduction", "cluster", says=("reduction = cluster", "take workspace"))
        self.refuse(*plan, "--scaling-d", "vector", says=("scaling_d = vector",))


if __name__ == "__main__":
    unittest.main()
