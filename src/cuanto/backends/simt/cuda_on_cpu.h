// CUDA C++ on a CPU: enough of the language and of its execution model to run a kernel text thread by thread.
//
// Every thread of a block is a fiber with a stack of its own; the fibers of a block take turns, and a barrier or a
// warp function hands over to the next one. Blocks run one after another. Nothing is guessed: a barrier that some
// thread never reaches, a shuffle from a lane that takes no part, and writing beyond the dynamic shared memory are
// errors. Dynamic shared memory is filled with NaN before each block.
#pragma once
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <type_traits>
#include <utility>

// ---- words of the language (after the system's headers, which use some of them in another sense) ----------
#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#define __CUDA_ARCH__ 900

struct uint3 {
    unsigned x, y, z;
};
typedef uint3 dim3;
struct __attribute__((aligned(16))) double2 {
    double x, y;
};
struct __attribute__((aligned(16))) int4 {
    int x, y, z, w;
};
inline double2 make_double2(double x, double y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }

static uint3 threadIdx, blockIdx;
static dim3 blockDim, gridDim;

// ---- fibers -----------------------------------------------------------------------------------------------
namespace simt {

enum State { READY, AT_BARRIER, IN_WARP, EXITED };
const int MAX_THREADS = 1024;
const size_t STACK = 512 * 1024;
const size_t GUARD = 64 * 1024;  // inaccessible: an overflow stops the process instead of damaging a neighbour
const size_t MAX_SHARED = 227 * 1024;
const size_t MARGIN = 4096;  // watched, so that writing beyond the requested shared memory is noticed

struct Fiber {
    jmp_buf place;
    State state;
    bool started;
    uint3 thread;
    int line;                            // of the barrier or warp function where it waits
    const char* what;                    // its name
    unsigned mask;                       // the lanes that it waits for
    int source;                          // the lane that it reads
    unsigned long long given, received;  // exchanged in a warp function
    unsigned ballot;                     // lanes that gave a nonzero value
};

static Fiber fibers[MAX_THREADS];
static Fiber* running;
static jmp_buf scheduler;
static char* stacks;
static char message[512];
alignas(128) static unsigned char dynamic_memory[MAX_SHARED + MARGIN];

static void run_thread();  // one call of the kernel, defined by the launcher

static __attribute__((noinline)) void suspend() {
    // The switch itself is a plain jump: unlike swapcontext it makes no system call.
    if (!_setjmp(running->place)) _longjmp(scheduler, 1);
    threadIdx = running->thread;
}

static void fiber_main() {
    for (;;) {
        threadIdx = running->thread;
        run_thread();
        running->state = EXITED;
        suspend();
    }
}

static __attribute__((noinline)) void resume(int i) {
    running = &fibers[i];
    if (_setjmp(scheduler)) return;
    if (running->started) _longjmp(running->place, 1);
    running->started = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks + i * (STACK + GUARD) + GUARD;
    context.uc_stack.ss_size = STACK;
    context.uc_link = nullptr;
    makecontext(&context, fiber_main, 0);
    setcontext(&context);
}

// The stacks of a launch, each behind a guard page. They are given back at its end: a process may have hundreds of
// kernels loaded, and the system bounds the number of its mappings.
struct Stacks {
    size_t size;
    explicit Stacks(int threads) : size(threads * (STACK + GUARD)) {
        if (!threads) return;
        void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            snprintf(message, sizeof message, "no memory for the stacks of %d threads", threads);
            return;
        }
        stacks = static_cast<char*>(memory);
        for (int i = 0; i < threads; ++i) mprotect(stacks + i * (STACK + GUARD), GUARD, PROT_NONE);
    }
    ~Stacks() {
        if (stacks) munmap(stacks, size);
        stacks = nullptr;
        for (Fiber& fiber : fibers) fiber.started = false;
    }
};

// ---- barriers and warp functions --------------------------------------------------------------------------
static void wait(State state, const char* what, int line) {
    running->state = state;
    running->what = what;
    running->line = line;
    suspend();
}

static void wait_warp(const char* what, unsigned mask, int line, unsigned long long given, int source) {
    running->mask = mask;
    running->given = given;
    running->source = source;
    wait(IN_WARP, what, line);
}

static int thread_number(const Fiber& f) { return &f - fibers; }
static int lane() { return thread_number(*running) % 32; }

static bool describe(const Fiber& waiting, const Fiber& other) {
    char where[160] = "has exited";
    if (other.state != EXITED) snprintf(where, sizeof where, "waits at %s in line %d", other.what, other.line);
    snprintf(message, sizeof message,
             "block (%u,%u,%u): thread (%u,%u,%u) waits at %s in line %d, but thread (%u,%u,%u) %s", blockIdx.x,
             blockIdx.y, blockIdx.z, waiting.thread.x, waiting.thread.y, waiting.thread.z, waiting.what, waiting.line,
             other.thread.x, other.thread.y, other.thread.z, where);
    return false;
}

static bool together(const Fiber& a, const Fiber& b) {
    return a.state == b.state && a.line == b.line && (a.state != IN_WARP || a.mask == b.mask);
}

// The first thread for which this one still waits, or -1. Lanes beyond the end of the block do not exist.
static int missing(int i, int threads) {
    const Fiber& f = fibers[i];
    const bool warp = f.state == IN_WARP;
    const int begin = warp ? i / 32 * 32 : 0;
    const int end = warp && begin + 32 < threads ? begin + 32 : threads;
    for (int j = begin; j < end; ++j) {
        const bool wanted = !warp || (f.mask >> (j - begin) & 1u);
        if (wanted && !together(f, fibers[j])) return j;
    }
    return -1;
}

static bool exchange(int i, int threads) {
    Fiber& f = fibers[i];
    const int begin = i / 32 * 32, from = begin + f.source;
    if (!(f.mask >> (i - begin) & 1u) || !(f.mask >> f.source & 1u) || from >= threads) {
        const bool inside = f.mask >> (i - begin) & 1u;
        snprintf(message, sizeof message, "block (%u,%u,%u): thread (%u,%u,%u) at %s in line %d %s %d", blockIdx.x,
                 blockIdx.y, blockIdx.z, f.thread.x, f.thread.y, f.thread.z, f.what, f.line,
                 inside ? "reads from a lane that takes no part, lane" : "is not in its own mask, lane",
                 inside ? f.source : i - begin);
        return false;
    }
    f.received = fibers[from].given;
    f.ballot = 0;
    for (int j = begin; j < threads && j < begin + 32; ++j)
        if ((f.mask >> (j - begin) & 1u) && fibers[j].given) f.ballot |= 1u << (j - begin);
    return true;
}

// Releases every group that is complete; false when there is an error.
static bool release(int threads, bool& progress) {
    static bool complete[MAX_THREADS];
    const bool barrier = fibers[0].state == AT_BARRIER && missing(0, threads) < 0;
    for (int i = 0; i < threads; ++i)
        complete[i] = barrier || (fibers[i].state == IN_WARP && missing(i, threads) < 0);
    for (int i = 0; i < threads; ++i)
        if (complete[i] && fibers[i].state == IN_WARP && !exchange(i, threads)) return false;
    progress = false;
    for (int i = 0; i < threads; ++i) {
        if (complete[i]) fibers[i].state = READY;
        progress = progress || complete[i];
    }
    return true;
}

static bool run_block(int threads, bool reverse) {
    for (int i = 0; i < threads; ++i) fibers[i].state = READY;
    for (;;) {
        for (int k = 0; k < threads; ++k) {
            const int i = reverse ? threads - 1 - k : k;
            if (fibers[i].state == READY) resume(i);
        }
        bool progress = false;
        if (!release(threads, progress)) return false;
        if (progress) continue;
        for (int i = 0; i < threads; ++i)
            if (fibers[i].state != EXITED) return describe(fibers[i], fibers[missing(i, threads)]);
        return true;
    }
}

// Without barriers no thread waits for another, so a loop over threads is sufficient.
static bool run_block_plain(int threads, bool reverse) {
    for (int k = 0; k < threads; ++k) {
        threadIdx = fibers[reverse ? threads - 1 - k : k].thread;
        run_thread();
    }
    return true;
}

static bool run_checked(int threads, size_t shared, bool plain, bool reverse) {
    memset(dynamic_memory, 0xff, shared);
    memset(dynamic_memory + shared, 0xa5, MARGIN);
    if (!(plain ? run_block_plain(threads, reverse) : run_block(threads, reverse))) return false;
    for (size_t i = 0; i < MARGIN; ++i) {
        if (dynamic_memory[shared + i] == 0xa5) continue;
        snprintf(message, sizeof message, "block (%u,%u,%u) wrote byte %zu of dynamic shared memory of %zu bytes",
                 blockIdx.x, blockIdx.y, blockIdx.z, shared + i, shared);
        return false;
    }
    return true;
}

// nullptr, or what went wrong.
static const char* run_grid(const unsigned* grid, const unsigned* block, size_t shared, bool plain, bool reverse) {
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    const int threads = static_cast<int>(block[0] * block[1] * block[2]);
    const Stacks own(plain ? 0 : threads);
    if (!plain && !stacks) return message;
    for (int i = 0; i < threads; ++i) {
        const unsigned n = static_cast<unsigned>(i);
        fibers[i].thread = {n % block[0], n / block[0] % block[1], n / block[0] / block[1]};
    }
    for (unsigned z = 0; z < grid[2]; ++z)
        for (unsigned y = 0; y < grid[1]; ++y)
            for (unsigned x = 0; x < grid[0]; ++x) {
                blockIdx = {x, y, z};
                if (!run_checked(threads, shared, plain, reverse)) return message;
            }
    return nullptr;
}

// ---- arguments --------------------------------------------------------------------------------------------
struct Parameter {
    int pointer, constant, floating, size;  // of the target, for a pointer
};

template <class A>
Parameter parameter() {
    typedef typename std::remove_pointer<A>::type Target;
    typedef typename std::conditional<std::is_void<Target>::value, char, Target>::type Sized;
    return {std::is_pointer<A>::value, std::is_const<Target>::value, std::is_floating_point<Target>::value,
            std::is_void<Target>::value ? 0 : static_cast<int>(sizeof(Sized))};
}

template <class... A>
int describe_parameters(void (*)(A...), Parameter* out, int room) {
    const Parameter all[] = {parameter<A>()..., Parameter{}};
    for (int i = 0; i < room && i < static_cast<int>(sizeof...(A)); ++i) out[i] = all[i];
    return sizeof...(A);
}

template <class... A, size_t... I>
__forceinline__ void call(void (*kernel)(A...), void** values, std::index_sequence<I...>) {
    kernel(*static_cast<typename std::remove_const<A>::type*>(values[I])...);
}

template <class... A>
__forceinline__ void call(void (*kernel)(A...), void** values) {
    call(kernel, values, std::index_sequence_for<A...>{});
}

}  // namespace simt
