"""attention: files or random numbers in, results beside the reference out; and what is refused."""

import math
import struct
import unittest

from support import SluiceTest, encode, npy_bytes, read_npy


class AttentionTest(SluiceTest):
    def write_four(self, name, shape, values, kind="fp16"):
        descr = {"fp16": "<f2", "fp32": "<f4"}[kind]
        self.write(name, npy_bytes(shape, struct.pack(f"<{len(values)}{'e' if kind == 'fp16' else 'f'}", *values), descr))

    def test_means_of_what_is_seen(self):
        """Queries of zeros weigh all tokens alike: the mean of 0, 1, ... up to a sequence's length."""
        self.write_four("q.npy", (2, 1, 2, 64), [0.0] * 256)
        values = [float(token) for _ in range(2) for token in range(9) for _ in range(64)]
        self.write_four("k.npy", (2, 9, 1, 64), values)
        self.write_four("v.npy", (2, 9, 1, 64), values)
        self.write("n.npy", npy_bytes((2,), struct.pack("<2i", 9, 4), "<i4"))
        answer = self.succeed_json("attention", "q.npy", "k.npy", "v.npy", "--lengths", "n.npy", "-o", "o.npy", "--lse", "l.npy", "--check")
        self.assertEqual(answer["different"], 0)
        kind, shape, o = read_npy(self.path("o.npy"))
        self.assertEqual((kind, shape, o), ("fp16", (2, 1, 2, 64), [4.0] * 128 + [1.5] * 128))
        kind, shape, logarithms = read_npy(self.path("l.npy"))
        self.assertEqual((kind, shape), ("fp32", (2, 1, 2)))
        for got, tokens in zip(logarithms, (9, 9, 4, 4)):
            self.assertAlmostEqual(got, math.log(tokens), places=5)
        # The same keys and values as pages of a cache, in another order.
        pages = lambda numbers: [x for number in numbers for x in ([float(16 * number + t) for t in range(16) for _ in range(64)])]  # noqa: E731
        self.write_four("kp.npy", (3, 16, 1, 64), pages((1, 0, 5)))
        self.write("t.npy", npy_bytes((2, 2), struct.pack("<4i", 1, 0, 1, 2), "<i4"))
        self.succeed("attention", "q.npy", "kp.npy", "kp.npy", "--lengths", "n.npy", "--block-table", "t.npy", "--max-kv-len", 32, "-o", "p.npy")
        self.assertEqual(read_npy(self.path("p.npy"))[2], o)

    def test_random_numbers(self):
        answer = self.succeed_json("attention", "--tokens", 700, "--batch", 2, "--query-len", 3, "--heads", 4, "--key-heads", 2, "--window", 200, "--soft-cap", 5,
                                   "--kv-layout", "heads_first", "--check", "--explain")  # fmt: skip
        self.assertEqual(answer["different"], 0)
        self.assertEqual(answer["plan"]["device"], "h200")
        if self.built_with("emulator"):
            self.succeed("attention", "--tokens", 1100, "--heads", 2, "--key-heads", 1, "--head-size", 64, "--check", "--backend", "emulator", "--seed", 3, "--constant-cache")

    def test_keys_of_eight_bits(self):
        kv = encode([0.5] * (40 * 128), "e4m3")
        self.write("k.npy", npy_bytes((1, 40, 1, 128), kv, "|u1"))
        self.write_four("q.npy", (1, 1, 4, 128), [1.0] * 512)
        self.write_four("s.npy", (1,), [2.0], "fp32")
        files = ("attention", "q.npy", "k.npy", "k.npy")
        self.succeed(*files, "--k-scales", "s.npy", "--v-scales", "s.npy", "-o", "o.npy", "--check")
        self.assertEqual(read_npy(self.path("o.npy"))[2], [1.0] * 512)
        self.refuse(*files, "--k-scales", "s.npy", "--check", says="v_scales")

    def test_refusals(self):
        self.refuse("attention", "--tokens", 10, says="nowhere to go")
        self.refuse("attention", "--check", says="nothing to attend to")
        self.refuse("attention", "--tokens", 10, "--head-size", 96, "--check", says="head_size = 96")
        self.refuse("attention", "--tokens", 10, "--kv-layout", "sideways", "--check", says="tokens_first, heads_first")
        self.write_four("q.npy", (1, 1, 2, 64), [0.0] * 128)
        self.write_four("k.npy", (1, 3, 1, 64), [0.0] * 192)
        self.refuse("attention", "q.npy", "k.npy", "--check", says="all of Q.npy, K.npy and V.npy")
        self.refuse("attention", "q.npy", "k.npy", "q.npy", "--check", says="they must be alike")
        self.write("n.npy", npy_bytes((1,), struct.pack("<i", 4), "<i4"))
        self.refuse("attention", "q.npy", "k.npy", "k.npy", "--lengths", "n.npy", "--check", says="has a 4; there is room for 0 to 3 tokens")


if __name__ == "__main__":
    unittest.main()
