#!/usr/bin/env python3
"""Rules on the text of the sources: includes between rooms, CUDA built-ins only in src/arch, lines (blank ones not counted) on the way of a GEMM, file length."""
import pathlib
import re
import sys

from rules import KNOWS, ONLY_PUBLIC, quoted_includes, sources, without_comments

LONGEST_FILE_LINES = 600
LONGEST_WAY_LINES = 2500
# run() and the kernel it launches; what lies between them is included by generated instance files only.
WAY_STARTS = ("src/launch/cuda/run", "src/kernel/gemm_kernel")
# Not on the way of a bf16 GEMM in whole tiles: the other machine, what only tiles in pieces, tickets and places need, the load path of unaligned
# operands, checks of plans and devices, groups, scales and promotion of FP8, which kernel is short enough, weights of 4 bits, traces, profilers' ranges, the choice of a machine, the arithmetic of C, bias and activations, copies that no GEMM makes, what the
# planner decided against, lists (data, not code).
DETOURS = ("src/arch/emulated/", "src/arch/sm90/clocks", "src/arch/sm90/bulk_copies", "src/arch/sm90/cluster_memory", "src/arch/sm90/flags", "src/scheduler/split_k", "src/scheduler/stream_k",
           "src/scheduler/workspace", "src/scheduler/plain_divisor", "src/scheduler/single_items", "src/kernel/epilogue/fp32_boxes", "src/kernel/epilogue/fp8_results", "src/kernel/reduction/", "src/kernel/tickets", "src/kernel/place", "src/core/gpc_places", "src/launch/bind_places", "src/launch/cuda/places", "src/kernel/epilogue/finish_elements", "src/kernel/mainloop/thread_producer",
           "src/kernel/mainloop/promoting_consumer", "src/kernel/mainloop/scale_producer", "src/kernel/mainloop/scaled_pipeline", "src/kernel/epilogue/scale_sums",
           "include/sluice/scaling", "include/sluice/grouping", "src/core/groups", "src/scheduler/groups", "src/kernel/group", "src/kernel/epilogue/clip_rows", "src/kernel/mainloop/short_tile", "src/kernel/mainloop/clip_k", "src/arch/sm90/warp_collectives", "src/kernel/scale_params", "src/launch/scope", "src/launch/bind_scales", "src/launch/bind_groups", "src/launch/check_pieces", "src/launch/bind_pieces", "src/launch/cuda/check_device", "src/core/check_workspace", "include/sluice/candidate", "include/sluice/kernel_list", "src/core/promotion", "src/core/scale_layout", "src/arch/sm90/word_copies", "src/arch/sm90/wgmma_fp8", "src/arch/sm90/wgmma_from_registers", "src/arch/sm90/int4", "src/arch/code", "src/core/dequantisation", "src/core/slices", "src/core/w4_layout", "src/core/streaming_layout", "src/core/ring_layout", "src/kernel/streaming/", "src/kernel/mainloop/w4_producer", "src/kernel/mainloop/slice", "src/kernel/w4_params",
           "include/sluice/group_arguments", "src/core/general_groups", "src/kernel/general/", "src/arch/sm90/tensor_maps", "src/launch/bind_general", "src/launch/cuda/general",
           "src/kernel/trace/", "src/launch/cuda/traced", "include/sluice/trace", "include/sluice/backend", "src/core/trace_layout", "src/core/profiler_range",
           "src/launch/bind_packed", "src/launch/bind_w4", "include/sluice/w4_format",
           "src/core/kernel_list", "src/core/kernel_instances", "src/core/kernel_line", "src/core/tile_parts", "src/core/launched_clusters", "src/arch/sm90/wgmma_registers")
BETWEEN = ("src/kernel/kernel_instance",)
BUILT_INS = re.compile(r"(?<![.>\w])(asm|__asm__|threadIdx|blockIdx|blockDim|gridDim|warpSize|__shared__|__syncthreads|__syncwarp|__shfl\w*|__ballot\w*|"
                       r"__nanosleep|__threadfence\w*|__ldg|__cvta\w*|clock64|cuda::ptx|atomic(?:Add|CAS|Exch|Max|Min|Or|And))\b")


def wrong_includes(root: pathlib.Path) -> list[str]:
    problems = []
    for path in sources(root, "src"):
        room = path.relative_to(root / "src").parts[0]
        if room not in KNOWS:
            continue
        for include in quoted_includes(path.read_text()):
            other = include.split("/")[0]
            if other in KNOWS and other != room and other not in KNOWS[room]:
                problems.append(f"{path.relative_to(root)} includes {include}, but {room} must not know {other}")
    for path in sources(root, *ONLY_PUBLIC):
        for include in quoted_includes(path.read_text()):
            if include.split("/")[0] in KNOWS and not (path.parent / include).exists():
                problems.append(f"{path.relative_to(root)} includes {include}, but may know include/ alone")
    return problems


def built_ins_outside_arch(root: pathlib.Path) -> list[str]:
    problems = []
    for path in sources(root, "src", "include"):
        if (root / "src/arch") in path.parents:
            continue
        for number, line in enumerate(without_comments(path.read_text()).splitlines(), 1):
            for found in BUILT_INS.finditer(line):
                problems.append(f"{path.relative_to(root)}:{number} uses {found.group(0)}; only src/arch may")
    return problems


def long_files(root: pathlib.Path) -> list[str]:
    problems = []
    for path in [*sources(root, "include", "src", "cli", "bench", "pages", "tests", "examples"), *sorted((root / "tests").rglob("*.py"))]:
        lines = len(path.read_text().splitlines())
        if lines > LONGEST_FILE_LINES:
            problems.append(f"{path.relative_to(root)} has {lines} lines; the limit is {LONGEST_FILE_LINES}")
    return problems


def way_of_a_gemm(root: pathlib.Path) -> dict[str, int]:
    """Every file of the project that run() and the kernel lead to, with its lines. A header of launch, kernel or arch brings its source."""
    reached: dict[str, int] = {}
    todo = [path for start in (*WAY_STARTS, *BETWEEN)
            for suffix in (".cu", ".cpp", ".cuh", ".hpp") if (path := root / (start + suffix)).exists()]
    while todo:
        path = todo.pop()
        name = path.relative_to(root).as_posix()
        if name in reached or name.startswith(DETOURS):
            continue
        text = path.read_text()
        reached[name] = sum(1 for line in text.splitlines() if line.strip())  # blank lines take no reading
        for include in quoted_includes(text):
            todo += [found for base in (root / "src", root / "include", path.parent) if (found := (base / include)).is_file()][:1]
        if name.split("/")[1] in ("launch", "kernel", "arch"):
            todo += [found for suffix in (".cpp", ".cu") if (found := path.with_suffix(suffix)).is_file()]
    return reached


def long_way(root: pathlib.Path, show: bool = False) -> list[str]:
    reached = way_of_a_gemm(root)
    total = sum(reached.values())
    if show:
        for name, lines in sorted(reached.items(), key=lambda item: -item[1]):
            print(f"{lines:6} {name}")
        print(f"{total:6} lines from run() to the last store, in {len(reached)} files")
    missing = [start for start in WAY_STARTS if not any(name.startswith(start + ".") for name in reached)]
    problems = [f"no file {start}.*: the way of a GEMM cannot be followed" for start in missing]
    if total >= LONGEST_WAY_LINES:
        problems.append(f"{total} lines from run() to the last store of a GEMM; the limit is {LONGEST_WAY_LINES}")
    return problems


def main() -> int:
    root = pathlib.Path(sys.argv[1])
    problems = [*wrong_includes(root), *built_ins_outside_arch(root), *long_files(root), *long_way(root, show=True)]
    print("\n".join(problems) or "sources: no rule broken")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
