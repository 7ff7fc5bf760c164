#include "arch/emulated/machine.hpp"

#include <sys/mman.h>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sstream>
#include <string_view>

namespace sluice::arch::emulated {
namespace {

constexpr std::size_t kStackBytes = 128 * 1024;  // a kernel's frames with 256 accumulators, unoptimised, and room to spare
constexpr std::size_t kSharedAlignment = 1024;
constexpr int kDefaultResidentCtas = 4;
constexpr unsigned char kPoison = 0xff;  // NaN in every format

// Stacks are mapped once and used again: thousands of runs need the same few hundred.
struct StackPool {
  using traits_type = boost::context::stack_traits;

  static std::vector<void*>& free() {
    thread_local struct Pool {
      std::vector<void*> stacks;
      ~Pool() {
        for (void* stack : stacks) munmap(stack, kStackBytes);
      }
    } pool;
    return pool.stacks;
  }
  boost::context::stack_context allocate() {
    void* base = nullptr;
    if (!free().empty()) {
      base = free().back();
      free().pop_back();
    } else {
      base = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (base == MAP_FAILED) throw std::bad_alloc();
    }
    boost::context::stack_context context;
    context.size = kStackBytes;
    context.sp = static_cast<char*>(base) + kStackBytes;
    return context;
  }
  void deallocate(boost::context::stack_context& context) noexcept { free().push_back(static_cast<char*>(context.sp) - context.size); }
};

std::string place_in_source(const Location& at) {
  std::string_view file = at.file_name();
  // The build sees src/NAME as rooms/NAME/NAME (docs/decisions/0003).
  constexpr std::string_view kRooms = "/rooms/";
  if (const std::size_t found = file.rfind(kRooms); found != std::string_view::npos) {
    file.remove_prefix(found + kRooms.size());
    file.remove_prefix(std::min(file.find('/') + 1, file.size()));
    return "src/" + std::string(file) + ":" + std::to_string(at.line());
  }
  for (const std::string_view root : {"/src/", "/tests/"})
    if (const std::size_t found = file.rfind(root); found != std::string_view::npos) {
      file.remove_prefix(found + 1);
      break;
    }
  return std::string(file) + ":" + std::to_string(at.line());
}

}  // namespace

thread_local Machine* Machine::current_ = nullptr;

Machine::Machine(const Launch& launch, const Options& options, const std::function<void()>& kernel)
    : launch_(launch), options_(options), kernel_(kernel), random_(options.seed * 0x9E3779B97F4A7C15u + 1), outer_(current_) {
  current_ = this;
  // Drawn in any case: a message names the drawn one, and naming it again must not change what comes after.
  const Asynchrony drawn = std::array{Asynchrony::eager, Asynchrony::lazy, Asynchrony::mixed}[random(3)];
  if (options_.asynchrony == Asynchrony::random) options_.asynchrony = drawn;
  async_share_ = options_.asynchrony == Asynchrony::eager ? 250 : options_.asynchrony == Asynchrony::lazy ? 0 : 8 + random(120);
  yield_share_ = random(2) == 0 ? 0 : 4 + random(60);
  resident_ = options_.resident_clusters > 0 ? options_.resident_clusters : std::max(1, kDefaultResidentCtas / launch_.ctas_per_cluster);
  resident_ = std::min(resident_, launch_.clusters);
  const std::size_t ctas = static_cast<std::size_t>(resident_) * static_cast<std::size_t>(launch_.ctas_per_cluster);
  agents_ = ctas * kAgentsPerCta;
  agent_times_.assign(agents_, 0);
  places_.resize(static_cast<std::size_t>(resident_));
  shared_.resize(ctas);
  for (const GlobalBuffer& buffer : launch_.buffers) {
    globals_.push_back({buffer, {}});
    if (buffer.writable && options_.diagnose) globals_.back().shadow.reset(buffer.bytes);
  }
  sites_.push_back({});
}

Machine::~Machine() {
  places_.clear();  // unwinds the threads that have not finished
  current_ = outer_;
}

Statistics Machine::run() {
  for (int place = 0; place < resident_; ++place) start_cluster(place);
  while (finished_ < launch_.clusters)
    if (!step()) deadlock();
  while (!pending_.empty()) step();  // the grid ends when the copies have ended
  return statistics;
}

void Machine::start_cluster(int place) {
  auto cluster = std::make_unique<Cluster>();
  cluster->number = started_++;
  for (int rank = 0; rank < launch_.ctas_per_cluster; ++rank) {
    auto cta = std::make_unique<Cta>();
    cta->cluster = cluster.get();
    cta->rank = rank;
    cta->place = place * launch_.ctas_per_cluster + rank;
    auto& memory = shared_[static_cast<std::size_t>(cta->place)];
    cta->shared_bytes = static_cast<std::uint32_t>(launch_.shared_memory_bytes);
    memory.assign(cta->shared_bytes + kSharedAlignment, std::byte{kPoison});
    void* start = memory.data();
    std::size_t space = memory.size();
    cta->shared = static_cast<std::byte*>(std::align(kSharedAlignment, cta->shared_bytes, start, space));
    cta->shadow.reset(cta->shared_bytes);
    const int threads = launch_.threads_per_cta;
    cta->unfinished = threads;
    cta->warps = std::vector<Warp>(static_cast<std::size_t>(threads / kWarpThreads));
    cta->warpgroups.resize(static_cast<std::size_t>((threads + kWarpgroupThreads - 1) / kWarpgroupThreads));
    cta->threads = std::vector<Thread>(static_cast<std::size_t>(threads));
    for (std::size_t w = 0; w < cta->warps.size(); ++w) {
      Warp& warp = cta->warps[w];
      warp.cta = cta.get();
      warp.number = static_cast<int>(w);
      warp.agent = agent(*cta, warp.number);
      warp.clock = new_clock();
      warp.clock.order(warp.agent) = warp.clock.visible(warp.agent) = warp.clock.ended(warp.agent) = agent_times_[warp.agent];
    }
    for (std::size_t g = 0; g < cta->warpgroups.size(); ++g) {
      cta->warpgroups[g].cta = cta.get();
      cta->warpgroups[g].number = static_cast<int>(g);
      cta->warpgroups[g].first_time = agent_times_[agent(*cta, kFirstTensorCore + static_cast<int>(g))];
    }
    for (std::size_t t = 0; t < cta->threads.size(); ++t) {
      Thread& thread = cta->threads[t];
      thread.cta = cta.get();
      thread.warp = &cta->warps[t / kWarpThreads];
      thread.warpgroup = &cta->warpgroups[t / kWarpgroupThreads];
      thread.number = static_cast<int>(t);
      thread.fiber = boost::context::fiber(std::allocator_arg, StackPool{}, [this, &thread](boost::context::fiber&& machine) {
        thread.machine = std::move(machine);
        try {
          kernel_();
          finish_thread(thread);
        } catch (const EmulationError&) {
          failure_ = std::current_exception();
        }
        thread.finished = true;
        return std::move(thread.machine);
      });
      ready_.push_back(&thread);
    }
    cluster->unfinished += threads;
    cluster->ctas.push_back(std::move(cta));
  }
  places_[static_cast<std::size_t>(place)] = std::move(cluster);
}

bool Machine::step() {
  if (ready_.empty() && pending_.empty()) return false;
  ++statistics.steps;
  if (!pending_.empty() && (ready_.empty() || random(256) < async_share_)) {
    const std::size_t chosen = random(static_cast<std::uint32_t>(pending_.size()));
    const Pending work = std::move(pending_[chosen]);
    if (chosen + 1 != pending_.size()) pending_[chosen] = std::move(pending_.back());
    pending_.pop_back();
    work.carry_out();
    return true;
  }
  const std::size_t chosen = random(static_cast<std::uint32_t>(ready_.size()));
  Thread* thread = ready_[chosen];
  ready_[chosen] = ready_.back();
  ready_.pop_back();
  resume(*thread);
  return true;
}

void Machine::resume(Thread& thread) {
  running_ = &thread;
  thread.fiber = std::move(thread.fiber).resume();
  running_ = nullptr;
  if (failure_) std::rethrow_exception(failure_);
  if (!thread.finished) return;
  Cta& cta = *thread.cta;
  Cluster& cluster = *cta.cluster;
  if (--cta.unfinished == 0) finish_cta(cta);
  if (--cluster.unfinished > 0) return;
  ++finished_;
  if (launch_.progress) launch_.progress(static_cast<double>(finished_) / launch_.clusters);
  const int place = cta.place / launch_.ctas_per_cluster;
  if (started_ < launch_.clusters) start_cluster(place);  // replaces this one
}

void Machine::finish_thread(Thread& thread) {
  const auto fail = [&](const char* what) { throw EmulationError(describe(thread) + " ends " + what + replay()); };
  if (!thread.in_flight.empty()) fail("while wgmma still work on its accumulators: no wgmma_wait<0>");
  if (thread.bulk_thread < 0) return;
  const BulkThread& bulk = thread.cta->bulk[static_cast<std::size_t>(thread.bulk_thread)];
  if (bulk.uncommitted) fail("with copies that were never committed to a bulk group");
  const std::uint16_t reader = agent(*thread.cta, kFirstBulkReader + thread.bulk_thread);
  if (options_.diagnose && bulk.open > bulk.first && thread.warp->clock.order(reader) + 1 < bulk.open)
    fail("without having waited until the copy engine has read its shared memory (bulk_wait_read<0>)");
}

void Machine::finish_cta(Cta& cta) {
  for (const Pending& work : pending_)
    if (work.reads == &cta || work.writes == &cta)
      fail_at(work.site, "is still under way when " + std::string("CTA ") + std::to_string(cta.rank) + " of cluster " +
                             std::to_string(cta.cluster->number) + ", whose shared memory it uses, has ended");
  for (const auto& [offset, barrier] : cta.barriers)
    if (barrier.bytes < 0)
      throw EmulationError("CTA " + std::to_string(cta.rank) + " of cluster " + std::to_string(cta.cluster->number) + " ends with " +
                           std::to_string(-barrier.bytes) + " bytes of copies that " + title(barrier) + " never expected" + replay());
  Clock all = new_clock();
  for (Warp& warp : cta.warps) all.join(warp.clock);
  if (options_.diagnose)
    for (const auto& [agent, epoch] : cta.remote_accesses)
      if (!all.ordered(epoch))
        fail_at(epoch.site, "reaches into the shared memory of CTA " + std::to_string(cta.rank) + " of cluster " +
                                std::to_string(cta.cluster->number) + ", which ends without knowing that this is over");
  // Whoever takes the place goes on counting where this one stopped.
  std::array<std::uint32_t, kAgentsPerCta> next{};
  const auto raise = [&](int agent, std::uint32_t time) {
    next[static_cast<std::size_t>(agent)] = std::max(next[static_cast<std::size_t>(agent)], time);
  };
  for (int i = 0; i < kAgentsPerCta; ++i) {
    const std::uint16_t number = agent(cta, i);
    next[static_cast<std::size_t>(i)] = std::max({agent_times_[number], all.order(number), all.visible(number)});
  }
  for (const auto& [offset, barrier] : cta.barriers) raise(kFirstBarrierCopies + barrier.number, barrier_copy_time(cta, barrier));
  for (std::size_t i = 0; i < cta.bulk.size(); ++i) {
    raise(kFirstBulkReader + static_cast<int>(i), cta.bulk[i].open);
    raise(kFirstBulkWriter + static_cast<int>(i), cta.bulk[i].open);
  }
  for (const Warpgroup& group : cta.warpgroups)
    raise(kFirstTensorCore + group.number, group.first_time + static_cast<std::uint32_t>(group.group_ends.size()));
  for (int i = 0; i < kAgentsPerCta; ++i) agent_times_[agent(cta, i)] = next[static_cast<std::size_t>(i)];
}

void Machine::wait(const Location& at, std::function<std::string()> for_what) {
  Thread& thread = *running_;
  thread.waiting_for = std::move(for_what);
  thread.waiting_at = at;
  thread.machine = std::move(thread.machine).resume();
  thread.waiting_for = nullptr;
}

void Machine::wake(Thread* thread) { ready_.push_back(thread); }

void Machine::wake_all(std::vector<Thread*>& threads) {
  ready_.insert(ready_.end(), threads.begin(), threads.end());
  threads.clear();
}

void Machine::maybe_yield() {
  if (yield_share_ != 0 && random(256) < yield_share_) yield();
}

void Machine::yield() {
  ready_.push_back(running_);
  running_->machine = std::move(running_->machine).resume();
}

Epoch Machine::access(Warp& warp, std::uint32_t site) {
  if (warp.published) {  // what comes from now on is not covered by what was published
    ++warp.clock.order(warp.agent);
    warp.clock.visible(warp.agent) = warp.clock.order(warp.agent);
    warp.published = false;
  }
  return {.agent = warp.agent, .generic = true, .time = warp.clock.order(warp.agent), .site = site};
}

void Machine::publish(Warp& warp, Clock& to, bool everything) {
  if (to.empty()) to = new_clock();
  if (everything)
    to.join(warp.clock);
  else
    to.join_order(warp.clock);
  warp.published = true;
}

void Machine::acquire(Warp& warp, const Clock& from) {
  if (!from.empty()) warp.clock.join(from);
}

void Machine::fence_proxy(Warp& warp) {
  warp.clock.fence_proxy();
  warp.published = true;  // what comes from now on is not covered
}

void Machine::acquire(Warp& warp, const Clock& from, const void* whom, std::uint32_t version) {
  std::uint32_t& joined = warp.joined[whom];
  if (joined == version + 1) return;
  joined = version + 1;
  acquire(warp, from);
}

void Machine::start(Pending work) { pending_.push_back(std::move(work)); }

std::uint32_t Machine::site(const Location& at, const char* what) {
  const Thread& thread = *running_;
  std::uint64_t key = reinterpret_cast<std::uintptr_t>(at.file_name());
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(at.line()), static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(what)),
        static_cast<std::uint64_t>(thread.cta->cluster->number), static_cast<std::uint64_t>(thread.cta->rank),
        static_cast<std::uint64_t>(thread.warp->number), static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(thread.role))})
    key = (key ^ part) * 0x9E3779B97F4A7C15u;
  const auto [found, is_new] = site_numbers_.try_emplace(key, static_cast<std::uint32_t>(sites_.size()));
  if (is_new) sites_.push_back({at, what, describe(thread)});
  return found->second;
}

std::string Machine::describe(std::uint32_t site) const {
  const Site& s = sites_[site];
  return std::string(s.what) + " by " + s.who + " at " + place_in_source(s.at);
}

std::string Machine::describe(const Thread& thread) const {
  std::string text;
  if (launch_.clusters > 1) text = "cluster " + std::to_string(thread.cta->cluster->number) + " ";
  if (launch_.ctas_per_cluster > 1) text += "CTA " + std::to_string(thread.cta->rank) + " ";
  if (thread.role != nullptr) text += std::string(thread.role) + " ";
  return text + "warp " + std::to_string(thread.warp->number);
}

namespace {
std::string describe_work(const Thread& thread) {
  if (!thread.has_work) return "";
  const auto& w = thread.work;
  return ", at work tile (m " + std::to_string(w[0]) + ", n " + std::to_string(w[1]) + ", group " + std::to_string(w[2]) + ", k-tiles " +
         std::to_string(w[3]) + " to " + std::to_string(w[4]) + ")";
}
}  // namespace

std::string Machine::replay() const {
  return "\n  replay: seed " + std::to_string(options_.seed) + ", " + std::to_string(resident_) + " of " +
         std::to_string(launch_.clusters) + (launch_.clusters == 1 ? " cluster" : " clusters") + " resident, asynchrony " +
         to_string(options_.asynchrony);
}

void Machine::fail(const Location& at, const std::string& what) {
  const Thread& thread = *running_;
  throw EmulationError(describe(thread) + " lane " + std::to_string(thread.number % kWarpThreads) + " at " + place_in_source(at) + " " +
                       what + describe_work(thread) + replay());
}

void Machine::fail_at(std::uint32_t site, const std::string& what) { throw EmulationError(describe(site) + " " + what + replay()); }

void Machine::deadlock() {
  std::map<std::string, int> groups;
  for (const auto& cluster : places_)
    for (const auto& cta : cluster->ctas)
      for (const Thread& thread : cta->threads)
        if (!thread.finished && thread.waiting_for)
          ++groups[describe(thread) + " at " + place_in_source(thread.waiting_at) + " waits for " + thread.waiting_for() +
                   describe_work(thread)];
  std::ostringstream text;
  text << "deadlock: nobody can go on, and no copy or wgmma is under way";
  for (const auto& [group, threads] : groups) text << "\n  " << group << (threads > 1 ? " [" + std::to_string(threads) + " threads]" : "");
  throw EmulationError(text.str() + replay());
}

namespace {

bool is_constant(const GlobalBuffer& buffer, std::size_t first, std::size_t bytes) {
  const auto is_outside = [&](const ByteRange& r) { return first + bytes <= r.first || first >= r.end; };
  return buffer.constant && std::all_of(buffer.fresh.begin(), buffer.fresh.end(), is_outside);
}

}  // namespace

Machine::Global& Machine::global(const void* address, std::size_t bytes, bool writes, const Location& at) {
  const auto* first = static_cast<const std::byte*>(address);
  const char* const verb = writes ? "writes" : "reads";
  for (Global& g : globals_) {
    const auto* start = static_cast<const std::byte*>(g.buffer.data);
    if (first < start || first + bytes > start + g.buffer.bytes) continue;
    if (writes && !g.buffer.writable) fail(at, "writes into " + g.buffer.name + ", which is an input");
    if (g.buffer.handed_on && running_->cta->successor_may_begin)
      fail(at, std::string(verb) + " " + g.buffer.name + " after it has let the next launch begin (allow_successor)");
    if (!running_->predecessor_done && !g.buffer.handed_on &&
        (writes || !is_constant(g.buffer, static_cast<std::size_t>(first - start), bytes)))
      fail(at, std::string(verb) + " " + g.buffer.name + " before the kernel before it has finished (wait_for_predecessor)");
    return g;
  }
  std::string where;
  std::ptrdiff_t nearest = 4096;  // bytes; further away it is nobody's neighbour
  for (const Global& g : globals_) {
    const auto* start = static_cast<const std::byte*>(g.buffer.data);
    const std::ptrdiff_t distance = std::max<std::ptrdiff_t>({start - first, first - (start + g.buffer.bytes), 0});
    if (distance >= nearest) continue;
    nearest = distance;
    where = ": byte " + std::to_string(first - start) + " of " + g.buffer.name + ", which has " + std::to_string(g.buffer.bytes);
  }
  fail(at, std::string(verb) + " " + std::to_string(bytes) + " bytes of global memory outside every operand" + where);
}

bool Machine::is_partly_constant(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  const auto lies_in = [byte](const Global& g) {
    const auto* const start = static_cast<const std::byte*>(g.buffer.data);
    return byte >= start && byte < start + g.buffer.bytes;
  };
  const auto found = std::find_if(globals_.begin(), globals_.end(), lies_in);
  return !running_->predecessor_done && found != globals_.end() && !found->buffer.fresh.empty();
}

Statistics run(const Launch& launch, const Options& options, const std::function<void()>& kernel) {
  if (launch.clusters <= 0) return {};
  Machine machine(launch, options, kernel);
  return machine.run();
}

// For a debugger: who is running.
extern "C" __attribute__((used)) const char* sluice_emulator_where() {
  static thread_local std::string text;
  const Machine& machine = Machine::here();
  text = machine.describe(machine.thread()) + " lane " + std::to_string(machine.thread().number % kWarpThreads) +
         describe_work(machine.thread());
  return text.c_str();
}

}  // namespace sluice::arch::emulated
