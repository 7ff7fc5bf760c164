"""histogram: a file in, counts out; the same from every backend; and what is refused."""

import random
import struct
import unittest

from support import SluiceTest, npy_bytes


class HistogramTest(SluiceTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(1)
        self.x = [draw.choice((3, draw.randrange(-20, 320))) for _ in range(2000)]
        self.write("x.npy", npy_bytes((40, 50), struct.pack("<2000i", *self.x), "<i4"))

    def counts(self, name="c.npy", kind="i", size=4):
        with open(self.path(name), "rb") as file:
            content = file.read()
        length = struct.unpack("<H", content[8:10])[0]
        header = eval(content[10 : 10 + length], {"__builtins__": {}})
        self.assertEqual(header["descr"], f"<i{size}")
        return list(struct.unpack(f"<{header['shape'][0]}{kind}", content[10 + length :]))

    def test_counts(self):
        self.succeed("histogram", "x.npy", "--bins", 300, "--first", -5, "-o", "c.npy", "--check")
        self.assertEqual(self.counts(), [self.x.count(bin - 5) for bin in range(300)])
        answer = self.succeed_json("histogram", "x.npy", "--bins", 300, "--clamp", "--counts", "int64", "-o", "c.npy", "--check", "--explain")
        self.assertTrue(answer["right"])
        self.assertEqual(answer["counted"], 2000)
        self.assertEqual(answer["plan"]["device"], "h200")
        clamped = [min(max(value, 0), 299) for value in self.x]
        self.assertEqual(self.counts(kind="q", size=8), [clamped.count(bin) for bin in range(300)])

    def test_bytes_and_floats(self):
        self.write("b.npy", npy_bytes((6,), bytes([0, 255, 7, 7, 8, 9]), "|u1"))
        self.succeed("histogram", "b.npy", "--bins", 3, "--first", 7, "-o", "c.npy", "--check")
        self.assertEqual(self.counts(), [2, 1, 1])
        self.write("f.npy", npy_bytes((5,), struct.pack("<5f", 0.0, 0.5, 0.99, 1.0, float("nan")), "<f4"))
        self.succeed("histogram", "f.npy", "--bins", 2, "--lower", 0, "--upper", 1, "-o", "c.npy", "--check")
        self.assertEqual(self.counts(), [1, 2])

    def test_every_backend_gives_the_same(self):
        if not self.built_with("emulator"):
            self.skipTest("no emulator in this build")
        self.succeed("histogram", "x.npy", "--bins", 300, "-o", "c.npy", "--check", "--backend", "emulator", "--seed", "5")
        self.assertEqual(self.counts(), [self.x.count(bin) for bin in range(300)])

    def test_refusals(self):
        self.refuse("histogram", "x.npy", says="nowhere to go")
        self.refuse("histogram", "x.npy", "--bins", 1, "--check", says="bins = 1")
        self.refuse("histogram", "x.npy", "--lower", 0, "--check", says="for float32")
        self.refuse("histogram", "missing.npy", "--check", says="there is no such file")
        self.refuse("histogram", "x.npy", "--counts", "int16", "--check", says="int32, int64")
        self.write("d.npy", npy_bytes((1,), bytes(8), "<f8"))
        self.refuse("histogram", "d.npy", "--check", says="samples are int32, uint8 or float32")
        if not self.built_with("cuda"):
            self.refuse("bench-histogram", says="no CUDA kernels")


if __name__ == "__main__":
    unittest.main()
