/* Packing weights of 4 bits from C: bytes on the CPU and the emulator, what they stand for, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

enum { N = 8, K = 64, GROUP = 32, GROUPS = K / GROUP };

static sluice_pack_w4_problem make_pack_problem(void) {
  sluice_pack_w4_problem problem;
  CHECK(sluice_pack_w4_problem_init(&problem, sizeof problem) == SLUICE_OK);
  problem.n = N;
  problem.k = K;
  problem.group_size = GROUP;
  problem.source = SLUICE_W4_GPTQ;
  problem.type_scales = SLUICE_FP32;
  return problem;
}

static void test_defaults(void) {
  sluice_pack_w4_problem problem;
  CHECK(sluice_pack_w4_problem_init(&problem, sizeof problem) == SLUICE_OK);
  CHECK(problem.struct_size == sizeof problem && problem.n == 0 && problem.k == 0 && problem.group_size == 128);
  CHECK(problem.zero_points == 0 && problem.source == SLUICE_W4_PLAIN && problem.zeros_as_stored == 0);
  CHECK(problem.type == SLUICE_BF16 && problem.type_scales == SLUICE_BF16);
}

/* Column c's element k is code (c + k) % 16, its zero point c + 1 (stored less one), and its scale 2^-group. */
static void test_weights(void) {
  static uint32_t codes[K / 8 * N], zeros[GROUPS];
  static float scales[GROUPS * N];
  static uint16_t weights[N * K], a[K], permuted[K];
  static int32_t group_of[K], order[K];
  sluice_pack_w4_problem problem = make_pack_problem();
  sluice_pack_w4_arguments arguments;
  sluice_status status;
  size_t bytes = 0;
  int c, k;
  void *room, *emulated_room;
  char *packed, *emulated;
  problem.zero_points = 1;
  for (k = 0; k < K; ++k) {
    for (c = 0; c < N; ++c) codes[k / 8 * N + c] |= (uint32_t)((c + k) % 16) << (4 * (k % 8));
    group_of[k] = k % GROUPS;
  }
  for (c = 0; c < GROUPS * N; ++c) scales[c] = c / N == 0 ? 1.0f : 0.5f;
  for (c = 0; c < N; ++c) zeros[0] |= (uint32_t)c << (4 * c);
  zeros[1] = zeros[0];
  CHECK(sluice_packed_w4_bytes(&problem, &bytes) == SLUICE_OK && bytes > 0 && bytes % 256 == 0);
  room = malloc(bytes + 256);
  emulated_room = malloc(bytes + 256);
  packed = (char*)room + (256 - (uintptr_t)room % 256);
  emulated = (char*)emulated_room + (256 - (uintptr_t)emulated_room % 256);
  CHECK(sluice_w4_order_of_groups(K, GROUP, group_of, order) == SLUICE_OK);
  for (k = 0; k < K; ++k) CHECK(order[k] == (k % GROUP) * GROUPS + k / GROUP);
  CHECK(sluice_pack_w4_arguments_init(&arguments, sizeof arguments) == SLUICE_OK);
  arguments.codes = codes;
  arguments.scales = scales;
  arguments.zeros = zeros;
  arguments.order = order;
  arguments.packed = packed;
  CHECK(sluice_pack_w4_on_cpu(&problem, &arguments, 1) == SLUICE_OK);
  CHECK(sluice_unpack_w4_on_cpu(&problem, packed, weights) == SLUICE_OK);
  for (c = 0; c < N; ++c)
    for (k = 0; k < K; ++k) {
      const float scale = k / GROUP == 0 ? 1.0f : 0.5f;
      CHECK(weights[c * K + k] == bf16((float)((c + order[k]) % 16 - (c + 1)) * scale));
    }
  arguments.packed = emulated;
  status = sluice_pack_w4_on_emulator(&problem, &arguments, NULL);
  CHECK(status == (sluice_built_with_emulator() ? SLUICE_OK : SLUICE_UNSUPPORTED));
  if (status == SLUICE_OK) CHECK(memcmp(packed, emulated, bytes) == 0);
  for (k = 0; k < K; ++k) a[k] = (uint16_t)k;
  CHECK(sluice_permute_columns_on_cpu(1, K, a, SLUICE_PACKED, order, permuted, SLUICE_PACKED) == SLUICE_OK);
  for (k = 0; k < K; ++k) CHECK(permuted[k] == order[k]);
  free(room);
  free(emulated_room);
}

/* Ones times code (c + k) % 16 less 8, by the CPU: the format travels from the structure to the plan. */
static void test_product(void) {
  enum { M = 2 };
  static uint8_t codes[N * K / 2];
  static float d[M * N];
  static uint16_t scales[GROUPS * N];
  static double a_room[M * K / 4 + 2]; /* 16-bit numbers, aligned to 16 bytes */
  uint16_t* a = (uint16_t*)(void*)((char*)a_room + (16 - (uintptr_t)a_room % 16) % 16);
  sluice_pack_w4_problem packing = make_pack_problem();
  sluice_pack_w4_arguments pack_arguments;
  sluice_problem problem;
  sluice_device device;
  sluice_arguments arguments;
  sluice_plan* plan = NULL;
  char* text = NULL;
  void* room;
  size_t bytes = 0;
  int c, k, row;
  packing.source = SLUICE_W4_PLAIN;
  packing.type_scales = SLUICE_BF16;
  for (c = 0; c < N; ++c)
    for (k = 0; k < K; ++k) codes[(c * K + k) / 2] |= (uint8_t)((c + k) % 16 << (k % 2 * 4));
  for (c = 0; c < GROUPS * N; ++c) scales[c] = bf16(c % GROUPS == 0 ? 1.0f : 0.5f);
  for (k = 0; k < M * K; ++k) a[k] = bf16(1.0f);
  CHECK(sluice_packed_w4_bytes(&packing, &bytes) == SLUICE_OK);
  room = malloc(bytes + 256);
  CHECK(sluice_pack_w4_arguments_init(&pack_arguments, sizeof pack_arguments) == SLUICE_OK);
  pack_arguments.codes = codes;
  pack_arguments.scales = scales;
  pack_arguments.packed = (char*)room + (256 - (uintptr_t)room % 256);
  CHECK(sluice_pack_w4_on_cpu(&packing, &pack_arguments, 1) == SLUICE_OK);

  CHECK(sluice_device_init(&device, sizeof device) == SLUICE_OK);
  CHECK(sluice_device_find("h200", &device) == SLUICE_OK);
  CHECK(sluice_problem_init(&problem, sizeof problem) == SLUICE_OK);
  CHECK(problem.w4_group_size == 128 && problem.w4_zero_points == 0);
  problem.m = M;
  problem.n = N;
  problem.k = K;
  problem.type_b = SLUICE_INT4;
  problem.type_d = SLUICE_FP32;
  problem.w4_group_size = 48;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_UNSUPPORTED, "w4.group_size = 48");
  problem.w4_group_size = GROUP;
  problem.w4_zero_points = 1;
  CHECK(sluice_plan_create(&problem, &device, NULL, &plan) == SLUICE_OK);
  CHECK(sluice_plan_to_json(plan, &text) == SLUICE_OK);
  CHECK(strstr(text, "\"zero_points\": true") != NULL && strstr(text, "\"group_size\": 32") != NULL);
  sluice_string_free(text);
  sluice_plan_destroy(plan);
  problem.w4_zero_points = 0;
  CHECK(sluice_plan_create(&problem, &device, NULL, &plan) == SLUICE_OK);
  CHECK(sluice_arguments_init(&arguments, sizeof arguments) == SLUICE_OK);
  arguments.a = a;
  arguments.b = pack_arguments.packed;
  arguments.d = d;
  CHECK(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL) == SLUICE_OK);
  /* Each group has every code twice: 2 * -8 is the sum of all less 8, times 1 and 0.5. */
  for (row = 0; row < M; ++row)
    for (c = 0; c < N; ++c) CHECK(d[row * N + c] == -16.0f - 8.0f);
  sluice_plan_destroy(plan);
  free(room);
}

static void test_refusals(void) {
  sluice_pack_w4_problem problem = make_pack_problem();
  sluice_pack_w4_arguments arguments;
  size_t bytes = 7;
  int32_t numbers[K] = {0};
  CHECK(sluice_pack_w4_arguments_init(&arguments, sizeof arguments) == SLUICE_OK);
  CHECK_REFUSED(sluice_pack_w4(NULL, &arguments, NULL), SLUICE_INVALID_ARGUMENT, "problem is a null pointer");
  CHECK_REFUSED(sluice_pack_w4(&problem, NULL, NULL), SLUICE_INVALID_ARGUMENT, "arguments is a null pointer");
  CHECK(sluice_pack_w4(&problem, &arguments, NULL) == (sluice_built_with_cuda() ? SLUICE_INVALID_ARGUMENT : SLUICE_UNSUPPORTED));
  CHECK_REFUSED(sluice_pack_w4_on_cpu(&problem, &arguments, 0), SLUICE_INVALID_ARGUMENT, "codes is null");
  CHECK_REFUSED(sluice_pack_w4_on_cpu(&problem, &arguments, -1), SLUICE_INVALID_ARGUMENT, "threads = -1");
  CHECK_REFUSED(sluice_unpack_w4_on_cpu(&problem, NULL, numbers), SLUICE_INVALID_ARGUMENT, "packed is null");
  problem.group_size = 48;
  CHECK_REFUSED(sluice_packed_w4_bytes(&problem, &bytes), SLUICE_UNSUPPORTED, "group_size = 48");
  CHECK(bytes == 7);
  problem = make_pack_problem();
  problem.source = 3;
  CHECK_REFUSED(sluice_packed_w4_bytes(&problem, &bytes), SLUICE_INVALID_ARGUMENT, "sluice_w4_source");
  problem = make_pack_problem();
  problem.struct_size = 12;
  CHECK_REFUSED(sluice_packed_w4_bytes(&problem, &bytes), SLUICE_INVALID_ARGUMENT, "struct_size = 12");
  CHECK_REFUSED(sluice_w4_order_of_groups(K, GROUP, numbers, numbers), SLUICE_UNSUPPORTED, "group 0 has 64 rows, not 32");
  CHECK_REFUSED(sluice_permute_columns_on_cpu(1, K, numbers, 5, numbers, &bytes, SLUICE_PACKED), SLUICE_INVALID_ARGUMENT, "ld_from = 5");
  CHECK(sluice_permute_columns(1, K, NULL, SLUICE_PACKED, numbers, NULL, SLUICE_PACKED, NULL) ==
        (sluice_built_with_cuda() ? SLUICE_INVALID_ARGUMENT : SLUICE_UNSUPPORTED));
}

int main(void) {
  test_defaults();
  test_weights();
  test_product();
  test_refusals();
  if (failures != 0) fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
