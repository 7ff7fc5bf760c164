/* What the C tests share: checks that go on after a failure, structures with their defaults, small numbers. */
#ifndef SLUICE_TESTS_C_API_CHECKS_H_
#define SLUICE_TESTS_C_API_CHECKS_H_

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "sluice/sluice.h"

static int failures = 0;

static inline void check(int holds, const char* what, int line) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "line %d: %s does not hold; last error: %s\n", line, what, sluice_last_error());
}
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)

/* The status, and a piece of text that the message must hold. */
static inline void check_refused(sluice_status got, sluice_status expected, const char* piece, int line) {
  if (got == expected && strstr(sluice_last_error(), piece) != NULL) return;
  ++failures;
  fprintf(stderr, "line %d: status %d, expected %d with '%s' in: %s\n", line, (int)got, (int)expected, piece, sluice_last_error());
}
#define CHECK_REFUSED(call, expected, piece) check_refused(call, expected, piece, __LINE__)

static inline sluice_problem make_problem(int64_t m, int64_t n, int64_t k) {
  sluice_problem problem;
  CHECK(sluice_problem_init(&problem, sizeof problem) == SLUICE_OK);
  problem.m = m;
  problem.n = n;
  problem.k = k;
  return problem;
}

static inline sluice_device make_device(const char* name) {
  sluice_device device;
  CHECK(sluice_device_init(&device, sizeof device) == SLUICE_OK);
  CHECK(sluice_device_find(name, &device) == SLUICE_OK);
  return device;
}

/* bf16 is the upper half of a float; small integers are exact in it. */
static inline uint16_t bf16(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (uint16_t)(bits >> 16);
}

/* Integers, whose products are exact. */
static inline float value_a(int row, int k) { return (float)((row * 7 + k * 3) % 9 - 4); }
static inline float value_b(int k, int column) { return (float)((k * 5 + column * 2) % 7 - 3); }

#endif /* SLUICE_TESTS_C_API_CHECKS_H_ */
