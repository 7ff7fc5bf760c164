"""Products of groups of rows: plan, explain and gemm with sizes from flags and files, on every backend, and what is refused."""

import json
import math
import struct
import unittest

from support import DESCR, Matrix, SluiceTest, encode, naive_product, npy_bytes, read_npy

SIZES = [5, 0, 70, 1]
N, K = 24, 40


def offsets(sizes, first=0):
    result = [first]
    for size in sizes:
        result.append(result[-1] + size)
    return result


def rows_of(matrix, begin, end):
    return Matrix(end - begin, matrix.columns, matrix.kind, matrix.values[begin * matrix.columns : end * matrix.columns])


class GroupsTest(SluiceTest):
    def setUp(self):
        super().setUp()
        self.weights = [Matrix.random(K, N, "bf16", 10 + g) for g in range(len(SIZES))]
        self.write_batch("B.npy", self.weights)
        self.backends = ["reference"] + (["emulator"] if self.built_with("emulator") else [])

    def write_integers(self, name, numbers, descr="<i4", shape=None):
        letter = {"<i4": "i", "<i8": "q"}[descr]
        return self.write(name, npy_bytes(shape or (len(numbers),), struct.pack(f"<{len(numbers)}{letter}", *numbers), descr))

    def assert_rows(self, path, shape, expected):
        """D's rows, counted over all its matrices, are those expected; the others are NaN. expected: {row: [(value, size)]}"""
        kind, got_shape, values = read_npy(self.path(path))
        self.assertEqual((kind, got_shape), ("fp32", shape))
        for row in range(math.prod(shape[:-1])):
            got = values[row * N : (row + 1) * N]
            if row not in expected:
                self.assertTrue(all(math.isnan(value) for value in got), f"row {row} of no group was written: {got[:4]}")
                continue
            for value, (want, size) in zip(got, expected[row]):
                self.assertLessEqual(abs(value - want), 2.0**-16 * size + 1e-6, f"row {row}")

    def products(self, a_of_group, first_rows, **epilogue):
        expected = {}
        for a, b, first in zip(a_of_group, self.weights, first_rows):
            product = naive_product(a, b, **epilogue)
            expected |= {first + row: product[row * N : (row + 1) * N] for row in range(a.rows)}
        return expected

    def ragged(self, sizes=SIZES, first=0, behind=0):
        """Writes A.npy; gives D's shape and rows."""
        begins = offsets(sizes, first)
        a = Matrix.random(begins[-1] + behind, K, "bf16", 1)
        self.write_matrix("A.npy", a)
        return (a.rows, N), self.products([rows_of(a, *each) for each in zip(begins, begins[1:])], begins)

    def masked(self, room, sizes=SIZES):
        matrices = [Matrix.random(room, K, "bf16", 30 + g) for g in range(len(sizes))]
        self.write_batch("A.npy", matrices)
        used = [rows_of(matrix, 0, size) for matrix, size in zip(matrices, sizes)]
        return (len(sizes), room, N), self.products(used, [g * room for g in range(len(sizes))])

    def gemm(self, *flags):
        return ("gemm", "A.npy", "B.npy", "-o", "D.npy", "--out-type", "fp32", *flags)

    def test_ragged_sizes_from_the_command_line(self):
        shape, expected = self.ragged()
        for backend in self.backends:
            said = self.succeed(*self.gemm("--grouping", "ragged", "--groups", "5,0,70,1", "--check", "--backend", backend))
            self.assertIn("4 ragged groups of 0 to 70 rows, 76 in all", said)
            self.assertIn("76 x 24 x 40, 4 ragged groups bf16 -> fp32", said)
            self.assertIn(f"{76 * N} elements checked: all within the bound", said)
            self.assert_rows("D.npy", shape, expected)

    def test_groups_along_k(self):
        sizes, m = [5, 0, 34, 1], 16
        a, b = Matrix.random(K, m, "bf16", 1), Matrix.random(K, N, "bf16", 2)
        self.write_matrix("A.npy", a)  # as gradients come: a row for each of the K that are summed over
        self.write_matrix("B.npy", b)
        begins = offsets(sizes)
        expected = {}
        for g, (begin, end) in enumerate(zip(begins, begins[1:])):
            product = naive_product(rows_of(a, begin, end).transposed(), rows_of(b, begin, end))
            expected |= {g * m + row: product[row * N : (row + 1) * N] for row in range(m)}
        flags = ("--transpose-a", "--grouping", "along-k", "--check")
        self.write_integers("offsets.npy", begins)
        for backend in self.backends:
            for groups in ("5,0,34,1", "offsets.npy"):
                said = self.succeed(*self.gemm(*flags, "--groups", groups, "--backend", backend))
                self.assertIn("4 along-k groups of 0 to 34 elements of K, 40 in all", said)
                self.assertIn("16 x 24 x 40, 4 along-k groups bf16 -> fp32, A column-major, B row-major", said)
                self.assertIn(f"{4 * m * N} elements checked: all within the bound", said)
                self.assert_rows("D.npy", (4, m, N), expected)
        self.succeed("gemm", "--m", "24", "--n", "40", "--grouping", "along-k", "--groups", "7,0,70", "--check", "--backend", "reference")
        self.refuse(*self.gemm(*flags, "--groups", "5,0,36"), says="the groups end at element 41 of K, but A (A.npy) has 40")
        self.write_batch("A.npy", [a, a])
        self.refuse(*self.gemm(*flags, "--groups", "5,0"), says=("A (A.npy) holds 2 matrices", "groups along k", "reshape"))

    def test_groups_along_k_in_fp8(self):
        sizes, m, depth = [128, 0, 384, 128], 16, 640
        a, b = Matrix.random(depth, m, "e4m3", 1, True), Matrix.random(depth, N, "e4m3", 2, True)
        self.write_matrix("A.npy", a)
        self.write_matrix("B.npy", b)
        begins = offsets(sizes)
        expected = {}
        for g, (begin, end) in enumerate(zip(begins, begins[1:])):
            product = naive_product(rows_of(a, begin, end).transposed(), rows_of(b, begin, end))
            expected |= {g * m + row: product[row * N : (row + 1) * N] for row in range(m)}
        flags = ("--transpose-a", "--grouping", "along-k", "--check", "--type", "e4m3")
        for backend in self.backends:
            said = self.succeed(*self.gemm(*flags, "--groups", "128,0,384,128", "--backend", backend))
            self.assertIn("4 along-k groups of 0 to 384 elements of K, 640 in all", said)
            self.assertIn("16 x 24 x 640, 4 along-k groups e4m3 -> fp32, A row-major, B column-major", said)
            self.assertIn(f"{4 * m * N} elements checked: all within the bound", said)
            self.assert_rows("D.npy", (4, m, N), expected)
            scaled = ("--m", "40", "--n", "24", "--type", "e4m3", "--grouping", "along-k", "--groups", "256,0,128", "--backend", backend, "--check")
            for kinds in (("1x128", "1x128"), ("1x128", "128x128"), ("vector", "tensor")):
                said = self.succeed("gemm", *scaled, "--scaling-a", kinds[0], "--scaling-b", kinds[1])
                self.assertIn(f"scales {kinds[0]} and {kinds[1]}", said)
        self.refuse(*self.gemm(*flags, "--groups", "128,200"), says=("group 1 ends at element 328 of K", "multiples of 128", "here to 384"))
        self.refuse("gemm", "--m", "8", "--n", "8", "--k", "200", "--type", "e4m3", "--grouping", "along-k", "--groups", "128", "--check", says=("k = 200", "pad to 256"))

    def test_ragged_offsets_from_a_file(self):
        shape, expected = self.ragged(first=3, behind=6)
        for descr in ("<i4", "<i8"):
            self.write_integers("groups.npy", offsets(SIZES, 3), descr)
            for backend in self.backends:
                self.succeed(*self.gemm("--grouping", "ragged", "--groups", "groups.npy", "--backend", backend, "--check"))
                self.assert_rows("D.npy", shape, expected)

    def test_masked_sizes(self):
        shape, expected = self.masked(72)
        self.write_integers("sizes.npy", SIZES)
        for groups in ("5,0,70,1", "sizes.npy"):
            for backend in self.backends:
                said = self.succeed(*self.gemm("--grouping", "masked", "--groups", groups, "--check", "--backend", backend))
                self.assertIn("72 x 24 x 40, 4 masked groups", said)
                self.assert_rows("D.npy", shape, expected)

    def test_weights_as_they_often_lie(self):
        shape, expected = self.ragged()
        self.write_batch("B.npy", [b.transposed() for b in self.weights])
        said = self.succeed(*self.gemm("--grouping", "ragged", "--groups", "5,0,70,1", "--b-is-nk", "--backend", self.backends[-1]))
        self.assertIn("B column-major", said)
        self.assert_rows("D.npy", shape, expected)

    def test_schedules(self):
        shape, expected = self.ragged()
        for scheduler in ("data-parallel", "split-k", "stream-k", "hybrid"):
            for backend in self.backends:
                flags = ("--scheduler", scheduler, "--claim", "ticket", "--tile-m", "64", "--device", "h10", "--backend", backend)
                answer = self.succeed_json(*self.gemm("--grouping", "ragged", "--groups", "5,0,70,1", "--check", *flags))
                self.assertEqual(answer["plan"]["scheduler"]["kind"], scheduler)
                self.assertEqual(answer["check"]["checked"], 76 * N)
                self.assert_rows("D.npy", shape, expected)

    def test_bias_of_each_group(self):
        begins = offsets(SIZES)
        a = Matrix.random(begins[-1], K, "bf16", 1)
        self.write_matrix("A.npy", a)
        bias = Matrix.random(len(SIZES), N, "fp32", 3)
        self.write_matrix("bias.npy", bias)
        expected = {}
        for g, (begin, end) in enumerate(zip(begins, begins[1:])):
            product = naive_product(rows_of(a, begin, end), self.weights[g], column_bias=bias.values[g * N : (g + 1) * N])
            expected |= {begin + row: product[row * N : (row + 1) * N] for row in range(end - begin)}
        flags = ("--grouping", "ragged", "--groups", "5,0,70,1", "--bias", "bias.npy", "--bias-kind", "per_group_column", "--check")
        for backend in self.backends:
            said = self.succeed(*self.gemm(*flags, "--backend", backend))
            self.assertIn("bias bias.npy: 4 x 24 fp32 per_group_column", said)
            self.assertIn("bias per_group_column", said)
            self.assert_rows("D.npy", (76, N), expected)
        self.write_matrix("bias.npy", bias.transposed())
        self.refuse(*self.gemm(*flags), says=("has shape (24, 4)", "(4, 24) in C order"))

    def test_epilogue(self):
        self.ragged(first=1)
        a, c = Matrix.random(77, K, "bf16", 1), Matrix.random(77, N, "fp32", 2)
        self.write_matrix("A.npy", a)
        self.write_matrix("C.npy", c)
        bias = Matrix.random(1, 77, "fp32", 3)
        self.write("bias.npy", npy_bytes((77,), encode(bias.values, "fp32"), "<f4"))
        self.write_integers("groups.npy", offsets(SIZES, 1))
        expected = {}
        for b, (begin, end) in zip(self.weights, zip(offsets(SIZES, 1), offsets(SIZES, 1)[1:])):
            product = naive_product(
                rows_of(a, begin, end), b, alpha=2.0, beta=0.5, c=rows_of(c, begin, end), row_bias=bias.values[begin:end], activation="relu"
            )
            expected |= {begin + row: product[row * N : (row + 1) * N] for row in range(end - begin)}
        flags = ("-C", "C.npy", "--beta", 0.5, "--alpha", 2, "--bias", "bias.npy", "--bias-kind", "per_row", "--activation", "relu")
        for backend in self.backends:
            self.succeed(*self.gemm("--grouping", "ragged", "--groups", "groups.npy", *flags, "--check", "--backend", backend))
            self.assert_rows("D.npy", (77, N), expected)

    def test_fp8_scales(self):
        """Scales found, and scales from files: A's are those of rows, B's of each group's blocks."""
        n, k = 130, 144
        sizes = ("--groups", "5,0,70,1", "--type", "e4m3", "--out-type", "fp32", "--check", "-o", "D.npy")
        weights = [Matrix.random(k, n, "fp32", 20 + g) for g in range(4)]
        self.write_batch("B8.npy", weights)
        self.write_matrix("A8.npy", Matrix.random(76, k, "fp32", 1))
        self.write_batch("A8s.npy", [Matrix.random(72, k, "fp32", 40 + g) for g in range(4)])
        for backend in self.backends:
            found = ("--scaling-a", "1x128", "--scaling-b", "128x128", "--backend", backend)
            said = self.succeed("gemm", "A8.npy", "B8.npy", "--grouping", "ragged", *sizes, *found)
            self.assertIn("4 ragged groups e4m3 -> fp32, A row-major, B column-major, scales 1x128 and 128x128", said)
            self.succeed("gemm", "A8s.npy", "B8.npy", "--grouping", "masked", *sizes, *found)
        scales_a = [2.0 ** (row % 3) for row in range(76)]
        self.write("sa.npy", npy_bytes((76,), encode(scales_a, "fp32"), "<f4"))
        scales_b = [2.0 ** (i % 4) for i in range(4)]
        self.write("sb.npy", npy_bytes((4, 1), encode(scales_b, "fp32"), "<f4"))
        a = Matrix.random(76, k, "e4m3", 1, True)
        b = [Matrix.random(k, n, "e4m3", g, True) for g in range(4)]
        self.write("A8.npy", npy_bytes((76, k), encode(a.values, "e4m3"), DESCR["e4m3"]))
        self.write_batch("B8.npy", b)
        self.succeed("gemm", "A8.npy", "B8.npy", "--grouping", "ragged", *sizes, "--scale-a", "sa.npy", "--scale-b", "sb.npy")
        values = read_npy(self.path("D.npy"))[2]
        for g, (begin, end) in enumerate(zip(offsets(SIZES), offsets(SIZES)[1:])):
            product = naive_product(rows_of(a, begin, end), b[g])
            for row in range(begin, end):
                want = [value * scales_a[row] * scales_b[g] for value, _ in product[(row - begin) * n : (row - begin + 1) * n]]
                self.assertEqual(values[row * n : (row + 1) * n], want)

    def test_random_numbers(self):
        said = self.succeed("gemm", "--n", 64, "--k", 64, "--grouping", "ragged", "--groups", "3,0,9", "--check")
        self.assertIn("B    random: 3 matrices of 64 x 64", said)
        self.assertIn("12 x 64 x 64, 3 ragged groups", said)
        self.assertIn(f"{12 * 64} elements checked: all within", said)
        said = self.succeed("gemm", "--m", 16, "--n", 64, "--k", 64, "--grouping", "masked", "--groups", "3,0,9", "--check")
        self.assertIn("A    random: 3 matrices of 16 x 64", said)
        self.refuse("gemm", "--n", 64, "--k", 64, "--grouping", "masked", "--groups", "3,0,9", "--check", says="--m = 0 must be above 0")

    def test_a_wrong_element_is_found(self):
        shape, expected = self.ragged()
        values = [value for row in range(shape[0]) for value, _ in expected[row]]
        values[74 * N + 3] += 1
        self.write("D.npy", npy_bytes(shape, encode(values, "fp32"), "<f4"))
        check = ("gemm", "A.npy", "B.npy", "--check-file", "D.npy", "--out-type", "fp32", "--grouping", "ragged", "--groups", "5,0,70,1")
        done = self.run_sluice(*check)
        self.assertEqual(done.returncode, 1)
        self.assertIn("1 outside the bound, 0 not a number; worst at batch 2, row 74, column 3", done.stderr)
        values[74 * N + 3] -= 1
        self.write("D.npy", npy_bytes(shape, encode(values, "fp32"), "<f4"))
        self.succeed(*check)

    def test_a_plan_made_before(self):
        shape, expected = self.ragged()
        problem = ("--m", 76, "--n", N, "--k", K, "--batch", 4, "--layout", "rr", "--out-type", "fp32", "--grouping", "ragged")
        plan = self.succeed("plan", *problem, "--expected-rows", 20, "--most-rows", 80, "--device", "h10", "--json")
        self.assertEqual(json.loads(plan)["problem"]["expected_rows"], 20)
        self.assertEqual(json.loads(plan)["problem"]["most_rows"], 80)
        self.write("plan.json", plan)
        self.succeed(*self.gemm("--grouping", "ragged", "--groups", "5,0,70,1", "--plan-file", "plan.json"))
        self.assert_rows("D.npy", shape, expected)
        self.masked(76)
        refused = self.gemm("--grouping", "masked", "--groups", "5,0,70,1", "--plan-file", "plan.json")
        self.refuse(*refused, says=("the plan does not fit", "4 ragged groups", "4 masked groups"))

    def test_plan_and_explain(self):
        problem = ("--m", 4096, "--n", 4096, "--k", 7168, "--batch", 8, "--device", "h200")
        for grouping in ("ragged", "masked"):
            said = self.succeed("plan", *problem, "--grouping", grouping)
            self.assertIn(f"4096 x 4096 x 7168, 8 {grouping} groups bf16", said)
            self.assertIn(f"8 {grouping} groups", self.succeed("explain", *problem, "--grouping", grouping, "--expected-rows", 100))
            self.refuse("simulate", *problem, "--grouping", grouping, says=(f"the plan is for {grouping} groups", "simulate a batch"))
        general = self.succeed("plan", *problem, "--grouping", "general")
        self.assertIn("at most", general)
        self.assertIn("8 general groups bf16", general)
        self.refuse("simulate", *problem, "--grouping", "general", says="the plan is for general groups")
        self.refuse("plan", *problem, "--grouping", "general", "--lda", 8192, says="lda = 8192 with general groups")
        scaled = (*problem, "--grouping", "general", "--type", "e4m3", "--scaling-a", "1x128", "--scaling-b", "128x128")
        self.assertIn("8 general groups e4m3", self.succeed("plan", *scaled))
        self.assertIn("scales 1x128 and 128x128", self.succeed("explain", *scaled, "--expected-rows", 100))
        self.refuse("plan", *scaled, "--out-type", "e4m3", says="type_d = e4m3 with general groups")
        with_rows = [
            self.succeed_json("plan", *problem, "--grouping", "masked", "--expected-rows", rows)["predicted"]["total_us"] for rows in (8, 4096)
        ]
        self.assertLess(*with_rows)
        self.assertEqual(self.succeed("plan", *problem, "--grouping", "none"), self.succeed("plan", *problem))
        self.refuse("plan", *problem, "--grouping", "frayed", says="choose from none, ragged, masked")
        self.refuse("plan", *problem, "--expected-rows", 5, says="--expected-rows is about groups; pass --grouping ragged, masked or general")
        self.refuse("plan", *problem, "--most-rows", 5, says="--most-rows is about groups")
        self.refuse("plan", *problem, "--grouping", "ragged", "--most-rows", -5, says="--most-rows")
        self.refuse("plan", *problem, "--grouping", "ragged", "--expected-rows", -5, says="--expected-rows")
        self.refuse("plan", *problem, "--grouping", "ragged", "--layout", "cr", says="layout_a = column-major with ragged groups")
        self.refuse("plan", *problem, "--grouping", "masked", "--scheduler", "one-tile-per-cta", says="take data-parallel")
        self.refuse("plan", *problem, "--grouping", "ragged", "--scheduler", "stream-k", "--regions", 2, says="leave regions free")

    def refuse_gemm(self, grouping, groups, says):
        self.refuse(*self.gemm("--grouping", grouping, "--groups", groups), says=says)

    def test_flags_that_do_not_go_together(self):
        self.ragged()
        self.refuse(*self.gemm("--grouping", "ragged"), says="--grouping ragged needs the sizes; pass --groups")
        self.refuse(*self.gemm("--groups", "5,0,70,1"), says="--groups are sizes of groups; pass --grouping ragged")
        self.refuse(*self.gemm("--expected-rows", 5), says="--expected-rows is about groups; pass --grouping ragged or masked, or")
        self.refuse(*self.gemm("--most-rows", 5), says="--most-rows is about groups")
        self.refuse_gemm("frayed", "5,0,70,1", "choose from none, ragged, masked")
        self.refuse_gemm("general", "5,0,70,1", "--grouping general has matrices of many sizes, for which this command has no files")

    def test_sizes_that_are_none(self):
        self.ragged()
        for text, word in (("5,x,70,1", "x"), ("5,,70,1", ""), ("5,0,70,", ""), ("5 0 70 1", "5 0 70 1"), ("5,0.5,70,1", "0.5")):
            self.refuse_gemm("ragged", text, (f"--groups '{text}'", f"'{word}' is no number"))
        self.refuse_gemm("ragged", "5,-1,70,1", "--groups: group 1 has -1 rows")
        self.refuse_gemm("ragged", "5,4294967296,70,1", "--groups: group 1 has 4294967296 rows")
        self.refuse_gemm("ragged", "2147483647,1,0,0", "group 1 has 1 rows; a group has 0 or more, and all of them fewer than 2^31")
        self.refuse_gemm("ragged", "missing.npy", "missing.npy: there is no such file")
        self.write("floats.npy", npy_bytes((5,), encode([0.0] * 5, "fp32"), "<f4"))
        self.refuse_gemm("ragged", "floats.npy", "floats.npy: holds type '<f4'; sizes must be int32 or int64")
        self.write_integers("table.npy", offsets(SIZES) + [9], shape=(2, 3))
        self.refuse_gemm("ragged", "table.npy", "table.npy: has shape (2, 3); sizes have one dimension")
        self.write_integers("falling.npy", [0, 5, 3, 70, 76])
        self.refuse_gemm("ragged", "falling.npy", ("offset 2 is 3, less than the 5 before it", "numpy.cumsum"))
        self.write_integers("negative.npy", [-1, 5, 5, 75, 76])
        self.refuse_gemm("ragged", "negative.npy", "offset 0 is -1")
        self.write_integers("empty.npy", [])
        self.refuse_gemm("ragged", "empty.npy", "empty.npy: is empty")
        self.write("short.npy", npy_bytes((5,), b"\0" * 12, "<i4"))
        self.refuse_gemm("ragged", "short.npy", "truncated data: shape (5,) of int32 needs 20 bytes of data, the file holds 12")

    def test_sizes_that_do_not_fit_the_matrices(self):
        self.ragged()
        self.refuse_gemm("ragged", "5,70,1", "--groups says 3 groups, but B (B.npy) holds 4 matrices")
        self.write_integers("sizes.npy", sorted(SIZES))  # sizes, where offsets are wanted
        self.refuse_gemm("ragged", "sizes.npy", ("sizes.npy says 3 groups, but B", "one number more than there are groups"))
        self.refuse_gemm("ragged", "5,0,70,2", "the groups end at row 77, but A (A.npy) has 76")
        self.refuse_gemm("masked", "5,0,70,1", ("but A (A.npy) holds 1 matrix", "pass --grouping ragged"))
        self.masked(70)
        self.refuse_gemm("ragged", "5,0,70,1", ("A (A.npy) holds 4 matrices", "pass --grouping masked"))
        self.refuse_gemm("masked", "5,0,71,1", "group 2 has 71 rows, but A (A.npy) has room for 70")
        self.refuse(*self.gemm("--grouping", "masked", "--groups", "5,0,70,1", "--expected-rows", 0), says="--expected-rows")
        self.write_matrix("C.npy", Matrix.random(4 * 70, N, "fp32", 2))
        self.refuse(*self.gemm("--grouping", "masked", "--groups", "5,0,70,1", "-C", "C.npy"), says="D has 4 of 70 x 24")


if __name__ == "__main__":
    unittest.main()
