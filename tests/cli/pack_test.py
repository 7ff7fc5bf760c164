"""pack: checkpoints and files in, packed weights out, decoded here from the layout's description; what a malformed file is told."""

import json
import random
import struct
import unittest

from support import SluiceTest, decode, encode, npy_bytes

N, K, GROUP = 72, 96, 32
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)


def safetensors(tensors, metadata=None, header=None, tail=b""):
    """{name: (dtype, shape, data)} as a file."""
    entries, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, (dtype, shape, content) in tensors.items():
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = (json.dumps(entries) if header is None else header).encode()
    return struct.pack("<Q", len(text)) + text + data + tail


def words(codes, places=range(8)):
    """Eight codes to an int32, code i of them into the bits of places[i]."""
    packed = []
    for i in range(0, len(codes), 8):
        packed.append(sum(codes[i + j] << 4 * places[j] for j in range(8)))
    return struct.pack(f"<{len(packed)}I", *packed)


def file_of(path):
    """(descr, shape, data) of a file that sluice wrote."""
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack("<H", content[8:10])[0]
    header = eval(content[10 : 10 + length], {"__builtins__": {}})
    return header["descr"], header["shape"], content[10 + length :]


class Weights:
    """Codes q[column][row of K], zero points and scales [column][group]."""

    def __init__(self, seed, n=N, k=K, group=GROUP, zeros=range(1, 16)):
        source = random.Random(seed)
        self.n, self.k, self.group, self.groups = n, k, group, -(-k // group)
        self.q = [[source.randrange(16) for _ in range(k)] for _ in range(n)]
        self.z = [[source.choice(zeros) for _ in range(self.groups)] for _ in range(n)]
        self.s = [[decode(encode([source.uniform(0.001, 0.02)], "fp16"), "fp16")[0] for _ in range(self.groups)] for _ in range(n)]
        self.g_idx = [i // group for i in range(k)]

    def scales(self, transposed=True, kind="fp16"):
        columns, groups = range(self.n), range(self.groups)
        values = [self.s[c][g] for g in groups for c in columns] if transposed else [self.s[c][g] for c in columns for g in groups]
        return encode(values, kind)

    def gptq(self, prefix="layer.", less=1):
        inner = [self.q[c][8 * w + i] for w in range(self.k // 8) for c in range(self.n) for i in range(8)]
        return {
            prefix + "qweight": ("I32", (self.k // 8, self.n), words(inner)),
            prefix + "qzeros": ("I32", (self.groups, self.n // 8), words([self.z[c][g] - less for g in range(self.groups) for c in range(self.n)])),
            prefix + "scales": ("F16", (self.groups, self.n), self.scales()),
            prefix + "g_idx": ("I32", (self.k,), struct.pack(f"<{self.k}i", *self.g_idx)),
        }

    def awq(self, prefix="layer."):
        places = [AWQ_ORDER.index(c) for c in range(8)]
        return {
            prefix + "qweight": ("I32", (self.k, self.n // 8), words([self.q[c][i] for i in range(self.k) for c in range(self.n)], places)),
            prefix + "qzeros": ("I32", (self.groups, self.n // 8), words([self.z[c][g] for g in range(self.groups) for c in range(self.n)], places)),
            prefix + "scales": ("F16", (self.groups, self.n), self.scales()),
        }

    def compressed(self, prefix="layer.", zeros="words"):
        tensors = {
            prefix + "weight_packed": ("I32", (self.n, self.k // 8), words([q for row in self.q for q in row])),
            prefix + "weight_scale": ("BF16", (self.n, self.groups), self.scales(False, "bf16")),
            prefix + "weight_shape": ("I64", (2,), struct.pack("<2q", self.n, self.k)),
        }
        if zeros == "words":
            codes = [self.z[8 * w + i][g] for w in range(self.n // 8) for g in range(self.groups) for i in range(8)]
            tensors[prefix + "weight_zero_point"] = ("I32", (self.n // 8, self.groups), words(codes))
        if zeros == "bytes":
            signed = [z - 8 for row in self.z for z in row]
            tensors[prefix + "weight_zero_point"] = ("I8", (self.n, self.groups), struct.pack(f"<{len(signed)}b", *signed))
        return tensors


def unpacked(path, n, k, group, kind, zero_points):
    """[(code, zero point, scale) of each packed row] of each column, found where docs/w4.md says."""
    _, (blocks, slabs, slab_bytes), data = file_of(path)
    groups = 128 // group
    assert slab_bytes == 4096 + groups * (192 if zero_points else 128), slab_bytes
    assert blocks == 2 * -(-n // 128) and slabs == 2 * -(-k // 256)
    columns = []
    for c in range(n):
        column = []
        place = (c % 64 // 16 * 8 + c % 8) * 2 + c // 8 % 2
        for i in range(k):
            at = (c // 64 * slabs + i // 128) * slab_bytes
            thread = c % 64 // 16 * 32 + c % 8 * 4 + i % 8 // 2
            word = struct.unpack_from("<I", data, at + i % 128 // 64 * 2048 + thread * 16 + i % 64 // 16 * 4)[0]
            code = word >> 4 * (c // 8 % 2 + i // 8 % 2 * 2 + i % 2 * 4) & 15
            of_slab = i % 128 // group
            scale = decode(data[at + 4096 + of_slab * 128 + place * 2 :][:2], kind)[0]
            zero = data[at + 4096 + groups * 128 + of_slab * 64 + place] if zero_points else 8
            column.append((code, zero, scale))
        columns.append(column)
    return columns


class PackTest(SluiceTest):
    def pack(self, *words_, says=(), order=None):
        text = self.succeed("pack", *words_, "-o", "w.npy", "--check", *(("--order", order) if order else ()))
        for word in ("all as the reference makes them", *says):
            self.assertIn(word, text)
        return text

    def assert_holds(self, weights, kind="fp16", zero_points=True, order=None, scales=None, group=None):
        group = group or weights.group
        columns = unpacked(self.path("w.npy"), weights.n, weights.k, group, kind, zero_points)
        for c, column in enumerate(columns):
            for i, (code, zero, scale) in enumerate(column):
                row = order[i] if order else i
                g = weights.g_idx[row]
                self.assertEqual(code, weights.q[c][row], (c, i))
                self.assertEqual(zero, weights.z[c][g], (c, i))
                self.assertEqual(scale, decode(encode([weights.s[c][g]], kind), kind)[0], (c, i))

    def test_gptq(self):
        weights = Weights(1, zeros=range(1, 17))
        self.write("m.safetensors", safetensors(weights.gptq()))
        self.pack("m.safetensors", says=("96 x 72 int4 from gptq, groups of 32 with zero points, for fp16", "read  layer.qweight I32 (12, 72)"))
        self.assert_holds(weights)
        self.pack("m.safetensors", "--type", "bf16", says=("scales are fp16, rounded to bf16",))
        self.assert_holds(weights, kind="bf16")

    def test_gptq_of_the_second_format(self):
        weights = Weights(2)
        self.write("m.safetensors", safetensors(weights.gptq(less=0)))
        self.pack("m.safetensors", "--gptq-v2", says="as they are")
        self.assert_holds(weights)

    def test_zero_points_of_8_are_none(self):
        weights = Weights(3, zeros=(8,))
        self.write("m.safetensors", safetensors(weights.gptq()))
        self.pack("m.safetensors", says="all zero points are 8: packed without them")
        self.assert_holds(weights, zero_points=False)
        self.write("v2.safetensors", safetensors(weights.gptq(less=0)))
        self.assertIn("pass --gptq-v2", self.succeed("pack", "v2.safetensors", "--check"))
        self.pack("v2.safetensors", "--gptq-v2", says="packed without them")
        self.assert_holds(weights, zero_points=False)
        self.write("awq.safetensors", safetensors(weights.awq()))
        self.pack("awq.safetensors", says="packed without them")
        self.assert_holds(weights, zero_points=False)

    def test_act_order(self):
        weights = Weights(4)
        random.Random(4).shuffle(weights.g_idx)
        self.write("m.safetensors", safetensors(weights.gptq()))
        self.refuse("pack", "m.safetensors", "-o", "w.npy", says=("act-order", "--order O.npy"))
        text = self.pack("m.safetensors", order="o.npy", says=("rows of K reordered", "A[:, order]"))
        self.assertIn("wrote o.npy", text)
        descr, shape, data = file_of(self.path("o.npy"))
        self.assertEqual((descr, shape), ("<i4", (K,)))
        order = list(struct.unpack(f"<{K}i", data))
        self.assertEqual(sorted(order), list(range(K)))
        self.assertEqual([weights.g_idx[row] for row in order], [i // GROUP for i in range(K)])
        self.assert_holds(weights, order=order)
        self.assertTrue(self.succeed_json("pack", "m.safetensors", "--check")["reordered"])

    def test_awq(self):
        weights = Weights(5, zeros=range(16))
        self.write("m.safetensors", safetensors(weights.awq()))
        self.pack("m.safetensors", says="from awq, groups of 32 with zero points")
        self.assert_holds(weights)
        self.refuse("pack", "m.safetensors", "-o", "w.npy", "--gptq-v2", says="this layer is AWQ's")

    def test_compressed_tensors(self):
        for zeros in ("words", "bytes", None):
            weights = Weights(6, zeros=range(16) if zeros else (8,))
            self.write("m.safetensors", safetensors(weights.compressed(zeros=zeros)))
            self.pack("m.safetensors", says="for bf16")
            self.assert_holds(weights, kind="bf16", zero_points=zeros is not None)

    def test_compressed_tensors_with_act_order(self):
        weights = Weights(7, zeros=(8,))
        tensors = weights.compressed(zeros=None)
        tensors["layer.weight_g_idx"] = ("I32", (K,), struct.pack(f"<{K}i", *[-1] * K))
        self.write("m.safetensors", safetensors(tensors))
        self.pack("m.safetensors")
        random.Random(7).shuffle(weights.g_idx)
        tensors["layer.weight_g_idx"] = ("I32", (K,), struct.pack(f"<{K}i", *weights.g_idx))
        self.write("m.safetensors", safetensors(tensors))
        self.pack("m.safetensors", order="o.npy")
        order = struct.unpack(f"<{K}i", file_of(self.path("o.npy"))[2])
        self.assert_holds(weights, kind="bf16", zero_points=False, order=order)

    def test_plain_files(self):
        weights = Weights(8, zeros=range(17))
        codes = bytes(row[i] | row[i + 1] << 4 for row in weights.q for i in range(0, K, 2))
        self.write("q.npy", npy_bytes((N, K // 2), codes, "|u1"))
        self.write("s.npy", npy_bytes((N, weights.groups), weights.scales(False, "fp32"), "<f4"))
        self.write("z.npy", npy_bytes((N, weights.groups), bytes(z for row in weights.z for z in row), "|u1"))
        self.pack("q.npy", "--scales", "s.npy", "--zeros", "z.npy", says="for bf16")
        self.assert_holds(weights, kind="bf16")
        self.pack("q.npy", "--scales", "s.npy", "--zeros", "z.npy", "--type", "fp16")
        self.assert_holds(weights)
        self.refuse("pack", "q.npy", "-o", "w.npy", says="--scales S.npy")
        self.refuse("pack", "q.npy", "--scales", "s.npy", "-o", "w.npy", "--group-size", 64, says="--group-size 64: k = 96 has 2")
        self.refuse("pack", "q.npy", "--scales", "s.npy", "-o", "w.npy", "--layer", "x", says="for .safetensors")
        self.refuse("pack", "s.npy", "--scales", "s.npy", "-o", "w.npy", says="codes are uint8 [n, k/2]")
        self.refuse("pack", "q.npy", "--scales", "s.npy", "--zeros", "q.npy", "-o", "w.npy", says="one for each scale")
        self.write("large.npy", npy_bytes((N, weights.groups), encode([1e5] * N * weights.groups, "fp32"), "<f4"))
        self.refuse("pack", "q.npy", "--scales", "large.npy", "--type", "fp16", "-o", "w.npy", says=("too large for fp16", "--type bf16"))
        self.write("z.npy", npy_bytes((N, weights.groups), bytes([17] * N * weights.groups), "|u1"))
        self.refuse("pack", "q.npy", "--scales", "s.npy", "--zeros", "z.npy", "-o", "w.npy", "--backend", "reference", says="is above 16")

    def test_whole_columns(self):
        weights = Weights(9, k=K, group=K, zeros=(8,))
        self.write("m.safetensors", safetensors(weights.compressed(zeros=None)))
        self.pack("m.safetensors", says="whole columns")
        self.assert_holds(weights, kind="bf16", zero_points=False, group=128)

    def test_one_of_several_layers_and_files(self):
        first, second = Weights(10), Weights(11)
        tensors = {**first.gptq("a.up_proj."), **second.awq("a.down_proj.")}
        names = list(tensors)
        self.write("1.safetensors", safetensors({name: tensors[name] for name in names[:2]}))
        self.write("2.safetensors", safetensors({name: tensors[name] for name in names[2:]}))
        files = ("1.safetensors", "2.safetensors")
        self.refuse("pack", *files, "-o", "w.npy", says=("2 layers", "--layer", "a.down_proj"))
        self.pack(*files, "--layer", "a.up_proj")
        self.assert_holds(first)
        self.pack(*files, "--layer", "a.down_proj")
        self.assert_holds(second)
        self.refuse("pack", "1.safetensors", "--layer", "a.up_proj", "-o", "w.npy", says="there is no tensor a.up_proj.scales")
        self.refuse("pack", *files, "--layer", "b", "-o", "w.npy", says="there is no layer 'b'")
        self.refuse("pack", "1.safetensors", "1.safetensors", "-o", "w.npy", says="both have a tensor")

    def test_every_backend_gives_the_same(self):
        if not self.built_with("emulator"):
            self.skipTest("no emulator in this build")
        weights = Weights(12)
        random.Random(12).shuffle(weights.g_idx)
        self.write("m.safetensors", safetensors(weights.gptq()))
        self.pack("m.safetensors", "--backend", "emulator", "--seed", "3", order="o.npy")

    def test_inspect(self):
        weights = Weights(13)
        self.write("m.safetensors", safetensors({**weights.gptq("m.0."), "norm": ("F32", (), bytes(4))}, {"format": "pt"}))
        text = self.succeed("pack", "--inspect", "m.safetensors")
        for word in ("5 tensors", "format = pt", "m.0.qweight", "1 layer of 4 bits", "(12, 72)"):
            self.assertIn(word, text)
        answer = self.succeed_json("pack", "--inspect", "m.safetensors")
        self.assertEqual(answer["layers"], ["m.0"])
        self.assertEqual(len(answer["files"][0]["tensors"]), 5)
        self.pack("m.safetensors")
        text = self.succeed("pack", "--inspect", "w.npy")
        for word in ("n  8 to 128", "k  8 to 256", "groups of 32, with zero points"):
            self.assertIn(word, text)
        self.write("other.npy", npy_bytes((2, 2, 5), bytes(20), "|u1"))
        self.refuse("pack", "--inspect", "other.npy", says="does not write")

    def test_layers_that_do_not_fit(self):
        def refuse(change, says, make=Weights.gptq, *flags):
            tensors = make(Weights(14))
            change(tensors)
            self.write("m.safetensors", safetensors(tensors))
            self.refuse("pack", "m.safetensors", "-o", "w.npy", *flags, says=says)

        def put(name, dtype, shape, size):
            return lambda tensors: tensors.__setitem__("layer." + name, (dtype, shape, bytes(size)))

        refuse(lambda t: t.pop("layer.qzeros"), "there is no tensor layer.qzeros")
        refuse(put("scales", "I32", (3, N), 3 * N * 4), "must be of type BF16 or F16 or F32")
        refuse(put("scales", "F16", (3 * N,), 3 * N * 2), "must have two dimensions")
        refuse(put("qweight", "I32", (24, 36), 24 * 36 * 4), "do not belong together")
        refuse(put("qzeros", "I32", (3, 18), 3 * 18 * 4), "are these 4 bits?")
        refuse(put("g_idx", "I32", (K - 1,), 4 * K - 4), "the group of each row of K")
        refuse(put("g_idx", "I32", (K,), 4 * K), ("layer.g_idx: group 0 has 96 rows, not 32",))
        refuse(put("g_idx", "I32", (K,), 4 * K), ("the scales are for 3",), Weights.gptq, "--group-size", "128")
        refuse(lambda t: (put("scales", "F16", (7, N), 14 * N)(t), put("qzeros", "I32", (7, 9), 252)(t)), "groups of 32, 64 or 128 would be 3, 2 or 1")
        refuse(put("weight_shape", "I64", (2,), 16), "are not 4 bits of each of 0 x 0 weights", Weights.compressed)
        refuse(put("weight_scale", "F16", (N - 8, 3), (N - 8) * 6), "their rows are columns of B", Weights.compressed)
        refuse(put("weight_zero_point", "I32", (N, 3), N * 12), "must be I32 (9, 3), or I8 (72, 3)", Weights.compressed)
        self.write("m.safetensors", safetensors({"norm": ("F32", (), bytes(4))}))
        self.refuse("pack", "m.safetensors", "-o", "w.npy", says="no layer of 4 bits is there")

    def test_usage(self):
        self.write("m.safetensors", safetensors(Weights(15).gptq()))
        self.refuse("pack", says="FILES")
        self.refuse("pack", "m.safetensors", says="nowhere to go")
        self.refuse("pack", "m.safetensors", "-o", "none/w.npy", says="is not a folder")
        self.refuse("pack", "m.safetensors", "-o", "w.npy", "--type", "fp32", says="type = fp32")
        self.refuse("pack", "m.safetensors", "-o", "w.npy", "--scales", "s.npy", says="a checkpoint has its own")
        self.refuse("pack", "missing.safetensors", "-o", "w.npy", says="there is no such file")
        self.refuse("pack", "m.safetensors", "-o", "w.npy", "--backend", "tpu", says="choose from")
        self.assertIn("--inspect", self.succeed("pack", "--help"))
        if not self.built_with("cuda"):
            self.refuse("bench-pack", says="no CUDA kernels")


class MalformedSafetensorsTest(SluiceTest):
    def refuse_file(self, content, says):
        self.write("bad.safetensors", content)
        self.refuse("pack", "--inspect", "bad.safetensors", says=says)

    def refuse_entry(self, says, data=bytes(16), **changes):
        entry = {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16], **changes}
        entry = {key: value for key, value in entry.items() if value is not None}
        self.refuse_file(safetensors({}, header=json.dumps({"x": entry}), tail=data), says)

    def test_what_is_no_such_file(self):
        self.refuse_file(b"", "has 0 bytes")
        self.refuse_file(b"1234567", "has 7 bytes")
        self.refuse_file(b"\x93NUMPY\x01\x00" + bytes(100), "says its header has")
        self.refuse_file(struct.pack("<Q", 2**63) + b"{}", "more than 100000000 are not read")
        self.refuse_file(struct.pack("<Q", 2**64 - 1) + b"{}", "more than 100000000 are not read")
        self.refuse_file(struct.pack("<Q", 50) + b"{}", "says its header has 50 bytes, and has 2 behind the first 8")
        self.refuse("pack", "--inspect", "/.safetensors", says="there is no such file")

    def test_headers(self):
        for text, says in (
            ("", "is no JSON"),
            ("{", "is no JSON"),
            ("[]", "is no JSON object"),
            ('{"a": 1} x', "is no JSON"),
            ('{"x": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}, "x": {}}', "has 'x' twice"),
            ('{"x": {"dtype": "F32", "dtype": "F16", "shape": [0], "data_offsets": [0, 0]}}', "has 'dtype' twice"),
            ('{"__metadata__": []}', "must be an object of strings"),
            ('{"__metadata__": {"a": 1}}', "must be an object of strings"),
            ('{"x": []}', "tensor 'x' is no JSON object"),
            ("[" * 100000, "is no JSON"),
        ):
            with self.subTest(text=text[:50]):
                self.refuse_file(safetensors({}, header=text), says)
        self.refuse_file(struct.pack("<Q", 7) + b'{"\xff":1}', "is no JSON")

    def test_entries(self):
        self.refuse_entry("has no 'dtype'", dtype=None)
        self.refuse_entry("has no 'shape'", shape=None)
        self.refuse_entry("has no 'data_offsets'", data_offsets=None)
        self.refuse_entry("'dtype' that is no string", dtype=4)
        self.refuse_entry("is of type 'F33', which the format does not have", dtype="F33")
        self.refuse_entry("'shape' that is no list", shape=4)
        self.refuse_entry("'shape' that is no list", shape=[-2, -2])
        self.refuse_entry("'shape' that is no list", shape=[2.0, 2])
        self.refuse_entry("'shape' that is no list", shape=[2**64, 2])
        self.refuse_entry("whose bytes cannot be counted", shape=[2**62, 2**62])
        self.refuse_entry("needs 12 bytes, and has 16", shape=[3])
        self.refuse_entry("are not two numbers", data_offsets=[0])
        self.refuse_entry("are not two numbers", data_offsets=[0, 16, 32])
        self.refuse_entry("are not two numbers", data_offsets=[-16, 0])
        self.refuse_entry("are not two numbers", data_offsets=["0", "16"])
        self.refuse_entry("begins at byte 16, behind its end, 0", data_offsets=[16, 0])
        self.refuse_entry("ends at byte 16 of the data, of which the file has 15", data=bytes(15))
        self.refuse_entry("ends at byte 9223372036854775807", data_offsets=[9223372036854775791, 9223372036854775807])
        self.refuse_entry("bytes 16 to 20 of the data belong to no tensor", data=bytes(20))

    def test_tensors_that_overlap_or_leave_holes(self):
        def two(first, second, size=32):
            entry = {"dtype": "U8", "shape": [16]}
            header = {"a": {**entry, "data_offsets": first}, "b": {**entry, "data_offsets": second}}
            return safetensors({}, header=json.dumps(header), tail=bytes(size))

        self.refuse_file(two([0, 16], [0, 16], 16), "tensor 'b' begins at byte 0, within the one before it")
        self.refuse_file(two([8, 24], [0, 16], 24), "tensor 'a' begins at byte 8, within the one before it")
        self.refuse_file(two([0, 16], [20, 36], 36), "bytes 16 to 20 of the data belong to no tensor")
        self.write("good.safetensors", two([16, 32], [0, 16]))
        self.succeed("pack", "--inspect", "good.safetensors")

    def test_empty_ones_are_right(self):
        self.write("empty.safetensors", safetensors({}))
        self.assertIn("0 tensors", self.succeed("pack", "--inspect", "empty.safetensors"))
        self.write("zero.safetensors", safetensors({"a": ("F32", (0, 5), b""), "b": ("U8", (), b"x")}))
        self.succeed("pack", "--inspect", "zero.safetensors")


if __name__ == "__main__":
    unittest.main()
