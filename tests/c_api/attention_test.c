/* Decode attention from C: on the CPU and the emulator, and what is refused. */
#include <math.h>
#include <stdlib.h>

#include "checks.h"

enum { TOKENS = 40, SIZE = 64, HEADS = 2 };

static uint16_t q[HEADS * SIZE], k[TOKENS * SIZE], v[TOKENS * SIZE], o[HEADS * SIZE], emulated[HEADS * SIZE];

static float of_bf16(uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

int main(void) {
  const sluice_device device = make_device("h200");
  sluice_attention_problem problem;
  sluice_attention_arguments arguments;
  int32_t length = 30;
  float lse[HEADS];
  size_t bytes = 1;
  sluice_status status;
  int i;
  CHECK(sluice_attention_problem_init(&problem, sizeof problem) == SLUICE_OK);
  CHECK(problem.batch == 1 && problem.query_len == 1 && problem.head_size == 128 && problem.type == SLUICE_BF16 && problem.causal == 1);
  CHECK(problem.kv_layout == SLUICE_TOKENS_FIRST && problem.lse == 0 && problem.page_size == 0 && problem.constant_cache == 0);
  CHECK(sluice_attention_arguments_init(&arguments, sizeof arguments) == SLUICE_OK);
  CHECK(arguments.lengths == NULL && arguments.fault == NULL);

  /* Queries of zero weigh all tokens alike: the result is the mean of those that there are. */
  problem.heads_q = HEADS;
  problem.head_size = SIZE;
  problem.max_kv_len = TOKENS;
  problem.lse = 1;
  problem.constant_cache = 1;
  for (i = 0; i < TOKENS * SIZE; ++i) {
    k[i] = bf16((float)(i % 5));
    v[i] = bf16(i / SIZE < length ? (float)(i % SIZE % 8) : NAN);
  }
  CHECK_REFUSED(sluice_attention_on_cpu(&problem, &arguments, 0), SLUICE_INVALID_ARGUMENT, "null");
  arguments.q = q;
  arguments.k = k;
  arguments.v = v;
  arguments.o = o;
  arguments.lse = lse;
  arguments.lengths = &length;
  CHECK(sluice_attention_on_cpu(&problem, &arguments, 1) == SLUICE_OK);
  for (i = 0; i < HEADS * SIZE; ++i) CHECK(of_bf16(o[i]) == (float)(i % SIZE % 8));
  for (i = 0; i < HEADS; ++i) CHECK(fabsf(lse[i] - logf((float)length)) < 1e-5f);
  CHECK_REFUSED(sluice_attention_on_cpu(&problem, &arguments, -1), SLUICE_INVALID_ARGUMENT, "threads = -1");

  CHECK(sluice_attention_workspace_bytes(&problem, &device, &bytes) == SLUICE_OK);
  CHECK_REFUSED(sluice_attention_workspace_bytes(&problem, NULL, &bytes), SLUICE_INVALID_ARGUMENT, "device");
  CHECK_REFUSED(sluice_attention_workspace_bytes(&problem, &device, NULL), SLUICE_INVALID_ARGUMENT, "bytes");
  arguments.o = emulated;
  status = sluice_attention_on_emulator(&problem, &device, &arguments, NULL);
  if (sluice_built_with_emulator()) {
    CHECK(status == SLUICE_OK);
    for (i = 0; i < HEADS * SIZE; ++i) CHECK(emulated[i] == o[i]);
  } else {
    CHECK(status == SLUICE_UNSUPPORTED);
  }

  problem.kv_layout = 2;
  CHECK_REFUSED(sluice_attention_on_cpu(&problem, &arguments, 0), SLUICE_INVALID_ARGUMENT, "sluice_kv_layout");
  problem.kv_layout = SLUICE_TOKENS_FIRST;
  problem.head_size = 96;
  CHECK_REFUSED(sluice_attention_on_emulator(&problem, &device, &arguments, NULL), SLUICE_UNSUPPORTED, "head_size = 96");
  CHECK_REFUSED(sluice_attention(NULL, &device, &arguments, NULL, 0, NULL), SLUICE_INVALID_ARGUMENT, "problem");
  CHECK_REFUSED(sluice_attention(&problem, &device, NULL, NULL, 0, NULL), SLUICE_UNSUPPORTED, "head_size = 96");
  if (failures != 0) fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
