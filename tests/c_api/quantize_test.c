/* Quantising from C: numbers and scales on the CPU and the emulator, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sluice/sluice.h"

enum { M = 3, K = 130, BLOCKS = 2 };

static int failures = 0;

static void check(int holds, const char* what, int line) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "line %d: %s does not hold; last error: %s\n", line, what, sluice_last_error());
}
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)

static sluice_quantize_problem make_problem(void) {
  sluice_quantize_problem problem;
  CHECK(sluice_quantize_problem_init(&problem, sizeof problem) == SLUICE_OK);
  problem.m = M;
  problem.k = K;
  problem.type_x = SLUICE_FP32;
  return problem;
}

static void test_defaults(void) {
  sluice_quantize_problem problem;
  CHECK(sluice_quantize_problem_init(&problem, sizeof problem) == SLUICE_OK);
  CHECK(problem.struct_size == sizeof problem && problem.m == 0 && problem.type_x == SLUICE_BF16 && problem.type_q == SLUICE_E4M3);
  CHECK(problem.scaling == SLUICE_PER_VECTOR_128 && problem.input == SLUICE_PLAIN && problem.ldx == SLUICE_PACKED);
  CHECK(problem.ld_scale == SLUICE_PACKED && problem.scale_layout == SLUICE_ROW_MAJOR && problem.power_of_two_scales == 0);
}

static void test_numbers(void) {
  float x[M * K], scales[M * BLOCKS], emulated_scales[M * BLOCKS];
  unsigned char q[M * K], emulated[M * K];
  sluice_quantize_problem problem = make_problem();
  sluice_quantize_arguments arguments;
  sluice_status status;
  size_t count = 0;
  int i;
  for (i = 0; i < M * K; ++i) x[i] = (i % K < 128 ? 448.0f : 112.0f) * (i / K + 1);
  CHECK(sluice_quantize_scale_count(&problem, &count) == SLUICE_OK && count == M * BLOCKS);
  CHECK(sluice_quantize_arguments_init(&arguments, sizeof arguments) == SLUICE_OK);
  arguments.x = x;
  arguments.q = q;
  arguments.scale = scales;
  CHECK(sluice_quantize_on_cpu(&problem, &arguments, 1) == SLUICE_OK);
  for (i = 0; i < M; ++i) CHECK(scales[2 * i] == (float)(i + 1) && scales[2 * i + 1] == 0.25f * (float)(i + 1));
  for (i = 0; i < M * K; ++i) CHECK(q[i] == 0x7e);

  arguments.q = emulated;
  arguments.scale = emulated_scales;
  status = sluice_quantize_on_emulator(&problem, &arguments, NULL);
  if (sluice_built_with_emulator()) {
    CHECK(status == SLUICE_OK);
    CHECK(memcmp(q, emulated, sizeof q) == 0 && memcmp(scales, emulated_scales, sizeof scales) == 0);
  } else {
    CHECK(status == SLUICE_UNSUPPORTED);
  }

  problem.input = SLUICE_SILU_TIMES;
  CHECK(sluice_quantize_on_cpu(&problem, &arguments, 0) == SLUICE_INVALID_ARGUMENT);
  CHECK(strstr(sluice_last_error(), "y is null") != NULL);
  arguments.y = x;
  CHECK(sluice_quantize_on_cpu(&problem, &arguments, 0) == SLUICE_OK);
}

static void test_refusals(void) {
  sluice_quantize_problem problem = make_problem();
  sluice_quantize_arguments arguments;
  size_t count = 7;
  CHECK(sluice_quantize_arguments_init(&arguments, sizeof arguments) == SLUICE_OK);
  CHECK(sluice_quantize(NULL, &arguments, NULL) == SLUICE_INVALID_ARGUMENT);
  CHECK(sluice_quantize(&problem, NULL, NULL) == SLUICE_INVALID_ARGUMENT);
  CHECK(sluice_quantize(&problem, &arguments, NULL) == (sluice_built_with_cuda() ? SLUICE_INVALID_ARGUMENT : SLUICE_UNSUPPORTED));
  CHECK(sluice_quantize_on_cpu(&problem, &arguments, 0) == SLUICE_INVALID_ARGUMENT);
  CHECK(strstr(sluice_last_error(), "x is null") != NULL);
  CHECK(sluice_quantize_on_cpu(&problem, &arguments, -1) == SLUICE_INVALID_ARGUMENT);
  problem.scaling = SLUICE_PER_TENSOR;
  CHECK(sluice_quantize_scale_count(&problem, &count) == SLUICE_UNSUPPORTED && count == 7);
  problem.scaling = 17;
  CHECK(sluice_quantize_scale_count(&problem, &count) == SLUICE_INVALID_ARGUMENT);
  CHECK(strstr(sluice_last_error(), "sluice_scaling") != NULL);
  problem = make_problem();
  problem.struct_size = 12;
  CHECK(sluice_quantize_scale_count(&problem, &count) == SLUICE_INVALID_ARGUMENT);
}

int main(void) {
  test_defaults();
  test_numbers();
  test_refusals();
  if (failures != 0) fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
