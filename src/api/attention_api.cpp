// Decode attention in the C interface. Its plan is a few numbers, worked out anew in each call.
#include "sluice/sluice.h"

#include "sluice/attention.hpp"

#include "api/c_calls.hpp"
#include "api/c_structs.hpp"

namespace sluice {
namespace {

Result<AttentionPlan> planned(const sluice_attention_problem* problem, const sluice_device* device) {
  if (problem == nullptr) return null_pointer("problem");
  if (device == nullptr) return null_pointer("device");
  const Result<AttentionProblem> what = to_attention_problem(*problem);
  if (!what) return what.error();
  const Result<DeviceSpec> where = to_device_spec(*device);
  if (!where) return where.error();
  return plan_attention(*what, *where);
}

Result<AttentionArguments> pointers_of(const sluice_attention_arguments* arguments) {
  if (arguments == nullptr) return null_pointer("arguments");
  const Result<sluice_attention_arguments> given = read_struct(*arguments);
  if (!given) return given.error();
  return AttentionArguments{.q = given->q,
                            .k = given->k,
                            .v = given->v,
                            .o = given->o,
                            .lse = given->lse,
                            .lengths = given->lengths,
                            .block_table = given->block_table,
                            .block_table_stride = given->block_table_stride,
                            .k_scales = given->k_scales,
                            .v_scales = given->v_scales,
                            .fault = given->fault};
}

}  // namespace
}  // namespace sluice

using namespace sluice;  // NOLINT(google-build-using-namespace): functions of C have no namespace

extern "C" {

sluice_status sluice_attention_problem_init(sluice_attention_problem* problem, size_t struct_size) { return init(problem, struct_size); }
sluice_status sluice_attention_arguments_init(sluice_attention_arguments* arguments, size_t struct_size) {
  return init(arguments, struct_size);
}

sluice_status sluice_attention_workspace_bytes(const sluice_attention_problem* problem, const sluice_device* device, size_t* bytes) {
  return guarded([&]() -> Status {
    if (bytes == nullptr) return null_pointer("bytes");
    *bytes = 0;
    const Result<AttentionPlan> plan = planned(problem, device);
    if (!plan) return plan.error();
    *bytes = plan->workspace_bytes;
    return Nothing{};
  });
}

sluice_status sluice_attention_prepare_workspace(void* workspace, size_t workspace_bytes, void* stream) {
  return guarded([&] { return prepare_attention_workspace(workspace, workspace_bytes, static_cast<Stream>(stream)); });
}

sluice_status sluice_attention(const sluice_attention_problem* problem, const sluice_device* device,
                               const sluice_attention_arguments* arguments, void* workspace, size_t workspace_bytes, void* stream) {
  return guarded([&]() -> Status {
    const Result<AttentionPlan> plan = planned(problem, device);
    if (!plan) return plan.error();
    const Result<AttentionArguments> pointers = pointers_of(arguments);
    if (!pointers) return pointers.error();
    return attention(*plan, *pointers, workspace, workspace_bytes, static_cast<Stream>(stream));
  });
}

sluice_status sluice_attention_on_cpu(const sluice_attention_problem* problem, const sluice_attention_arguments* host_arguments,
                                      int32_t threads) {
  return guarded([&]() -> Status {
    if (problem == nullptr) return null_pointer("problem");
    if (Status s = check_threads(threads); !s) return s;
    const Result<AttentionProblem> what = to_attention_problem(*problem);
    if (!what) return what.error();
    const Result<AttentionArguments> pointers = pointers_of(host_arguments);
    if (!pointers) return pointers.error();
    return attention_on_cpu(*what, *pointers, threads);
  });
}

sluice_status sluice_attention_on_emulator(const sluice_attention_problem* problem, const sluice_device* device,
                                           const sluice_attention_arguments* host_arguments, const sluice_emulator_options* options) {
  return guarded([&]() -> Status {
    const Result<AttentionPlan> plan = planned(problem, device);
    if (!plan) return plan.error();
    const Result<AttentionArguments> pointers = pointers_of(host_arguments);
    if (!pointers) return pointers.error();
    const Result<EmulatorOptions> how = to_emulator_options(options);
    if (!how) return how.error();
    return attention_on_emulator(*plan, *pointers, *how);
  });
}

}  // extern "C"
