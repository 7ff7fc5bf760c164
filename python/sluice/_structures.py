"""The structures of sluice.h as ctypes has them. tests/python/library_test.py compares each field with the header."""

from __future__ import annotations

import ctypes
from typing import Any

_i32, _i64, _u64, _f32, _f64 = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_float, ctypes.c_double
_pointer, _text = ctypes.c_void_p, ctypes.c_char_p


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class Structure(ctypes.Structure):
    """A structure that begins with its own size. `_library.make()` gives one with the library's defaults."""


class Problem(Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        *_fields(_i64, "m n k batch"),
        *_fields(_i32, "type_a type_d layout_a layout_b"),
        *_fields(_i64, "lda ldb ldc ldd batch_stride_a batch_stride_b batch_stride_c batch_stride_d"),
        *_fields(_i32, "alignment_a_bytes alignment_b_bytes alignment_d_bytes bias activation"),
        *_fields(_f32, "alpha beta"),
        *_fields(_i32, "reserved constant_a constant_b type_b scaling_a scaling_b scale_layout_a scale_layout_b reserved2"),
        *_fields(_i64, "ld_scale_a ld_scale_b batch_stride_scale_a batch_stride_scale_b expected_rows"),
        *_fields(_i32, "grouping reserved3 w4_group_size w4_zero_points scaling_d scale_layout_d"),
        *_fields(_i64, "ld_scale_d batch_stride_scale_d most_rows"),
    ]


class Device(Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("name", ctypes.c_char * 64),
        *_fields(_i32, "compute_capability sm_count clusters_of_2 shared_memory_per_cta_bytes"),
        ("l2_bytes", _i64),
        *_fields(_f64, "clock_ghz hbm_gb_per_s l2_gb_per_s flops_per_clk_per_sm sustained_fraction launch_us"),
    ]


class PlanOptions(Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("kernel_name", _text),
        *_fields(_i32, "schedule scheduler raster tile_m tile_n forget_candidates claim splits stream_k_regions min_k_tiles"),
        *_fields(_i32, "reduction determinism lead"),
    ]


class PlanInfo(Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("workspace_bytes", _u64),
        *_fields(_i32, "grid_ctas worker_count shared_memory_bytes candidate_count"),
        *_fields(_f64, "total_us launch_us matrix_us hbm_us l2_us ramp_us exposed_epilogue_us waves useful_share busy_share reduction_us learnt_us power_us"),
    ]


class GroupArguments(ctypes.Structure):
    """One of general groups, in an array: without a size of its own."""

    _fields_ = [
        *_fields(_pointer, "a b c d bias scale_a scale_b"),
        *_fields(_i32, "m n k reserved"),
        *_fields(_i64, "lda ldb ldc ldd ld_scale_a ld_scale_b"),
    ]


class Arguments(Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        *_fields(_pointer, "a b c d bias scale_a scale_b groups scale_d group_arguments"),
        ("group_arguments_size", ctypes.c_size_t),
    ]


class QuantizeProblem(Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        *_fields(_i64, "m k"),
        *_fields(_i32, "type_x type_q input scaling power_of_two_scales scale_layout"),
        *_fields(_i64, "ldx ldy ldq ld_scale"),
    ]


class QuantizeArguments(Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), *_fields(_pointer, "x y q scale")]


class PackW4Problem(Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        *_fields(_i64, "n k"),
        *_fields(_i32, "group_size zero_points source type type_scales zeros_as_stored"),
    ]


class PackW4Arguments(Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), *_fields(_pointer, "codes scales zeros order packed")]


class HistogramProblem(Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        *_fields(_i64, "n bins first"),
        *_fields(_f32, "lower upper"),
        *_fields(_i32, "sample count_type outside accumulate"),
    ]


class HistogramArguments(Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), *_fields(_pointer, "samples counts")]


class AttentionProblem(Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        *_fields(_i64, "batch query_len heads_q heads_kv head_size max_kv_len page_size pages kv_stride window"),
        *_fields(_f64, "scale soft_cap"),
        *_fields(_i32, "type kv_type kv_layout causal lse constant_cache"),
    ]


class AttentionArguments(Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        *_fields(_pointer, "q k v o lse lengths block_table"),
        ("block_table_stride", _i64),
        *_fields(_pointer, "k_scales v_scales fault"),
    ]


class EmulatorOptions(Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("seed", _u64), *_fields(_i32, "asynchrony resident_clusters diagnose reserved")]


# Structures by their names in the header.
STRUCTURES: dict[str, type[ctypes.Structure]] = {
    "sluice_problem": Problem,
    "sluice_device": Device,
    "sluice_plan_options": PlanOptions,
    "sluice_plan_info": PlanInfo,
    "sluice_group_arguments": GroupArguments,
    "sluice_arguments": Arguments,
    "sluice_quantize_problem": QuantizeProblem,
    "sluice_quantize_arguments": QuantizeArguments,
    "sluice_pack_w4_problem": PackW4Problem,
    "sluice_pack_w4_arguments": PackW4Arguments,
    "sluice_histogram_problem": HistogramProblem,
    "sluice_histogram_arguments": HistogramArguments,
    "sluice_attention_problem": AttentionProblem,
    "sluice_attention_arguments": AttentionArguments,
    "sluice_emulator_options": EmulatorOptions,
}

# What fields may be given as words: the enumerations of the header, in its own order.
_TYPES = ("bf16", "fp16", "fp32", "e4m3", "e5m2", "int4")
_LAYOUTS = ("row-major", "column-major")
_SCALINGS = ("none", "tensor", "vector", "1x128", "128x128")
WORDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("type_a", "type_b", "type_d", "type_x", "type_q", "type", "type_scales", "kv_type"), _TYPES),
    **dict.fromkeys(("layout_a", "layout_b", "scale_layout_a", "scale_layout_b", "scale_layout_d", "scale_layout"), _LAYOUTS),
    **dict.fromkeys(("scaling_a", "scaling_b", "scaling_d", "scaling"), _SCALINGS),
    "activation": ("none", "relu", "gelu", "silu"),
    "bias": ("none", "per-row", "per-column", "per-group-column"),
    "grouping": ("none", "ragged", "masked", "along-k", "general"),
    "schedule": ("any", "cooperative", "pingpong", "streaming", "sliced-k"),
    "scheduler": ("any", "one-tile-per-cta", "data-parallel", "split-k", "stream-k", "hybrid"),
    "raster": ("any", "along-m", "along-n"),
    "determinism": ("deterministic", "fast", "batch-invariant"),
    "reduction": ("any", "workspace", "separate", "cluster"),
    "claim": ("any", "fixed", "ticket"),
    "asynchrony": ("random", "eager", "lazy", "mixed"),
    "input": ("plain", "silu-times"),
    "source": ("plain", "gptq", "awq"),
    "kv_layout": ("tokens-first", "heads-first"),
    "sample": ("int32", "uint8", "float32"),
    "count_type": ("int32", "int64"),
    "outside": ("ignored", "clamped"),
}
