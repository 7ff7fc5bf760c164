// The emulated machine: CTAs whose threads are fibers, the asynchronous units beside them, and a log of who has seen what.
//
// The main loop gives one turn at a time, to a thread that can go on or to a piece of asynchronous work, as the seed has it. Time is the
// number of turns. Correctness of synchronisation does not depend on luck: every access to shared memory carries the epoch of its agent
// and is checked against the vector clocks of those who touched the place before (shadow.hpp).
#pragma once

#include <array>
#include <boost/context/fiber.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "arch/emulated/clock.hpp"
#include "arch/emulated/emulator.hpp"
#include "arch/emulated/engine.hpp"
#include "arch/emulated/shadow.hpp"

namespace sluice::arch::emulated {

inline constexpr int kWarpThreads = 32;
inline constexpr int kWarpgroupThreads = 128;

// Agents of a CTA place, by their numbers within it.
inline constexpr int kFirstTensorCore = 32;  // of four warpgroups
inline constexpr int kFirstBulkReader = 36;  // bulk groups of up to eight threads, reading shared memory,
inline constexpr int kFirstBulkWriter = 44;  // and writing global memory
inline constexpr int kMostBulkThreads = 8;
inline constexpr int kFirstBarrierCopies = 52;
inline constexpr int kMostBarriers = 76;
inline constexpr int kAgentsPerCta = kFirstBarrierCopies + kMostBarriers;
static_assert(kAgentsPerCta == 128);

struct Cta;
struct Cluster;
struct Warp;
struct Thread;

struct MBarrier {
  int number = -1;  // within the CTA: its agent is kFirstBarrierCopies + number
  std::uint32_t offset = 0;
  int expected = 0;
  int pending = 0;
  std::int64_t bytes = 0;  // still to come
  int copies = 0;          // of this phase, under way
  std::uint32_t phase = 0;
  Epoch initialised;
  bool init_fenced = false;
  const char* name = nullptr;
  int index = 0;
  Clock gathering;  // what those who arrived in this phase knew
  Clock published;  // what the last completed phase knew
  std::vector<Thread*> waiters;
};

struct NamedBarrier {
  int expected = 0;
  int arrived = 0;
  std::uint32_t generation = 0;
  std::unordered_map<Warp*, int> by_warp;
  Clock gathering;
  Clock published;
  std::vector<Thread*> waiters;
};

// A register-file tile of a warpgroup while wgmma work on it: 64 rows of `columns`.
struct Accumulator {
  int columns = 0;
  std::vector<float> values;
  int returned = 0;  // threads that have taken their part back
};

struct WgmmaOp {
  WgmmaShape shape{};
  bool p_in_registers = false;
  std::uint64_t p = 0;
  std::uint64_t q = 0;
  std::array<std::array<std::uint32_t, 4>, kWarpgroupThreads> p_registers{};
  std::shared_ptr<Accumulator> accumulator;
  int arrived = 0;
  Location at;
};

struct Warpgroup {
  Cta* cta = nullptr;
  int number = 0;
  std::uint32_t first_time = 0;           // of its agent: committed group n happens at first_time + n
  std::deque<WgmmaOp> ops;                // those that not all threads have issued, or that have not been carried out
  std::uint64_t first_op = 0;             // number of ops.front()
  std::vector<std::uint64_t> group_ends;  // ops before the end of each committed group
  std::map<std::uint64_t, std::shared_ptr<Accumulator>> accumulators;  // by the order of their first use
  std::vector<Thread*> waiters;
  std::uint64_t issued = 0;  // ops that all 128 threads have issued
  std::uint32_t site = 0;    // of the last of them
};

// What a warp does together: stmatrix, ldmatrix, mma, elect, shuffles. Lanes may come one after the other.
struct WarpCollective {
  enum class Kind : std::uint8_t { store_matrices, load_matrices, transpose, mma, elect, shuffle, sync };
  Kind kind{};
  Location at;
  int arrived = 0;
  int elected = -1;
  std::array<SharedAddress, kWarpThreads> rows{};
  std::array<std::array<std::uint32_t, 6>, kWarpThreads> words{};
  std::vector<Thread*> waiters;
};

struct Warp {
  Cta* cta = nullptr;
  int number = 0;
  std::uint16_t agent = 0;
  Clock clock;
  bool published = true;                                  // or fenced, since the last access
  std::unordered_map<const void*, std::uint32_t> joined;  // what has been acquired from whom
  std::deque<std::shared_ptr<WarpCollective>> collectives;
  std::uint64_t first_collective = 0;
  std::unique_ptr<Clock> fence_release;  // as of the last fence_global
  std::unique_ptr<Clock> fence_acquire;  // what relaxed loads have seen
};

// Registers that a wgmma reads P from, and what they held when it was started.
struct FragmentInFlight {
  const std::uint32_t* registers = nullptr;
  std::array<std::uint32_t, 4> held{};
  std::uint64_t op = 0;
};

// A thread's part of an accumulator that wgmma work on.
struct InFlight {
  float* registers = nullptr;
  std::shared_ptr<Accumulator> accumulator;
  std::uint64_t last_op = 0;
};

struct Thread {
  Cta* cta = nullptr;
  Warp* warp = nullptr;
  Warpgroup* warpgroup = nullptr;
  int number = 0;  // in the CTA
  boost::context::fiber fiber;
  boost::context::fiber machine;
  bool finished = false;
  std::function<std::string()> waiting_for;  // empty: not waiting
  Location waiting_at;
  const char* role = nullptr;
  int registers = 0;  // its limit, once it has set one
  std::array<int, 5> work{};
  bool has_work = false;
  bool predecessor_done = false;
  std::uint32_t cluster_arrivals = 0;
  std::uint32_t cluster_waits = 0;
  std::uint64_t collective_calls = 0;
  std::uint64_t wgmma_calls = 0;
  std::uint64_t accumulator_uses = 0;
  std::uint64_t groups_committed = 0;
  bool wgmma_fenced = false;
  std::vector<InFlight> in_flight;
  std::vector<FragmentInFlight> fragments_in_flight;
  int bulk_thread = -1;  // index into Cta::bulk
  std::vector<const TensorMap*> acquired_maps;
};

// The bulk groups of one thread.
struct BulkThread {
  Thread* thread = nullptr;
  std::uint32_t first = 1;
  std::uint32_t open = 1;  // number of the group that takes new copies
  bool uncommitted = false;
  std::map<std::uint32_t, int> reading;  // copies of each group that still read shared memory
  std::map<std::uint32_t, int> writing;
  bool waits = false;
};

struct Cta {
  Cluster* cluster = nullptr;
  int rank = 0;   // in the cluster
  int place = 0;  // of the machine
  std::byte* shared = nullptr;
  std::uint32_t shared_bytes = 0;
  ShadowMemory shadow;
  std::unordered_map<std::uint32_t, MBarrier> barriers;  // by offset
  std::array<NamedBarrier, 16> named;                    // 0 is __syncthreads
  std::vector<Warpgroup> warpgroups;
  std::vector<Warp> warps;
  std::vector<Thread> threads;
  std::vector<BulkThread> bulk;
  std::map<std::uint32_t, Epoch> remote_accesses;  // the last of each agent
  int spare_registers = 0;                         // handed over and not yet taken
  std::vector<Thread*> register_waiters;
  int unfinished = 0;
  bool successor_may_begin = false;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);  // for copies that outlast it
  ~Cta() { *alive = false; }
};

struct Cluster {
  int number = 0;
  std::vector<std::unique_ptr<Cta>> ctas;
  NamedBarrier barrier;
  int unfinished = 0;
};

// A copy or a wgmma that may be carried out now.
struct Pending {
  std::function<void()> carry_out;
  Cta* reads = nullptr;  // whose shared memory it reads or writes: it must not end before
  Cta* writes = nullptr;
  std::uint32_t site = 0;
};

struct Flag {
  Clock released;
  std::vector<Thread*> waiters;
};

class Machine {
 public:
  Machine(const Launch& launch, const Options& options, const std::function<void()>& kernel);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Statistics run();

  static Machine& here() { return *current_; }
  Thread& thread() const { return *running_; }

  // threads
  void wait(const Location& at, std::function<std::string()> for_what);  // until wake()
  void wake(Thread* thread);
  void wake_all(std::vector<Thread*>& threads);
  void maybe_yield();  // so that the others may overtake
  void yield();        // so that they can

  // clocks
  std::uint16_t agent(const Cta& cta, int number) const { return static_cast<std::uint16_t>(cta.place * kAgentsPerCta + number); }
  Epoch access(Warp& warp, std::uint32_t site);  // the epoch of an access made now
  void publish(Warp& warp, Clock& to, bool everything);
  void acquire(Warp& warp, const Clock& from, const void* whom, std::uint32_t version);
  void acquire(Warp& warp, const Clock& from);
  void fence_proxy(Warp& warp);
  Clock new_clock() const { return Clock(agents_); }

  // asynchronous work
  void start(Pending work);

  // diagnosis
  std::uint32_t site(const Location& at, const char* what);
  std::string describe(std::uint32_t site) const;
  std::string describe(const Thread& thread) const;
  [[noreturn]] void fail(const Location& at, const std::string& what);  // by the running thread
  [[noreturn]] void fail_at(std::uint32_t site, const std::string& what);
  bool diagnoses() const { return options_.diagnose; }

  // global memory
  struct Global {
    GlobalBuffer buffer;
    ShadowMemory shadow;
  };
  Global& global(const void* address, std::size_t bytes, bool writes, const Location& at);
  // Whether the running thread may read some of what lies about this address, and must not yet read all of it.
  bool is_partly_constant(const void* address) const;
  Flag& flag(const void* address) { return flags_[address]; }

  std::uint32_t agent_time(std::uint16_t agent) const { return agent_times_[agent]; }
  std::uint32_t random(std::uint32_t below) { return static_cast<std::uint32_t>(random_() % below); }
  const Options& options() const { return options_; }
  const Launch& launch() const { return launch_; }
  Statistics statistics;

 private:
  struct Site {
    Location at;
    const char* what;
    std::string who;
  };

  void start_cluster(int place);
  void finish_thread(Thread& thread);
  void finish_cta(Cta& cta);
  void resume(Thread& thread);
  bool step();
  [[noreturn]] void deadlock();
  std::string replay() const;

  const Launch& launch_;
  Options options_;
  const std::function<void()>& kernel_;
  std::mt19937_64 random_;
  std::uint32_t async_share_ = 0;  // of 256 turns, how many go to asynchronous work while threads can go on
  std::uint32_t yield_share_ = 0;
  int resident_ = 0;
  std::size_t agents_ = 0;
  std::vector<std::uint32_t> agent_times_;  // carried on when another CTA takes the place
  std::vector<std::unique_ptr<Cluster>> places_;
  std::vector<std::vector<std::byte>> shared_;
  int started_ = 0;
  int finished_ = 0;
  std::vector<Thread*> ready_;
  std::vector<Pending> pending_;
  Thread* running_ = nullptr;
  std::vector<Site> sites_;
  std::unordered_map<std::uint64_t, std::uint32_t> site_numbers_;
  std::deque<Global> globals_;
  std::unordered_map<const void*, Flag> flags_;
  std::exception_ptr failure_;
  Machine* outer_ = nullptr;
  static thread_local Machine* current_;  // NOLINT(readability-identifier-naming): private, but clang-tidy 14 sees a variable
};

inline constexpr std::uint32_t kSharedWindow = 1024;  // the first shared address of a CTA's own: the hardware keeps the kilobyte before

// The pattern that stands in a thread's accumulators while wgmma work on them: a NaN that arithmetic hands on.
inline constexpr std::uint32_t kInFlightBits = 0x7fc5a5a5;

// mbarrier.cpp
std::string title(const MBarrier& barrier);
MBarrier& find_barrier(Cta& cta, std::uint32_t offset, bool remote, const Location& at);
void complete_bytes(Cta& cta, MBarrier& barrier, int bytes, std::uint32_t site);
std::uint32_t barrier_copy_time(const Cta& cta, const MBarrier& barrier);

// memory.cpp
// Of this cluster. Remembers that it was reached into, unless by a copy, which is over when a barrier there has counted it.
Cta& remote_cta(int rank, bool by_copy, const Location& at);
struct Place {
  Cta* cta;
  SharedAddress address;
};
Place place_of(ClusterAddress address, bool by_copy, const Location& at);
// The bytes behind a shared address, which must all lie inside the CTA's memory.
std::byte* shared_bytes(Cta& cta, SharedAddress address, std::size_t bytes, std::size_t alignment, const char* what, const Location& at);
void report(const ShadowMemory::Verdict& verdict, const char* what, SharedAddress address, const Location& at);

}  // namespace sluice::arch::emulated
