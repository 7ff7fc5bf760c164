#include <stdint.h>
#include <stdio.h>

#include <sluice/sluice.h>

enum { M = 32, N = 48, K = 64 };

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, sluice_last_error());
  return 1;
}

int main(void) {
  static uint16_t a[M * K], b[K * N]; /* bf16 */
  static float d[M * N];
  for (int i = 0; i < M * K; ++i) a[i] = 0x3f00; /* 0.5 */
  for (int i = 0; i < K * N; ++i) b[i] = 0x4000; /* 2.0 */

  sluice_problem problem;
  sluice_problem_init(&problem, sizeof problem);
  problem.m = M;
  problem.n = N;
  problem.k = K;
  problem.type_d = SLUICE_FP32;

  sluice_device device;
  sluice_device_init(&device, sizeof device);
  if (sluice_device_find("h200", &device) != SLUICE_OK) return failed("device");

  sluice_plan* plan = NULL;
  if (sluice_plan_create(&problem, &device, NULL, &plan) != SLUICE_OK) return failed("plan");
  printf("%s on %s: kernel %s\n", sluice_version(), device.name, sluice_plan_kernel_name(plan));

  sluice_arguments arguments;
  sluice_arguments_init(&arguments, sizeof arguments);
  arguments.a = a;
  arguments.b = b;
  arguments.d = d;
  /* On a GPU: sluice_run(plan, &arguments, workspace, workspace_bytes, stream), with device pointers. */
  const sluice_status status = sluice_run_on_cpu(plan, &arguments, 0, NULL, NULL);
  sluice_plan_destroy(plan);
  if (status != SLUICE_OK) return failed("run");
  printf("d[0] = %g\n", d[0]);
  return d[0] == 64.0f ? 0 : 1;
}
