// The C interface: plain structures in, values of the C++ API through, status codes and strings out.
#include "sluice/sluice.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "sluice/sluice.hpp"

#include "api/c_calls.hpp"
#include "api/c_structs.hpp"

struct sluice_plan {
  sluice::Plan plan;
  std::string kernel_name;  // handed out by pointer
};

namespace sluice {
namespace {

// A string of the caller's own.
Status hand_out(const std::string& from, char** to) {
  char* copy = static_cast<char*>(std::malloc(from.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, from.c_str(), from.size() + 1);
  *to = copy;
  return Nothing{};
}

// What is the same in all functions that describe a plan as text. `describe` gives a Result<std::string>.
template <class F>
sluice_status plan_text(const sluice_plan* plan, char** text, F&& describe) noexcept {
  return guarded([&]() -> Status {
    if (text == nullptr) return null_pointer("text");
    *text = nullptr;
    if (plan == nullptr) return null_pointer("plan");
    const Result<std::string> result = describe(plan->plan);
    if (!result) return result.error();
    return hand_out(*result, text);
  });
}

template <class F>
Result<std::string> simulated(const Plan& plan, F&& draw) {
  const Result<Simulation> simulation = simulate(plan);
  if (!simulation) return simulation.error();
  return draw(*simulation);
}

Status give_plan(Result<Plan> made, sluice_plan** out) {
  if (!made) return made.error();
  std::string kernel = made->grid_ctas == 0 ? std::string() : name(made->kernel);
  *out = new sluice_plan{std::move(*made), std::move(kernel)};
  return Nothing{};
}

// Results of the form "device or error" into the caller's structure.
template <class F>
sluice_status give_device(sluice_device* device, F&& find) noexcept {
  return guarded([&]() -> Status {
    if (device == nullptr) return null_pointer("device");
    const Result<DeviceSpec> found = find();
    if (!found) return found.error();
    return from_device_spec(*found, *device);
  });
}

Result<GemmArguments> read_arguments(const sluice_arguments* given) {
  if (given == nullptr) return null_pointer("arguments");
  return to_arguments(*given);
}

// Runs one of the ways to quantise: quantise(problem, pointers).
template <class F>
sluice_status quantized(const sluice_quantize_problem* problem, const sluice_quantize_arguments* arguments, F&& quantise) noexcept {
  return guarded([&]() -> Status {
    if (problem == nullptr) return null_pointer("problem");
    if (arguments == nullptr) return null_pointer("arguments");
    const Result<QuantizeProblem> what = to_quantize_problem(*problem);
    if (!what) return what.error();
    const Result<sluice_quantize_arguments> pointers = read_struct(*arguments);
    if (!pointers) return pointers.error();
    return quantise(*what, QuantizeArguments{.x = pointers->x, .y = pointers->y, .q = pointers->q, .scale = pointers->scale});
  });
}

// Runs one of the ways to pack: pack(problem, pointers).
template <class F>
sluice_status packed(const sluice_pack_w4_problem* problem, const sluice_pack_w4_arguments* arguments, F&& pack) noexcept {
  return guarded([&]() -> Status {
    if (problem == nullptr) return null_pointer("problem");
    if (arguments == nullptr) return null_pointer("arguments");
    const Result<PackW4Problem> what = to_pack_w4_problem(*problem);
    if (!what) return what.error();
    const Result<sluice_pack_w4_arguments> pointers = read_struct(*arguments);
    if (!pointers) return pointers.error();
    return pack(*what, PackW4Arguments{.codes = pointers->codes,
                                       .scales = pointers->scales,
                                       .zeros = pointers->zeros,
                                       .order = pointers->order,
                                       .packed = pointers->packed});
  });
}

// Runs one of the ways to count: count(problem, pointers).
template <class F>
sluice_status counted(const sluice_histogram_problem* problem, const sluice_histogram_arguments* arguments, F&& count) noexcept {
  return guarded([&]() -> Status {
    if (problem == nullptr) return null_pointer("problem");
    if (arguments == nullptr) return null_pointer("arguments");
    const Result<HistogramProblem> what = to_histogram_problem(*problem);
    if (!what) return what.error();
    const Result<sluice_histogram_arguments> pointers = read_struct(*arguments);
    if (!pointers) return pointers.error();
    return count(*what, HistogramArguments{.samples = pointers->samples, .counts = pointers->counts});
  });
}

Progress to_progress(sluice_progress progress, void* user) {
  if (progress == nullptr) return {};
  return [progress, user](double done) { progress(done, user); };
}

const std::vector<std::string>& kernel_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const KernelConfig& kernel : kernel_list()) all.push_back(name(kernel));
    return all;
  }();
  return names;
}

}  // namespace
}  // namespace sluice

using namespace sluice;

extern "C" {

const char* sluice_version(void) { return version(); }
int32_t sluice_built_with_cuda(void) { return built_with_cuda() ? 1 : 0; }
int32_t sluice_built_with_emulator(void) { return built_with_emulator() ? 1 : 0; }
const char* sluice_status_name(int32_t status) { return status == SLUICE_OK ? "ok" : to_string(static_cast<ErrorCode>(status)); }
const char* sluice_last_error(void) { return last_error(); }
void sluice_string_free(char* text) { std::free(text); }

size_t sluice_kernel_count(void) {
  size_t count = 0;
  guarded([&]() -> Status {
    count = kernel_list().size();
    return Nothing{};
  });
  return count;
}

const char* sluice_kernel_name(size_t index) {
  const char* text = nullptr;
  guarded([&]() -> Status {
    if (index < kernel_names().size()) text = kernel_names()[index].c_str();
    return Nothing{};
  });
  return text;
}

sluice_status sluice_problem_init(sluice_problem* problem, size_t struct_size) { return init(problem, struct_size); }
sluice_status sluice_device_init(sluice_device* device, size_t struct_size) { return init(device, struct_size); }
sluice_status sluice_plan_options_init(sluice_plan_options* options, size_t struct_size) { return init(options, struct_size); }
sluice_status sluice_plan_info_init(sluice_plan_info* info, size_t struct_size) { return init(info, struct_size); }
sluice_status sluice_arguments_init(sluice_arguments* arguments, size_t struct_size) { return init(arguments, struct_size); }
sluice_status sluice_emulator_options_init(sluice_emulator_options* options, size_t struct_size) { return init(options, struct_size); }
sluice_status sluice_quantize_problem_init(sluice_quantize_problem* problem, size_t struct_size) { return init(problem, struct_size); }
sluice_status sluice_quantize_arguments_init(sluice_quantize_arguments* arguments, size_t struct_size) {
  return init(arguments, struct_size);
}

sluice_status sluice_pack_w4_problem_init(sluice_pack_w4_problem* problem, size_t struct_size) { return init(problem, struct_size); }
sluice_status sluice_pack_w4_arguments_init(sluice_pack_w4_arguments* arguments, size_t struct_size) {
  return init(arguments, struct_size);
}

sluice_status sluice_histogram_problem_init(sluice_histogram_problem* problem, size_t struct_size) { return init(problem, struct_size); }
sluice_status sluice_histogram_arguments_init(sluice_histogram_arguments* arguments, size_t struct_size) {
  return init(arguments, struct_size);
}

size_t sluice_device_count(void) {
  size_t count = 0;
  guarded([&]() -> Status {
    count = builtin_devices().size();
    return Nothing{};
  });
  return count;
}

const char* sluice_device_name(size_t index) {
  const char* text = nullptr;
  guarded([&]() -> Status {
    if (index < builtin_devices().size()) text = builtin_devices()[index].name.c_str();
    return Nothing{};
  });
  return text;
}

sluice_status sluice_device_find(const char* name, sluice_device* device) {
  return give_device(device, [&]() -> Result<DeviceSpec> {
    if (name == nullptr) return null_pointer("name");
    return find_device(name);
  });
}

sluice_status sluice_device_current(sluice_device* device) {
  return give_device(device, [] { return current_device(); });
}

sluice_status sluice_device_from_json(const char* json, sluice_device* device) {
  return give_device(device, [&]() -> Result<DeviceSpec> {
    if (json == nullptr) return null_pointer("json");
    return device_from_json(json);
  });
}

sluice_status sluice_device_to_json(const sluice_device* device, char** text) {
  return guarded([&]() -> Status {
    if (text == nullptr) return null_pointer("text");
    *text = nullptr;
    if (device == nullptr) return null_pointer("device");
    const Result<DeviceSpec> spec = to_device_spec(*device);
    if (!spec) return spec.error();
    return hand_out(to_json(*spec), text);
  });
}

sluice_status sluice_plan_create(const sluice_problem* problem, const sluice_device* device, const sluice_plan_options* options,
                                 sluice_plan** plan) {
  return guarded([&]() -> Status {
    if (plan == nullptr) return null_pointer("plan");
    *plan = nullptr;
    if (problem == nullptr) return null_pointer("problem");
    if (device == nullptr) return null_pointer("device");
    const Result<GemmProblem> what = to_problem(*problem);
    if (!what) return what.error();
    const Result<DeviceSpec> where = to_device_spec(*device);
    if (!where) return where.error();
    const Result<PlanOptions> how = options == nullptr ? Result<PlanOptions>(PlanOptions{}) : to_plan_options(*options);
    if (!how) return how.error();
    return give_plan(sluice::plan(*what, *where, *how), plan);
  });
}

sluice_status sluice_plan_from_json(const char* json, sluice_plan** plan) {
  return guarded([&]() -> Status {
    if (plan == nullptr) return null_pointer("plan");
    *plan = nullptr;
    if (json == nullptr) return null_pointer("json");
    return give_plan(plan_from_json(json), plan);
  });
}

void sluice_plan_destroy(sluice_plan* plan) { delete plan; }

sluice_status sluice_plan_workspace_bytes(const sluice_plan* plan, size_t* bytes) {
  return guarded([&]() -> Status {
    if (plan == nullptr) return null_pointer("plan");
    if (bytes == nullptr) return null_pointer("bytes");
    *bytes = plan->plan.workspace_bytes;
    return Nothing{};
  });
}

sluice_status sluice_plan_get_info(const sluice_plan* plan, sluice_plan_info* info) {
  return guarded([&]() -> Status {
    if (plan == nullptr) return null_pointer("plan");
    if (info == nullptr) return null_pointer("info");
    return from_plan(plan->plan, *info);
  });
}

const char* sluice_plan_kernel_name(const sluice_plan* plan) { return plan == nullptr ? nullptr : plan->kernel_name.c_str(); }

sluice_status sluice_plan_explain(const sluice_plan* plan, int32_t most, char** text) {
  return plan_text(plan, text, [most](const Plan& p) -> Result<std::string> { return explain(p, most); });
}

sluice_status sluice_plan_to_string(const sluice_plan* plan, char** text) {
  return plan_text(plan, text, [](const Plan& p) -> Result<std::string> { return to_string(p); });
}

sluice_status sluice_plan_to_json(const sluice_plan* plan, char** text) {
  return plan_text(plan, text, [](const Plan& p) -> Result<std::string> { return to_json(p); });
}

sluice_status sluice_plan_simulate_svg(const sluice_plan* plan, char** text) {
  return plan_text(plan, text, [](const Plan& p) { return simulated(p, [](const Simulation& s) { return to_svg(s); }); });
}

sluice_status sluice_plan_simulate_text(const sluice_plan* plan, int32_t width_columns, char** text) {
  return plan_text(plan, text, [&](const Plan& p) { return simulated(p, [&](const Simulation& s) { return to_text(s, width_columns); }); });
}

sluice_status sluice_plan_simulate_json(const sluice_plan* plan, char** text) {
  return plan_text(plan, text, [](const Plan& p) { return simulated(p, [](const Simulation& s) { return to_json(s); }); });
}

sluice_status sluice_prepare_workspace(void* workspace, size_t workspace_bytes, void* stream) {
  return guarded([&]() -> Status {
    if (workspace_bytes > 0 && workspace == nullptr) return null_pointer("workspace");
    return workspace_bytes == 0 ? Nothing{} : prepare_workspace(workspace, workspace_bytes, static_cast<Stream>(stream));
  });
}

sluice_status sluice_run(const sluice_plan* plan, const sluice_arguments* arguments, void* workspace, size_t workspace_bytes,
                         void* stream) {
  return guarded([&]() -> Status {
    if (plan == nullptr) return null_pointer("plan");
    const Result<GemmArguments> pointers = read_arguments(arguments);
    if (!pointers) return pointers.error();
    return run(plan->plan, *pointers, workspace, workspace_bytes, static_cast<Stream>(stream));
  });
}

sluice_status sluice_run_on_cpu(const sluice_plan* plan, const sluice_arguments* host_arguments, int32_t threads, sluice_progress progress,
                                void* user) {
  return guarded([&]() -> Status {
    if (plan == nullptr) return null_pointer("plan");
    if (Status s = check_threads(threads); !s) return s;
    const Result<GemmArguments> pointers = read_arguments(host_arguments);
    if (!pointers) return pointers.error();
    return run_on_cpu(plan->plan, *pointers, threads, to_progress(progress, user));
  });
}

sluice_status sluice_run_on_emulator(const sluice_plan* plan, const sluice_arguments* host_arguments,
                                     const sluice_emulator_options* options, sluice_progress progress, void* user) {
  return guarded([&]() -> Status {
    if (plan == nullptr) return null_pointer("plan");
    const Result<GemmArguments> pointers = read_arguments(host_arguments);
    if (!pointers) return pointers.error();
    const Result<EmulatorOptions> how = to_emulator_options(options);
    if (!how) return how.error();
    return run_on_emulator(plan->plan, *pointers, *how, to_progress(progress, user));
  });
}

sluice_status sluice_automatic_backend(const sluice_plan* plan, int32_t* backend, char** why) {
  return guarded([&]() -> Status {
    if (why != nullptr) *why = nullptr;
    if (plan == nullptr) return null_pointer("plan");
    if (backend == nullptr) return null_pointer("backend");
    const BackendChoice choice = automatic_backend(plan->plan);
    if (why != nullptr)
      if (Status s = hand_out(choice.why, why); !s) return s;
    *backend = static_cast<int32_t>(choice.backend);
    return Nothing{};
  });
}

const char* sluice_backend_name(int32_t backend) {
  return backend < SLUICE_BACKEND_CUDA || backend > SLUICE_BACKEND_REFERENCE ? "?" : to_string(static_cast<Backend>(backend));
}

sluice_status sluice_quantize_scale_count(const sluice_quantize_problem* problem, size_t* count) {
  return guarded([&]() -> Status {
    if (problem == nullptr) return null_pointer("problem");
    if (count == nullptr) return null_pointer("count");
    const Result<QuantizeProblem> what = to_quantize_problem(*problem);
    if (!what) return what.error();
    const Result<QuantizeProblem> valid = validate(*what);
    if (!valid) return valid.error();
    *count = static_cast<size_t>(scale_elems(*valid));
    return Nothing{};
  });
}

sluice_status sluice_quantize(const sluice_quantize_problem* problem, const sluice_quantize_arguments* arguments, void* stream) {
  return quantized(problem, arguments, [stream](const QuantizeProblem& what, const QuantizeArguments& pointers) {
    return quantize(what, pointers, static_cast<Stream>(stream));
  });
}

sluice_status sluice_quantize_on_cpu(const sluice_quantize_problem* problem, const sluice_quantize_arguments* host_arguments,
                                     int32_t threads) {
  return quantized(problem, host_arguments, [threads](const QuantizeProblem& what, const QuantizeArguments& pointers) -> Status {
    if (Status s = check_threads(threads); !s) return s;
    return quantize_on_cpu(what, pointers, threads);
  });
}

sluice_status sluice_quantize_on_emulator(const sluice_quantize_problem* problem, const sluice_quantize_arguments* host_arguments,
                                          const sluice_emulator_options* options) {
  return quantized(problem, host_arguments, [options](const QuantizeProblem& what, const QuantizeArguments& pointers) -> Status {
    const Result<EmulatorOptions> how = to_emulator_options(options);
    if (!how) return how.error();
    return quantize_on_emulator(what, pointers, *how);
  });
}

sluice_status sluice_packed_w4_bytes(const sluice_pack_w4_problem* problem, size_t* bytes) {
  return guarded([&]() -> Status {
    if (problem == nullptr) return null_pointer("problem");
    if (bytes == nullptr) return null_pointer("bytes");
    const Result<PackW4Problem> what = to_pack_w4_problem(*problem);
    if (!what) return what.error();
    const Result<PackW4Problem> valid = validate(*what);
    if (!valid) return valid.error();
    *bytes = static_cast<size_t>(packed_w4_bytes(valid->n, valid->k, valid->format));
    return Nothing{};
  });
}

sluice_status sluice_pack_w4(const sluice_pack_w4_problem* problem, const sluice_pack_w4_arguments* arguments, void* stream) {
  return packed(problem, arguments, [stream](const PackW4Problem& what, const PackW4Arguments& pointers) {
    return pack_w4(what, pointers, static_cast<Stream>(stream));
  });
}

sluice_status sluice_pack_w4_on_cpu(const sluice_pack_w4_problem* problem, const sluice_pack_w4_arguments* host_arguments,
                                    int32_t threads) {
  return packed(problem, host_arguments, [threads](const PackW4Problem& what, const PackW4Arguments& pointers) -> Status {
    if (Status s = check_threads(threads); !s) return s;
    return pack_w4_on_cpu(what, pointers, threads);
  });
}

sluice_status sluice_pack_w4_on_emulator(const sluice_pack_w4_problem* problem, const sluice_pack_w4_arguments* host_arguments,
                                         const sluice_emulator_options* options) {
  return packed(problem, host_arguments, [options](const PackW4Problem& what, const PackW4Arguments& pointers) -> Status {
    const Result<EmulatorOptions> how = to_emulator_options(options);
    if (!how) return how.error();
    return pack_w4_on_emulator(what, pointers, *how);
  });
}

sluice_status sluice_unpack_w4_on_cpu(const sluice_pack_w4_problem* problem, const void* host_packed, void* host_weights) {
  return guarded([&]() -> Status {
    if (problem == nullptr) return null_pointer("problem");
    const Result<PackW4Problem> what = to_pack_w4_problem(*problem);
    if (!what) return what.error();
    return unpack_w4_on_cpu(what->n, what->k, what->format, what->type, host_packed, host_weights);
  });
}

sluice_status sluice_w4_order_of_groups(int64_t k, int32_t group_size, const int32_t* host_group_of, int32_t* host_order) {
  return guarded([&] { return order_of_groups(k, group_size, host_group_of, host_order); });
}

sluice_status sluice_permute_columns(int64_t m, int64_t k, const void* from, int64_t ld_from, const int32_t* order, void* to, int64_t ld_to,
                                     void* stream) {
  return guarded(
      [&] { return permute_columns({.m = m, .k = k, .ld_from = ld_from, .ld_to = ld_to}, from, order, to, static_cast<Stream>(stream)); });
}

sluice_status sluice_permute_columns_on_cpu(int64_t m, int64_t k, const void* from, int64_t ld_from, const int32_t* order, void* to,
                                            int64_t ld_to) {
  return guarded([&] { return permute_columns_on_cpu({.m = m, .k = k, .ld_from = ld_from, .ld_to = ld_to}, from, order, to); });
}

sluice_status sluice_histogram(const sluice_histogram_problem* problem, const sluice_histogram_arguments* arguments, void* stream) {
  return counted(problem, arguments, [stream](const HistogramProblem& what, const HistogramArguments& pointers) {
    return histogram(what, pointers, static_cast<Stream>(stream));
  });
}

sluice_status sluice_histogram_on_cpu(const sluice_histogram_problem* problem, const sluice_histogram_arguments* host_arguments,
                                      int32_t threads) {
  return counted(problem, host_arguments, [threads](const HistogramProblem& what, const HistogramArguments& pointers) -> Status {
    if (Status s = check_threads(threads); !s) return s;
    return histogram_on_cpu(what, pointers, threads);
  });
}

sluice_status sluice_histogram_on_emulator(const sluice_histogram_problem* problem, const sluice_histogram_arguments* host_arguments,
                                           const sluice_emulator_options* options) {
  return counted(problem, host_arguments, [options](const HistogramProblem& what, const HistogramArguments& pointers) -> Status {
    const Result<EmulatorOptions> how = to_emulator_options(options);
    if (!how) return how.error();
    return histogram_on_emulator(what, pointers, *how);
  });
}

}  // extern "C"
