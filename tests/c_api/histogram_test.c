/* Counting from C: on the CPU and the emulator, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sluice/sluice.h"

enum { N = 100, BINS = 7 };

static int failures = 0;

static void check(int holds, const char* what, int line) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "line %d: %s does not hold; last error: %s\n", line, what, sluice_last_error());
}
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)

int main(void) {
  int32_t samples[N], counts[BINS], emulated[BINS];
  sluice_histogram_problem problem;
  sluice_histogram_arguments arguments;
  sluice_status status;
  int i;
  CHECK(sluice_histogram_problem_init(&problem, sizeof problem) == SLUICE_OK);
  CHECK(problem.bins == 256 && problem.lower == 0.0f && problem.upper == 1.0f && problem.sample == SLUICE_SAMPLE_INT32);
  CHECK(sluice_histogram_arguments_init(&arguments, sizeof arguments) == SLUICE_OK);
  for (i = 0; i < N; ++i) samples[i] = i % 10;
  problem.n = N;
  problem.bins = BINS;
  problem.first = 1;
  CHECK(sluice_histogram_on_cpu(&problem, &arguments, 0) == SLUICE_INVALID_ARGUMENT);
  CHECK(strstr(sluice_last_error(), "samples is null") != NULL);
  arguments.samples = samples;
  arguments.counts = counts;
  CHECK(sluice_histogram_on_cpu(&problem, &arguments, 1) == SLUICE_OK);
  for (i = 0; i < BINS; ++i) CHECK(counts[i] == 10);
  CHECK(sluice_histogram_on_cpu(&problem, &arguments, -1) == SLUICE_INVALID_ARGUMENT);

  problem.outside = SLUICE_OUTSIDE_CLAMPED;
  arguments.counts = emulated;
  status = sluice_histogram_on_emulator(&problem, &arguments, NULL);
  if (sluice_built_with_emulator()) {
    CHECK(status == SLUICE_OK);
    CHECK(emulated[0] == 20 && emulated[1] == 10 && emulated[BINS - 1] == 30);
  } else {
    CHECK(status == SLUICE_UNSUPPORTED);
  }
  problem.sample = 5;
  CHECK(sluice_histogram_on_cpu(&problem, &arguments, 0) == SLUICE_INVALID_ARGUMENT);
  CHECK(strstr(sluice_last_error(), "sluice_histogram_sample") != NULL);
  CHECK(sluice_histogram(NULL, &arguments, NULL) == SLUICE_INVALID_ARGUMENT);
  if (failures != 0) fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
