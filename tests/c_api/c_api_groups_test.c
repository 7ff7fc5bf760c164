/* Products of groups through the C interface. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

/* Three ragged groups, the middle one without rows, and a row of none before and behind them; then the same sizes, masked. */
static void test_groups(void) {
  enum { kGroups = 3, kRows = 20, kColumns = 24, kDepth = 40 };
  static const int32_t offsets[kGroups + 1] = {1, 8, 8, 19}, counts[kGroups] = {7, 0, 30};
  static uint16_t rows[kGroups * kRows * kDepth], weights[kGroups * kColumns * kDepth];
  static float sums[kGroups * kRows * kColumns];
  const sluice_device device = make_device("h10");
  sluice_problem problem = make_problem(kRows, kColumns, kDepth);
  sluice_plan *plan = NULL, *again = NULL;
  sluice_arguments arguments;
  char* text = NULL;
  int grouping, g, i, j, k;
  CHECK(problem.grouping == SLUICE_NO_GROUPS && problem.expected_rows == 0 && problem.most_rows == 0);
  problem.batch = kGroups;
  problem.type_d = SLUICE_FP32;
  problem.alignment_a_bytes = problem.alignment_b_bytes = 2;
  problem.alignment_d_bytes = 4;
  problem.expected_rows = 7;
  problem.most_rows = 11;
  for (i = 0; i < kGroups * kRows; ++i)
    for (k = 0; k < kDepth; ++k) rows[i * kDepth + k] = bf16(value_a(i, k));
  for (i = 0; i < kGroups * kColumns; ++i) /* columns of B are contiguous */
    for (k = 0; k < kDepth; ++k) weights[i * kDepth + k] = bf16(value_b(k, i));

  for (grouping = SLUICE_RAGGED_GROUPS; grouping <= SLUICE_MASKED_GROUPS; ++grouping) {
    const int ragged = grouping == SLUICE_RAGGED_GROUPS;
    int wrong = 0, written = 0, expected = 0;
    problem.grouping = grouping;
    CHECK(sluice_plan_create(&problem, &device, NULL, &plan) == SLUICE_OK);
    CHECK(sluice_plan_to_json(plan, &text) == SLUICE_OK);
    CHECK(strstr(text, ragged ? "\"grouping\": \"ragged\"" : "\"grouping\": \"masked\"") != NULL);
    CHECK(strstr(text, "\"expected_rows\": 7") != NULL);
    CHECK(strstr(text, "\"most_rows\": 11") != NULL);
    CHECK(sluice_plan_from_json(text, &again) == SLUICE_OK);
    sluice_string_free(text);

    CHECK(sluice_arguments_init(&arguments, sizeof arguments) == SLUICE_OK);
    arguments.a = rows;
    arguments.b = weights;
    arguments.d = sums;
    CHECK_REFUSED(sluice_run_on_cpu(again, &arguments, 1, NULL, NULL), SLUICE_INVALID_ARGUMENT, "groups is null");
    arguments.groups = ragged ? offsets : counts;
    /* To an older library's caller the field does not exist. */
    arguments.struct_size = offsetof(sluice_arguments, groups);
    CHECK_REFUSED(sluice_run_on_cpu(again, &arguments, 1, NULL, NULL), SLUICE_INVALID_ARGUMENT, "groups is null");
    arguments.struct_size = sizeof arguments;
    for (i = 0; i < kGroups * kRows * kColumns; ++i) sums[i] = NAN;
    CHECK(sluice_run_on_cpu(again, &arguments, 1, NULL, NULL) == SLUICE_OK);
    for (g = 0; g < kGroups; ++g) {
      const int first = ragged ? offsets[g] : g * kRows;
      const int end = ragged ? offsets[g + 1] : first + (counts[g] < kRows ? counts[g] : kRows);
      for (i = first; i < end; ++i)
        for (j = 0; j < kColumns; ++j) {
          float sum = 0;
          for (k = 0; k < kDepth; ++k) sum += value_a(i, k) * value_b(k, g * kColumns + j);
          if (sums[i * kColumns + j] != sum) ++wrong;
          ++expected;
        }
    }
    for (i = 0; i < kGroups * kRows * kColumns; ++i) written += !isnan(sums[i]);
    CHECK(wrong == 0);
    CHECK(written == expected);
    sluice_plan_destroy(again);
    sluice_plan_destroy(plan);
  }
  /* To a caller of 216 bytes a problem has no groups. */
  problem.struct_size = offsetof(sluice_problem, expected_rows);
  CHECK(problem.struct_size == 216);
  CHECK(sluice_plan_create(&problem, &device, NULL, &plan) == SLUICE_OK);
  CHECK(sluice_plan_to_json(plan, &text) == SLUICE_OK);
  CHECK(strstr(text, "grouping") == NULL);
  sluice_string_free(text);
  sluice_plan_destroy(plan);
}

/* FP8 along K: three groups of 128, none and 256. Each element of A is 1 and of B 2; the scales of A are 1, 2 and 4 from block to block. */
static void test_fp8_groups_along_k(void) {
  enum { kGroups = 3, kRows = 16, kColumns = 32, kDepth = 384, kBlocks = kDepth / 128 };
  static const int32_t offsets[kGroups + 1] = {0, 128, 128, 384}, between[kGroups + 1] = {0, 128, 200, 384};
  static const float expected[kGroups] = {128 * 2 * 1, 0, 128 * 2 * (2 + 4)};
  static uint8_t memory[(kRows + kColumns) * kDepth + 16];
  uint8_t* const a = memory + (16 - (uintptr_t)memory % 16) % 16;
  uint8_t* const b = a + kRows * kDepth;
  static float scales[kRows * kBlocks], sums[kGroups * kRows * kColumns];
  const sluice_device device = make_device("h10");
  sluice_problem problem = make_problem(kRows, kColumns, kDepth);
  sluice_plan* plan = NULL;
  sluice_arguments arguments;
  int i, wrong = 0;
  memset(a, 0x38, kRows * kDepth);    /* 1 in e4m3 */
  memset(b, 0x40, kColumns * kDepth); /* 2 */
  for (i = 0; i < kRows * kBlocks; ++i) scales[i] = (float)(1 << i % kBlocks);
  problem.batch = kGroups;
  problem.grouping = SLUICE_GROUPS_ALONG_K;
  problem.type_a = problem.type_b = SLUICE_E4M3;
  problem.type_d = SLUICE_FP32;
  problem.scaling_a = SLUICE_PER_VECTOR_128;
  CHECK(sluice_plan_create(&problem, &device, NULL, &plan) == SLUICE_OK);
  CHECK(sluice_arguments_init(&arguments, sizeof arguments) == SLUICE_OK);
  arguments.a = a;
  arguments.b = b;
  arguments.d = sums;
  arguments.scale_a = scales;
  arguments.groups = between;
  CHECK_REFUSED(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL), SLUICE_INVALID_ARGUMENT, "groups[2] = 200");
  arguments.groups = offsets;
  CHECK(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL) == SLUICE_OK);
  for (i = 0; i < kGroups * kRows * kColumns; ++i) wrong += sums[i] != expected[i / (kRows * kColumns)];
  CHECK(wrong == 0);
  sluice_plan_destroy(plan);
  problem.k = 400;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_UNSUPPORTED, "pad to 512");
}

/* Three products of different sizes, one of them of nothing: the arrays of pointers and sizes are one of structures. */
static void test_general_groups(void) {
  enum { kGroups = 3, kRows = 20, kColumns = 24, kDepth = 40, kRoom = kRows * kDepth + kColumns * kDepth };
  static const int32_t sizes[kGroups][3] = {{20, 24, 40}, {5, 0, 8}, {3, 17, 16}};
  static uint16_t memory[kGroups * kRoom + 8];
  static float sums[kGroups][kRows * kColumns];
  uint16_t* const elements = memory + (16 - (uintptr_t)memory % 16) % 16 / sizeof(uint16_t);
  const sluice_device device = make_device("h10");
  sluice_problem problem = make_problem(kRows, kColumns, kDepth);
  sluice_group_arguments groups[kGroups];
  sluice_plan* plan = NULL;
  sluice_arguments arguments;
  size_t workspace_bytes = 0;
  int g, i, j, k, wrong = 0;
  memset(groups, 0, sizeof groups);
  for (g = 0; g < kGroups; ++g) {
    uint16_t *const a = elements + g * kRoom, *const b = a + kRows * kDepth;
    const int32_t m = sizes[g][0], n = sizes[g][1], depth = sizes[g][2];
    for (i = 0; i < m; ++i)
      for (k = 0; k < depth; ++k) a[i * depth + k] = bf16(value_a(i + g, k));
    for (j = 0; j < n; ++j)
      for (k = 0; k < depth; ++k) b[j * kDepth + k] = bf16(value_b(k, j + g));
    for (i = 0; i < kRows * kColumns; ++i) sums[g][i] = NAN;
    groups[g].m = m;
    groups[g].n = n;
    groups[g].k = depth;
    groups[g].lda = groups[g].ldc = SLUICE_PACKED;
    groups[g].ldb = kDepth;
    groups[g].ldd = kColumns;
    if (n == 0) continue; /* no pointer is looked at */
    groups[g].a = a;
    groups[g].b = b;
    groups[g].d = sums[g];
  }
  problem.batch = kGroups;
  problem.type_d = SLUICE_FP32;
  problem.alignment_d_bytes = 4;
  problem.grouping = SLUICE_GENERAL_GROUPS;
  CHECK(sluice_plan_create(&problem, &device, NULL, &plan) == SLUICE_OK);
  CHECK(sluice_plan_workspace_bytes(plan, &workspace_bytes) == SLUICE_OK);
  CHECK(workspace_bytes > 65536);
  CHECK(sluice_arguments_init(&arguments, sizeof arguments) == SLUICE_OK);
  CHECK(arguments.group_arguments == NULL && arguments.group_arguments_size == 0);
  CHECK_REFUSED(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL), SLUICE_INVALID_ARGUMENT, "group_arguments is null");
  arguments.group_arguments = groups;
  CHECK_REFUSED(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL), SLUICE_INVALID_ARGUMENT, "group_arguments_size = 0");
  arguments.group_arguments_size = sizeof(sluice_group_arguments);
  arguments.d = sums;
  CHECK_REFUSED(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL), SLUICE_INVALID_ARGUMENT, "d is not null");
  arguments.d = NULL;
  CHECK(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL) == SLUICE_OK);
  for (g = 0; g < kGroups; ++g)
    for (i = 0; i < kRows; ++i)
      for (j = 0; j < kColumns; ++j) {
        const float got = sums[g][i * kColumns + j];
        float sum = 0;
        if (i >= sizes[g][0] || j >= sizes[g][1]) {
          wrong += !isnan(got);
          continue;
        }
        for (k = 0; k < sizes[g][2]; ++k) sum += value_a(i + g, k) * value_b(k, j + g);
        wrong += got != sum;
      }
  CHECK(wrong == 0);
  sluice_plan_destroy(plan);
}

/* Two products in FP8, each with scales of its own: ones as operands, so that sums are sums of scales. */
static void test_general_fp8_groups(void) {
  enum { kGroups = 2, kRows = 5, kColumns = 130, kDepth = 160, kBlocks = 2 };
  static const unsigned char kOne = 0x38; /* of e4m3 */
  static const int32_t sizes[kGroups][3] = {{5, 130, 160}, {2, 7, 96}};
  static unsigned char memory[(kRows + kColumns) * kDepth + 16];
  static float scales_a[kGroups][kRows * kBlocks], scales_b[kGroups][2 * kBlocks], sums[kGroups][kRows * kColumns];
  unsigned char* const a = memory + (16 - (uintptr_t)memory % 16) % 16;
  const sluice_device device = make_device("h10");
  sluice_problem problem = make_problem(kRows, kColumns, kDepth);
  sluice_group_arguments groups[kGroups];
  sluice_plan* plan = NULL;
  sluice_arguments arguments;
  int g, i, j, block, wrong = 0;
  memset(groups, 0, sizeof groups);
  memset(a, kOne, (kRows + kColumns) * kDepth);
  for (g = 0; g < kGroups; ++g) {
    for (i = 0; i < kRows * kBlocks; ++i) scales_a[g][i] = (float)(g + i % 3 + 1);
    for (i = 0; i < 2 * kBlocks; ++i) scales_b[g][i] = (float)(2 * g + i + 1);
    groups[g].m = sizes[g][0];
    groups[g].n = sizes[g][1];
    groups[g].k = sizes[g][2];
    groups[g].a = a;
    groups[g].b = a + kRows * kDepth;
    groups[g].d = sums[g];
    groups[g].scale_a = scales_a[g];
    groups[g].scale_b = scales_b[g];
    groups[g].lda = groups[g].ldb = kDepth;
    groups[g].ldc = groups[g].ldd = groups[g].ld_scale_b = SLUICE_PACKED;
    groups[g].ld_scale_a = kBlocks;
  }
  problem.batch = kGroups;
  problem.type_a = problem.type_b = SLUICE_E4M3;
  problem.type_d = SLUICE_FP32;
  problem.scaling_a = SLUICE_PER_VECTOR_128;
  problem.scaling_b = SLUICE_PER_BLOCK_128;
  problem.alignment_d_bytes = 4;
  problem.grouping = SLUICE_GENERAL_GROUPS;
  CHECK(sluice_plan_create(&problem, &device, NULL, &plan) == SLUICE_OK);
  CHECK(sluice_arguments_init(&arguments, sizeof arguments) == SLUICE_OK);
  arguments.group_arguments = groups;
  arguments.group_arguments_size = sizeof(sluice_group_arguments);
  arguments.scale_a = scales_a[0];
  CHECK_REFUSED(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL), SLUICE_INVALID_ARGUMENT, "scale_a is not null, but general groups");
  arguments.scale_a = NULL;
  groups[1].scale_b = NULL;
  CHECK_REFUSED(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL), SLUICE_INVALID_ARGUMENT, "group 1: scale_b is null");
  groups[1].scale_b = scales_b[1];
  CHECK(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL) == SLUICE_OK);
  for (g = 0; g < kGroups; ++g)
    for (i = 0; i < sizes[g][0]; ++i)
      for (j = 0; j < sizes[g][1]; ++j) {
        const int blocks = (sizes[g][2] + 127) / 128;
        float sum = 0;
        for (block = 0; block < blocks; ++block) {
          const int depth = block + 1 < blocks ? 128 : sizes[g][2] - 128 * block;
          sum += (float)depth * scales_a[g][i * kBlocks + block] * scales_b[g][j / 128 * blocks + block];
        }
        wrong += sums[g][i * sizes[g][1] + j] != sum;
      }
  CHECK(wrong == 0);
  sluice_plan_destroy(plan);
}

int main(void) {
  test_groups();
  test_general_groups();
  test_general_fp8_groups();
  test_fp8_groups_along_k();
  if (failures != 0) fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
