"""The C interface driven from Python by ctypes alone, and the header's structures against their ctypes twins.

Usage: ctypes_test.py path/to/libsluice.so
"""
import ctypes
import json
import pathlib
import re
import struct
import sys
import threading
import unittest

HEADER = pathlib.Path(__file__).resolve().parents[2] / "include" / "sluice" / "sluice.h"
LIBRARY = None  # set by main

C_TYPES = {"size_t": ctypes.c_size_t, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
           "float": ctypes.c_float, "double": ctypes.c_double}


def structures(header):
    """ctypes classes for every structure in the header, read from the header itself."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    classes = {}
    for name, body in re.findall(r"typedef struct (\w+) \{(.*?)\} \w+;", text, flags=re.S):
        fields = []
        for declaration in filter(None, (line.strip() for line in body.split(";"))):
            pointer = re.fullmatch(r"(const )?(char|void|float|u?int32_t|sluice_group_arguments)\*\s*(\w+)", declaration)
            array = re.fullmatch(r"char (\w+)\[(\d+)\]", declaration)
            if pointer:
                fields.append((pointer.group(3), ctypes.c_char_p if pointer.group(2) == "char" else ctypes.c_void_p))
            elif array:
                fields.append((array.group(1), ctypes.c_char * int(array.group(2))))
            else:
                kind, names = declaration.split(None, 1)
                fields += [(field.strip(), C_TYPES[kind]) for field in names.split(",")]
        classes[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return classes


STRUCTURES = structures(HEADER.read_text())


def initialised(name):
    value = STRUCTURES[name]()
    assert getattr(LIBRARY, name + "_init")(ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value))) == 0
    return value


def last_error():
    return LIBRARY.sluice_last_error().decode()


def device(name):
    value = initialised("sluice_device")
    assert LIBRARY.sluice_device_find(name.encode(), ctypes.byref(value)) == 0, last_error()
    return value


def text_of(function, plan, *arguments):
    text = ctypes.c_void_p()
    status = function(plan, *arguments, ctypes.byref(text))
    assert status == 0, last_error()
    value = ctypes.string_at(text).decode()
    LIBRARY.sluice_string_free(text)
    return value


def create(problem, on="h10", options=None):
    plan = ctypes.c_void_p()
    given = ctypes.byref(options) if options else None
    status = LIBRARY.sluice_plan_create(ctypes.byref(problem), ctypes.byref(device(on)), given, ctypes.byref(plan))
    return status, plan


def bf16(value):
    return struct.unpack("<I", struct.pack("<f", value))[0] >> 16


class CInterface(unittest.TestCase):
    def test_every_function_of_the_header_is_exported(self):
        names = re.findall(r"\b(sluice_\w+)\(", re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S))
        self.assertGreater(len(names), 30)
        for name in names:
            self.assertTrue(hasattr(LIBRARY, name), name)

    def test_defaults(self):
        problem = initialised("sluice_problem")
        self.assertEqual((problem.batch, problem.lda, problem.batch_stride_d, problem.alpha, problem.beta), (1, -1, -1, 1.0, 0.0))
        self.assertEqual((problem.type_a, problem.type_b, problem.layout_a, problem.layout_b, problem.alignment_d_bytes), (0, 0, 0, 1, 16))
        self.assertEqual((problem.scaling_a, problem.scale_layout_b, problem.ld_scale_a, problem.batch_stride_scale_b), (0, 0, -1, -1))
        self.assertEqual((ctypes.sizeof(problem), ctypes.sizeof(initialised("sluice_arguments"))), (272, 96))
        self.assertEqual((problem.w4_group_size, problem.w4_zero_points), (128, 0))
        self.assertEqual((problem.grouping, problem.expected_rows, problem.most_rows, initialised("sluice_arguments").groups), (0, 0, 0, None))

    def test_a_product(self):
        m, n, k = 33, 17, 50
        problem = initialised("sluice_problem")
        problem.m, problem.n, problem.k = m, n, k
        problem.type_d = 2  # fp32
        problem.bias = 2  # per column
        problem.activation = 1  # relu
        problem.alignment_a_bytes = problem.alignment_b_bytes = 2
        problem.alignment_d_bytes = 4
        a = [[(i * 3 + p) % 5 - 2 for p in range(k)] for i in range(m)]
        b = [[(p * 2 + j) % 7 - 3 for j in range(n)] for p in range(k)]
        bias = [j - 8 for j in range(n)]
        a_memory = (ctypes.c_uint16 * (m * k))(*[bf16(a[i][p]) for i in range(m) for p in range(k)])
        b_memory = (ctypes.c_uint16 * (k * n))(*[bf16(b[p][j]) for j in range(n) for p in range(k)])
        bias_memory = (ctypes.c_float * n)(*bias)
        d_memory = (ctypes.c_float * (m * n))(*[float("nan")] * (m * n))
        status, plan = create(problem)
        self.assertEqual(status, 0, last_error())
        arguments = initialised("sluice_arguments")
        arguments.a, arguments.b = ctypes.addressof(a_memory), ctypes.addressof(b_memory)
        arguments.d, arguments.bias = ctypes.addressof(d_memory), ctypes.addressof(bias_memory)
        status = LIBRARY.sluice_run_on_cpu(plan, ctypes.byref(arguments), 0, None, None)
        self.assertEqual(status, 0, last_error())
        expected = [max(0, sum(a[i][p] * b[p][j] for p in range(k)) + bias[j]) for i in range(m) for j in range(n)]
        self.assertEqual(list(d_memory), expected)
        if LIBRARY.sluice_built_with_emulator():
            ctypes.memset(d_memory, 0xFF, ctypes.sizeof(d_memory))
            options = initialised("sluice_emulator_options")
            self.assertEqual((options.seed, options.asynchrony, options.resident_clusters, options.diagnose), (0, 0, 0, 1))
            options.seed, options.asynchrony = 3, 3  # mixed
            status = LIBRARY.sluice_run_on_emulator(plan, ctypes.byref(arguments), ctypes.byref(options), None, None)
            self.assertEqual(status, 0, last_error())
            self.assertEqual(list(d_memory), expected)
        LIBRARY.sluice_plan_destroy(plan)

    def test_an_fp8_product(self):
        m, n, k = 5, 130, 144
        problem = initialised("sluice_problem")
        problem.m, problem.n, problem.k = m, n, k
        problem.type_a, problem.type_b, problem.type_d = 3, 4, 2  # e4m3, e5m2, fp32
        problem.scaling_a, problem.scaling_b = 3, 1  # each 128 of each row, one number
        problem.scale_layout_a = 1  # those of one 128 of K are adjacent
        problem.alignment_d_bytes = 4
        e4m3 = {-2: 0xC0, -1: 0xB8, 0: 0x00, 1: 0x38, 2: 0x40}
        e5m2 = {-2: 0xC0, -1: 0xBC, 0: 0x00, 1: 0x3C, 2: 0x40}
        a = [[(i * 3 + p) % 5 - 2 for p in range(k)] for i in range(m)]
        b = [[(p * 2 + j) % 5 - 2 for j in range(n)] for p in range(k)]

        def aligned(values):
            memory = (ctypes.c_uint8 * (len(values) + 16))()
            address = (ctypes.addressof(memory) + 15) // 16 * 16
            ctypes.memmove(address, bytes(values), len(values))
            return memory, address

        a_memory, a_address = aligned([e4m3[a[i][p]] for i in range(m) for p in range(k)])
        b_memory, b_address = aligned([e5m2[b[p][j]] for j in range(n) for p in range(k)])
        scale_a = (ctypes.c_float * (2 * m))(*[2.0 ** (i % 3) for i in range(2 * m)])
        scale_b = (ctypes.c_float * 1)(0.5)
        d_memory = (ctypes.c_float * (m * n))(*[float("nan")] * (m * n))
        status, plan = create(problem)
        self.assertEqual(status, 0, last_error())
        self.assertEqual(json.loads(text_of(LIBRARY.sluice_plan_to_json, plan))["problem"]["scaling_a"], "1x128")
        arguments = initialised("sluice_arguments")
        arguments.a, arguments.b, arguments.d = a_address, b_address, ctypes.addressof(d_memory)
        self.assertEqual(LIBRARY.sluice_run_on_cpu(plan, ctypes.byref(arguments), 0, None, None), 1)
        self.assertIn("scale_a is null", last_error())
        arguments.scale_a, arguments.scale_b = ctypes.addressof(scale_a), ctypes.addressof(scale_b)
        self.assertEqual(LIBRARY.sluice_run_on_cpu(plan, ctypes.byref(arguments), 0, None, None), 0, last_error())
        expected = [sum(a[i][p] * scale_a[p // 128 * m + i] * b[p][j] * 0.5 for p in range(k)) for i in range(m) for j in range(n)]
        self.assertEqual(list(d_memory), expected)
        LIBRARY.sluice_plan_destroy(plan)

    def test_ragged_groups(self):
        sizes, n, k = (3, 0, 9, 1), 8, 24
        m = sum(sizes) + 2  # one row of no group before all others and one behind
        offsets = [1]
        for size in sizes:
            offsets.append(offsets[-1] + size)
        problem = initialised("sluice_problem")
        problem.m, problem.n, problem.k, problem.batch = m, n, k, len(sizes)
        problem.grouping, problem.type_d = 1, 2  # ragged, fp32
        problem.alignment_a_bytes = problem.alignment_b_bytes = 2
        problem.alignment_d_bytes = 4
        a = [[(i * 3 + p) % 5 - 2 for p in range(k)] for i in range(m)]
        b = [[[(g + p * 2 + j) % 7 - 3 for j in range(n)] for p in range(k)] for g in range(len(sizes))]
        a_memory = (ctypes.c_uint16 * (m * k))(*[bf16(a[i][p]) for i in range(m) for p in range(k)])
        b_memory = (ctypes.c_uint16 * (len(sizes) * k * n))(*[bf16(x[p][j]) for x in b for j in range(n) for p in range(k)])
        groups = (ctypes.c_int32 * len(offsets))(*offsets)
        status, plan = create(problem)
        self.assertEqual(status, 0, last_error())
        arguments = initialised("sluice_arguments")
        arguments.a, arguments.b, arguments.groups = (ctypes.addressof(x) for x in (a_memory, b_memory, groups))
        expected = [-77.0] * (m * n)  # what nobody writes
        for g, (begin, end) in enumerate(zip(offsets, offsets[1:])):
            for i in range(begin, end):
                expected[i * n:(i + 1) * n] = [sum(a[i][p] * b[g][p][j] for p in range(k)) for j in range(n)]
        runs = [lambda: LIBRARY.sluice_run_on_cpu(plan, ctypes.byref(arguments), 0, None, None)]
        if LIBRARY.sluice_built_with_emulator():
            runs.append(lambda: LIBRARY.sluice_run_on_emulator(plan, ctypes.byref(arguments), None, None, None))
        for run in runs:
            d_memory = (ctypes.c_float * (m * n))(*[-77.0] * (m * n))
            arguments.d = ctypes.addressof(d_memory)
            self.assertEqual(run(), 0, last_error())
            self.assertEqual(list(d_memory), expected)
        LIBRARY.sluice_plan_destroy(plan)

    def test_automatic_backend(self):
        problem = initialised("sluice_problem")
        problem.m = problem.n = problem.k = 1 << 16
        status, plan = create(problem)
        self.assertEqual(status, 0, last_error())
        backend = ctypes.c_int32(-1)
        why = ctypes.c_void_p()
        self.assertEqual(LIBRARY.sluice_automatic_backend(plan, ctypes.byref(backend), ctypes.byref(why)), 0, last_error())
        LIBRARY.sluice_backend_name.restype = ctypes.c_char_p
        # 65536 cubed: nothing for the emulator.
        self.assertIn(LIBRARY.sluice_backend_name(backend), (b"cuda", b"reference"))
        self.assertTrue(ctypes.string_at(why))
        LIBRARY.sluice_string_free(why)
        LIBRARY.sluice_plan_destroy(plan)

    def test_texts(self):
        problem = initialised("sluice_problem")
        problem.m = problem.n = 384
        problem.k = 128
        status, plan = create(problem)
        self.assertEqual(status, 0, last_error())
        self.assertIn("h10: 4 SMs", text_of(LIBRARY.sluice_plan_explain, plan, ctypes.c_int32(5)))
        self.assertIn("<svg", text_of(LIBRARY.sluice_plan_simulate_svg, plan))
        written = text_of(LIBRARY.sluice_plan_to_json, plan)
        self.assertEqual(json.loads(written)["problem"]["m"], 384)
        json.loads(text_of(LIBRARY.sluice_plan_simulate_json, plan))
        again = ctypes.c_void_p()
        self.assertEqual(LIBRARY.sluice_plan_from_json(written.encode(), ctypes.byref(again)), 0, last_error())
        self.assertEqual(text_of(LIBRARY.sluice_plan_to_json, again), written)
        LIBRARY.sluice_plan_destroy(again)
        LIBRARY.sluice_plan_destroy(plan)

    def test_constants_reductions_and_determinism(self):
        problem = initialised("sluice_problem")
        problem.m, problem.n, problem.k = 16, 512, 4096
        problem.constant_b = 1
        options = initialised("sluice_plan_options")
        self.assertEqual((options.reduction, options.determinism), (0, 0))
        options.scheduler, options.splits = 3, 2  # split-K
        options.kernel_name = b"bf16_rc_coop_16x64x128_c1x1_swap"
        for reduction, name in ((1, "workspace"), (2, "separate"), (3, "cluster")):
            options.reduction = reduction
            status, plan = create(problem, "h200", options)
            self.assertEqual(status, 0, last_error())
            written = json.loads(text_of(LIBRARY.sluice_plan_to_json, plan))
            self.assertEqual(written["scheduler"].get("reduction", "workspace"), name)
            self.assertEqual((written["problem"]["constant_a"], written["problem"]["constant_b"]), (False, True))
            size = ctypes.c_size_t(1)
            self.assertEqual(LIBRARY.sluice_plan_workspace_bytes(plan, ctypes.byref(size)), 0)
            self.assertEqual(size.value == 0, name == "cluster")
            LIBRARY.sluice_plan_destroy(plan)
        options.determinism = 2  # batch-invariant
        status, plan = create(problem, "h200", options)
        self.assertEqual(status, 1)
        self.assertIn("batch-invariant needs whole tiles, which split-k cuts", last_error())
        options = initialised("sluice_plan_options")
        for determinism, whole in ((0, False), (1, False), (2, True)):
            options.determinism = determinism
            problem.k = 65536
            status, plan = create(problem, "h200", options)
            self.assertEqual(status, 0, last_error())
            kind = json.loads(text_of(LIBRARY.sluice_plan_to_json, plan))["scheduler"]["kind"]
            self.assertEqual(kind in ("one-tile-per-cta", "data-parallel"), whole, kind)
            LIBRARY.sluice_plan_destroy(plan)

    def test_each_thread_has_its_own_message(self):
        found = initialised("sluice_device")
        self.assertEqual(LIBRARY.sluice_device_find(b"mine", ctypes.byref(found)), 7)
        seen = []

        def other():
            seen.append(last_error())
            LIBRARY.sluice_device_find(b"theirs", ctypes.byref(initialised("sluice_device")))
            seen.append(last_error())

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        self.assertEqual(seen[0], "")
        self.assertIn("'theirs'", seen[1])
        self.assertIn("'mine'", last_error())

    def test_a_forgotten_init_is_noticed(self):
        problem = STRUCTURES["sluice_problem"]()
        status, plan = create(problem)
        self.assertEqual(status, 1)
        self.assertIn("sluice_problem_init", last_error())
        self.assertFalse(plan.value)


def main():
    global LIBRARY
    LIBRARY = ctypes.CDLL(sys.argv.pop(1))
    LIBRARY.sluice_last_error.restype = ctypes.c_char_p
    LIBRARY.sluice_string_free.restype = None
    LIBRARY.sluice_plan_destroy.restype = None
    unittest.main()


if __name__ == "__main__":
    main()
