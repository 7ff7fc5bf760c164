/* The C interface, from C: one small product from problem to result, and everything that can be asked and refused on the way. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"

static sluice_plan* make_plan(int64_t m, int64_t n, int64_t k) {
  const sluice_problem problem = make_problem(m, n, k);
  const sluice_device device = make_device("h10");
  sluice_plan* plan = NULL;
  CHECK(sluice_plan_create(&problem, &device, NULL, &plan) == SLUICE_OK);
  CHECK(plan != NULL);
  return plan;
}

static void test_library(void) {
  size_t i;
  CHECK(strcmp(sluice_last_error(), "") == 0);
  CHECK(strchr(sluice_version(), '.') != NULL);
  CHECK(sluice_built_with_cuda() == 0 || sluice_built_with_cuda() == 1);
  CHECK(strcmp(sluice_status_name(SLUICE_OK), "ok") == 0);
  CHECK(strcmp(sluice_status_name(SLUICE_TOO_LARGE), "too large") == 0);
  CHECK(strcmp(sluice_status_name(SLUICE_INTERNAL), "internal error") == 0);
  CHECK(strcmp(sluice_status_name(SLUICE_EMULATION), "emulation") == 0);
  CHECK(strcmp(sluice_status_name(-1), "?") == 0);
  CHECK(strcmp(sluice_backend_name(SLUICE_BACKEND_CUDA), "cuda") == 0);
  CHECK(strcmp(sluice_backend_name(SLUICE_BACKEND_REFERENCE), "reference") == 0);
  CHECK(strcmp(sluice_backend_name(-1), "?") == 0 && strcmp(sluice_backend_name(3), "?") == 0);
  CHECK(sluice_kernel_count() > 20);
  for (i = 0; i < sluice_kernel_count(); ++i) CHECK(sluice_kernel_name(i) != NULL && strlen(sluice_kernel_name(i)) > 10);
  CHECK(sluice_kernel_name(sluice_kernel_count()) == NULL);
  sluice_string_free(NULL);
  sluice_plan_destroy(NULL);
}

static void test_devices(void) {
  size_t i;
  char* text = NULL;
  sluice_device device, other;
  CHECK(sluice_device_count() >= 5);
  for (i = 0; i < sluice_device_count(); ++i) {
    device = make_device(sluice_device_name(i));
    CHECK(strcmp(device.name, sluice_device_name(i)) == 0);
    CHECK(device.sm_count > 0);
  }
  CHECK(sluice_device_name(sluice_device_count()) == NULL);
  device = make_device("h200");
  CHECK(device.sm_count == 132 && device.compute_capability == 90 && device.struct_size == sizeof device);

  CHECK_REFUSED(sluice_device_find("gtx", &device), SLUICE_NOT_FOUND, "h100-sxm");
  CHECK_REFUSED(sluice_device_find(NULL, &device), SLUICE_INVALID_ARGUMENT, "name is a null pointer");
  CHECK_REFUSED(sluice_device_find("h200", NULL), SLUICE_INVALID_ARGUMENT, "device is a null pointer");
  if (!sluice_built_with_cuda()) CHECK_REFUSED(sluice_device_current(&device), SLUICE_UNSUPPORTED, "SLUICE_CUDA");

  CHECK(sluice_device_to_json(&device, &text) == SLUICE_OK);
  CHECK(sluice_device_init(&other, sizeof other) == SLUICE_OK);
  CHECK(sluice_device_from_json(text, &other) == SLUICE_OK);
  CHECK(memcmp(&device, &other, sizeof device) == 0);
  sluice_string_free(text);
  CHECK_REFUSED(sluice_device_from_json("{}", &other), SLUICE_BAD_FORMAT, "sluice-device");
  memset(device.name, 'x', sizeof device.name);
  CHECK_REFUSED(sluice_device_to_json(&device, &text), SLUICE_INVALID_ARGUMENT, "64 bytes");
  CHECK(text == NULL);
}

/* Structures of other sizes than ours: those of older callers, of newer ones, and of callers that forgot. */
static void test_struct_sizes(void) {
  struct {
    sluice_problem known;
    int64_t unknown[2];
  } newer;
  sluice_problem problem = make_problem(64, 64, 64);
  const sluice_device device = make_device("h10");
  sluice_plan* plan = NULL;
  sluice_plan_info info;
  unsigned char guard[sizeof(sluice_problem)];

  CHECK(problem.struct_size == sizeof problem && problem.batch == 1 && problem.lda == SLUICE_PACKED && problem.alpha == 1.0f);
  CHECK(problem.alignment_d_bytes == 16 && problem.layout_b == SLUICE_COLUMN_MAJOR);

  /* An older caller knew only struct_size, m, n and k; the rest is garbage that must not be read. */
  problem.batch = -77;
  problem.lda = 3;
  problem.struct_size = 32;
  CHECK(sluice_plan_create(&problem, &device, NULL, &plan) == SLUICE_OK);
  sluice_plan_destroy(plan);

  /* init() writes no further than the caller's structure. */
  memset(guard, 0xab, sizeof guard);
  CHECK(sluice_problem_init((sluice_problem*)(void*)guard, 32) == SLUICE_OK);
  CHECK(guard[31] == 0 && guard[32] == 0xab);

  CHECK(sluice_problem_init(&newer.known, sizeof newer) == SLUICE_OK);
  CHECK(newer.unknown[0] == 0 && newer.unknown[1] == 0);
  newer.known.m = newer.known.n = newer.known.k = 64;
  CHECK(sluice_plan_create(&newer.known, &device, NULL, &plan) == SLUICE_OK);
  sluice_plan_destroy(plan);
  newer.unknown[1] = 1;
  CHECK_REFUSED(sluice_plan_create(&newer.known, &device, NULL, &plan), SLUICE_UNSUPPORTED, "newer library");
  CHECK(plan == NULL);

  problem = make_problem(64, 64, 64);
  problem.struct_size = 0;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "struct_size = 0 of a sluice_problem");
  problem.struct_size = sizeof problem - 4;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "multiple of 8");
  problem.struct_size = (size_t)-8;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "sluice_problem_init");
  CHECK_REFUSED(sluice_problem_init(NULL, sizeof problem), SLUICE_INVALID_ARGUMENT, "null pointer");
  CHECK_REFUSED(sluice_device_init((sluice_device*)(void*)guard, 7), SLUICE_INVALID_ARGUMENT, "struct_size = 7");

  /* An output is filled in as far as the caller's structure goes. */
  plan = make_plan(64, 64, 64);
  memset(&info, 0xab, sizeof info);
  CHECK(sluice_plan_info_init(&info, 24) == SLUICE_OK);
  CHECK(sluice_plan_get_info(plan, &info) == SLUICE_OK);
  CHECK(info.struct_size == 24 && info.grid_ctas > 0);
  CHECK(((unsigned char*)&info)[24] == 0xab);
  sluice_plan_destroy(plan);
}

static void test_bad_problems(void) {
  const sluice_device device = make_device("h200");
  sluice_plan* plan = NULL;
  sluice_problem problem = make_problem(-1, 8, 8);
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "m = -1");
  problem = make_problem(8, 8, (int64_t)1 << 40);
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_TOO_LARGE, "k = 1099511627776");
  problem = make_problem(8, 8, 8);
  problem.lda = 7;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "lda = 7");
  problem = make_problem(8, 8, 8);
  problem.type_a = problem.type_b = 17;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "type_a = 17");
  problem = make_problem(8, 8, 8);
  problem.type_b = SLUICE_E4M3;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_UNSUPPORTED, "type_b = e4m3");
  problem = make_problem(8, 8, 8);
  problem.type_a = problem.type_b = SLUICE_FP32;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_UNSUPPORTED, "type_a = fp32");
  problem = make_problem(8, 8, 8);
  problem.activation = -1;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "activation = -1");
  problem = make_problem(8, 8, 8);
  problem.reserved = 1;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "reserved = 1");
  problem = make_problem(8, 8, 8);
  problem.reserved2 = 7;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "reserved2 = 7");
  problem = make_problem(8, 8, 8);
  problem.reserved3 = -1;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "reserved3 = -1");
  problem = make_problem(8, 8, 8);
  problem.grouping = SLUICE_GENERAL_GROUPS + 1;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT,
                "grouping = 5 is no value of enum sluice_grouping");
  problem.grouping = SLUICE_RAGGED_GROUPS;
  problem.expected_rows = -1;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "expected_rows = -1");
  problem.expected_rows = 0;
  problem.most_rows = -1;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "most_rows = -1");
  problem = make_problem(8, 8, 16);
  problem.type_a = problem.type_b = SLUICE_E4M3;
  problem.scaling_b = SLUICE_PER_BLOCK_128 + 1;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "scaling_b = 5");
  problem.scaling_b = SLUICE_NO_SCALES;
  problem.scale_layout_a = 2;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "scale_layout_a = 2");
  CHECK(plan == NULL);

  problem = make_problem(8, 8, 8);
  CHECK_REFUSED(sluice_plan_create(NULL, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "problem is a null pointer");
  CHECK_REFUSED(sluice_plan_create(&problem, NULL, NULL, &plan), SLUICE_INVALID_ARGUMENT, "device is a null pointer");
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, NULL), SLUICE_INVALID_ARGUMENT, "plan is a null pointer");
  {
    sluice_device ampere = device;
    ampere.compute_capability = 80;
    CHECK_REFUSED(sluice_plan_create(&problem, &ampere, NULL, &plan), SLUICE_WRONG_DEVICE, "9.0");
  }
}

static void test_options(void) {
  const sluice_device device = make_device("h200");
  const sluice_problem problem = make_problem(2048, 2048, 2048);
  sluice_plan_options options;
  sluice_plan_info info;
  sluice_plan* plan = NULL;
  CHECK(sluice_plan_options_init(&options, sizeof options) == SLUICE_OK);
  options.schedule = SLUICE_PINGPONG;
  options.forget_candidates = 1;
  CHECK(sluice_plan_create(&problem, &device, &options, &plan) == SLUICE_OK);
  CHECK(strstr(sluice_plan_kernel_name(plan), "_ping_") != NULL);
  CHECK(sluice_plan_info_init(&info, sizeof info) == SLUICE_OK);
  CHECK(sluice_plan_get_info(plan, &info) == SLUICE_OK);
  CHECK(info.candidate_count == 0);
  sluice_plan_destroy(plan);

  options.schedule = SLUICE_ANY_SCHEDULE;
  options.scheduler = SLUICE_ONE_TILE_PER_CTA;
  options.kernel_name = "bf16_rc_coop_128x128x64_c1x1";
  CHECK(sluice_plan_create(&problem, &device, &options, &plan) == SLUICE_OK);
  CHECK(strcmp(sluice_plan_kernel_name(plan), options.kernel_name) == 0);
  CHECK(sluice_plan_get_info(plan, &info) == SLUICE_OK);
  CHECK(info.grid_ctas == 256 && info.worker_count == 256);
  sluice_plan_destroy(plan);

  options.kernel_name = "no such kernel";
  CHECK_REFUSED(sluice_plan_create(&problem, &device, &options, &plan), SLUICE_UNSUPPORTED, "no such kernel");
  options.kernel_name = NULL;
  options.raster = 3;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, &options, &plan), SLUICE_INVALID_ARGUMENT, "raster = 3");
}

/* How pieces meet, what is constant, and what may change the bits: fields that callers of 152 and of 56 bytes did not have. */
static void test_later_fields(void) {
  static const char* const reductions[] = {"workspace", "separate", "cluster"};
  const sluice_device device = make_device("h200");
  sluice_problem problem = make_problem(16, 4096, 8192);
  sluice_plan_options options;
  sluice_plan* plan = NULL;
  char* text = NULL;
  int32_t i;
  CHECK(problem.constant_a == 0 && problem.constant_b == 0);
  problem.constant_b = 1;
  CHECK(sluice_plan_options_init(&options, sizeof options) == SLUICE_OK);
  CHECK(options.reduction == SLUICE_ANY_REDUCTION && options.determinism == SLUICE_DETERMINISTIC);
  options.kernel_name = "bf16_rc_coop_16x64x128_c1x1_swap";
  options.scheduler = SLUICE_SPLIT_K;
  options.splits = 2;
  for (i = SLUICE_WORKSPACE_REDUCTION; i <= SLUICE_CLUSTER_REDUCTION; ++i) {
    char wanted[64];
    options.reduction = i;
    CHECK(sluice_plan_create(&problem, &device, &options, &plan) == SLUICE_OK);
    CHECK(sluice_plan_to_json(plan, &text) == SLUICE_OK);
    snprintf(wanted, sizeof wanted, "\"reduction\": \"%s\"", reductions[i - 1]);
    CHECK((strstr(text, wanted) != NULL) == (i != SLUICE_WORKSPACE_REDUCTION)); /* which is not written */
    CHECK(strstr(text, "\"constant_a\": false") != NULL && strstr(text, "\"constant_b\": true") != NULL);
    sluice_string_free(text);
    sluice_plan_destroy(plan);
  }
  options.reduction = SLUICE_CLUSTER_REDUCTION + 1;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, &options, &plan), SLUICE_INVALID_ARGUMENT, "reduction = 4");
  options.reduction = SLUICE_ANY_REDUCTION;
  options.determinism = SLUICE_BATCH_INVARIANT;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, &options, &plan), SLUICE_INVALID_ARGUMENT, "batch-invariant needs whole tiles");
  options.determinism = 3;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, &options, &plan), SLUICE_INVALID_ARGUMENT, "determinism = 3");
  /* To an older caller they do not exist. */
  options.struct_size = offsetof(sluice_plan_options, reduction);
  CHECK(sluice_plan_create(&problem, &device, &options, &plan) == SLUICE_OK);
  sluice_plan_destroy(plan);
  problem.struct_size = offsetof(sluice_problem, constant_a);
  problem.type_a = SLUICE_FP16; /* which was the type of both, then */
  CHECK(sluice_plan_create(&problem, &device, NULL, &plan) == SLUICE_OK);
  CHECK(sluice_plan_to_json(plan, &text) == SLUICE_OK);
  CHECK(strstr(text, "\"constant_b\": false") != NULL);
  CHECK(strstr(text, "\"type_b\": \"fp16\"") != NULL);
  sluice_string_free(text);
  sluice_plan_destroy(plan);
}

/* Schedulers that cut tiles, and options that callers of 40 bytes did not have. */
static void test_cut_tiles(void) {
  static const struct {
    int32_t scheduler;
    const char* name;
  } kinds[] = {{SLUICE_SPLIT_K, "split-k"}, {SLUICE_STREAM_K, "stream-k"}, {SLUICE_HYBRID, "hybrid"}};
  const sluice_device device = make_device("h10");
  const sluice_problem problem = make_problem(384, 384, 4096);
  sluice_plan_options options;
  sluice_plan* plan = NULL;
  size_t i;
  for (i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    char* text = NULL;
    char wanted[64];
    CHECK(sluice_plan_options_init(&options, sizeof options) == SLUICE_OK);
    options.scheduler = kinds[i].scheduler;
    options.claim = SLUICE_TICKET_CLAIM;
    options.min_k_tiles = 2;
    if (options.scheduler == SLUICE_SPLIT_K)
      options.splits = 3;
    else
      options.stream_k_regions = 1;
    CHECK(sluice_plan_create(&problem, &device, &options, &plan) == SLUICE_OK);
    CHECK(sluice_plan_to_json(plan, &text) == SLUICE_OK);
    snprintf(wanted, sizeof wanted, "\"kind\": \"%s\"", kinds[i].name);
    CHECK(text != NULL && strstr(text, wanted) != NULL);
    CHECK(strstr(text, "\"claim\": \"ticket\"") != NULL);
    if (options.scheduler == SLUICE_SPLIT_K) CHECK(strstr(text, "\"splits\": 3") != NULL);
    CHECK(strstr(text, "\"min_k_tiles\": 2") != NULL);
    sluice_string_free(text);
    sluice_plan_destroy(plan);
  }
  options.scheduler = SLUICE_HYBRID + 1;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, &options, &plan), SLUICE_INVALID_ARGUMENT, "scheduler = 6");
  options.scheduler = SLUICE_DATA_PARALLEL;
  options.claim = 3;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, &options, &plan), SLUICE_INVALID_ARGUMENT, "claim = 3");
  options.claim = SLUICE_FIXED_CLAIM;
  options.splits = -1;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, &options, &plan), SLUICE_INVALID_ARGUMENT, "splits = -1");
  options.struct_size = 40; /* an older caller's: what lies behind is not read */
  CHECK(sluice_plan_create(&problem, &device, &options, &plan) == SLUICE_OK);
  sluice_plan_destroy(plan);
}

static void test_plan_queries(void) {
  sluice_plan* plan = make_plan(384, 384, 128);
  sluice_plan* again = NULL;
  sluice_plan_info info;
  char *json = NULL, *text = NULL;
  size_t bytes = 12345;
  CHECK(sluice_plan_workspace_bytes(plan, &bytes) == SLUICE_OK);
  CHECK(sluice_plan_info_init(&info, sizeof info) == SLUICE_OK);
  CHECK(sluice_plan_get_info(plan, &info) == SLUICE_OK);
  CHECK(info.workspace_bytes == bytes && info.grid_ctas > 0 && info.shared_memory_bytes > 0 && info.candidate_count > 20);
  CHECK(info.total_us > info.launch_us && info.waves > 0 && info.useful_share > 0 && info.useful_share <= 1);

  CHECK(sluice_plan_explain(plan, 3, &text) == SLUICE_OK);
  CHECK(text != NULL && strstr(text, sluice_plan_kernel_name(plan)) != NULL && strstr(text, "binds") != NULL);
  sluice_string_free(text);
  CHECK(sluice_plan_to_string(plan, &text) == SLUICE_OK);
  CHECK(strstr(text, "384 x 384 x 128") != NULL);
  sluice_string_free(text);
  CHECK(sluice_plan_simulate_svg(plan, &text) == SLUICE_OK);
  CHECK(text != NULL && strstr(text, "<svg") != NULL);
  sluice_string_free(text);
  CHECK(sluice_plan_simulate_text(plan, 80, &text) == SLUICE_OK);
  CHECK(text != NULL && strlen(text) > 0);
  sluice_string_free(text);
  CHECK(sluice_plan_simulate_json(plan, &text) == SLUICE_OK);
  CHECK(text != NULL && text[0] == '{');
  sluice_string_free(text);

  CHECK(sluice_plan_to_json(plan, &json) == SLUICE_OK);
  CHECK(sluice_plan_from_json(json, &again) == SLUICE_OK);
  CHECK(sluice_plan_to_json(again, &text) == SLUICE_OK);
  CHECK(strcmp(json, text) == 0);
  sluice_string_free(json);
  sluice_string_free(text);
  sluice_plan_destroy(again);
  CHECK_REFUSED(sluice_plan_from_json("nonsense", &again), SLUICE_BAD_FORMAT, "not JSON");
  CHECK(again == NULL);

  CHECK_REFUSED(sluice_plan_explain(NULL, 3, &text), SLUICE_INVALID_ARGUMENT, "plan is a null pointer");
  CHECK(text == NULL);
  CHECK_REFUSED(sluice_plan_explain(plan, 3, NULL), SLUICE_INVALID_ARGUMENT, "text is a null pointer");
  CHECK_REFUSED(sluice_plan_get_info(NULL, &info), SLUICE_INVALID_ARGUMENT, "plan is a null pointer");
  CHECK_REFUSED(sluice_plan_workspace_bytes(plan, NULL), SLUICE_INVALID_ARGUMENT, "bytes is a null pointer");
  CHECK(sluice_plan_kernel_name(NULL) == NULL);
  sluice_plan_destroy(plan);

  plan = make_plan(0, 384, 128);
  CHECK(strcmp(sluice_plan_kernel_name(plan), "") == 0);
  sluice_plan_destroy(plan);
}

static void on_progress(double done, void* user) {
  double* furthest = user;
  if (done > *furthest) *furthest = done;
}

enum { kM = 100, kN = 72, kK = 40 };
static uint16_t a[kM * kK], b[kK * kN];
static float d[kM * kN];

/* D is 2 A B; and it becomes NaN, so that the next run starts from nothing. */
static int wrong_elements(void) {
  int i, j, k, wrong = 0;
  for (i = 0; i < kM; ++i)
    for (j = 0; j < kN; ++j) {
      float sum = 0;
      for (k = 0; k < kK; ++k) sum += value_a(i, k) * value_b(k, j);
      if (d[i * kN + j] != 2 * sum) ++wrong;
    }
  for (i = 0; i < kM * kN; ++i) d[i] = NAN;
  return wrong;
}

static void test_run_on_emulator(const sluice_plan* plan, const sluice_arguments* arguments) {
  sluice_emulator_options options;
  double furthest = 0;
  int32_t backend = -1;
  char* why = NULL;
  CHECK(sluice_automatic_backend(plan, &backend, &why) == SLUICE_OK);
  CHECK(why != NULL && strlen(why) > 5);
  sluice_string_free(why);
  CHECK(sluice_automatic_backend(plan, &backend, NULL) == SLUICE_OK);
  CHECK_REFUSED(sluice_automatic_backend(NULL, &backend, &why), SLUICE_INVALID_ARGUMENT, "plan is a null pointer");
  CHECK(why == NULL);
  CHECK_REFUSED(sluice_automatic_backend(plan, NULL, NULL), SLUICE_INVALID_ARGUMENT, "backend is a null pointer");

  CHECK(sluice_emulator_options_init(&options, sizeof options) == SLUICE_OK);
  CHECK(options.seed == 0 && options.asynchrony == SLUICE_ASYNCHRONY_RANDOM && options.resident_clusters == 0 && options.diagnose == 1);
  if (!sluice_built_with_emulator()) {
    CHECK(backend != SLUICE_BACKEND_EMULATOR);
    CHECK_REFUSED(sluice_run_on_emulator(plan, arguments, NULL, NULL, NULL), SLUICE_UNSUPPORTED, "SLUICE_EMULATOR");
    return;
  }
  if (!sluice_built_with_cuda()) CHECK(backend == SLUICE_BACKEND_EMULATOR);
  CHECK(sluice_run_on_emulator(plan, arguments, NULL, NULL, NULL) == SLUICE_OK);
  CHECK(wrong_elements() == 0);
  options.seed = UINT64_MAX;
  options.asynchrony = SLUICE_ASYNCHRONY_LAZY;
  options.resident_clusters = 1;
  options.diagnose = 0;
  CHECK(sluice_run_on_emulator(plan, arguments, &options, on_progress, &furthest) == SLUICE_OK);
  CHECK(wrong_elements() == 0 && furthest == 1);

  CHECK_REFUSED(sluice_run_on_emulator(NULL, arguments, NULL, NULL, NULL), SLUICE_INVALID_ARGUMENT, "plan is a null pointer");
  CHECK_REFUSED(sluice_run_on_emulator(plan, NULL, NULL, NULL, NULL), SLUICE_INVALID_ARGUMENT, "arguments is a null pointer");
  options.asynchrony = 4;
  CHECK_REFUSED(sluice_run_on_emulator(plan, arguments, &options, NULL, NULL), SLUICE_INVALID_ARGUMENT, "asynchrony = 4");
  options.asynchrony = SLUICE_ASYNCHRONY_EAGER;
  options.resident_clusters = -1;
  CHECK_REFUSED(sluice_run_on_emulator(plan, arguments, &options, NULL, NULL), SLUICE_INVALID_ARGUMENT, "resident_clusters = -1");
  options.resident_clusters = 0;
  options.reserved = 1;
  CHECK_REFUSED(sluice_run_on_emulator(plan, arguments, &options, NULL, NULL), SLUICE_INVALID_ARGUMENT, "reserved = 1");
  options.struct_size = 12;
  CHECK_REFUSED(sluice_run_on_emulator(plan, arguments, &options, NULL, NULL), SLUICE_INVALID_ARGUMENT, "sluice_emulator_options_init");
}

static void test_run(void) {
  sluice_problem problem = make_problem(kM, kN, kK);
  const sluice_device device = make_device("h10");
  sluice_plan* plan = NULL;
  sluice_arguments arguments;
  double furthest = 0;
  int i, j, k;
  problem.type_d = SLUICE_FP32;
  problem.alpha = 2;
  problem.alignment_a_bytes = problem.alignment_b_bytes = 2; /* plain C arrays */
  problem.alignment_d_bytes = 4;
  for (i = 0; i < kM; ++i)
    for (k = 0; k < kK; ++k) a[i * kK + k] = bf16(value_a(i, k));
  for (j = 0; j < kN; ++j)
    for (k = 0; k < kK; ++k) b[j * kK + k] = bf16(value_b(k, j)); /* columns of B are contiguous */
  for (i = 0; i < kM * kN; ++i) d[i] = NAN;

  CHECK(sluice_plan_create(&problem, &device, NULL, &plan) == SLUICE_OK);
  CHECK(sluice_arguments_init(&arguments, sizeof arguments) == SLUICE_OK);
  CHECK_REFUSED(sluice_prepare_workspace(NULL, 64, NULL), SLUICE_INVALID_ARGUMENT, "workspace is a null pointer");
  CHECK(sluice_prepare_workspace(NULL, 0, NULL) == SLUICE_OK);
  CHECK_REFUSED(sluice_run_on_cpu(plan, NULL, 1, NULL, NULL), SLUICE_INVALID_ARGUMENT, "arguments is a null pointer");
  CHECK_REFUSED(sluice_run_on_cpu(NULL, &arguments, 1, NULL, NULL), SLUICE_INVALID_ARGUMENT, "plan is a null pointer");
  CHECK_REFUSED(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL), SLUICE_INVALID_ARGUMENT, "null");
  arguments.a = a;
  arguments.b = b;
  arguments.d = d;
  CHECK_REFUSED(sluice_run_on_cpu(plan, &arguments, -1, NULL, NULL), SLUICE_INVALID_ARGUMENT, "threads = -1");
  CHECK(sluice_run_on_cpu(plan, &arguments, 2, on_progress, &furthest) == SLUICE_OK);
  CHECK(wrong_elements() == 0);
  CHECK(furthest > 0 && furthest <= 1);
  test_run_on_emulator(plan, &arguments);

  if (!sluice_built_with_cuda()) CHECK_REFUSED(sluice_run(plan, &arguments, NULL, 0, NULL), SLUICE_UNSUPPORTED, "SLUICE_CUDA");
  CHECK_REFUSED(sluice_run(NULL, &arguments, NULL, 0, NULL), SLUICE_INVALID_ARGUMENT, "plan is a null pointer");
  CHECK_REFUSED(sluice_run(plan, NULL, NULL, 0, NULL), SLUICE_INVALID_ARGUMENT, "arguments is a null pointer");
  sluice_plan_destroy(plan);
}

/* Where a matrix of bytes starts at a multiple of 16 bytes, in memory with room for that. */
static uint8_t* aligned(uint8_t* memory) { return memory + (16 - (uintptr_t)memory % 16) % 16; }

/* e4m3 ones and twos, with a scale for each row of A and for each block of B. */
static void test_fp8(void) {
  enum { kRows = 20, kColumns = 140, kDepth = 272, kBlocks = 3 };
  static uint8_t a8[kRows * kDepth + 16], b8[kColumns * kDepth + 16];
  static float scale_a[kRows], scale_b[2 * kBlocks], d32[kRows * kColumns];
  static const int depth_of_block[kBlocks] = {128, 128, 16};
  const sluice_device device = make_device("h10");
  sluice_problem problem = make_problem(kRows, kColumns, kDepth);
  sluice_plan* plan = NULL;
  sluice_arguments arguments;
  char* text = NULL;
  int i, j, block, wrong = 0;
  CHECK(problem.scaling_a == SLUICE_NO_SCALES && problem.ld_scale_b == SLUICE_PACKED && problem.batch_stride_scale_a == SLUICE_PACKED);
  problem.type_a = problem.type_b = SLUICE_E4M3;
  problem.type_d = SLUICE_FP32;
  problem.scaling_a = SLUICE_PER_VECTOR;
  problem.scaling_b = SLUICE_PER_BLOCK_128;
  problem.alignment_d_bytes = 4;
  problem.alignment_a_bytes = problem.alignment_b_bytes = 1;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_UNSUPPORTED, "alignment_a_bytes = 1 with fp8 operands");
  problem.alignment_a_bytes = problem.alignment_b_bytes = 16;
  CHECK(sluice_plan_create(&problem, &device, NULL, &plan) == SLUICE_OK);
  CHECK(sluice_plan_to_json(plan, &text) == SLUICE_OK);
  CHECK(strstr(text, "\"scaling_b\": \"128x128\"") != NULL && strstr(text, "\"ld_scale_b\": 3") != NULL);
  sluice_string_free(text);

  memset(a8, 0x38, sizeof a8); /* 1 */
  memset(b8, 0x40, sizeof b8); /* 2 */
  for (i = 0; i < kRows; ++i) scale_a[i] = (float)(i + 1);
  for (i = 0; i < 2 * kBlocks; ++i) scale_b[i] = (float)(1 << i);
  for (i = 0; i < kRows * kColumns; ++i) d32[i] = NAN;
  CHECK(sluice_arguments_init(&arguments, sizeof arguments) == SLUICE_OK);
  arguments.a = aligned(a8);
  arguments.b = aligned(b8);
  arguments.d = d32;
  arguments.scale_a = scale_a;
  CHECK_REFUSED(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL), SLUICE_INVALID_ARGUMENT, "scale_b is null");
  arguments.scale_b = scale_b;
  CHECK(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL) == SLUICE_OK);
  for (i = 0; i < kRows; ++i)
    for (j = 0; j < kColumns; ++j) {
      float sum = 0;
      for (block = 0; block < kBlocks; ++block) sum += 2 * (float)depth_of_block[block] * scale_a[i] * scale_b[j / 128 * kBlocks + block];
      if (d32[i * kColumns + j] != sum) ++wrong;
    }
  CHECK(wrong == 0);
  sluice_plan_destroy(plan);
}

/* D in e4m3, of ones and twos: with the scales of its rows that are found, and with one that is given. */
static void test_fp8_result(void) {
  enum { kRows = 20, kColumns = 140, kDepth = 16, kBlocks = 2 };
  static uint8_t a8[kRows * kDepth + 16], b8[kColumns * kDepth + 16], d8[kRows * kColumns];
  static float scale_a[kRows], scale_d[kRows * kBlocks];
  const sluice_device device = make_device("h10");
  sluice_problem problem = make_problem(kRows, kColumns, kDepth);
  sluice_plan* plan = NULL;
  sluice_arguments arguments;
  char* text = NULL;
  int i, wrong = 0;
  CHECK(problem.scaling_d == SLUICE_NO_SCALES && problem.ld_scale_d == SLUICE_PACKED && problem.batch_stride_scale_d == SLUICE_PACKED);
  problem.type_d = SLUICE_E4M3;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_UNSUPPORTED, "type_d = e4m3 with bf16 operands");
  problem.type_a = problem.type_b = SLUICE_E4M3;
  problem.scaling_a = SLUICE_PER_VECTOR;
  problem.scaling_d = SLUICE_PER_BLOCK_128 + 1;
  CHECK_REFUSED(sluice_plan_create(&problem, &device, NULL, &plan), SLUICE_INVALID_ARGUMENT, "scaling_d = 5");
  problem.scaling_d = SLUICE_PER_VECTOR_128;
  problem.scale_layout_d = SLUICE_COLUMN_MAJOR;
  problem.alignment_d_bytes = 1;
  CHECK(sluice_plan_create(&problem, &device, NULL, &plan) == SLUICE_OK);
  CHECK(sluice_plan_to_json(plan, &text) == SLUICE_OK);
  CHECK(strstr(text, "\"scaling_d\": \"1x128\"") != NULL && strstr(text, "\"ld_scale_d\": 20") != NULL);
  sluice_string_free(text);

  memset(a8, 0x38, sizeof a8); /* 1 */
  memset(b8, 0x40, sizeof b8); /* 2 */
  for (i = 0; i < kRows; ++i) scale_a[i] = 14.0f * (float)(i + 1);
  CHECK(sluice_arguments_init(&arguments, sizeof arguments) == SLUICE_OK);
  arguments.a = aligned(a8);
  arguments.b = aligned(b8);
  arguments.d = d8;
  arguments.scale_a = scale_a;
  CHECK_REFUSED(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL), SLUICE_INVALID_ARGUMENT, "scale_d is null");
  arguments.scale_d = scale_d;
  CHECK(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL) == SLUICE_OK);
  for (i = 0; i < kRows * kColumns; ++i) wrong += d8[i] != 0x7e; /* 448: all of a row are the same */
  for (i = 0; i < kRows * kBlocks; ++i) wrong += scale_d[i] != (float)(i % kRows + 1);
  CHECK(wrong == 0);
  sluice_plan_destroy(plan);

  problem.scaling_d = SLUICE_PER_TENSOR;
  scale_d[0] = 448;
  CHECK(sluice_plan_create(&problem, &device, NULL, &plan) == SLUICE_OK);
  CHECK(sluice_run_on_cpu(plan, &arguments, 1, NULL, NULL) == SLUICE_OK);
  CHECK(scale_d[0] == 448);
  CHECK(d8[0] == 0x38 && d8[kColumns] == 0x40 && d8[3 * kColumns + 139] == 0x48); /* 1, 2 and 4 */
  sluice_plan_destroy(plan);
}

/* A call that succeeds leaves the last failure's message. */
static void test_last_error_stays(void) {
  sluice_device device = make_device("h10");
  CHECK_REFUSED(sluice_device_find("gtx", &device), SLUICE_NOT_FOUND, "gtx");
  CHECK(sluice_device_find("h20", &device) == SLUICE_OK);
  CHECK(strstr(sluice_last_error(), "gtx") != NULL);
}

int main(void) {
  test_library();
  test_devices();
  test_struct_sizes();
  test_bad_problems();
  test_options();
  test_cut_tiles();
  test_later_fields();
  test_plan_queries();
  test_run();
  test_fp8();
  test_fp8_result();
  test_last_error_stays();
  if (failures != 0) fprintf(stderr, "%d checks failed\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
