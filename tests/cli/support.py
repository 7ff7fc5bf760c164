"""Running sluice, reading and writing .npy files byte by byte, and a naive product: no numpy needed."""

import functools
import json
import math
import os
import random
import shutil
import struct
import subprocess
import tempfile
import unittest

EXECUTABLE = os.environ["SLUICE_EXECUTABLE"]
UNIT_ROUNDOFF = {"bf16": 2.0**-8, "fp16": 2.0**-11, "fp32": 2.0**-24}
DESCR = {"bf16": "<V2", "fp16": "<f2", "fp32": "<f4", "fp64": "<f8", "e4m3": "|u1", "e5m2": "|u1"}
TYPE_OF_DESCR = {descr: name for name, descr in DESCR.items() if descr != "|u1"}
STRUCT_LETTER = {"fp16": "e", "fp32": "f", "fp64": "d"}


def bf16_bits(value):
    """Rounded to nearest even. For finite values."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def bf16_value(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def fp8_values(kind):
    """What each byte stands for, as far as it is finite: {byte: value}."""
    exponent_bits, fraction_bits = (4, 3) if kind == "e4m3" else (5, 2)
    bias = 2 ** (exponent_bits - 1) - 1
    values = {}
    for byte in range(256):
        sign = -1.0 if byte & 0x80 else 1.0
        exponent, fraction = byte >> fraction_bits & 2**exponent_bits - 1, byte & 2**fraction_bits - 1
        special = byte & 0x7F == 0x7F if kind == "e4m3" else exponent == 31
        if not special:
            scale = 2.0 ** (max(exponent, 1) - bias - fraction_bits)
            values[byte] = sign * scale * (fraction + (2**fraction_bits if exponent else 0))
    return values


FP8 = {kind: fp8_values(kind) for kind in ("e4m3", "e5m2")}


@functools.lru_cache(maxsize=None)
def fp8_bits(value, kind):
    """The nearest, of two as near the even one; what is too large becomes the largest."""
    positive = [(byte, magnitude) for byte, magnitude in FP8[kind].items() if byte < 0x80]
    byte = min(positive, key=lambda each: (abs(each[1] - abs(value)), each[0] & 1))[0]
    return byte | (0x80 if math.copysign(1, value) < 0 else 0)


def encode(values, kind):
    if kind in FP8:
        return bytes(fp8_bits(value, kind) for value in values)
    if kind == "bf16":
        return struct.pack(f"<{len(values)}H", *map(bf16_bits, values))
    return struct.pack(f"<{len(values)}{STRUCT_LETTER[kind]}", *values)


def decode(data, kind):
    if kind in FP8:
        return [FP8[kind][byte] for byte in data]
    if kind == "bf16":
        return [bf16_value(bits) for bits in struct.unpack(f"<{len(data) // 2}H", data)]
    letter = STRUCT_LETTER[kind]
    return list(struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}", data))


def rounded(value, kind):
    return decode(encode([value], kind), kind)[0]


def npy_bytes(shape, data, descr, fortran=False, version=(1, 0), header=None):
    shape_text = "(" + "".join(f"{extent}, " for extent in shape) + ")"
    text = header if header is not None else f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape_text}}}"
    length_format = "<H" if version[0] == 1 else "<I"
    prefix = 8 + struct.calcsize(length_format)
    text += " " * (-(prefix + len(text) + 1) % 64) + "\n"
    return b"\x93NUMPY" + bytes(version) + struct.pack(length_format, len(text)) + text.encode() + data


def read_npy(path):
    """(kind, shape, values in C order) of a file that sluice wrote."""
    with open(path, "rb") as file:
        content = file.read()
    assert content[:8] == b"\x93NUMPY\x01\x00", content[:8]
    length = struct.unpack("<H", content[8:10])[0]
    assert (10 + length) % 64 == 0 and content[9 + length : 10 + length] == b"\n"
    header = eval(content[10 : 10 + length], {"__builtins__": {}})
    assert header["fortran_order"] is False
    kind = TYPE_OF_DESCR[header["descr"]]
    return kind, header["shape"], decode(content[10 + length :], kind)


class Matrix:
    """Rows of numbers, as a type can hold them."""

    def __init__(self, rows, columns, kind, values):
        self.rows, self.columns, self.kind = rows, columns, kind
        self.values = [rounded(value, kind) for value in values]

    @staticmethod
    def random(rows, columns, kind, seed, integers=False):
        source = random.Random(seed)
        draw = (lambda: float(source.randint(-4, 4))) if integers else (lambda: source.uniform(-2, 2))
        return Matrix(rows, columns, kind, [draw() for _ in range(rows * columns)])

    def at(self, row, column):
        return self.values[row * self.columns + column]

    def transposed(self):
        return Matrix(self.columns, self.rows, self.kind, [self.at(r, c) for c in range(self.columns) for r in range(self.rows)])


def activate(name, x):
    if name == "relu":
        return max(x, 0.0)
    if name == "silu":
        return x / (1 + math.exp(-x))
    if name == "gelu_tanh":
        return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x


def naive_product(a, b, alpha=1.0, beta=0.0, c=None, row_bias=None, column_bias=None, activation="none"):
    """[(expected, magnitude of what was added up)] of D, row by row, in double precision."""
    columns_of_b = [b.values[j :: b.columns] for j in range(b.columns)]
    result = []
    for i in range(a.rows):
        row = a.values[i * a.columns : (i + 1) * a.columns]
        for j in range(b.columns):
            x = alpha * sum(p * q for p, q in zip(row, columns_of_b[j]))
            size = abs(alpha) * sum(abs(p * q) for p, q in zip(row, columns_of_b[j]))
            if c is not None:
                x += beta * c.at(i, j)
                size += abs(beta * c.at(i, j))
            bias = (row_bias[i] if row_bias else 0.0) + (column_bias[j] if column_bias else 0.0)
            result.append((activate(activation, x + bias), size + abs(bias)))
    return result


class SluiceTest(unittest.TestCase):
    """Each test has a folder of its own, self.folder, and runs sluice in it."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sluice-cli-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return name

    def write_matrix(self, name, matrix, fortran=False):
        stored = matrix.transposed() if fortran else matrix
        return self.write(
            name, npy_bytes((matrix.rows, matrix.columns), encode(stored.values, matrix.kind), DESCR[matrix.kind], fortran=fortran)
        )

    def write_batch(self, name, matrices):
        data = b"".join(encode(matrix.values, matrix.kind) for matrix in matrices)
        shape = (len(matrices), matrices[0].rows, matrices[0].columns)
        return self.write(name, npy_bytes(shape, data, DESCR[matrices[0].kind]))

    def run_sluice(self, *words):
        return subprocess.run([EXECUTABLE, *map(str, words)], cwd=self.folder, capture_output=True, text=True, timeout=120, check=False)

    def succeed(self, *words):
        done = self.run_sluice(*words)
        self.assertEqual(done.returncode, 0, f"sluice {' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def succeed_json(self, *words):
        return json.loads(self.succeed(*words, "--json"))

    def built_with(self, what):
        return self.succeed_json("--version")["built_with_" + what]

    def refuse(self, *words, code=2, says=()):
        """The command fails with this exit code, and says all these words, on stderr and in JSON."""
        done = self.run_sluice(*words)
        self.assertEqual(done.returncode, code, f"sluice {' '.join(map(str, words))}\n{done.stdout}\n{done.stderr}")
        self.assertRegex(done.stderr, r"(?m)^sluice: ")
        for text in (says,) if isinstance(says, str) else says:
            self.assertIn(text, done.stderr)
        with_json = self.run_sluice("--json", *words)
        self.assertEqual(with_json.returncode, code)
        error = json.loads(with_json.stdout)["error"]
        self.assertEqual(error["exit_code"], code)
        self.assertIn("sluice: " + error["message"], with_json.stderr)
        self.assertIn("sluice: " + error["message"], done.stderr)

    def assert_close(self, path, kind, shape, expected):
        """The file holds `expected`, within what rounding of sums in fp32 and of the result allows."""
        got_kind, got_shape, values = read_npy(self.path(path))
        self.assertEqual((got_kind, got_shape), (kind, tuple(shape)))
        self.assertEqual(len(values), len(expected))
        for index, (got, (want, size)) in enumerate(zip(values, expected)):
            bound = 2.0**-16 * size + 1.001 * UNIT_ROUNDOFF[kind] * abs(want) + 1e-7
            self.assertLessEqual(abs(got - want), bound, f"element {index} of {path}")
