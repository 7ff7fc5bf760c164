"""quantize: files in, numbers and scales out, as gemm reads them; the same from every backend; and what is refused."""

import struct
import unittest

from support import FP8, Matrix, SluiceTest, encode, fp8_bits, npy_bytes

M, K = 130, 261  # two blocks of rows, three of columns


def fp32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def file_of(path):
    """(descr, shape, data) of a file that sluice wrote."""
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack("<H", content[8:10])[0]
    header = eval(content[10 : 10 + length], {"__builtins__": {}})
    return header["descr"], header["shape"], content[10 + length :]


class QuantizeTest(SluiceTest):
    def setUp(self):
        super().setUp()
        self.x = Matrix.random(M, K, "bf16", 1)
        self.write_matrix("x.npy", self.x)

    def quantized(self, *flags, say="x.npy"):
        text = self.succeed("quantize", say, "-o", "q.npy", "--scales", "s.npy", "--check", *flags)
        self.assertIn("all as the reference makes them", text)
        return file_of(self.path("q.npy")), file_of(self.path("s.npy"))

    def assert_right(self, q_file, s_file, kind, rows_of_block, largest):
        blocks_m, blocks_k = -(-M // rows_of_block), -(-K // 128)
        self.assertEqual(q_file[:2], ("|u1", (M, K)))
        self.assertEqual(s_file[:2], ("<f4", (blocks_m, blocks_k)))
        scales = struct.unpack(f"<{blocks_m * blocks_k}f", s_file[2])
        for block_m in range(blocks_m):
            for block_k in range(blocks_k):
                places = [
                    row * K + column
                    for row in range(block_m * rows_of_block, min((block_m + 1) * rows_of_block, M))
                    for column in range(block_k * 128, min(block_k * 128 + 128, K))
                ]
                scale = scales[block_m * blocks_k + block_k]
                self.assertEqual(scale, fp32(max(abs(self.x.values[i]) for i in places) / largest))
                for i in places[::7]:
                    self.assertEqual(q_file[2][i], fp8_bits(fp32(self.x.values[i] * fp32(1 / scale)), kind), i)

    def test_numbers_and_scales(self):
        self.assert_right(*self.quantized("--backend", "reference"), "e4m3", 1, 448)
        self.assert_right(*self.quantized("--backend", "reference", "--scaling", "128x128", "--type", "e5m2"), "e5m2", 128, 57344)

    def test_every_backend_gives_the_same(self):
        if not self.built_with("emulator"):
            self.skipTest("no emulator in this build")
        for flags in ((), ("--scaling", "vector"), ("--scaling", "128x128", "--power-of-two")):
            self.assertEqual(self.quantized(*flags, "--backend", "reference"), self.quantized(*flags, "--backend", "emulator", "--seed", "5"))

    def test_powers_of_two(self):
        _, (_, _, data) = self.quantized("--power-of-two")
        for (bits,) in struct.iter_unpack("<I", data):
            self.assertEqual(bits & 0x7FFFFF, 0)

    def test_files_of_every_type_and_order(self):
        expected = self.quantized()
        self.write_matrix("x.npy", self.x, fortran=True)
        self.assertEqual(self.quantized(), expected)
        for kind, descr in (("fp32", "<f4"), ("fp64", "<f8")):
            self.write("wide.npy", npy_bytes((M, K), encode(self.x.values, kind), descr))
            self.assertEqual(self.quantized(say="wide.npy"), expected)
            self.assertIn("converted to bf16", self.succeed("quantize", "wide.npy", "--from", "bf16", "--check"))

    def test_silu_times(self):
        self.write_matrix("y.npy", Matrix.random(M, K, "bf16", 2))
        answer = self.succeed_json("quantize", "x.npy", "--silu-times", "y.npy", "-o", "q.npy", "--scales", "s.npy", "--check")
        self.assertEqual(answer["different"], 0)
        self.assertIn("silu-times", answer["problem"])
        self.assertEqual(answer["scale_shape"], [M, 3])

    def test_gemm_reads_them(self):
        k = 256
        integers = Matrix.random(64, k, "bf16", 3, integers=True)
        weights = Matrix.random(48, k, "bf16", 4, integers=True)
        self.write_matrix("a.npy", integers)
        self.write_matrix("w.npy", weights)
        self.succeed("quantize", "a.npy", "-o", "qa.npy", "--scales", "sa.npy")
        self.succeed("quantize", "w.npy", "-o", "qw.npy", "--scales", "sw.npy", "--scaling", "128x128", "--type", "e5m2")
        run = ("gemm", "qa.npy", "qw.npy", "--b-is-nk", "--type", "e4m3,e5m2", "--scale-a", "sa.npy", "--scale-b", "sw.npy", "--backend", "reference")
        text = self.succeed(*run, "--out-type", "fp32", "--check=all", "-o", "d.npy")
        self.assertIn("scales 1x128 and 128x128", text)
        _, _, data = file_of(self.path("d.npy"))
        d = struct.unpack(f"<{64 * 48}f", data)
        for i in range(0, 64, 9):
            for j in range(0, 48, 5):
                products = [x * y for x, y in zip(integers.values[i * k : (i + 1) * k], weights.values[j * k : (j + 1) * k])]
                # Half a step is 2^-4 of a number in e4m3, 2^-3 in e5m2.
                self.assertLessEqual(abs(d[i * 48 + j] - sum(products)), 0.2 * sum(map(abs, products)) + 1e-3)

    def test_rows_with_a_scale_each(self):
        q_file, s_file = self.quantized("--backend", "reference", "--scaling", "vector")
        self.assertEqual(s_file[:2], ("<f4", (M,)))
        for row, scale in enumerate(struct.unpack(f"<{M}f", s_file[2])):
            values = self.x.values[row * K : (row + 1) * K]
            self.assertEqual(scale, fp32(max(map(abs, values)) / 448))
            for column in range(0, K, 7):
                self.assertEqual(q_file[2][row * K + column], fp8_bits(fp32(values[column] * fp32(1 / scale)), "e4m3"), (row, column))
        self.write_matrix("w.npy", Matrix.random(48, K, "bf16", 4))
        self.succeed("quantize", "w.npy", "-o", "qw.npy", "--scales", "sw.npy", "--scaling", "vector")
        run = ("gemm", "q.npy", "qw.npy", "--b-is-nk", "--type", "e4m3", "--scale-a", "s.npy", "--scale-b", "sw.npy", "--backend", "reference")
        self.assertIn("scales vector and vector", self.succeed(*run, "--check"))

    def test_random_numbers(self):
        answer = self.succeed_json("quantize", "--m", 40, "--k", 300, "--silu-times-random", "--check")
        self.assertEqual(answer["shape"], [40, 300])
        self.assertTrue(all("random" in line for line in answer["inputs"]))

    def test_values_beyond_are_the_largest(self):
        self.write("one.npy", npy_bytes((1, 2), encode([3.0, -1.5], "fp32"), "<f4"))
        self.succeed("quantize", "one.npy", "-o", "q.npy", "--scales", "s.npy")
        values = [FP8["e4m3"][byte] for byte in file_of(self.path("q.npy"))[2]]
        self.assertEqual(values, [448.0, -224.0])

    def test_refusals(self):
        self.refuse("quantize", "x.npy", says="nowhere to go")
        self.refuse("quantize", "x.npy", "-o", "q.npy", says="numbers without their scales")
        self.refuse("quantize", "--check", says="--m and --k for random numbers")
        self.refuse("quantize", "x.npy", "--m", 3, "--check", says="leave them out")
        self.refuse("quantize", "x.npy", "--check", "--type", "bf16", says="type_q = bf16")
        self.refuse("quantize", "x.npy", "--check", "--scaling", "tensor", says="scaling = tensor")
        self.refuse("quantize", "x.npy", "--check", "--scaling", "2x2", says="1x128, 128x128")
        self.refuse("quantize", "missing.npy", "--check", says="there is no such file")
        self.refuse("quantize", "x.npy", "--check", "--backend", "tpu", says="choose from")
        self.write_matrix("y.npy", Matrix.random(M, K - 1, "bf16", 2))
        self.refuse("quantize", "x.npy", "--silu-times", "y.npy", "--check", says="they must be of one shape")
        self.write("bytes.npy", npy_bytes((2, 2), bytes(4), "|u1"))
        self.refuse("quantize", "bytes.npy", "--check", says="8 bits already")
        self.write("batch.npy", npy_bytes((2, 2, 2), encode([0.0] * 8, "fp32"), "<f4"))
        self.refuse("quantize", "batch.npy", "--check", says="three dimensions")
        self.refuse("quantize", "x.npy", "-o", "none/q.npy", "--scales", "s.npy", says="is not a folder")
        if not self.built_with("cuda"):
            self.refuse("bench-quantize", says="no CUDA kernels")


if __name__ == "__main__":
    unittest.main()
