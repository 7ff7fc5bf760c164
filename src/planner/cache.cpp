// Plans made before, found again in well under a microsecond, from any number of threads.
//
// Readers take one of several locks, each thread its own as far as they go; whoever adds a plan takes them all. Readers so never
// wait for one another, and adding, which follows the making of a plan, can afford to be slower. One lock for all, even a shared one,
// is a cache line that every reader writes.
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "sluice/plan_cache.hpp"

namespace sluice {
namespace {

constexpr int kReaderLocks = 16;
constexpr std::size_t kCacheLineBytes = 64;

struct Question {
  const GemmProblem& problem;  // as asked: kPacked and all
  const DeviceSpec& device;
};

struct Entry {
  GemmProblem problem;
  std::shared_ptr<const Plan> plan;  // which knows its device

  Question question() const { return {problem, plan->device}; }
};

// By their bits: a NaN is then found again, and 0 and -0 are different.
bool same_bits(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }

bool same(const GemmProblem& a, const GemmProblem& b) {
  const auto without_scales = [](const GemmProblem& p) {
    GemmProblem copy = p;
    copy.epilogue.alpha = copy.epilogue.beta = 0;
    return copy;
  };
  return same_bits(a.epilogue.alpha, b.epilogue.alpha) && same_bits(a.epilogue.beta, b.epilogue.beta) &&
         without_scales(a) == without_scales(b);
}

class Mixer {
 public:
  void add(std::uint64_t value) {
    state_ = (state_ ^ value) * 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio, odd: each bit of the value reaches the upper half
    state_ ^= state_ >> 32;
  }
  std::size_t value() const { return static_cast<std::size_t>(state_); }

 private:
  std::uint64_t state_ = 0;
};

// What tells problems in one program apart; the rest is left to the comparison.
struct Hash {
  using is_transparent = void;
  std::size_t operator()(const Question& q) const {
    const GemmProblem& p = q.problem;
    Mixer mixer;
    for (const std::int64_t value : {p.m, p.n, p.k, p.batch, p.lda, p.ldb, p.ldd}) mixer.add(static_cast<std::uint64_t>(value));
    mixer.add(static_cast<std::uint64_t>(p.type_a) | static_cast<std::uint64_t>(p.type_d) << 8 |
              static_cast<std::uint64_t>(p.layout_a) << 16 | static_cast<std::uint64_t>(p.layout_b) << 24 |
              static_cast<std::uint64_t>(p.epilogue.bias) << 32 | static_cast<std::uint64_t>(p.epilogue.activation) << 40 |
              static_cast<std::uint64_t>(p.type_b) << 48 | static_cast<std::uint64_t>(p.grouping) << 56);
    mixer.add(std::uint64_t{std::bit_cast<std::uint32_t>(p.epilogue.alpha)} << 32 | std::bit_cast<std::uint32_t>(p.epilogue.beta));
    mixer.add(static_cast<std::uint64_t>(q.device.sm_count));
    mixer.add(std::hash<std::string_view>{}(q.device.name));
    return mixer.value();
  }
  std::size_t operator()(const Entry& entry) const { return (*this)(entry.question()); }
};

struct Equal {
  using is_transparent = void;
  static bool same_question(const Question& a, const Question& b) { return same(a.problem, b.problem) && a.device == b.device; }
  bool operator()(const Entry& a, const Entry& b) const { return same_question(a.question(), b.question()); }
  bool operator()(const Question& a, const Entry& b) const { return same_question(a, b.question()); }
  bool operator()(const Entry& a, const Question& b) const { return same_question(a.question(), b); }
};

}  // namespace

struct PlanCache::State {
  struct alignas(kCacheLineBytes) ReaderLock {
    std::mutex mutex;
  };

  explicit State(std::size_t most) : capacity(most) {}

  std::mutex& lock_of_this_thread() {
    static std::atomic<unsigned> threads{0};
    thread_local const unsigned mine = threads.fetch_add(1, std::memory_order_relaxed);
    return locks[mine % kReaderLocks].mutex;
  }

  std::shared_ptr<const Plan> find(const Question& question) {
    const std::lock_guard lock(lock_of_this_thread());
    const auto found = entries.find(question);
    return found == entries.end() ? nullptr : found->plan;
  }

  // `question` must be validated, as the problems of loaded plans are.
  std::shared_ptr<const Plan> find_loaded(const Question& question) {
    const std::lock_guard lock(lock_of_this_thread());
    const auto found = loaded.find(question);
    return found == loaded.end() ? nullptr : found->plan;
  }

  bool has_loaded() {
    const std::lock_guard lock(lock_of_this_thread());
    return !loaded.empty();
  }

  void load(std::vector<std::shared_ptr<const Plan>> plans) {
    std::vector<std::shared_ptr<const Plan>> leaving;  // freed after the locks
    AllLocks all(locks);
    for (std::shared_ptr<const Plan>& plan : plans) {
      if (const auto before = loaded.find(Question{plan->problem, plan->device}); before != loaded.end()) {
        leaving.push_back(before->plan);
        loaded.erase(before);
      }
      loaded.insert(Entry{plan->problem, std::move(plan)});
    }
    // What was made for the same questions before would be found first.
    std::deque<const Entry*> staying;
    for (const Entry* entry : by_age) {
      if (loaded.find(Question{entry->plan->problem, entry->plan->device}) == loaded.end()) {
        staying.push_back(entry);
        continue;
      }
      leaving.push_back(entry->plan);
      entries.erase(entries.find(entry->question()));
    }
    by_age = std::move(staying);
  }

  // Returns what the cache holds from now on: another thread may have been first.
  std::shared_ptr<const Plan> add(const GemmProblem& problem, std::shared_ptr<const Plan> plan) {
    if (capacity == 0) return plan;
    std::shared_ptr<const Plan> leaving;  // freed after the locks
    AllLocks all(locks);
    // One may have been loaded while this one was made.
    if (const auto tuned = loaded.find(Question{plan->problem, plan->device}); tuned != loaded.end()) return tuned->plan;
    const auto [place, added] = entries.insert(Entry{problem, std::move(plan)});
    std::shared_ptr<const Plan> kept = place->plan;
    if (!added) return kept;
    by_age.push_back(&*place);
    if (entries.size() > capacity) {
      const auto oldest = entries.find(by_age.front()->question());
      leaving = oldest->plan;
      entries.erase(oldest);
      by_age.pop_front();
    }
    return kept;
  }

  // Always in the same order, so that two who add cannot wait for each other.
  class AllLocks {
   public:
    explicit AllLocks(std::array<ReaderLock, kReaderLocks>& locks) : locks_(locks) {
      for (ReaderLock& lock : locks_) lock.mutex.lock();
    }
    ~AllLocks() {
      for (ReaderLock& lock : locks_) lock.mutex.unlock();
    }
    AllLocks(const AllLocks&) = delete;
    AllLocks& operator=(const AllLocks&) = delete;

   private:
    std::array<ReaderLock, kReaderLocks>& locks_;
  };

  const std::size_t capacity;
  std::array<ReaderLock, kReaderLocks> locks;
  std::unordered_set<Entry, Hash, Equal> entries;
  std::unordered_set<Entry, Hash, Equal> loaded;  // by validated problems; none of `entries` answers the same question
  std::deque<const Entry*> by_age;                // oldest first; the entries of an unordered_set stay where they are
};

PlanCache::PlanCache(std::size_t capacity) : state_(std::make_unique<State>(capacity)) {}
PlanCache::~PlanCache() = default;
PlanCache::PlanCache(PlanCache&&) noexcept = default;
PlanCache& PlanCache::operator=(PlanCache&&) noexcept = default;

Result<std::shared_ptr<const Plan>> PlanCache::get(const GemmProblem& problem, const DeviceSpec& device) {
  if (std::shared_ptr<const Plan> found = state_->find({problem, device})) return found;
  if (state_->has_loaded())
    if (const Result<GemmProblem> whole = validate(problem); whole.ok())
      if (std::shared_ptr<const Plan> found = state_->find_loaded({*whole, device})) return found;
  Result<Plan> made = plan(problem, device, {.keep_candidates = false});
  if (!made) return made.error();
  return state_->add(problem, std::make_shared<const Plan>(std::move(*made)));
}

std::size_t PlanCache::size() const {
  const std::lock_guard lock(state_->lock_of_this_thread());
  return state_->entries.size() + state_->loaded.size();
}

Result<std::size_t> PlanCache::load(const std::string& json) {
  Result<std::vector<TunedPlan>> read = tuned_plans_from_json(json);
  if (!read) return read.error();
  std::vector<std::shared_ptr<const Plan>> plans;
  for (TunedPlan& tuned : *read) plans.push_back(std::make_shared<const Plan>(std::move(tuned.plan)));
  state_->load(std::move(plans));
  return read->size();
}

}  // namespace sluice
