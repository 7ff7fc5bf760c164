"""gemm with FP8 operands: bytes, conversions, scales of every kind and from every place, and what is refused."""

import math
import random
import unittest

from support import FP8, Matrix, SluiceTest, encode, npy_bytes, read_npy

M, N, K = 130, 131, 144  # two blocks in each direction, one of them short
BLOCKS_M, BLOCKS_N, BLOCKS_K = 2, 2, 2
SHAPES = {
    "tensor": ((), ()),
    "vector": ((M,), (N,)),
    "1x128": ((M, BLOCKS_K), (N, BLOCKS_K)),
    "128x128": ((BLOCKS_M, BLOCKS_K), (BLOCKS_N, BLOCKS_K)),
}


def index_of(scaling, vector, k):
    row = {"tensor": 0, "vector": vector, "1x128": vector, "128x128": vector // 128}[scaling]
    return row * BLOCKS_K + k // 128 if "x" in scaling else row


class Fp8Test(SluiceTest):
    """Small integers, and scales that are powers of two: results are exact."""

    def setUp(self):
        super().setUp()
        self.a, self.b = Matrix.random(M, K, "e4m3", 1, True), Matrix.random(K, N, "e4m3", 2, True)
        self.columns_of_b = self.b.transposed()

    def write_operands(self, kind="e4m3", b_is_nk=True):
        self.write("a.npy", npy_bytes((M, K), encode(self.a.values, kind), "|u1"))
        b = self.columns_of_b if b_is_nk else self.b
        self.write("b.npy", npy_bytes((b.rows, b.columns), encode(b.values, kind), "|u1"))

    def write_scales(self, name, shape, seed, fortran=False, descr="<f4", kind="fp32"):
        """Returns them in C order."""
        source = random.Random(seed)
        scales = [2.0 ** source.randint(-1, 2) for _ in range(math.prod(shape))]
        rows, columns = (shape[0], math.prod(shape[1:])) if shape else (1, 1)
        stored = [scales[r * columns + c] for c in range(columns) for r in range(rows)] if fortran else scales
        self.write(name, npy_bytes(shape, encode(stored, kind), descr, fortran=fortran))
        return scales

    def expected(self, scaling_a=None, scales_a=None, scaling_b=None, scales_b=None):
        def scale(scaling, scales, vector, k):
            return scales[index_of(scaling, vector, k)] if scaling else 1.0

        result = []
        for i in range(M):
            row = [self.a.at(i, k) * scale(scaling_a, scales_a, i, k) for k in range(K)]
            for j in range(N):
                block_scales = [scale(scaling_b, scales_b, j, k) for k in (0, 128)]
                column = self.columns_of_b.values[j * K : (j + 1) * K]
                sums = [sum(x * y for x, y in zip(row[k : k + 128], column[k : k + 128])) for k in (0, 128)]
                result.append(sum(x * y for x, y in zip(sums, block_scales)))
        return result

    def gemm(self, *flags, kind="e4m3"):
        return ("gemm", "a.npy", "b.npy", "--type", kind, "-o", "d.npy", "--out-type", "fp32", "--backend", "reference", *flags)

    def assert_exact(self, expected):
        kind, shape, values = read_npy(self.path("d.npy"))
        self.assertEqual((kind, shape), ("fp32", (M, N)))
        wrong = [i for i, (got, want) in enumerate(zip(values, expected)) if got != want]
        self.assertFalse(wrong[:10], f"{len(wrong)} wrong elements")


class BytesTest(Fp8Test):
    def test_bytes_are_what_type_says(self):
        for kind in ("e4m3", "e5m2"):
            self.write_operands(kind)
            text = self.succeed(*self.gemm("--b-is-nk", "--check=all", kind=kind))
            self.assertIn(f"a.npy: {M} x {K} bytes, row-major, read as {kind}", text)
            self.assert_exact(self.expected())

    def test_one_of_each_type(self):
        self.write_operands()
        self.write("b.npy", npy_bytes((N, K), encode(self.columns_of_b.values, "e5m2"), "|V1"))
        text = self.succeed(*self.gemm("--b-is-nk", "--check", kind="e4m3,e5m2"))
        self.assertIn("e4m3 x e5m2 -> fp32", text)
        self.assert_exact(self.expected())

    def test_k_becomes_contiguous_and_rows_16_bytes_long(self):
        self.write_operands(b_is_nk=False)
        self.assertIn("b.npy: 144 x 131 bytes, row-major, copied to another order", self.succeed(*self.gemm("--check")))
        self.assert_exact(self.expected())
        self.write("a.npy", npy_bytes((3, 5), encode([1.0] * 15, "e4m3"), "|u1"))
        self.write("b.npy", npy_bytes((2, 5), encode([2.0] * 10, "e4m3"), "|u1"))
        self.assertIn("copied to rows of 16 bytes", self.succeed(*self.gemm("--b-is-nk", "--check")))
        self.assertEqual(read_npy(self.path("d.npy"))[2], [10.0] * 6)

    def test_bytes_need_a_type_and_only_operands_are_bytes(self):
        self.write_operands()
        run = ("gemm", "a.npy", "b.npy", "--b-is-nk", "-o", "d.npy")
        self.refuse(*run, says=("a.npy holds bytes", "--type e4m3"))
        self.refuse(*run, "--type", "bf16", says=("a.npy holds bytes", "--type e4m3"))
        self.refuse(*run, "--type", "e4m3,bf16", says="FP8 goes with FP8")
        self.write("bytes.npy", npy_bytes((M, N), bytes(M * N), "|u1"))
        self.refuse(*run, "--type", "e4m3", "-C", "bytes.npy", says=("bytes.npy: holds bytes", "only A and B"))
        self.write("bias.npy", npy_bytes((N,), bytes(N), "|u1"))
        self.refuse(*run, "--type", "e4m3", "--bias", "bias.npy", says=("bias.npy: holds bytes", "only A and B"))
        self.refuse("gemm", "a.npy", "b.npy", "--b-is-nk", "--type", "e4m3", "--check-file", "bytes.npy", says=("bytes.npy: holds bytes",))

    def test_the_result_is_bf16_unless_told(self):
        self.write_operands()
        self.assertEqual(self.succeed_json("gemm", "a.npy", "b.npy", "--b-is-nk", "--type", "e4m3", "--check")["type"], "bf16")


class ScaleFilesTest(Fp8Test):
    def test_the_shape_says_what_a_scale_is_for(self):
        self.write_operands()
        for scaling_a, scaling_b in zip(SHAPES, ("128x128", "tensor", "1x128", "vector")):
            for scaling_a, scaling_b in ((scaling_a, scaling_b), (scaling_b, scaling_a)):
                with self.subTest(a=scaling_a, b=scaling_b):
                    a, b = self.write_scales("sa.npy", SHAPES[scaling_a][0], 3), self.write_scales("sb.npy", SHAPES[scaling_b][1], 4)
                    text = self.succeed(*self.gemm("--b-is-nk", "--scale-a", "sa.npy", "--scale-b", "sb.npy", "--check=all"))
                    self.assertIn(f"scales {scaling_a} and {scaling_b}", text)
                    self.assert_exact(self.expected(scaling_a, a, scaling_b, b))

    def test_fortran_order_and_other_types_of_scales(self):
        self.write_operands()
        a = self.write_scales("sa.npy", (M, BLOCKS_K), 3, fortran=True)
        b = self.write_scales("sb.npy", (N,), 4, descr="<f8", kind="fp64")
        plan = self.succeed_json(*self.gemm("--b-is-nk", "--scale-a", "sa.npy", "--scale-b", "sb.npy", "--check"))["plan"]["problem"]
        self.assertEqual((plan["scale_layout_a"], plan["ld_scale_a"]), ("column-major", M))
        self.assert_exact(self.expected("1x128", a, "vector", b))

    def test_batches(self):
        a = [Matrix.random(4, 16, "e4m3", seed, True) for seed in range(3)]
        self.write("a.npy", npy_bytes((3, 4, 16), b"".join(encode(x.values, "e4m3") for x in a), "|u1"))
        self.write("b.npy", npy_bytes((2, 16), encode([1.0] * 32, "e4m3"), "|u1"))
        for shape, scale in (((3, 4), lambda batch, row: 2.0 ** (batch + row)), ((4,), lambda batch, row: 2.0**row)):
            rows = [scale(batch, row) for batch in range(shape[0] if len(shape) > 1 else 1) for row in range(4)]
            self.write("sa.npy", npy_bytes(shape, encode(rows, "fp32"), "<f4"))
            self.succeed(*self.gemm("--b-is-nk", "--scale-a", "sa.npy", "--check"))
            expected = [sum(a[i].values[row * 16 : row * 16 + 16]) * scale(i, row) for i in range(3) for row in range(4) for _ in range(2)]
            self.assertEqual(read_npy(self.path("d.npy"))[2], expected)

    def test_what_does_not_fit(self):
        self.write_operands()
        run = self.gemm("--b-is-nk")
        self.write_scales("sa.npy", (M + 1,), 3)
        self.refuse(*run, "--scale-a", "sa.npy", says=("sa.npy: has shape (131,)", "(130,) for vector", "(130, 2) for 1x128", "(2, 2) for 128x128"))
        self.write_scales("sa.npy", (M,), 3)
        self.refuse(*run, "--scale-a", "sa.npy", "--scaling-a", "1x128", says=("scales of A have (130, 2) for 1x128",))
        self.refuse(*run, "--scale-a", "sa.npy", "--scaling-a", "none", says=("--scaling-a none contradicts --scale-a",))
        self.refuse(*run, "--scaling-b", "tensor", says=("--scaling-b tensor needs the scales", "--scale-b FILE"))
        self.refuse(*run, "--scale-a", "a.npy", says=("a.npy: holds bytes", "numpy.float32"))
        self.refuse(*run, "--scale-a", "no.npy", says="no.npy: there is no such file")
        self.write_matrix("a16.npy", Matrix.random(2, 2, "bf16", 1))
        self.refuse("gemm", "a16.npy", "a16.npy", "--check", "--scale-a", "sa.npy", says=("--scale-a is for FP8", "--type e4m3"))
        self.refuse("gemm", "a16.npy", "a16.npy", "--check", "--scaling-b", "vector", says=("--scaling-b is for FP8", "--alpha"))


class ConversionTest(Fp8Test):
    def test_wide_elements_are_rounded_and_large_ones_warned_of(self):
        values = [449.0, -1000.0, 17.0, 0.001, 1.0625]
        self.write("a.npy", npy_bytes((1, 5), encode(values, "fp32"), "<f4"))
        self.write("b.npy", npy_bytes((5, 5), encode([float(i == j) for i in range(5) for j in range(5)], "fp16"), "<f2"))
        done = self.run_sluice(*self.gemm("--check"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("2 elements of A are too large for e4m3 and became 448; pass --scaling-a", done.stderr)
        self.assertIn("fp32, row-major, copied to rows of 16 bytes, converted to e4m3", done.stdout)
        # 17 lies between 16 and 18, 1.0625 between 1 and 1.125, and 0.001 is more than half of the smallest number.
        self.assertEqual(read_npy(self.path("d.npy"))[2], [448.0, -448.0, 16.0, 2.0**-9, 1.0])

    def test_scales_are_found_from_the_elements(self):
        source = random.Random(5)
        a = Matrix(M, K, "fp32", [source.gauss(0, 1) * 10.0 ** (i // K % 7) for i in range(M * K)])  # rows of very different sizes
        self.write_matrix("a.npy", a)
        self.write("b.npy", npy_bytes((K, K), encode([float(i == j) for i in range(K) for j in range(K)], "fp32"), "<f4"))
        for kind, largest, steps in (("e4m3", 448, 16), ("e5m2", 57344, 8)):
            for scaling, (shape, _) in SHAPES.items():
                with self.subTest(kind=kind, scaling=scaling):
                    text = self.succeed(*self.gemm("--b-is-nk", "--scaling-a", scaling, "--check", kind=kind))
                    self.assertIn(f"converted to {kind} with scales found for each {scaling}", text)
                    smallest = FP8[kind][1]
                    found = [0.0] * max(1, math.prod(shape))
                    for row in range(M):
                        for k in range(K):
                            at = index_of(scaling, row, k)
                            found[at] = max(found[at], abs(a.at(row, k)))
                    # B is the identity: the result is A, quantised and back.
                    for index, (got, want) in enumerate(zip(read_npy(self.path("d.npy"))[2], a.values)):
                        scale = found[index_of(scaling, index // K, index % K)] / largest
                        self.assertLessEqual(abs(got - want), 1.0001 * max(abs(want) / steps, scale * smallest / 2))


class RandomTest(SluiceTest):
    def test_random_operands(self):
        size = ("--m", 70, "--n", 50, "--k", 300)
        for flags in ((), ("--type", "fp16"), ("--type", "e4m3"), ("--type", "e4m3,e5m2", "--scaling-a", "1x128", "--scaling-b", "128x128")):
            with self.subTest(flags=flags):
                answer = self.succeed_json("gemm", *size, *flags, "--check=all")
                self.assertTrue(answer["check"]["ok"])
                self.assertEqual(answer["shape"], [70, 50])
        first, same = (self.succeed("gemm", *size, "-o", name) and read_npy(self.path(name)) for name in ("1.npy", "2.npy"))
        self.succeed("gemm", *size, "--data-seed", 1, "-o", "3.npy")
        self.assertEqual(first, same)
        self.assertNotEqual(first, read_npy(self.path("3.npy")))

    def test_what_is_missing_or_too_much(self):
        self.refuse("gemm", "--check", says=("--m = 0", "pass A.npy and B.npy, or --m, --n and --k"))
        self.refuse("gemm", "--check", "--m", 10, "--n", 10, says="--k = 0")
        self.write_matrix("a.npy", Matrix.random(4, 4, "bf16", 1))
        self.refuse("gemm", "a.npy", "--check", says="a.npy has nothing to be multiplied with")
        self.refuse("gemm", "a.npy", "a.npy", "--check", "--m", 4, says="--m, --n and --k are for random operands")
        self.refuse("gemm", "--check", "--m", 10**6, "--n", 1, "--k", 10**6, says="1e10")


if __name__ == "__main__":
    unittest.main()
