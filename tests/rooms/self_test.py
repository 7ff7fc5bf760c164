#!/usr/bin/env python3
"""Plants one breach of each rule in a small tree and expects the checks to find exactly that one."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import check_sources as check


class Rules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("include/sluice/run.hpp", "struct Plan;\n")
        self.write("src/core/problem.hpp", "#pragma once\n")
        self.write("src/scheduler/scheduler.hpp", '#include "core/problem.hpp"\n')
        self.write("src/planner/cost.hpp", '#include "scheduler/scheduler.hpp"\n')
        self.write("src/arch/sm90/barrier.cuh", 'asm volatile("bar.sync 0;");\n')
        self.write("src/kernel/gemm_kernel.cuh", '// no threadIdx here\n#include "arch/sm90/barrier.cuh"\nconst char* text = "asm";\n')
        self.write("src/launch/cuda/run.cpp", '#include "sluice/run.hpp"\n#include "launch/tensor_map.hpp"\n')
        self.write("src/launch/tensor_map.hpp", "int encode();\n")
        self.write("src/launch/tensor_map.cpp", "int encode() { return 1'000; }\n")
        self.write("cli/main.cpp", '#include "sluice/run.hpp"\n')

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def found(self):
        return [*check.wrong_includes(self.root), *check.built_ins_outside_arch(self.root), *check.long_files(self.root),
                *check.long_way(self.root)]

    def expect(self, part):
        self.assertEqual(len(self.found()), 1, self.found())
        self.assertIn(part, self.found()[0])

    def test_a_good_tree_passes(self):
        self.assertEqual(self.found(), [])

    def test_upward_include(self):
        self.write("src/scheduler/peek.hpp", '#include "planner/cost.hpp"\n')
        self.expect("scheduler must not know planner")

    def test_kernel_knows_no_launch(self):
        self.write("src/kernel/peek.cuh", '#include "launch/tensor_map.hpp"\n')
        self.expect("kernel must not know launch")

    def test_tool_looks_into_a_room(self):
        self.write("cli/peek.cpp", '#include "core/problem.hpp"\n')
        self.expect("may know include/ alone")

    def test_built_ins_in_a_kernel(self):
        for code in ('asm volatile("");', "int i = threadIdx.x;", "int i = blockIdx.y;", "__shared__ int x;", "__syncthreads();",
                     "cuda::ptx::fence_mbarrier_init(a, b);"):
            self.write("src/kernel/bad.cuh", f"/* why */ {code}\n")
            self.expect("only src/arch may")

    def test_long_file(self):
        self.write("src/core/long.cpp", "int x;\n" * (check.LONGEST_FILE_LINES + 1))
        self.expect("the limit is 600")

    def test_way_follows_includes_and_sources(self):
        self.assertEqual(set(check.way_of_a_gemm(self.root)), {
            "src/launch/cuda/run.cpp", "src/launch/tensor_map.hpp", "src/launch/tensor_map.cpp", "include/sluice/run.hpp",
            "src/kernel/gemm_kernel.cuh", "src/arch/sm90/barrier.cuh"})

    def test_long_way(self):
        for part in range(5):
            self.write(f"src/kernel/part{part}.cuh", "int x;\n" * 500)
        self.write("src/kernel/gemm_kernel.cuh", "".join(f'#include "kernel/part{part}.cuh"\n' for part in range(5)))
        self.expect("lines from run() to the last store")

    def test_way_that_cannot_be_followed(self):
        (self.root / "src/launch/cuda/run.cpp").unlink()
        self.expect("cannot be followed")

    def test_visibility_sees_a_room_that_knows_too_much(self):
        here = pathlib.Path(__file__).parent
        source = here.parent.parent
        for extra, wanted in (("", 0), (f":{source}/src", 1)):
            links = self.root / f"rooms{wanted}"
            lines = []
            for room, knows in check.KNOWS.items():
                (links / room).mkdir(parents=True)
                (links / room / room).symlink_to(source / "src" / room)
                folders = [str(source / "include"), *(str(links / known) for known in [room, *sorted(knows)])]
                lines.append(f"{room}={':'.join(folders)}{extra if room == 'scheduler' else ''}\n")
            (links / "visible.txt").write_text("".join(lines))
            result = subprocess.run([sys.executable, here / "check_visibility.py", source, links / "visible.txt", "c++"],
                                    text=True, capture_output=True)
            self.assertEqual(result.returncode, wanted, result.stdout + result.stderr)
            self.assertEqual("scheduler must not know planner" in result.stdout, wanted == 1, result.stdout)


if __name__ == "__main__":
    unittest.main()
