/* Sluice's C interface: C99, usable from ctypes and other foreign-function interfaces.
 *
 * Structures. Each begins with `struct_size`. Call its init function with sizeof(the structure) before filling it in: it writes that
 * size and the defaults. A library newer than the header takes the fields that are not there at their defaults; a library older than
 * the header takes the larger structure only if the fields it does not know are zero. Sizes are multiples of 8.
 *
 * Errors. Functions return a sluice_status: SLUICE_OK or what went wrong. sluice_last_error() then gives a sentence with the value, the
 * limit and the way out. Nothing is printed and nothing is thrown. On failure outputs are left alone, but that pointers to be filled
 * in (plans, strings) become NULL.
 *
 * Strings that a function hands out through `char** text` belong to the caller and are freed with sluice_string_free(). `const char*`
 * results belong to the library. All are UTF-8 and end with 0.
 *
 * Threads. Every function may be called from any thread at any time. A plan does not change once it is made, so threads may share it;
 * only destroying it must wait until nobody uses it.
 *
 * Units. Sizes, leading dimensions and batch strides are in elements, and fields ending in _bytes in bytes; _us is microseconds. */
/* NOLINTBEGIN(modernize-*, readability-identifier-naming): C */
#ifndef SLUICE_SLUICE_H_
#define SLUICE_SLUICE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The values do not change from version to version; new ones may be added. */
typedef enum sluice_status {
  SLUICE_OK = 0,
  SLUICE_INVALID_ARGUMENT = 1, /* a value that can never be right: negative size, short leading dimension, null pointer */
  SLUICE_MISALIGNED = 2,       /* a pointer or stride aligned worse than the plan was made for */
  SLUICE_UNSUPPORTED = 3,      /* legal, but no kernel of this library does it */
  SLUICE_TOO_LARGE = 4,        /* a size beyond what the kernels index */
  SLUICE_WORKSPACE_TOO_SMALL = 5,
  SLUICE_WRONG_DEVICE = 6, /* the current GPU is not Hopper, or not the one the plan was made for */
  SLUICE_NOT_FOUND = 7,    /* unknown device name */
  SLUICE_BAD_FORMAT = 8,   /* JSON that does not hold what it should */
  SLUICE_IO = 9,
  SLUICE_CUDA = 10,          /* an error reported by the CUDA runtime or driver */
  SLUICE_OUT_OF_MEMORY = 11, /* host memory ran out */
  SLUICE_INTERNAL = 12,      /* a defect of the library */
  SLUICE_EMULATION = 13      /* the emulator saw a kernel break a rule: a defect of the kernel */
} sluice_status;

/* Fields that hold one of these are int32_t, so that their size is the same everywhere. */
enum sluice_data_type { SLUICE_BF16 = 0, SLUICE_FP16 = 1, SLUICE_FP32 = 2, SLUICE_E4M3 = 3, SLUICE_E5M2 = 4, SLUICE_INT4 = 5 };
enum sluice_layout { SLUICE_ROW_MAJOR = 0, SLUICE_COLUMN_MAJOR = 1 };
enum sluice_activation { SLUICE_ACTIVATION_NONE = 0, SLUICE_RELU = 1, SLUICE_GELU_TANH = 2, SLUICE_SILU = 3 };
/* m numbers, n, or batch x n: for the columns of each matrix of a batch, or of each group, its own. */
enum sluice_bias { SLUICE_BIAS_NONE = 0, SLUICE_BIAS_PER_ROW = 1, SLUICE_BIAS_PER_COLUMN = 2, SLUICE_BIAS_PER_GROUP_COLUMN = 3 };
/* Scales of FP8 operands: one; one for each row of A or column of B; one for each of these and each 128 of K; one for each 128 of these and
 * each 128 of K. */
enum sluice_scaling {
  SLUICE_NO_SCALES = 0,
  SLUICE_PER_TENSOR = 1,
  SLUICE_PER_VECTOR = 2,
  SLUICE_PER_VECTOR_128 = 3,
  SLUICE_PER_BLOCK_128 = 4
};
/* How the matrices of a problem's batch differ: not at all; or they are groups, whose sizes the device reads from sluice_arguments.groups.
 * Ragged: the rows of all groups lie one after another in A and D (and C), group g has rows [groups[g], groups[g + 1]), and batch + 1
 * ascending numbers say so. Masked: of the m rows of each matrix the first groups[g] count. Along k: D[g] is the product of the columns
 * [groups[g], groups[g + 1]) of A and these rows of B; batch + 1 ascending numbers, multiples of 128 with FP8 operands (any other counts
 * as the multiple below it). General: every group is a product of its own, a sluice_group_arguments. sluice/grouping.hpp says more. */
enum sluice_grouping {
  SLUICE_NO_GROUPS = 0,
  SLUICE_RAGGED_GROUPS = 1,
  SLUICE_MASKED_GROUPS = 2,
  SLUICE_GROUPS_ALONG_K = 3,
  SLUICE_GENERAL_GROUPS = 4
};
/* In the options, 0 leaves the choice to the planner. */
enum sluice_schedule { SLUICE_ANY_SCHEDULE = 0, SLUICE_COOPERATIVE = 1, SLUICE_PINGPONG = 2, SLUICE_STREAMING = 3, SLUICE_SLICED_K = 4 };
enum sluice_scheduler {
  SLUICE_ANY_SCHEDULER = 0,
  SLUICE_ONE_TILE_PER_CTA = 1,
  SLUICE_DATA_PARALLEL = 2,
  SLUICE_SPLIT_K = 3,
  SLUICE_STREAM_K = 4,
  SLUICE_HYBRID = 5
};
enum sluice_raster { SLUICE_ANY_RASTER = 0, SLUICE_ALONG_M = 1, SLUICE_ALONG_N = 2 };
/* What may change the bits of a result; sluice/plan.hpp says what each promises. */
enum sluice_determinism { SLUICE_DETERMINISTIC = 0, SLUICE_FAST = 1, SLUICE_BATCH_INVARIANT = 2 };
enum sluice_reduction {
  SLUICE_ANY_REDUCTION = 0,
  SLUICE_WORKSPACE_REDUCTION = 1,
  SLUICE_SEPARATE_REDUCTION = 2,
  SLUICE_CLUSTER_REDUCTION = 3
};
enum sluice_work_claim { SLUICE_ANY_CLAIM = 0, SLUICE_FIXED_CLAIM = 1, SLUICE_TICKET_CLAIM = 2 };

/* Where a plan can be carried out: sluice_run(), sluice_run_on_emulator(), sluice_run_on_cpu(). */
enum sluice_backend { SLUICE_BACKEND_CUDA = 0, SLUICE_BACKEND_EMULATOR = 1, SLUICE_BACKEND_REFERENCE = 2 };
/* When the emulator carries out asynchronous work (copies, wgmma), of all the moments the architecture allows. */
enum sluice_asynchrony {
  SLUICE_ASYNCHRONY_RANDOM = 0, /* one of the others, drawn from the seed */
  SLUICE_ASYNCHRONY_EAGER = 1,  /* almost at once */
  SLUICE_ASYNCHRONY_LAZY = 2,   /* only when nobody can go on without it */
  SLUICE_ASYNCHRONY_MIXED = 3   /* in between, differently each time */
};

/* What is quantised: x, or x / (1 + exp(-x)) * y. */
enum sluice_quantize_input { SLUICE_PLAIN = 0, SLUICE_SILU_TIMES = 1 };

/* How weights of 4 bits lie that are to be packed; sluice/w4.hpp says it to the bit. */
enum sluice_w4_source { SLUICE_W4_PLAIN = 0, SLUICE_W4_GPTQ = 1, SLUICE_W4_AWQ = 2 };
enum sluice_kv_layout { SLUICE_TOKENS_FIRST = 0, SLUICE_HEADS_FIRST = 1 };
enum sluice_histogram_sample { SLUICE_SAMPLE_INT32 = 0, SLUICE_SAMPLE_UINT8 = 1, SLUICE_SAMPLE_FLOAT32 = 2 };
enum sluice_count_type { SLUICE_COUNT_INT32 = 0, SLUICE_COUNT_INT64 = 1 };
enum sluice_outside_values { SLUICE_OUTSIDE_IGNORED = 0, SLUICE_OUTSIDE_CLAMPED = 1 };

/* As a leading dimension: the matrix is dense. As a batch stride: matrices follow one another without a gap. */
#define SLUICE_PACKED (-1)

/* D[b] = activation(alpha * A[b] B[b] + beta * C[b] + bias), for b in [0, batch).
 *
 * A is m x k, B is k x n, C and D are m x n and row-major. Accumulation is in fp32; the result is rounded once, to type_d. C and the bias
 * have D's type (not beside a D in FP8: sluice/scaling.hpp). C may be D (same pointer, same strides); any other overlap of D with an input
 * is an error the library cannot see. beta == 0 never reads C; alpha == 0 or k == 0 never reads A and B; m, n or batch of 0 does nothing.
 */
typedef struct sluice_problem {
  size_t struct_size;
  int64_t m, n, k;  /* 0 or more */
  int64_t batch;    /* default 1 */
  int32_t type_a;   /* SLUICE_BF16 (default), SLUICE_FP16, SLUICE_E4M3 or SLUICE_E5M2 */
  int32_t type_d;   /* SLUICE_BF16 (default), SLUICE_FP16 or SLUICE_FP32; of FP8 operands also SLUICE_E4M3 or SLUICE_E5M2 */
  int32_t layout_a; /* default SLUICE_ROW_MAJOR */
  int32_t layout_b; /* default SLUICE_COLUMN_MAJOR: each column of B, k elements, is contiguous */
  /* Distance between rows (row-major) or columns (column-major), in elements. Default SLUICE_PACKED. */
  int64_t lda, ldb, ldc, ldd;
  /* Default SLUICE_PACKED. 0 repeats one matrix for the whole batch (A, B and C only). */
  int64_t batch_stride_a, batch_stride_b, batch_stride_c, batch_stride_d;
  /* What the caller promises of the pointers passed to sluice_run(), a power of two from the element's size to 16 (default). Less than
   * 16 for A or B excludes the tensor memory accelerator, and a slower load path is planned. */
  int32_t alignment_a_bytes, alignment_b_bytes;
  int32_t alignment_d_bytes; /* of C, D and bias */
  int32_t bias;              /* enum sluice_bias */
  int32_t activation;        /* enum sluice_activation */
  float alpha;               /* default 1 */
  float beta;                /* default 0 */
  int32_t reserved;          /* 0 */
  /* Not 0: no kernel still running or yet to run when this one is launched writes the operand (weights). It is then fetched before the
   * kernel before this one in the stream has finished. sluice/problem.hpp names the hazard. Default 0. */
  int32_t constant_a, constant_b;
  int32_t
      type_b; /* as type_a; 16-bit types must be the same, 8-bit ones need not; or SLUICE_INT4 beside a type_a of 16 bits or SLUICE_E4M3 */
  /* FP8 operands only: enum sluice_scaling, and how the scales lie (sluice/problem.hpp). Defaults: none, row-major, packed. */
  int32_t scaling_a, scaling_b;
  int32_t scale_layout_a, scale_layout_b;
  int32_t reserved2; /* 0 */
  int64_t ld_scale_a, ld_scale_b;
  int64_t batch_stride_scale_a, batch_stride_scale_b;
  int64_t expected_rows; /* of a group, about: for the planner alone. 0 (default): m / batch if ragged, m if masked */
  int32_t grouping;      /* enum sluice_grouping, default SLUICE_NO_GROUPS. Ragged: m is the number of rows of A and D, of all groups */
  int32_t reserved3;     /* 0 */
  /* Weights of 4 bits only (type_b SLUICE_INT4): sluice/w4_format.hpp. b is then what sluice_pack_w4() has made, batch_stride_b in bytes.
   */
  int32_t w4_group_size;  /* elements of K: 32, 64, 128 (default), or 0: whole columns */
  int32_t w4_zero_points; /* not 0: each group has its own. Default 0 */
  /* A D in FP8 only: SLUICE_NO_SCALES (default), SLUICE_PER_TENSOR (given) or SLUICE_PER_VECTOR_128 (found and written), and how they lie.
   */
  int32_t scaling_d;
  int32_t scale_layout_d;
  int64_t ld_scale_d;
  int64_t batch_stride_scale_d;
  int64_t most_rows; /* of a group, as far as is known: for the planner alone. 0 (default): not known */
} sluice_problem;

/* A GPU as data. Get one from sluice_device_find(), sluice_device_current() or sluice_device_from_json(), and change what is different. */
typedef struct sluice_device {
  size_t struct_size;
  char name[64];              /* at most 63 bytes and a 0 */
  int32_t compute_capability; /* major * 10 + minor; the kernels need 90 */
  int32_t sm_count;
  int32_t clusters_of_2; /* clusters of two CTAs that fit at once, one CTA per SM */
  int32_t shared_memory_per_cta_bytes;
  int64_t l2_bytes;
  double clock_ghz;
  double hbm_gb_per_s;
  double l2_gb_per_s;
  double flops_per_clk_per_sm;
  double sustained_fraction; /* of the matrix rate, that power allows on long runs */
  double launch_us;
} sluice_device;

/* Restricts the planner's choice. All zero leaves it free. */
typedef struct sluice_plan_options {
  size_t struct_size;
  const char* kernel_name; /* exactly this kernel; NULL or "" for any */
  int32_t schedule;        /* enum sluice_schedule */
  int32_t scheduler;       /* enum sluice_scheduler */
  int32_t raster;          /* enum sluice_raster */
  int32_t tile_m;          /* this tile, whatever the kernel; 0 for any */
  int32_t tile_n;
  int32_t forget_candidates; /* not 0: the plan does not say what it decided against; smaller and quicker to make */
  int32_t claim;             /* enum sluice_work_claim */
  int32_t splits;            /* split-K: pieces of each tile; 0: as many as fill the device */
  int32_t stream_k_regions;  /* stream-K and hybrid; 0: one */
  int32_t min_k_tiles;       /* of a piece of a tile; 0: one */
  int32_t reduction;         /* enum sluice_reduction; split-K alone has a choice */
  int32_t determinism;       /* enum sluice_determinism */
  int32_t lead;              /* split-K: k-tiles that the last piece is longer by; 0: as predicted, -1: none */
} sluice_plan_options;

/* What a plan comes to. An output: set struct_size (the init function does) and pass it to sluice_plan_get_info(), which fills in the
 * fields that lie inside it. */
typedef struct sluice_plan_info {
  size_t struct_size;
  uint64_t workspace_bytes;
  int32_t grid_ctas; /* 0 when there is nothing to compute */
  int32_t worker_count;
  int32_t shared_memory_bytes;
  int32_t candidate_count;
  /* Predicted time: total = launch + max(matrix, hbm, l2) + ramp + exposed epilogue + reduction + learnt + power. */
  double total_us, launch_us, matrix_us, hbm_us, l2_us, ramp_us, exposed_epilogue_us;
  double waves, useful_share, busy_share;
  double reduction_us; /* bringing the pieces of a tile together */
  double learnt_us;    /* more, or less, than the parts say: what measured times have taught; part of the total */
  double power_us;     /* more, or less, than all that where the power limit sets the clock; part of the total */
} sluice_plan_info;

/* One of a problem's general groups: D = activation(alpha A B + beta C + bias). An array of these lies in device memory for sluice_run(),
 * and is read when the kernels run. It has no struct_size: sluice_arguments says how long each is. sluice/group_arguments.hpp says what the
 * caller promises of pointers and leading dimensions, and when pointers may be null. Sizes below 0 count as 0, and those over the problem's
 * m, n and k as these. */
typedef struct sluice_group_arguments {
  const void* a; /* aligned to 16 bytes, as each of its rows is, */
  const void* b; /* and each of its columns */
  const void* c; /* read when beta != 0; may be d, if ldc is ldd */
  void* d;
  const void* bias;     /* m or n values, read when the problem has one */
  const float* scale_a; /* of this group's matrices alone, read when the problem has scales */
  const float* scale_b;
  int32_t m, n, k;
  int32_t reserved;               /* 0 */
  int64_t lda, ldb, ldc, ldd;     /* in elements, or SLUICE_PACKED: k, k, n and n */
  int64_t ld_scale_a, ld_scale_b; /* of scales along k, or SLUICE_PACKED: as many as are adjacent */
} sluice_group_arguments;

/* Device pointers for sluice_run(), host pointers for the others, aligned as the problem promised. */
typedef struct sluice_arguments {
  size_t struct_size;
  const void* a;
  const void* b;
  const void* c; /* needed when beta != 0; may be d */
  void* d;
  const void* bias;     /* m or n values, needed when the problem has one */
  const float* scale_a; /* needed when the problem has scales */
  const float* scale_b;
  const int32_t* groups;                         /* needed when the problem is grouped: batch + 1 numbers, or batch if masked */
  float* scale_d;                                /* needed when D has scales: read if SLUICE_PER_TENSOR, written if SLUICE_PER_VECTOR_128 */
  const sluice_group_arguments* group_arguments; /* of SLUICE_GENERAL_GROUPS: one for each group, and no other pointer */
  size_t group_arguments_size;                   /* sizeof(sluice_group_arguments), where there are any */
} sluice_arguments;

/* FP8 numbers with scales from m rows of k contiguous elements, which are the rows of A or the columns of B of a product. In each block
 * that shares a scale, scale = max(largest magnitude / largest number of type_q, 2^-126), or 1 if all is 0, and q = x * (1 / scale),
 * rounded to nearest even, saturating. sluice/quantize.hpp says it to the last bit, and what becomes of what is not finite. */
typedef struct sluice_quantize_problem {
  size_t struct_size;
  int64_t m, k;                /* 0 or more */
  int32_t type_x;              /* SLUICE_BF16 (default), SLUICE_FP16 or SLUICE_FP32; y has the same */
  int32_t type_q;              /* SLUICE_E4M3 (default) or SLUICE_E5M2 */
  int32_t input;               /* enum sluice_quantize_input, default SLUICE_PLAIN */
  int32_t scaling;             /* SLUICE_PER_VECTOR, SLUICE_PER_VECTOR_128 (default) or SLUICE_PER_BLOCK_128 */
  int32_t power_of_two_scales; /* not 0: scales are rounded up to powers of two. Default 0 */
  int32_t scale_layout;        /* as scale_layout_a of a sluice_problem, default SLUICE_ROW_MAJOR */
  /* Distances between rows, and between scales that are not adjacent, in elements. Default SLUICE_PACKED. */
  int64_t ldx, ldy, ldq, ld_scale;
} sluice_quantize_problem;

/* Device pointers for sluice_quantize(), host pointers for the others, aligned to their elements. */
typedef struct sluice_quantize_arguments {
  size_t struct_size;
  const void* x;
  const void* y; /* needed by SLUICE_SILU_TIMES */
  void* q;       /* bytes beyond k in a row are left alone; overlaps neither x nor y */
  float* scale;  /* sluice_quantize_scale_count() of them */
} sluice_quantize_arguments;

/* One matrix B of weights of 4 bits, k x n, that is to be packed as products take it: (q - z) * s, with q from 0 to 15, and s and z
 * (8 without zero points) those of a group of neighbouring elements of K in a column; a kernel may round it to `type`. */
typedef struct sluice_pack_w4_problem {
  size_t struct_size;
  int64_t n, k;            /* multiples of 8; k of 16 where its last group is short */
  int32_t group_size;      /* 32, 64, 128 (default), or 0: the whole column */
  int32_t zero_points;     /* not 0: each group has its own. Default 0 */
  int32_t source;          /* enum sluice_w4_source, default SLUICE_W4_PLAIN */
  int32_t type;            /* of the activations: SLUICE_BF16 (default) or SLUICE_FP16 */
  int32_t type_scales;     /* of those given: SLUICE_BF16 (default), SLUICE_FP16 or SLUICE_FP32 */
  int32_t zeros_as_stored; /* not 0: GPTQ's zero points are not stored less one ("gptq_v2"). Default 0 */
} sluice_pack_w4_problem;

/* Device pointers for sluice_pack_w4(), host pointers for the others. */
typedef struct sluice_pack_w4_arguments {
  size_t struct_size;
  const void* codes;    /* aligned to 4 bytes */
  const void* scales;   /* those and others to their elements */
  const void* zeros;    /* needed with zero points, NULL without */
  const int32_t* order; /* NULL, or a permutation of the rows of K: packed row i is row order[i] of the codes */
  void* packed;         /* sluice_packed_w4_bytes(), aligned to 256 */
} sluice_pack_w4_arguments;

/* How often each value occurs among n samples, exactly. The bin of x is x - first for integers, and (x - lower) * (bins / (upper - lower)),
 * rounded down, for floats; sluice/histogram.hpp says it to the last bit. A NaN counts nowhere. */
typedef struct sluice_histogram_problem {
  size_t struct_size;
  int64_t n;          /* 0 or more */
  int64_t bins;       /* 2 to 1048576; default 256 */
  int64_t first;      /* of integers: the value of bin 0 */
  float lower, upper; /* of floats: default 0 and 1 */
  int32_t sample;     /* enum sluice_histogram_sample, default SLUICE_SAMPLE_INT32 */
  int32_t count_type; /* enum sluice_count_type, default SLUICE_COUNT_INT32 */
  int32_t outside;    /* enum sluice_outside_values, default SLUICE_OUTSIDE_IGNORED */
  int32_t accumulate; /* not 0: adds to the counts. Default 0: overwrites them */
} sluice_histogram_problem;

/* Device pointers for sluice_histogram(), host pointers for the others, aligned to their elements. */
typedef struct sluice_histogram_arguments {
  size_t struct_size;
  const void* samples;
  void* counts; /* `bins` of them */
} sluice_histogram_arguments;

/* One to eight new tokens of each sequence look at its cache of keys and values: sluice/attention.hpp and docs/attention.md say what is
 * computed. Fields are those of the C++ structure. */
typedef struct sluice_attention_problem {
  size_t struct_size;
  int64_t batch;      /* sequences; default 1 */
  int64_t query_len;  /* new tokens of each, 1 to 8; default 1 */
  int64_t heads_q;    /* a multiple of heads_kv, up to 16 times it; default 1 */
  int64_t heads_kv;   /* default 1 */
  int64_t head_size;  /* 64, 128 or 256; default 128 */
  int64_t max_kv_len; /* no length is greater */
  int64_t page_size;  /* 16, 64 or 128 tokens; default 0: no pages */
  int64_t pages;      /* that K and V have each */
  int64_t kv_stride;  /* elements from a sequence or page to the next; default 0: they lie close */
  int64_t window;     /* tokens that each sees; default 0: all */
  double scale;       /* default 0: 1 / sqrt(head_size) */
  double soft_cap;    /* default 0: none */
  int32_t type;       /* of Q and O: SLUICE_BF16 (default) or SLUICE_FP16 */
  int32_t kv_type;    /* of K and V: the same, or SLUICE_E4M3; default SLUICE_BF16 */
  int32_t kv_layout;  /* enum sluice_kv_layout, default SLUICE_TOKENS_FIRST */
  int32_t causal;     /* not 0: no token sees later ones. Default 1 */
  int32_t lse;        /* not 0: logarithms of sums are written, too. Default 0 */
  /* not 0: lengths, block table, and keys and values of all but the new tokens may be read before the kernel before has ended. Default 0 */
  int32_t constant_cache;
} sluice_attention_problem;

/* Device pointers for sluice_attention(), host pointers for the others; q, k, v and o aligned to 16 bytes. */
typedef struct sluice_attention_arguments {
  size_t struct_size;
  const void* q; /* [batch][query_len][heads_q][head_size] */
  const void* k;
  const void* v;
  void* o;                    /* as q */
  float* lse;                 /* [batch][query_len][heads_q], when the problem has it */
  const int32_t* lengths;     /* [batch]; NULL: all are max_kv_len */
  const int32_t* block_table; /* [batch][block_table_stride], with pages */
  int64_t block_table_stride; /* at least max_kv_len / page_size, rounded up */
  const float* k_scales;      /* [heads_kv], of e4m3 */
  const float* v_scales;
  uint32_t* fault; /* NULL, or becomes 1 at a length that is none, 2 at a page that is none */
} sluice_attention_arguments;

typedef struct sluice_emulator_options {
  size_t struct_size;
  uint64_t seed;      /* the same seed, the same interleaving */
  int32_t asynchrony; /* enum sluice_asynchrony */
  /* Clusters that run at once. Fewer than the plan's grid models SMs that something else holds. 0: as many as make four CTAs. */
  int32_t resident_clusters;
  int32_t diagnose; /* default 1: look for races and misuse in every access. 0: only for deadlocks and wrong results */
  int32_t reserved; /* 0 */
} sluice_emulator_options;

typedef struct sluice_plan sluice_plan;

/* ---- Library ---- */

const char* sluice_version(void);     /* "0.1.0" */
int32_t sluice_built_with_cuda(void); /* 1 if the CUDA kernels are in this build */
int32_t sluice_built_with_emulator(void);
/* "invalid argument"; "?" for a number that is no status. */
const char* sluice_status_name(int32_t status);
/* The last failure on this thread; "" if there was none. It stays until the next failure on this thread: calls that succeed leave it. */
const char* sluice_last_error(void);
void sluice_string_free(char* text); /* NULL is allowed */

size_t sluice_kernel_count(void);
/* The name of a compiled kernel, NULL if index is too large. */
const char* sluice_kernel_name(size_t index);

/* ---- Structures ---- Errors: INVALID_ARGUMENT for a null pointer or a struct_size that is no multiple of 8 or below 16. */

sluice_status sluice_problem_init(sluice_problem* problem, size_t struct_size);
sluice_status sluice_device_init(sluice_device* device, size_t struct_size);
sluice_status sluice_plan_options_init(sluice_plan_options* options, size_t struct_size);
sluice_status sluice_plan_info_init(sluice_plan_info* info, size_t struct_size);
sluice_status sluice_arguments_init(sluice_arguments* arguments, size_t struct_size);
sluice_status sluice_emulator_options_init(sluice_emulator_options* options, size_t struct_size);
sluice_status sluice_quantize_problem_init(sluice_quantize_problem* problem, size_t struct_size);
sluice_status sluice_quantize_arguments_init(sluice_quantize_arguments* arguments, size_t struct_size);
sluice_status sluice_pack_w4_problem_init(sluice_pack_w4_problem* problem, size_t struct_size);
sluice_status sluice_pack_w4_arguments_init(sluice_pack_w4_arguments* arguments, size_t struct_size);
sluice_status sluice_histogram_problem_init(sluice_histogram_problem* problem, size_t struct_size);
sluice_status sluice_histogram_arguments_init(sluice_histogram_arguments* arguments, size_t struct_size);
sluice_status sluice_attention_problem_init(sluice_attention_problem* problem, size_t struct_size);
sluice_status sluice_attention_arguments_init(sluice_attention_arguments* arguments, size_t struct_size);

/* ---- Devices ---- `device` must have been initialised; its fields are filled in. */

size_t sluice_device_count(void);             /* built in */
const char* sluice_device_name(size_t index); /* NULL if index is too large */
/* Errors: NOT_FOUND, listing the names there are. */
sluice_status sluice_device_find(const char* name, sluice_device* device);
/* The GPU that is current in the CUDA runtime. Errors: UNSUPPORTED (a build without CUDA), WRONG_DEVICE (not Hopper), CUDA. */
sluice_status sluice_device_current(sluice_device* device);
/* Errors: BAD_FORMAT naming the field, INVALID_ARGUMENT, WRONG_DEVICE. */
sluice_status sluice_device_from_json(const char* json, sluice_device* device);
sluice_status sluice_device_to_json(const sluice_device* device, char** text);

/* ---- Plans ---- */

/* Decides how to compute the problem on the device. `options` may be NULL. The plan is destroyed with sluice_plan_destroy().
 * Errors: INVALID_ARGUMENT, UNSUPPORTED, TOO_LARGE, WRONG_DEVICE, OUT_OF_MEMORY. */
sluice_status sluice_plan_create(const sluice_problem* problem, const sluice_device* device, const sluice_plan_options* options,
                                 sluice_plan** plan);
/* A plan from what sluice_plan_to_json() wrote. Errors: BAD_FORMAT naming the field, UNSUPPORTED (a kernel this build lacks). */
sluice_status sluice_plan_from_json(const char* json, sluice_plan** plan);
void sluice_plan_destroy(sluice_plan* plan); /* NULL is allowed */

sluice_status sluice_plan_workspace_bytes(const sluice_plan* plan, size_t* bytes);
sluice_status sluice_plan_get_info(const sluice_plan* plan, sluice_plan_info* info);
/* The chosen kernel's name: "" when there is nothing to compute, NULL for a NULL plan. Lives as long as the plan. */
const char* sluice_plan_kernel_name(const sluice_plan* plan);

/* Why the plan is as it is, with `most` candidates at most. */
sluice_status sluice_plan_explain(const sluice_plan* plan, int32_t most, char** text);
sluice_status sluice_plan_to_string(const sluice_plan* plan, char** text);
sluice_status sluice_plan_to_json(const sluice_plan* plan, char** text);

/* The plan replayed on the CPU: the timeline of every SM as an SVG picture, as text `width_columns` wide, or as JSON. */
sluice_status sluice_plan_simulate_svg(const sluice_plan* plan, char** text);
sluice_status sluice_plan_simulate_text(const sluice_plan* plan, int32_t width_columns, char** text);
sluice_status sluice_plan_simulate_json(const sluice_plan* plan, char** text);

/* ---- Running ---- */

/* Once for each workspace, before the first plan uses it: clears the flags in its first 64 KiB, on `stream`. Every run leaves them cleared,
 * whatever plans follow one another in the workspace. Does nothing when workspace_bytes is 0. */
sluice_status sluice_prepare_workspace(void* workspace, size_t workspace_bytes, void* stream);

/* Enqueues the plan on `stream` (a cudaStream_t; NULL is the default stream) of the current device: no allocation, no synchronisation,
 * legal during stream capture. `workspace` is device memory of at least the plan's workspace_bytes, aligned to 256 bytes and
 * prepared, that nothing else uses until the work is done; NULL when the plan needs none.
 * Errors: INVALID_ARGUMENT, MISALIGNED, WORKSPACE_TOO_SMALL, WRONG_DEVICE, CUDA, UNSUPPORTED (a build without CUDA, a schedule that no
 * kernel runs). */
sluice_status sluice_run(const sluice_plan* plan, const sluice_arguments* arguments, void* workspace, size_t workspace_bytes, void* stream);

/* Called now and then, on the calling thread or another, with the share of the work done, from 0 to 1. */
typedef void (*sluice_progress)(double done, void* user);

/* The same work on the CPU, in host memory, by the plan's own division; returns when it is done. `threads` of 0 takes all cores;
 * `progress` may be NULL. Errors: INVALID_ARGUMENT, MISALIGNED, OUT_OF_MEMORY. */
sluice_status sluice_run_on_cpu(const sluice_plan* plan, const sluice_arguments* host_arguments, int32_t threads, sluice_progress progress,
                                void* user);

/* The plan's kernel on an emulated GPU, in host memory and in the calling thread; returns when it is done. What happens depends on the
 * plan, the data and the options alone. `options` and `progress` may be NULL.
 * Errors: INVALID_ARGUMENT, MISALIGNED, UNSUPPORTED (a build without the emulator, a schedule that no kernel runs), EMULATION: what the
 * kernel did wrong, who did it, where, and how to see it again. */
sluice_status sluice_run_on_emulator(const sluice_plan* plan, const sluice_arguments* host_arguments,
                                     const sluice_emulator_options* options, sluice_progress progress, void* user);

/* Where to run the plan when nothing speaks for one place: on the GPU if the current one is a Hopper and the build has kernels for it, else
 * on the emulator if that takes seconds, else by the reference. `backend` becomes one of enum sluice_backend; `why`, which may be NULL, a
 * string that says what spoke against those before it. */
sluice_status sluice_automatic_backend(const sluice_plan* plan, int32_t* backend, char** why);
const char* sluice_backend_name(int32_t backend); /* "cuda", "emulator", "reference"; "?" for any other number */

/* ---- Quantising ---- */

/* How many numbers `scale` must hold. Errors: INVALID_ARGUMENT, UNSUPPORTED, TOO_LARGE. */
sluice_status sluice_quantize_scale_count(const sluice_quantize_problem* problem, size_t* count);

/* Enqueues it on `stream` of the current device, as sluice_run() does: no allocation, no synchronisation, legal during stream capture.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED, TOO_LARGE, MISALIGNED, WRONG_DEVICE, CUDA. */
sluice_status sluice_quantize(const sluice_quantize_problem* problem, const sluice_quantize_arguments* arguments, void* stream);
/* The same in host memory, by plain loops; `threads` of 0 takes all cores. */
sluice_status sluice_quantize_on_cpu(const sluice_quantize_problem* problem, const sluice_quantize_arguments* host_arguments,
                                     int32_t threads);
/* The same by the kernel on an emulated GPU. `options` may be NULL. Errors: also UNSUPPORTED (a build without the emulator), EMULATION. */
sluice_status sluice_quantize_on_emulator(const sluice_quantize_problem* problem, const sluice_quantize_arguments* host_arguments,
                                          const sluice_emulator_options* options);

/* ---- Weights of 4 bits ---- */

/* Bytes of the packed matrix, a multiple of 256. Errors: INVALID_ARGUMENT, UNSUPPORTED, TOO_LARGE. */
sluice_status sluice_packed_w4_bytes(const sluice_pack_w4_problem* problem, size_t* bytes);

/* Enqueues it on `stream` of the current device, as sluice_run() does: no allocation, no synchronisation, legal during stream capture.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED, TOO_LARGE, MISALIGNED, WRONG_DEVICE, CUDA. */
sluice_status sluice_pack_w4(const sluice_pack_w4_problem* problem, const sluice_pack_w4_arguments* arguments, void* stream);
/* The same bytes in host memory, by plain loops; `threads` of 0 takes all cores. */
sluice_status sluice_pack_w4_on_cpu(const sluice_pack_w4_problem* problem, const sluice_pack_w4_arguments* host_arguments, int32_t threads);
/* The same by the kernel on an emulated GPU. `options` may be NULL. Errors: also UNSUPPORTED (a build without the emulator), EMULATION. */
sluice_status sluice_pack_w4_on_emulator(const sluice_pack_w4_problem* problem, const sluice_pack_w4_arguments* host_arguments,
                                         const sluice_emulator_options* options);
/* What packed weights are: n rows of k elements of the problem's type, of fp32 where that is SLUICE_E4M3. Of the problem, n, k, group_size,
 * zero_points and type count. */
sluice_status sluice_unpack_w4_on_cpu(const sluice_pack_w4_problem* problem, const void* host_packed, void* host_weights);

/* The order of K that brings the rows of each group together; group_of[i] is the group of row i (GPTQ's g_idx). Both hold k numbers.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED where a group but the last has other than group_size rows. */
sluice_status sluice_w4_order_of_groups(int64_t k, int32_t group_size, const int32_t* host_group_of, int32_t* host_order);

/* to[r][i] = from[r][order[i]] for m rows of k elements of 16 bits, on `stream` of the current device. Distances between rows in elements,
 * or SLUICE_PACKED. `to` overlaps neither of the others. Errors: as sluice_pack_w4(). */
sluice_status sluice_permute_columns(int64_t m, int64_t k, const void* from, int64_t ld_from, const int32_t* order, void* to, int64_t ld_to,
                                     void* stream);
/* The same in host memory. */
sluice_status sluice_permute_columns_on_cpu(int64_t m, int64_t k, const void* from, int64_t ld_from, const int32_t* order, void* to,
                                            int64_t ld_to);

/* ---- Histograms ---- */

/* Enqueues it on `stream` of the current device, as sluice_quantize() does.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED, TOO_LARGE, MISALIGNED, WRONG_DEVICE, CUDA. */
sluice_status sluice_histogram(const sluice_histogram_problem* problem, const sluice_histogram_arguments* arguments, void* stream);
/* The same in host memory, by plain loops; `threads` of 0 takes all cores. */
sluice_status sluice_histogram_on_cpu(const sluice_histogram_problem* problem, const sluice_histogram_arguments* host_arguments,
                                      int32_t threads);
/* The same by the kernels on an emulated GPU. `options` may be NULL. Errors: also UNSUPPORTED (a build without the emulator), EMULATION. */
sluice_status sluice_histogram_on_emulator(const sluice_histogram_problem* problem, const sluice_histogram_arguments* host_arguments,
                                           const sluice_emulator_options* options);

/* ---- Decode attention ---- `device`: that it runs on, as sluice_device_current() fills it in. */

/* What sluice_attention() needs, aligned to 256 bytes. Errors: INVALID_ARGUMENT, UNSUPPORTED, TOO_LARGE, MISALIGNED. */
sluice_status sluice_attention_workspace_bytes(const sluice_attention_problem* problem, const sluice_device* device, size_t* bytes);
/* Once for each workspace, before its first use: every launch leaves it as it found it. */
sluice_status sluice_attention_prepare_workspace(void* workspace, size_t workspace_bytes, void* stream);
/* Enqueues it on `stream` of the current device; lengths and pages are read when it runs, so that a graph may be replayed with others.
 * Errors: also WORKSPACE_TOO_SMALL, WRONG_DEVICE, CUDA. */
sluice_status sluice_attention(const sluice_attention_problem* problem, const sluice_device* device,
                               const sluice_attention_arguments* arguments, void* workspace, size_t workspace_bytes, void* stream);
/* The same in host memory, in double precision; `threads` of 0 takes all cores. */
sluice_status sluice_attention_on_cpu(const sluice_attention_problem* problem, const sluice_attention_arguments* host_arguments,
                                      int32_t threads);
/* The same by the kernel on an emulated GPU. `options` may be NULL. Errors: also UNSUPPORTED (a build without the emulator), EMULATION. */
sluice_status sluice_attention_on_emulator(const sluice_attention_problem* problem, const sluice_device* device,
                                           const sluice_attention_arguments* host_arguments, const sluice_emulator_options* options);

#ifdef __cplusplus
}
#endif

#endif /* SLUICE_SLUICE_H_ */
/* NOLINTEND(modernize-*, readability-identifier-naming) */
