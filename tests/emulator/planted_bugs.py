"""The bugs: what is changed in the kernels' source, in which kernel it matters, and how the emulator must put it."""
import dataclasses

# What SLUICE_KERNEL gets in core/kernel_list.def, the kernel's name, and a problem that fills its ring several times over:
# m, n, k, batch, type of D, beta, offset of D in elements, scheduler, claim, pieces of a tile (0: not split-K), how they meet, constant
# operands (none, a, b or both), rows before which groups begin (k...: elements of K; none: no groups).
KERNELS = {
    "plain": ("cooperative, rows_of_a, tma, 64, 96, 128, 1, 1, 1", "bf16_rc_coop_64x96x128_c1x1", "200 296 1000 1 bf16 0 0 data-parallel fixed 0 workspace none none"),
    "elementwise": ("cooperative, rows_of_a, tma, 64, 96, 128, 1, 1, 1", "bf16_rc_coop_64x96x128_c1x1", "200 293 200 1 fp16 0 1 data-parallel fixed 0 workspace none none"),
    "one_tile": ("cooperative, rows_of_a, tma, 64, 96, 128, 1, 1, 1", "bf16_rc_coop_64x96x128_c1x1", "60 88 200 1 bf16 0 0 one-tile-per-cta fixed 0 workspace none none"),
    "cluster": ("cooperative, columns_of_b, tma, 64, 64, 128, 2, 1, 1", "bf16_rc_coop_64x64x128_c2x1_swap", "264 200 1000 1 bf16 0 0 data-parallel fixed 0 workspace none none"),
    "four": ("cooperative, columns_of_b, tma, 64, 64, 128, 2, 2, 1", "bf16_rc_coop_64x64x128_c2x2_swap", "264 200 1000 1 bf16 0 0 data-parallel fixed 0 workspace none none"),
    "pingpong": ("pingpong, rows_of_a, tma, 64, 96, 64, 1, 1, 1", "bf16_rc_ping_64x96x64_c1x1", "264 296 520 1 bf16 0 0 data-parallel fixed 0 workspace none none"),
    "threads": ("cooperative, columns_of_b, threads, 64, 64, 64, 1, 1, 1", "bf16_rc_coop_64x64x64_c1x1_swap_anyalign", "150 136 600 1 bf16 0 0 data-parallel fixed 0 workspace none none"),
    "two_consumers": ("cooperative, rows_of_a, tma, 128, 128, 64, 2, 1, 1", "bf16_rc_coop_128x128x64_c2x1", "300 264 520 1 fp32 0 0 data-parallel fixed 0 workspace none none"),
    "pieces": ("cooperative, rows_of_a, tma, 64, 96, 128, 1, 1, 1", "bf16_rc_coop_64x96x128_c1x1", "120 184 1000 1 bf16 0 0 split-k fixed 4 workspace none none"),
    "ranges": ("pingpong, rows_of_a, tma, 64, 96, 64, 1, 1, 1", "bf16_rc_ping_64x96x64_c1x1", "264 200 300 1 bf16 0 0 stream-k ticket 0 workspace none none"),
    "tickets": ("cooperative, columns_of_b, tma, 64, 64, 128, 2, 1, 1", "bf16_rc_coop_64x64x128_c2x1_swap", "264 328 200 1 bf16 0 0 data-parallel ticket 0 workspace none none"),
    "constant": ("cooperative, rows_of_a, tma, 64, 96, 128, 1, 1, 1", "bf16_rc_coop_64x96x128_c1x1", "200 296 1000 1 bf16 0 0 data-parallel fixed 0 workspace b none"),
    "slices": ("cooperative, rows_of_a, tma, 64, 96, 128, 1, 1, 1", "bf16_rc_coop_64x96x128_c1x1", "60 88 1000 1 bf16 0 0 split-k fixed 8 separate none none"),
    "meeting": ("cooperative, rows_of_a, tma, 128, 128, 64, 1, 1, 1", "bf16_rc_coop_128x128x64_c1x1", "120 248 520 1 bf16 0 0 split-k fixed 2 cluster none none"),
    "fp8": ("cooperative, rows_of_a, tma, 256, 128, 128, 2, 1, 1", "e4m3_rc_coop_256x128x128_c2x1", "200 296 2000 1 bf16 0 0 data-parallel fixed 0 workspace none none"),
    "fp8_result": ("pingpong, rows_of_a, tma, 64, 128, 128, 1, 1, 1", "e4m3_rc_ping_64x128x128_c1x1", "200 296 300 1 e4m3 0 0 data-parallel fixed 0 workspace none none"),
    "w4": ("cooperative, columns_of_b, tma, 8, 64, 256, 1, 1, 1", "bf16xint4_rc_coop_8x64x256_c1x1_swap", "20 200 3000 1 bf16 0 0 data-parallel fixed 0 workspace none none"),
    "sliced": ("sliced_k, columns_of_b, tma, 16, 64, 256, 1, 1, 1", "bf16xint4_rc_slice_16x64x256_c1x1_swap", "40 200 5000 1 bf16 0 0 data-parallel fixed 0 workspace none none"),
    "sliced_short": ("sliced_k, columns_of_b, tma, 16, 64, 256, 1, 1, 1", "bf16xint4_rc_slice_16x64x256_c1x1_swap", "40 600 700 1 bf16 0 0 data-parallel fixed 0 workspace none none"),
    "w4a8": ("cooperative, columns_of_b, tma, 8, 64, 128, 1, 1, 1", "e4m3xint4_rc_coop_8x64x128_c1x1_swap", "20 200 3000 1 bf16 0 0 data-parallel fixed 0 workspace none none"),
    "streaming": ("streaming, columns_of_b, tma, 8, 16, 128, 1, 1, 1", "bf16xint4_rc_stream_8x16x128_c1x1_swap", "5 1000 3000 1 bf16 0 0 data-parallel fixed 0 workspace none none"),
    "streaming_pair": ("streaming, columns_of_b, tma, 8, 16, 128, 1, 2, 1", "bf16xint4_rc_stream_8x16x128_c1x2_swap", "5 1000 3000 1 bf16 0 0 data-parallel fixed 0 workspace none none"),
    "ring": ("streaming, columns_of_b, tma, 16, 16, 64, 1, 1, 1", "bf16_rc_stream_16x16x64_c1x1_swap", "13 1000 3001 1 bf16 0 0 data-parallel fixed 0 workspace none none"),
    "ring_of_constants": ("streaming, columns_of_b, tma, 8, 16, 64, 1, 1, 1", "bf16_rc_stream_8x16x64_c1x1_swap", "7 1000 3001 1 bf16 0 0 data-parallel fixed 0 workspace b none"),
    "attention": ("bf16, false, 64, 8", "attention", "64 1 0 1500,300,2600"),
    "window": ("bf16, false, 64, 8", "attention", "64 2 900 2600,1000,2500,1700,2400,1300"),
    "groups": ("pingpong, rows_of_a, tma, 128, 96, 64, 2, 1, 1", "bf16_rc_ping_128x96x64_c2x1", "460 200 520 1 bf16 0 0 data-parallel fixed 0 workspace none 0,40,170,170,450"),
    "along_k": ("pingpong, rows_of_a, tma, 64, 64, 64, 1, 1, 1", "bf16_cr_ping_64x64x64_c1x1", "136 200 460 1 bf16 0 0 data-parallel ticket 0 workspace none k3,40,170,170,450"),
    "fp8_along_k": ("pingpong, rows_of_a, tma, 64, 128, 128, 1, 1, 1", "e4m3_rc_ping_64x128x128_c1x1", "136 200 1536 1 bf16 0 0 data-parallel ticket 0 workspace none k0,256,384,384,1408"),
    "general": ("pingpong, rows_of_a, tma, 64, 64, 64, 1, 1, 1", "general", "bf16_rc_ping_64x64x64_c1x1 17ofrandomsizes"),
    "general_boxes": ("cooperative, rows_of_a, tma, 128, 128, 64, 1, 1, 1", "general", "bf16_rc_coop_128x128x64_c1x1 16bits"),
    "general_packets": ("cooperative, rows_of_a, tma, 128, 128, 64, 1, 1, 1", "general", "bf16_rc_coop_128x128x64_c1x1 rowsthatendinapacket"),
    "general_without_k": ("pingpong, rows_of_a, tma, 64, 64, 64, 1, 1, 1", "general", "bf16_rc_ping_64x64x64_c1x1 everysecondwithoutK"),
    "many": ("cooperative, rows_of_a, tma, 128, 128, 64, 1, 1, 1", "general", "bf16_rc_coop_128x128x64_c1x1 256groups"),
}

PIPELINE = "kernel/pipeline.cuh"
KERNEL = "kernel/gemm_kernel.cuh"
DISPATCHER = "kernel/dispatcher.cuh"
CLIP = "kernel/mainloop/clip_k.cuh"
GROUPS = "scheduler/groups.hpp"
GENERAL_GROUPS = "scheduler/general_groups.hpp"
GENERAL = "kernel/general/general_kernel.cuh"
GENERAL_PRODUCER = "kernel/general/general_producer.cuh"
GENERAL_DISPATCHER = "kernel/general/general_dispatcher.cuh"
PREPARATION = "kernel/general/prepare_groups_kernel.cuh"
DISPATCHING = "kernel/grouped_dispatcher.cuh"
SHORT = "kernel/mainloop/short_tile.cuh"
TMA = "kernel/mainloop/tma_producer.cuh"
THREADS = "kernel/mainloop/thread_producer.cuh"
CONSUMER = "kernel/mainloop/wgmma_consumer.cuh"
PROMOTION = "kernel/mainloop/promoting_consumer.cuh"
SCALES = "kernel/mainloop/scale_producer.cuh"
W4_PRODUCER = "kernel/mainloop/w4_producer.cuh"
DEQUANTISATION = "kernel/mainloop/dequantising_consumer.cuh"
SLICED = "kernel/mainloop/sliced_tile.cuh"
LOOKUP = "kernel/mainloop/lookup_consumer.cuh"
STREAMING = "kernel/streaming/streaming_kernel.cuh"
RINGS = "kernel/streaming/ring_kernel.cuh"
KV_PRODUCER = "kernel/attention/kv_producer.cuh"
KV_CONSUMER = "kernel/attention/attention_consumer.cuh"
MEETING = "kernel/attention/partial_results.cuh"
MERGE = "kernel/attention/row_merge.cuh"
WORK_LIST = "kernel/attention/work_list.cuh"
OPERAND = "kernel/mainloop/operand_tile.cuh"
STORE = "kernel/epilogue/store_tile.cuh"
FP32_BOXES = "kernel/epilogue/fp32_boxes.cuh"
FP8_RESULTS = "kernel/epilogue/fp8_results.cuh"
ELEMENTS = "kernel/epilogue/elements.cuh"
WORK = "kernel/work_ring.cuh"
TICKETS = "kernel/tickets.cuh"
PARTIAL_SUMS = "kernel/reduction/partial_sums.cuh"
SEPARATE_SUMS = "kernel/reduction/separate_sums.cuh"
CLUSTER_SUMS = "kernel/reduction/cluster_sums.cuh"


@dataclasses.dataclass
class Bug:
    name: str
    kernel: str  # of KERNELS
    file: str
    changes: list  # of (text that stands in the file exactly once, text instead)
    message: str  # regular expression; . matches line ends


def at(file):
    return file.replace(".", r"\.") + r":\d+"


def deadlock(*who):
    return "deadlock: nobody can go on" + "".join(f"(?=.*{each})" for each in who)


BUGS = [
    Bug("scales_fetched_into_a_stage_in_use", "fp8", SCALES, [("      ring_.wait_empty(at);\n", "")],
        rf"producer warp 2 .*{at(SCALES)} (ends a phase of full\[\d+\] while|arrives once more than expected|.*no synchronisation lies between)"),
    Bug("runs_of_scales_never_fetched", "fp8", SCALES, [("        p.copy(ring_.scales_p(at, block), block < blocks_left, full);\n", "")],
        deadlock(rf"consumer [01] warp \d+ at [^\n]*{at(PIPELINE)} waits for [^\n]*full\[0\], in its phase 0 with 35 of 35 arrivals and 800 bytes to come")),
    Bug("words_of_scales_never_fetched", "fp8", SCALES, [("        q.copy(ring_.scales_q(at, block), block < blocks_left, full);\n", "")],
        rf"consumer [01] .*{at(PROMOTION)} reads shared memory that nobody has written"),
    Bug("runs_of_scales_not_expected", "fp8", SCALES, [("(p.run_bytes() + q.run_bytes()) * blocks", "q.run_bytes() * blocks")],
        rf"ends a phase of full\[\d+\] while|more bytes have come|bytes more than were expected"),
    Bug("scales_of_the_next_stage", "fp8", PROMOTION, 
        [("ring_.scales_p(at, block) + words((first_block_", "ring_.scales_p(at, block) + scale_bytes(config) + words((first_block_")],
        rf"consumer [01] .*{at(PROMOTION)} reads (what another thread is writing: no synchronisation lies between|what a copy is still filling|shared memory that nobody has written)"),
    Bug("promoted_before_it_is_multiplied", "fp8", PROMOTION,
        [("        arch::wgmma_wait<0>();\n        promote(sums, d, scales, at, unit, columns);\n", "        promote(sums, d, scales, at, unit, columns);\n")],
        r"(consumer [01] .* uses an accumulator while wgmma still work on it: no wgmma_wait lies between"
        r"|producer warp [01] .* starts a copy that overwrites what another is still reading)"),
    Bug("scales_of_rows_that_are_not_there", "fp8_result", FP8_RESULTS, [("its_row < tile.row_end && column", "column")],
        rf"consumer [01] .*{at(FP8_RESULTS)} writes 4 bytes of global memory outside every operand"),
    Bug("largest_of_two_lanes_of_four", "fp8_result", FP8_RESULTS, [("mask < 4", "mask < 2")], r"wrong result: "),
    Bug("slab_never_fetched", "w4", W4_PRODUCER, [("slab < kSlabs; ++slab", "slab + 1 < kSlabs; ++slab")],
        deadlock(rf"consumer 0 warp \d+ at [^\n]*{at(PIPELINE)} waits for [^\n]*full\[0\][^\n]* bytes to come")),
    Bug("slabs_fetched_into_a_stage_in_use", "w4", W4_PRODUCER, [("      ring_.wait_empty(at);\n", "")],
        rf"producer warp 0 .*{at(W4_PRODUCER)} (arrives once more than expected at full\[\d+\]|starts a copy that overwrites what another is still)"),
    Bug("codes_of_a_stage_that_has_not_come", "w4", DEQUANTISATION,
        [("      ring_.wait_full(stage);\n", "")],
        rf"consumer 0 .*{at(DEQUANTISATION)} reads (what a copy is still filling|what another thread is writing: no synchronisation lies between|shared memory that nobody has written)"),
    Bug("fragments_written_while_they_are_multiplied", "w4", DEQUANTISATION,
        [("      arch::wgmma_wait<1>();  // a unit's numbers have left their registers when the next unit is all that is on its way\n", "")],
        r"consumer 0 .* finds that registers were written while wgmma still read P from them: no wgmma_wait lay between"),
    Bug("slab_promoted_before_it_is_multiplied", "w4", DEQUANTISATION,
        [("      arch::wgmma_wait<1>();\n      if (kSlabs == 1) ring_.release(at);\n", "      if (kSlabs == 1) ring_.release(at);\n")],
        r"consumer 0 .* (uses an accumulator while wgmma still work on it|finds that an accumulator was written while wgmma still worked on it"
        r"|finds that registers were written while wgmma still read P from them)"),
    Bug("slices_added_up_before_they_are_there", "sliced", SLICED, [("    arch::named_barrier_sync(kLeft, kThreads);\n", "")],
        rf"consumer 0 .*{at(SLICED)} reads (what another thread is writing: no synchronisation lies between|shared memory that nobody has written)"),
    Bug("slices_left_over_those_of_the_tile_before", "sliced_short", SLICED, [("      arch::named_barrier_sync(kTaken, kThreads);\n", "")],
        rf"consumer [12] .*{at(SLICED)} overwrites what another is still reading: nobody has said that the reading is over"),
    Bug("slice_of_another_warpgroups_stages", "sliced", SLICED, [("    begin.advance(slice);\n", "    begin.advance(warpgroup_);\n")], r"wrong result: |deadlock: nobody can go on|arrives once more than expected"),
    Bug("more_registers_than_are_handed_over", "sliced", KERNEL, [("RegisterSplit{56, 152}", "RegisterSplit{56, 160}")],
        r"deadlock: nobody can go on(?=.*more registers, of which others have handed over)"),
    Bug("numbers_of_a_stage_that_has_not_come", "w4a8", LOOKUP, [("          ring_.wait_full(ahead);\n", "")],
        rf"consumer 0 .*{at(LOOKUP)} reads (what a copy is still filling|what another thread is writing: no synchronisation lies between|shared memory that nobody has written)"),
    Bug("one_set_of_registers_for_all_groups", "w4a8", LOOKUP, [("fragments[(kFirst + group + 1) % 2]", "fragments[(kFirst + group) % 2]")],
        r"consumer 0 .* finds that registers were written while wgmma still read P from them: no wgmma_wait lay between"),
    Bug("group_promoted_before_it_is_multiplied", "w4a8", LOOKUP,
        [("        arch::wgmma_wait<0>();\n        promote(sums, shorts, before);\n        multiply", "        promote(sums, shorts, before);\n        multiply")],
        r"(consumer 0 .* (uses an accumulator while wgmma still work on it|finds that an accumulator was written while wgmma still worked on it"
        r"|finds that registers were written while wgmma still read P from them)"
        r"|producer warp 1 .* starts a copy that overwrites what another is still reading)"),
    Bug("scales_of_the_next_group", "w4a8", LOOKUP, [("        before = next;\n        Fragment", "        Fragment"), ("ahead_of_it);\n        }\n      }", "ahead_of_it);\n        }\n        before = next;\n      }")],
        r"wrong result: .*outside the bound"),
    Bug("steps_of_a_chunk_exchanged", "w4a8", LOOKUP, [("codes[step + i / 2][i % 2] = both[i]", "codes[step + 1 - i / 2][i % 2] = both[i]")],
        r"wrong result: .*outside the bound"),
    Bug("rows_multiplied_before_they_have_come", "streaming", STREAMING,
        [("    if (strip_ == 0) arch::barrier_wait(barriers_ + ((k_tiles_ - left_) >> w4_.log2_slabs_of_arrival), 0);\n", "")],
        rf"{at(STREAMING)} reads (what a copy is still filling|shared memory that nobody has written)"),
    Bug("team_does_not_meet", "streaming", STREAMING, [("    arch::named_barrier_sync(kFirstTeamBarrier + team_, 32 * team_warps_);\n", "")],
        rf"{at(STREAMING)} (reads what another thread is writing: no synchronisation lies between|reads shared memory that nobody has written)"),
    Bug("one_buffer_for_all_strips", "streaming", STREAMING, [("bytes((strip_ & 1) * kStreamingWarps", "bytes(0 * kStreamingWarps")],
        rf"{at(STREAMING)} (overwrites what another is still reading: nobody has said that the reading is over|reads what another thread is writing: no synchronisation lies between)"),
    Bug("weights_asked_for_too_early", "streaming", STREAMING, [("    if (constant) ask_for_all(parts);\n", "    ask_for_all(parts);\n")],
        r"warp \d+ .* reads B before the kernel before it has finished \(wait_for_predecessor\)"),
    Bug("rows_of_a_without_their_end", "streaming", STREAMING, [("rows * count * 2);", "rows * count * 2 + 16);")],
        deadlock(rf"warp \d+ at [^\n]*{at(STREAMING)} waits for")),
    Bug("neighbour_not_waited_for", "streaming_pair", STREAMING, [("    if constexpr (kShares > 1) arch::cluster_wait();\n", "")],
        rf"{at(STREAMING)} uses barrier \d+ without knowing that it is initialised"),
    Bug("sums_of_the_neighbour_before_they_have_come", "streaming_pair", STREAMING, [("    arch::barrier_wait(sums_barrier(), 0);\n", "")],
        rf"{at(STREAMING)} reads (shared memory that nobody has written|what another thread is writing|what a copy is still filling)"),
    Bug("sums_to_the_wrong_neighbour", "streaming_pair", STREAMING, [("owner = among % kShares;", "owner = (among / kShares) % kShares;")],
        rf"{at(STREAMING)} starts a copy that overwrites what another is still writing|"
        + deadlock(rf"{at(STREAMING)} waits for")),
    Bug("stage_asked_for_before_all_lanes_have_read", "ring", RINGS, [("    arch::sync_warp();  // all lanes have read\n", ""), ("arch::elect_one()", "lane_ == 0")],
        rf"{at(RINGS)} (starts a copy that )?(overwrites what another is still reading|reads what a copy is still filling)"),
    Bug("stage_multiplied_before_it_has_come", "ring", RINGS, [("    arch::barrier_wait(barriers_ + stage_, parity_);\n", "")],
        rf"{at(RINGS)} reads (what a copy is still filling|what another thread is writing|shared memory that nobody has written)"),
    Bug("one_strip_too_few_expected", "ring", RINGS, [("two ? 2 * b.stage_bytes : b.stage_bytes", "b.stage_bytes")], r"more bytes have come|bytes more than were expected|ends a phase of"),
    Bug("warps_do_not_meet", "ring", RINGS, [("    arch::sync_cta();\n    const int pair", "    const int pair")],
        rf"{at(RINGS)} reads (what another thread is writing: no synchronisation lies between|shared memory that nobody has written)"),
    Bug("one_buffer_without_a_second_meeting", "ring", RINGS, [("    if (kBuffers == 1 && meetings_ > 0) arch::sync_cta();\n", "")],
        rf"{at(RINGS)} (overwrites what another is still reading|reads what another thread is writing)"),
    Bug("two_buffers_used_as_one", "ring_of_constants", RINGS, [("static_cast<int>(meetings_ % kBuffers) * kRingWarps * kSumBytes", "0")],
        rf"{at(RINGS)} (overwrites what another is still reading|reads what another thread is writing)"),
    Bug("rows_of_a_beyond_their_end", "ring", RINGS, [("left < kPacketElems ? left * 2 : 16", "16")], r"outside every operand|wrong result: "),
    Bug("rows_of_a_too_early", "ring_of_constants", RINGS, [("    if (constant) arch::wait_for_predecessor();\n", "")],
        r"reads A before the kernel before it has finished \(wait_for_predecessor\)"),
    Bug("rows_swizzled_otherwise_than_weights", "ring", RINGS, [("(packet ^ row) * 16", "packet * 16")], r"wrong result: "),
    Bug("values_fetched_into_a_stage_in_use", "attention", KV_PRODUCER,
        [("      if (arch::lane() == 0) ring_.wait_empty(at_);\n      fetch(params_.v", "      fetch(params_.v")],
        rf"producer .*{at(KV_PRODUCER)} (arrives once more than expected|starts a copy that overwrites what another is still|overwrites what another is still)"),
    Bug("values_that_have_not_come", "attention", KV_CONSUMER,
        [("    ring_.wait_full(at_);\n    if (blocks > 0) fragments_.multiply_values", "    if (blocks > 0) fragments_.multiply_values")],
        r"consumer .* reads (what a copy is still filling|what another thread is writing|shared memory that nobody has written)"),
    Bug("no_fence_behind_packets", "window", KV_PRODUCER, [("      arch::fence_shared_for_async();\n      arch::sync_warp();\n      has_copied_ = false;\n", "      has_copied_ = false;\n")],
        rf"producer .*{at(KV_PRODUCER)} starts a copy that overwrites through the asynchronous proxy what ordinary stores have written, without a proxy fence"),
    Bug("packets_behind_the_end", "attention", KV_PRODUCER, [("there && own >= first && own < behind", "there && own >= first")],
        rf"producer .*{at(KV_PRODUCER)} reads 16 bytes of global memory outside every operand"),
    Bug("consumers_do_not_meet", "attention", MEETING, [("{ arch::named_barrier_sync(kConsumersMeet, kThreads); }", "{}")],
        rf"consumer .* (reads what another thread is writing|reads shared memory that nobody has written|overwrites what another is still reading)"),
    Bug("results_left_in_the_workspace", "attention", MERGE, [("    for (int i = 0; i < r.mine; ++i) arch::unpublish(r.sums + i * pitch);\n", "")],
        r"byte \d+ of the workspace is not left as it was found"),
    Bug("new_tokens_fetched_too_early", "attention", KV_PRODUCER,
        [("if (at_.parity != 0 || token + kStageTokens > item_.length - params_.query_len) wait_for_predecessor();", "if (at_.parity != 0) wait_for_predecessor();")],
        rf"producer .*{at(KV_PRODUCER)} reads [kv] before the kernel before it has finished \(wait_for_predecessor\)"),
    Bug("waits_for_runs_of_who_has_not_begun", "attention", WORK_LIST, [("arch::lane() == 0 && all_have_begun()", "arch::lane() == 0")],
        deadlock(rf"consumer .* waits for words that another CTA is to publish")),
    Bug("begins_before_the_kernel_before_has_ended", "attention", KV_PRODUCER, [("    arch::wait_for_predecessor();\n    list.begin();", "    list.begin();")],
        rf"dispatcher .* writes workspace before the kernel before it has finished \(wait_for_predecessor\)"),
    Bug("who_has_left_is_not_counted", "attention", WORK_LIST, [("1 + (ctas_begun(begun_) == arch::ctas_in_grid() - 1 ? ctas_left(begun_) : 0)", "1")],
        r"byte \d+ of the workspace is not left as it was found"),
    Bug("no_wait_for_an_empty_stage", "plain", TMA, [("      ring_.wait_empty(at);\n", "")],
        rf"producer warp [01] .*{at(TMA)} (arrives once more than expected at full\[\d+\]|starts a copy that overwrites what another is still)"),
    Bug("no_wait_for_a_full_stage", "plain", CONSUMER, [("      ring_.wait_full(at);\n", "")],
        rf"consumer 0 .*{at(CONSUMER)} starts a wgmma that reads (what a copy is still filling: no wait for its full barrier lies between"
        rf".*copy started by .*producer warp [01] at .*{at(TMA)}|shared memory that nobody has written)"),
    Bug("too_few_bytes_expected", "plain", TMA, [("boxes.stage_bytes);", "operand_bytes_p(config));")],
        rf"ends a phase of full\[\d+\] while \d+ more copies that it counts are under way: fewer bytes were expected than they bring|"
        rf"\d+ bytes more than were expected to full\[\d+\]|\d+ more bytes have come than were expected"),
    Bug("too_many_bytes_expected", "plain", TMA, [("boxes.stage_bytes);", "boxes.stage_bytes + 16);")],
        deadlock(rf"consumer 0 warp 4 at [^\n]*{at(PIPELINE)} waits for [^\n]*full\[0\], in its phase 0 with 2 of 2 arrivals and 32 bytes to come")),
    Bug("waits_for_the_wrong_phase", "plain", PIPELINE, [("at.parity ^ 1)", "at.parity)")],
        deadlock(rf"producer warp [01] at [^\n]*{at(PIPELINE)} waits for the end of a phase of parity 0 of empty\[0\], in its phase 0",
                 rf"consumer 0 warp 4 at [^\n]*{at(PIPELINE)} waits for [^\n]* full\[0\]")),
    Bug("parity_never_turns", "plain", PIPELINE, [("      stage = 0;\n      parity ^= 1;\n", "      stage = 0;\n")],
        rf"producer warp [01] .*{at(TMA)} (arrives once more than expected at full\[\d+\]|starts a copy that overwrites what another is still)|"
        rf"consumer 0 .*{at(CONSUMER)} starts a wgmma that reads|"
        rf"dispatcher warp 3 .*{at(WORK)} overwrites what another is still reading: nobody has said that the reading is over.*read by .*{at(WORK)}|"
        r"waits for the end of a phase of parity [01] of (work )?(full|empty)\[0\]"),
    Bug("stage_released_while_it_is_read", "plain", CONSUMER,
        [("      if (k_tile > 0) ring_.release(previous);\n", "      ring_.release(at);\n"), ("    if (k_tiles > 0) ring_.release(previous);\n", "")],
        rf"producer warp [01] .*{at(TMA)} starts a copy that overwrites what another is still reading.*wgmma by .*consumer 0 .*{at(CONSUMER)}|"
        rf"consumer 0 .*{at(CONSUMER)} starts a wgmma that reads what a copy is still filling.*copy started by .*producer warp [01] at .*{at(TMA)}"),
    Bug("stage_released_in_the_same_turn", "pingpong", CONSUMER, [("      arch::wgmma_wait<1>();\n", "")],
        rf"producer warp [01] .*{at(TMA)} starts a copy that overwrites what another is still reading.*wgmma by .*consumer [01] .*{at(CONSUMER)}|"
        rf"consumer [01] .*{at(CONSUMER)} starts a wgmma that reads what a copy is still filling.*copy started by .*producer warp [01] at .*{at(TMA)}"),
    Bug("no_wgmma_wait_before_the_epilogue", "one_tile", CONSUMER, [("    arch::wgmma_wait<0>();\n", "")],
        rf"consumer 0 .*{at(STORE)} uses an accumulator while wgmma still work on it: no wgmma_wait lies between|"
        rf"consumer 0 .*kernel/epilogue/(finish_)?elements\.cuh:\d+ uses an accumulator while wgmma still work on it"),
    Bug("no_wgmma_fence", "plain", CONSUMER, [("      arch::wgmma_fence();\n", "")],
        rf"consumer 0 .*{at(CONSUMER)} starts a wgmma on registers that it has written since its last wgmma_fence"),
    Bug("accumulators_touched_in_flight", "plain", CONSUMER,
        [("      arch::wgmma_commit();\n", "      arch::wgmma_commit();\n      sums.values[0][0] = 0.0f;\n")],
        rf"consumer 0 .*{at(CONSUMER)} finds that an accumulator was written while wgmma still worked on it"),
    Bug("no_proxy_fence_after_ordinary_stores_of_operands", "threads", THREADS, [("      arch::fence_shared_for_async();", "      ;")],
        rf"consumer 0 .*{at(CONSUMER)} starts a wgmma that reads through the asynchronous proxy what ordinary stores have written, without a "
        rf"proxy fence by the writer.*store by .*producer warp \d at .*{at(THREADS)}"),
    Bug("no_wait_for_an_empty_stage_by_threads", "threads", THREADS, [("      ring_.wait_empty(at);\n", "")],
        # The full barriers run ahead of the consumers: they wait for a phase that is over, and no producer waits for anything.
        rf"producer warp \d .*{at(THREADS)} overwrites what another is still (reading|writing)|"
        rf"consumer 0 .*{at(CONSUMER)} starts a wgmma that reads what another thread is writing.*store by .*producer warp \d at .*{at(THREADS)}|"
        rf"deadlock: (?=.*consumer 0 warp \d at [^\n]*{at(PIPELINE)} waits for [^\n]*full\[\d+\], in its phase [1-9]\d* with 0 of 128)(?!.*producer)"),
    Bug("no_proxy_fence_before_the_store", "plain", STORE, [("      arch::fence_shared_for_async();\n", "")],
        rf"consumer 0 warp 4 .*{at(STORE)} starts a copy that reads through the asynchronous proxy what ordinary stores have written"),
    Bug("staging_buffer_used_again_before_it_was_read", "plain", STORE,
        [("      if (is_storing_thread()) taken == 0 ? arch::bulk_wait_read<0>() : arch::bulk_wait_read<kBuffers - 1>();\n", "")],
        rf"consumer 0 .*{at(STORE)} overwrites what another is still reading.*copy started by .*consumer 0 warp 4 at .*{at(STORE)}"),
    Bug("staging_buffers_of_the_tile_before_awaited_too_late", "plain", STORE, [("taken == 0 ? arch::bulk_wait_read<0>()", "taken == 0 ? arch::bulk_wait_read<1>()")],
        rf"consumer 0 .*{at(STORE)} overwrites what another is still reading.*copy started by .*consumer 0 warp 4 at .*{at(STORE)}"),
    Bug("staging_buffer_awaited_one_group_too_late", "two_consumers", STORE, [("bulk_wait_read<kBuffers - 1>", "bulk_wait_read<kBuffers>")],
        rf"consumer [01] .*{at(FP32_BOXES)} overwrites what another is still reading.*copy started by .*consumer [01] warp [48] at .*{at(STORE)}"),
    Bug("others_not_told_that_the_buffer_is_free", "plain", STORE,
        [("arch::bulk_wait_read<kBuffers - 1>();\n      sync_warpgroup();\n", "arch::bulk_wait_read<kBuffers - 1>();\n")],
        rf"consumer 0 .*{at(STORE)} overwrites what another is still reading.*copy started by .*consumer 0 warp 4 at .*{at(STORE)}"),
    Bug("ends_while_the_copy_engine_reads", "plain", STORE, [("    if (is_storing_thread()) arch::bulk_wait_read<0>();\n", "")],
        r"consumer 0 warp 4 ends without having waited until the copy engine has read its shared memory|is still under way when CTA 0"),
    Bug("no_sync_before_the_store", "plain", STORE,
        [("      arch::fence_shared_for_async();\n      sync_warpgroup();\n", "      arch::fence_shared_for_async();\n")],
        rf"consumer 0 warp 4 .*{at(STORE)} starts a copy that reads (what another thread is writing: no synchronisation|shared memory that nobody)"),
    Bug("wrong_swizzle", "plain", ELEMENTS, [("(packet ^ (row / kRowsPerLine % kPackets)) * 16", "packet * 16")],
        r"wrong result: .*outside the bound"),
    Bug("one_k_tile_too_few_loaded", "plain", TMA, [("k_tile < tile.k_end;", "k_tile < tile.k_end - 1;")],
        deadlock(rf"consumer 0 warp 4 at [^\n]*{at(PIPELINE)} waits for [^\n]* full\[\d+\], in its phase \d+ with 0 of 2 arrivals",
                 r"at work tile \(m \d, n \d, group 0, k-tiles 0 to 8\)")),
    Bug("one_k_tile_too_few_multiplied", "plain", KERNEL, [("ring_, sums, at, k_tiles, issued)", "ring_, sums, at, k_tiles - 1, issued)")],
        deadlock(rf"producer warp [01] at [^\n]*{at(PIPELINE)} waits for [^\n]* empty\[\d+\]") + r"|wrong result: .*outside the bound"),
    Bug("wrong_k_tile_of_one_operand", "plain", TMA, [("+ k_tile * config.tile_k", "+ (k_tile ^ (operand == Operand::p)) * config.tile_k")],
        r"wrong result: "),
    Bug("wrong_multicast_mask", "cluster", OPERAND, [("for (int i = 0; i < kSharers; ++i)", "for (int i = 1; i < kSharers; ++i)")],
        deadlock(rf"CTA 0 consumer 0 warp 4 at [^\n]*{at(PIPELINE)} waits for [^\n]*full\[0\], in its phase 0 with 2 of 2 arrivals and \d+ bytes to come")
        + r"|(fewer bytes were expected than they bring|bytes more than were expected|more bytes have come than were expected|overwrites what another is still)"),
    Bug("always_sent_to_the_first_row_or_column", "four", OPERAND, [("first << (kIsA ? row : rank - row)", "first")],
        deadlock(rf"CTA [123] consumer 0 warp 4 at [^\n]*{at(PIPELINE)} waits for [^\n]*full\[0\], in its phase 0 with 2 of 2 arrivals and \d+ bytes to come")
        + r"|(fewer bytes were expected than they bring|bytes more than were expected|more bytes have come than were expected|overwrites what another is still)"),
    Bug("slices_swapped", "cluster", TMA, [("slice * Tile::kSliceBytes,", "(Tile::kSharers - 1 - slice) * Tile::kSliceBytes,")],
        r"wrong result: "),
    Bug("leaves_the_cluster_too_early", "cluster", KERNEL,
        [("      arch::cluster_arrive_relaxed();\n      arch::cluster_wait();\n    }\n  }\n\n private:", "    }\n  }\n\n private:")],
        rf"{at(PIPELINE)} reaches into the shared memory of CTA [01]( of cluster \d, which ends without knowing that this is over|, which has ended)|"
        r"is still under way when CTA [01]"),
    Bug("starts_without_the_cluster", "cluster", KERNEL,
        [("  // what make_ready() wrote, its own fence has made visible\n      arch::sync_warp();\n      arch::cluster_arrive_relaxed();\n", "\n"),
         ("    if constexpr (kInCluster) {\n      arch::cluster_wait();\n", "    if constexpr (kInCluster) {\n")],
        rf"uses (full|empty|barrier \d+)\S* without knowing that it is initialised: no barrier of the CTA or cluster lies between|"
        r"uses a barrier that was never initialised"),
    Bug("barriers_not_fenced", "cluster", KERNEL, [("    arch::fence_barrier_init();\n", "")],
        rf"producer warp [01] .*{at(TMA)} uses full\[0\] from another CTA or with the copy engine, and no fence_barrier_init has followed|"
        rf"({at(PIPELINE)}|{at(WORK)}) uses (work )?(full|empty)\[0\] from another CTA or with the copy engine, and no fence_barrier_init has "
        r"followed"),
    Bug("one_arrival_too_many_expected", "cluster", PIPELINE,
        [("kWarpsPerWarpgroup * cluster_size(config);", "kWarpsPerWarpgroup * cluster_size(config) + 1;")],
        deadlock(rf"producer warp [01] at [^\n]*{at(PIPELINE)} waits for [^\n]*empty\[0\], in its phase 0 with 8 of 9 arrivals")),
    Bug("too_few_arrivals_expected", "two_consumers", PIPELINE,
        [("kWarpsPerWarpgroup * cluster_size(config);", "kWarpsPerWarpgroup * cluster_size(config) / 2;")],
        rf"producer warp [01] .*{at(TMA)} (starts a copy that overwrites what another is still reading|arrives once more than expected)"),
    Bug("released_in_its_own_cta_only", "cluster", PIPELINE,
        [("if (lane < cluster_size(config)) arch::barrier_arrive_in_cluster_relaxed(&empty_[at.stage], lane);",
          "if (lane == 0) arch::barrier_arrive(&empty_[at.stage]);")],
        deadlock(rf"CTA 0 producer warp [01] at [^\n]*{at(PIPELINE)} waits for [^\n]*empty\[0\], in its phase 0 with 4 of 8 arrivals")),
    Bug("named_barrier_of_the_wrong_count", "plain", STORE,
        [("named_barrier_sync(barrier_id_, kWarpgroupThreads)", "named_barrier_sync(barrier_id_, 2 * kWarpgroupThreads)")],
        deadlock(rf"consumer 0 warp 4 at [^\n]*{at(STORE)} waits for named barrier 1 \(128 of 256 threads are there\)")),
    Bug("named_barrier_shared_by_both_consumers", "two_consumers", STORE, [("barrier_id_(kFirstBarrier + warpgroup)", "barrier_id_(kFirstBarrier)")],
        rf"consumer [01] warp \d+ .*({at(FP32_BOXES)} overwrites what another is still reading|{at(STORE)} starts a copy that reads)"),
    Bug("turn_not_given", "pingpong", KERNEL, [("        if (kPingpong) give_turn(1 - warpgroup);", "        ")],
        deadlock(rf"consumer 0 warp 4 at [^\n]*{at(KERNEL)} waits for named barrier \d \(128 of 256|consumer 1",
                 rf"consumer 1 warp 8 at [^\n]*{at(KERNEL)} waits for named barrier \d \(128 of 256 threads are there\)")),
    Bug("global_memory_before_the_predecessor_has_finished", "plain", KERNEL,
        [("    if (!producer.constant()) arch::wait_for_predecessor();\n", "")],
        rf"producer warp [01] .*{at(TMA)} reads [AB] before the kernel before it has finished \(wait_for_predecessor\)"),
    Bug("wrong_stride_in_a_descriptor", "plain", OPERAND, [("(tile, kBlockBytes, kEightRowsBytes)", "(tile, kBlockBytes, 2 * kEightRowsBytes)")],
        rf"consumer 0 .*{at(CONSUMER)} starts a wgmma that reads|wrong result: "),
    Bug("stores_rows_that_are_not_there", "elementwise", FP32_BOXES, [("at.m + row >= at.row_end || ", "")],
        r"consumer 0 .*kernel/epilogue/(finish_)?elements\.cuh:\d+ (writes \d+ bytes of global memory outside every operand|writes into \w+, which is an input)"),
    Bug("staging_read_before_all_have_written", "elementwise", STORE,
        [("      arch::fence_shared_for_async();\n      sync_warpgroup();\n", "      arch::fence_shared_for_async();\n")],
        rf"consumer 0 .*{at(FP32_BOXES)} reads (what another thread is writing: no synchronisation lies between|shared memory that nobody has written)"),
    Bug("piece_counted_without_release", "pieces", PARTIAL_SUMS, [("atomic_add_acq_rel(flag(tile), 1)", "atomic_add_relaxed(flag(tile), 1)")],
        rf"consumer 0 .*{at(PARTIAL_SUMS)} reads what "),
    Bug("piece_counted_before_all_have_written", "pieces", PARTIAL_SUMS,
        [("    sync_warpgroup();  // what all threads have written is published by the one that counts\n", "")],
        rf"consumer 0 .*{at(PARTIAL_SUMS)} reads what "),
    Bug("pieces_collected_without_waiting", "pieces", PARTIAL_SUMS,
        [("      arch::wait_for_flag(flag(tile), static_cast<std::uint32_t>(tile.peers - 1));\n", "")],
        rf"consumer 0 .*{at(PARTIAL_SUMS)} reads what "),
    Bug("others_collect_before_the_flag", "pieces", PARTIAL_SUMS,
        [("      arch::store_relaxed(flag(tile), 0);\n    }\n    sync_warpgroup();\n", "      arch::store_relaxed(flag(tile), 0);\n    }\n")],
        rf"consumer 0 .*{at(PARTIAL_SUMS)} reads what "),
    Bug("one_piece_too_many_awaited", "pieces", PARTIAL_SUMS, [("static_cast<std::uint32_t>(tile.peers - 1)", "static_cast<std::uint32_t>(tile.peers)")],
        deadlock(rf"consumer 0 warp 4 at [^\n]*{at(PARTIAL_SUMS)} waits for a flag to become 4; it is 3")),
    Bug("flag_not_cleared", "pieces", PARTIAL_SUMS, [("      arch::store_relaxed(flag(tile), 0);\n", "")],
        r"flag \d+ of the workspace is not cleared when the kernel ends"),
    Bug("pieces_share_one_place", "pieces", PARTIAL_SUMS, [("float* const place = place_of(tile, tile.peer);", "float* const place = place_of(tile, 0);")],
        rf"consumer 0 .*{at(PARTIAL_SUMS)} overwrites what another is still|wrong result: "),
    Bug("work_slot_released_before_it_was_read", "plain", KERNEL,
        [("      const WorkTile tile = work_.read(work_at);\n      work_.release(work_at);\n      if constexpr",
          "      const auto released = work_at;\n      work_.release(work_at);\n      const WorkTile tile = work_.read(released);\n      if constexpr")],
        rf"(consumer 0|dispatcher) .*{at(WORK)} "),
    Bug("work_slot_filled_before_it_was_released", "plain", WORK, [("    arch::barrier_wait(&empty_[at.stage], at.parity ^ 1);\n", "")],
        # Or it has dealt and ended before anyone read: what is waited for was two rounds ago.
        rf"dispatcher warp 3 .*{at(WORK)} overwrites what another is still reading.*read by |"
        rf"deadlock: (?=.*consumer 0 warp 4 at [^\n]*{at(WORK)} waits for [^\n]*parity 0 of work full\[0\], in its phase 2 )(?!.*dispatcher)"),
    Bug("work_read_before_it_is_there", "plain", WORK, [("    arch::barrier_wait(&full_[at.stage], at.parity);\n", "")],
        rf"(producer warp [01]|consumer 0) .*{at(WORK)} reads (shared memory that nobody has written|what another thread is writing.*store by .*dispatcher)"),
    Bug("passed_over_tiles_not_released", "pingpong", KERNEL,
        [("        at.advance(k_tiles);\n        work_.release(work_at);\n", "        at.advance(k_tiles);\n        work_at.advance();\n")],
        deadlock(rf"dispatcher warp 3 at [^\n]*{at(WORK)} waits for [^\n]*work empty\[\d\], in its phase 0 with \d of 10 arrivals")),
    Bug("lanes_pass_over_stages_by_themselves", "two_consumers", SHORT,
        [("      arch::sync_warp();  // a lane that came late would miss the stage's next round; elsewhere wgmma brings them together\n", "")],
        deadlock(rf"consumer 1 warp \d+ at [^\n]*{at(PIPELINE)} waits for [^\n]*full\[\d\]")),
    Bug("rows_expected_that_were_left_out", "groups", SHORT, [("blocks_with_rows(tile, 0, kBlocks) * Tile", "kBlocks * Tile")],
        deadlock(rf"consumer [01] warp \d+ at [^\n]*{at(PIPELINE)} waits for [^\n]*full\[\d\], in its phase \d with 2 of 2 arrivals and \d+ bytes to come")),
    Bug("rows_left_out_that_are_there", "groups", SHORT, [("(rows + kWgmmaRows - 1) / kWgmmaRows", "rows / kWgmmaRows")], r"wrong result: "),
    Bug("next_group_not_clipped", "along_k", CLIP, [("inside <= 0 ? depth : inside < depth ? depth - inside : 0", "0")],
        r"wrong result: |reads 16 bytes of global memory outside every operand"),
    Bug("clipped_box_not_moved_back", "along_k", CLIP, [("k - clipped + depth", "k + depth")],
        r"wrong result: |reads 16 bytes of global memory outside every operand"),
    Bug("groups_begin_with_k", "along_k", GROUPS, [("  tile.first_k = k.first;\n", "")], r"wrong result: "),
    Bug("last_of_a_groups_k_left_out", "along_k", GROUPS, [("(k.count + tile_k - 1) / tile_k", "k.count / tile_k")], r"wrong result: "),
    Bug("scales_begin_with_k", "fp8_along_k", SCALES, [("tile.first_k >> kLog2ScaleBlock", "0")], r"wrong result: "),
    Bug("boxes_begin_with_k", "fp8_along_k", TMA, [("kGroupsAlongK ? tile.first_k : 0", "0")], r"wrong result: "),
    Bug("size_of_the_next_group", "fp8_along_k", DISPATCHING, [("range_of_group(params_.groups, group = tile.group)", "range_of_group(params_.groups, (group = tile.group) + 1)")],
        r"wrong result: "),
    Bug("turn_kept_with_an_empty_tile", "groups", SHORT, [("    pass_over(ring, at, k_tiles);\n    issued();\n", "    pass_over(ring, at, k_tiles);\n")],
        deadlock(r"consumer [01] warp \d+ at [^\n]* waits for [^\n]*named barrier")),
    Bug("end_of_work_not_told", "plain", DISPATCHER, [("    work_.put_end(at);\n", "")],
        deadlock(rf"producer warp [01] at [^\n]*{at(WORK)} waits for [^\n]*work full\[\d\]",
                 rf"consumer 0 warp 4 at [^\n]*{at(WORK)} waits for [^\n]*work full\[\d\]")),
    Bug("ticket_slot_overwritten", "tickets", TICKETS,
        [("      arch::barrier_wait(&empty_[slot], at_.parity ^ 1);  // all CTAs have read what was there\n", "")],
        rf"CTA 0 dispatcher warp 3 .*{at(TICKETS)} starts a copy that overwrites what another is still (reading|writing)|"
        r"more bytes have come than were expected|arrives once more than expected at ticket (full|empty)"),
    Bug("ticket_given_back_before_it_was_read", "tickets", TICKETS,
        [("    arch::load_shared(slots_ + slot * kTicketBytes, ticket);\n    arch::barrier_arrive_in_cluster_relaxed(&empty_[slot], 0);\n",
          "    arch::barrier_arrive_in_cluster_relaxed(&empty_[slot], 0);\n    arch::load_shared(slots_ + slot * kTicketBytes, ticket);\n")],
        rf"dispatcher warp 3 .*{at(TICKETS)} (starts a copy that overwrites what another is still reading|reads what )"),
    Bug("ticket_for_its_own_cta_only", "tickets", TICKETS, [("cta < cluster_size(config); ++cta)", "cta < 1; ++cta)")],
        deadlock(rf"CTA 1 dispatcher warp 3 at [^\n]*{at(TICKETS)} waits for [^\n]*ticket full\[0\], in its phase 0 with 1 of 1 arrivals and 16 bytes")),
    Bug("counter_not_cleared", "tickets", TICKETS, [("items + arch::clusters_in_grid() - 1)", "items + arch::clusters_in_grid())")],
        r"flag \d+ of the workspace is not cleared when the kernel ends"),
    Bug("tickets_drawn_before_the_predecessor_has_finished", "ranges", DISPATCHER,
        [("      at.advance();\n    else\n      arch::wait_for_predecessor();\n", "      at.advance();\n")],
        rf"dispatcher warp 3 .*{at(TICKETS)} writes workspace before the kernel before it has finished \(wait_for_predecessor\)"),
    Bug("fetched_early_without_being_constant", "constant", TMA, [("return params_.constant;", "return true;")],
        rf"producer warp [01] .*{at(TMA)} reads A before the kernel before it has finished \(wait_for_predecessor\)"),
    Bug("fetched_to_l2_only", "constant", TMA, [("load_slice<false>(place,", "load_slice<true>(place,")],
        deadlock(rf"consumer 0 warp 4 at [^\n]*{at(PIPELINE)} waits for [^\n]*full\[0\], in its phase 0 with 2 of 2 arrivals and 40960 bytes to come")),
    Bug("constant_operand_fetched_twice", "constant", TMA,
        [("      load_slice<false>(place,", "      for (int i = 0; i < (first && params_.constant ? 2 : 1); ++i) load_slice<false>(place,")],
        rf"producer warp [01] .*{at(TMA)} starts a copy that overwrites what another is still writing|bytes (more )?than were expected|"
        r"more bytes have come than were expected|fewer bytes were expected than they bring"),
    Bug("what_was_fetched_to_l2_is_not_loaded", "constant", TMA, [("prefetch(const Place& place, int k_tile,", "prefetch(const Place& place, int& k_tile,")],
        deadlock(rf"consumer 0 warp 4 at [^\n]*{at(PIPELINE)} waits for [^\n]*full\[\d+\], in its phase \d+ with 1 of 2 arrivals")),
    Bug("slice_counted_without_release", "slices", SEPARATE_SUMS, [("atomic_add_acq_rel(word(), kCame)", "atomic_add_relaxed(word(), kCame)")],
        rf"consumer 0 .*{at(SEPARATE_SUMS)} reads what "),
    Bug("slice_counted_before_all_have_written", "slices", SEPARATE_SUMS,
        [("    sync_warpgroup();  // what all threads have written is published by the one that counts\n", "")],
        rf"consumer 0 .*{at(SEPARATE_SUMS)} reads what "),
    Bug("slices_added_before_all_have_come", "slices", SEPARATE_SUMS,
        [("if (came(arch::load_acquire(word())) < tile_.peers) continue;", "if (came(arch::load_acquire(word())) < 1) continue;")],
        rf"consumer 0 .*{at(SEPARATE_SUMS)} (reads what |overwrites what another is still reading)|wrong result: "),
    Bug("abandoned_slices_not_finished", "slices", SEPARATE_SUMS, [("return kLast | 1u << slice | before >> 16;", "return kLast | 1u << slice;")],
        r"wrong result: "),
    Bug("abandoned_by_nobody", "slices", SEPARATE_SUMS, [("kWent + abandoned(slice))", "kWent)")], r"wrong result: "),
    Bug("word_cleared_too_early", "slices", SEPARATE_SUMS, 
        [("return kLast | 1u << slice | before >> 16;", "return arch::store_relaxed(word(), 0), 1u << slice | before >> 16;")],
        r"flag \d+ of the workspace is not cleared when the kernel ends"),
    Bug("word_not_cleared", "slices", SEPARATE_SUMS, [("    arch::store_relaxed(word(), 0);\n", "")],
        r"flag \d+ of the workspace is not cleared when the kernel ends"),
    Bug("verdict_read_before_it_is_there", "slices", SEPARATE_SUMS,
        [("    sync_warpgroup();\n    std::uint32_t verdict[4];", "    std::uint32_t verdict[4];")],
        rf"consumer 0 .*{at(SEPARATE_SUMS)} reads (shared memory that nobody has written|what another thread is writing)"),
    Bug("pushed_before_all_are_ready", "meeting", CLUSTER_SUMS, [("    arch::barrier_wait(ready_, 0);\n", "")],
        rf"consumer [01] .*{at(CLUSTER_SUMS)} starts a copy that overwrites what another is still (reading|writing)|more bytes have come than were expected"),
    Bug("one_cta_too_many_expected_to_push", "meeting", CLUSTER_SUMS, [("bytes = (splits - 1) * (mine", "bytes = splits * (mine")],
        deadlock(rf"CTA [01] consumer [01] warp \d at [^\n]*{at(CLUSTER_SUMS)} waits for [^\n]*cluster sums\[[12]\], in its phase 0 with 1 of 1 arrivals")),
    Bug("added_before_the_others_have_pushed", "meeting", CLUSTER_SUMS, [("      arch::barrier_wait(full_, 0);\n", "")],
        rf"consumer [01] .*{at(CLUSTER_SUMS)} reads (what a copy is still filling|shared memory that nobody has written)"),
    Bug("ready_told_to_a_cta_that_may_not_have_begun", "meeting", CLUSTER_SUMS, [("    arch::cluster_wait();\n", "")],
        r"without knowing that it is initialised: no barrier of the CTA or cluster lies between|uses a barrier that was never initialised"),
    Bug("ready_told_to_one_cta_too_few", "meeting", CLUSTER_SUMS, [("if (thread < splits) arch", "if (thread + 1 < splits) arch")],
        deadlock(rf"CTA 1 consumer 0 warp 4 at [^\n]*{at(CLUSTER_SUMS)} waits for [^\n]*cluster ready\[0\], in its phase 0 with 0 of 4 arrivals")),
    Bug("map_of_a_group_not_acquired", "general", GENERAL, [("      if (tile.group != acquired) arch::acquire_tensor_map(map);\n", "")],
        rf"producer warp [01] .*{at(GENERAL_PRODUCER)} uses a tensor map in global memory that this thread has not acquired"),
    Bug("map_of_d_not_acquired", "general_boxes", GENERAL, [("arch::acquire_tensor_map(group.map_d);", ";")],
        rf"consumer [01] .*{at(STORE)} uses a tensor map in global memory that this thread has not acquired"),
    Bug("map_acquired_once_for_all_groups", "general", GENERAL, [("if (tile.group != acquired) arch", "if (acquired == -1) arch")],
        rf"producer warp [01] .*{at(GENERAL_PRODUCER)} uses a tensor map in global memory that this thread has not acquired"),
    Bug("map_of_another_group", "general", GENERAL, [("params_.general.prepared[tile.group];", "params_.general.prepared[tile.group / 2];")],
        r"wrong result: |outside every operand|not initialised|never filled in"),
    Bug("map_acquired_of_the_other_operand", "general", GENERAL, [("arch::acquire_tensor_map(map);", "arch::acquire_tensor_map(group.p);")],
        rf"producer warp 1 .*{at(GENERAL_PRODUCER)} uses a tensor map in global memory that this thread has not acquired"),
    Bug("map_ends_with_the_largest_groups_k", "general", PREPARATION, 
        [("    arch::replace_extent<0>(shared, static_cast<std::uint32_t>(matrix.inner));\n", "")],
        r"wrong result: |outside every operand"),
    Bug("map_ends_with_the_largest_groups_rows", "general_boxes", PREPARATION,
        [("    arch::replace_extent<1>(shared, static_cast<std::uint32_t>(matrix.outer));\n", "")],
        r"wrong result: |outside every operand"),
    Bug("map_has_the_templates_pitch", "general", PREPARATION,
        [("    arch::replace_stride<1>(shared, static_cast<std::uint64_t>(matrix.pitch_bytes));\n", "")],
        r"wrong result: |outside every operand"),
    Bug("groups_read_before_the_predecessor_has_finished", "general", PREPARATION, [("  arch::wait_for_predecessor();\n", "")],
        rf"prepare_groups: .*{at(PREPARATION)} (reads group_arguments|writes workspace) before the kernel before it has finished"),
    Bug("store_that_ends_in_a_packet_left_to_the_copy_engine", "general_packets", PREPARATION, [("group.n * bytes % kPacketBytes == 0 && ", "")],
        r"end inside a packet of 16"),
    Bug("tiles_at_the_edge_not_counted", "general", GENERAL_GROUPS, [("(extent + tile_elems * cluster - 1) / (tile_elems", "extent / (tile_elems")],
        r"wrong result: "),
    Bug("tiles_of_a_group_of_the_first_window", "many", GENERAL_DISPATCHER, [("- tiles_of(first_ + passed);", "- tiles_of(passed);")],
        r"wrong result: |outside every operand"),
    Bug("turn_of_a_tile_without_k_kept", "general_without_k", GENERAL,
        [("        if (kPingpong) give_turn(1 - warpgroup);", "        if (kPingpong && k_tiles > 0) give_turn(1 - warpgroup);")],
        deadlock(r"consumer [01] warp \d+ at [^\n]* waits for [^\n]*named barrier")),
]
