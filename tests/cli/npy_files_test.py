"""Reading .npy files: every format and type that is read, and an error of its own for every other."""

import struct
import unittest

from support import Matrix, SluiceTest, encode, naive_product, npy_bytes, read_npy


class NpyFilesTest(SluiceTest):
    def setUp(self):
        super().setUp()
        self.a, self.b = Matrix.random(3, 4, "bf16", 1, True), Matrix.random(4, 5, "bf16", 2, True)
        self.data = encode(self.a.values, "bf16")
        self.write_matrix("b.npy", self.b)

    def gemm(self, *flags):
        return ("gemm", "a.npy", "b.npy", "-o", "d.npy", *flags)

    def assert_read(self, content, *flags):
        self.write("a.npy", content)
        self.succeed(*self.gemm(*flags))
        self.assertEqual(read_npy(self.path("d.npy"))[2], [want for want, _ in naive_product(self.a, self.b)])

    def assert_refused(self, content, *says):
        self.write("a.npy", content)
        self.refuse(*self.gemm(), says=("a.npy: ", *says))

    def with_header(self, header, data=None):
        return npy_bytes((), self.data if data is None else data, "", header=header)


class ReadableTest(NpyFilesTest):
    def test_format_versions(self):
        for version in ((1, 0), (2, 0), (3, 0)):
            self.assert_read(npy_bytes((3, 4), self.data, "<V2", version=version))

    def test_a_header_longer_than_64_kib(self):
        header = "{'descr': '<V2', 'fortran_order': False, 'shape': (3, 4)}" + " " * 70000
        self.assert_read(npy_bytes((), self.data, "", version=(2, 0), header=header))

    def test_names_of_bf16(self):
        for descr in ("<V2", "|V2", "bfloat16"):
            self.assert_read(npy_bytes((3, 4), self.data, descr))
        self.assert_read(npy_bytes((3, 4), self.data, "<u2"), "--bf16-as-uint16")

    def test_ways_to_write_the_header(self):
        for header in (
            "{'shape': (3, 4), 'fortran_order': False, 'descr': '<V2'}",
            '{"descr": "<V2", "fortran_order": False, "shape": (3, 4,)}',
            "{'descr':'<V2','fortran_order':False,'shape':(3,4),}",
            "  {  'descr' : '<V2' ,\n 'fortran_order' : False , 'shape' : ( 3 , 4 ) , }  ",
            "{'descr': '<V2', 'fortran_order': False, 'shape': (3L, 4L), }",
        ):
            with self.subTest(header):
                self.assert_read(self.with_header(header))

    def test_output_header_is_what_numpy_writes(self):
        self.assert_read(npy_bytes((3, 4), self.data, "<V2"))
        for out, descr in (("bf16", "<V2"), ("fp16", "<f2"), ("fp32", "<f4")):
            self.succeed(*self.gemm("--out-type", out))
            with open(self.path("d.npy"), "rb") as file:
                content = file.read()
            text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (3, 5), }}"
            self.assertEqual(content[:128], b"\x93NUMPY\x01\x00\x76\x00" + text.ljust(117).encode() + b"\n")


class RefusedTest(NpyFilesTest):
    def test_wrong_magic(self):
        self.assert_refused(b"hello, world, this is text", "not a .npy file", "68 65 6c 6c 6f 2c", "93 4e 55 4d 50 59")
        self.assert_refused(b"PK\x03\x04" + bytes(40), ".npz")
        self.assert_refused(b"", "is empty")

    def test_unknown_version(self):
        self.assert_refused(npy_bytes((3, 4), self.data, "<V2", version=(4, 0)), "format 4.0", "1.0, 2.0 and 3.0")
        self.assert_refused(npy_bytes((3, 4), self.data, "<V2", version=(1, 7)), "format 1.7")

    def test_truncated_header(self):
        whole = npy_bytes((3, 4), self.data, "<V2")
        for length in (3, 6, 9, 10, 30, 127):
            with self.subTest(length):
                self.assert_refused(whole[:length], "truncated header")
        self.assert_refused(npy_bytes((3, 4), self.data, "<V2", version=(2, 0))[:11], "truncated header")

    def test_a_header_that_claims_gigabytes(self):
        self.assert_refused(b"\x93NUMPY\x02\x00" + struct.pack("<I", 0xFFFFFFFF) + b"{}", "4294967295 bytes")

    def test_truncated_and_excess_data(self):
        whole = npy_bytes((3, 4), self.data, "<V2")
        self.assert_refused(whole[:-1], "truncated data", "(3, 4) of bf16 needs 24 bytes", "holds 23")
        self.assert_refused(whole[:128], "truncated data", "holds 0")
        self.assert_refused(whole + b"x", "too much data", "needs 24 bytes", "holds 25")

    def test_a_shape_beyond_all_memory(self):
        self.assert_refused(npy_bytes((2**40, 2**40), b"", "<V2"), "2^63 bytes")
        self.assert_refused(npy_bytes((2**30, 2**20), b"", "<V2"), "truncated data")
        self.assert_refused(npy_bytes((2**70, 1), b"", "<V2"), "'shape' must be a tuple of integers")

    def test_types_that_are_not_read(self):
        for descr, says in (
            (">f4", ("big-endian", "newbyteorder")),
            (">f2", ("big-endian",)),
            ("|O", ("Python objects", "numpy.float32")),
            ("<u2", ("uint16", "--bf16-as-uint16")),
            ("<i4", ("'<i4'", "float16, float32, float64, and FP8 as uint8")),
            ("|b1", ("'|b1'",)),
            ("<c8", ("'<c8'",)),
            ("<V4", ("'<V4'",)),
        ):
            with self.subTest(descr):
                self.assert_refused(npy_bytes((3, 4), bytes(96), descr), *says)

    def test_records(self):
        header = "{'descr': [('x', '<f4'), ('y', '<f4', (2,))], 'fortran_order': False, 'shape': (3, 4), }"
        self.assert_refused(self.with_header(header), "records", "[('x', '<f4'), ('y', '<f4', (2,))]")

    def test_headers_that_are_no_dictionary_of_the_format(self):
        good = "'descr': '<V2', 'fortran_order': False, 'shape': (3, 4)"
        for header, says in (
            ("[" + good + "]", "must begin with '{'"),
            ("{" + good, "',' or '}' is missing"),
            ("{" + good + "} {}", "something follows"),
            ("{" + good + ", 'colour': 3}", "unknown key 'colour'"),
            ("{" + good + ", 'shape': (3, 4)}", "'shape' is there twice"),
            ("{'descr': '<V2', 'fortran_order': False}", "key 'shape' is missing"),
            ("{'descr': '<V2', 'shape': (3, 4)}", "key 'fortran_order' is missing"),
            ("{'fortran_order': False, 'shape': (3, 4)}", "key 'descr' is missing"),
            ("{'descr': '<V2', 'fortran_order': 0, 'shape': (3, 4)}", "True or False"),
            ("{'descr': '<V2', 'fortran_order': False, 'shape': (3 4)}", "tuple of integers"),
            ("{'descr': '<V2', 'fortran_order': False, 'shape': (12)}", "tuple of integers"),
            ("{'descr': '<V2', 'fortran_order': False, 'shape': 12}", "tuple of integers"),
            ("{'descr': '<V2', 'fortran_order': False, 'shape': (-3, 4)}", "negative extent -3"),
            ("{'descr': <V2, 'fortran_order': False, 'shape': (3, 4)}", "'descr' is not a type"),
            ("{'descr' '<V2'}", "':' is missing"),
            ("{descr: '<V2'}", "quoted key"),
            ("{'descr': '<V2", "'descr' is not a type"),
            ("", "must begin with '{'"),
        ):
            with self.subTest(header[:60]):
                self.assert_refused(self.with_header(header), "bad header", says)

    def test_brackets_deeper_than_any_stack(self):
        header = "{'descr': " + "[" * 900000 + "}"
        self.assert_refused(npy_bytes((), b"", "", version=(2, 0), header=header), "'descr' is not a type")

    def test_too_few_or_many_dimensions(self):
        for shape in ((), (12,), (1, 1, 3, 4)):
            count = 12 if shape else 1
            word = "1 dimension;" if len(shape) == 1 else f"{len(shape)} dimensions;"
            self.assert_refused(npy_bytes(shape, self.data[: 2 * count], "<V2"), "a matrix has 2", word)

    def test_dimensions_that_do_not_meet(self):
        self.write_matrix("a.npy", self.a)
        self.write_matrix("b.npy", self.b.transposed())
        self.refuse(*self.gemm(), says=("A's 4 columns", "B's 5 rows", "--transpose-b"))
        self.refuse(*self.gemm("--transpose-a"), says=("A's 3 columns", "B's 5 rows"))
        self.write_matrix("a.npy", self.a.transposed())
        self.write_matrix("b.npy", self.b)
        self.refuse(*self.gemm(), says=("A's 3 columns", "B's 4 rows", "--transpose-a"))

    def test_files_that_are_not_there(self):
        self.refuse("gemm", "nowhere.npy", "b.npy", "-o", "d.npy", says="nowhere.npy: there is no such file")
        self.refuse("gemm", self.folder, "b.npy", "-o", "d.npy", code=1, says="is not a regular file")


if __name__ == "__main__":
    unittest.main()
