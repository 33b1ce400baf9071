// The native threads of a process. A job is a list of launches; a launch is a kernel with a number of items, handed out
// in chunks of `grain` items by an atomic counter. The calling thread works too, and returns every `slice` seconds so that
// the interpreter can handle signals. Several jobs may run at once: each has its own caller and a limit on its threads,
// and idle workers help any job with chunks left. A forked child starts without workers.
//
// Workers are woken after the caller has worked for a while (`wake_delay`): small jobs are done before a thread has woken
// up, and on busy cores a short job would wait for a worker that was descheduled in the middle of a chunk. The delay
// grows when callers wait at the end of jobs for descheduled workers, and decays again.
//
// Sums: where items add to one array, every chunk has a zeroed array of its own, and these are added to the target in
// the order of the chunks, so that the result depends neither on scheduling nor on the number of threads.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef long long INDEX;
typedef void (*Entry)(const void* arguments, INDEX begin, INDEX end, void* scratch, void* sums);

struct Variant {
    Entry entry;
    const void* arguments;
};

struct Launch {
    const Variant** variants;     // run one after the other on the items of a chunk
    INDEX count;
    INDEX items, grain, scratch;  // scratch: bytes per thread
    INDEX sums;                   // numbers that a chunk adds to; 0: none
    void* target;                 // doubles to which they are added, or the arguments of `merge`
    Entry merge;                  // a kernel with its own merge function clears its sums itself
    INDEX first;                  // first chunk of this launch in the job
};

struct Job {
    Launch* launches;
    INDEX count, chunks, threads;
    INDEX next;       // chunk to be handed out
    INDEX completed;  // chunks
    int helpers, failed, posted;
    double lost;      // seconds for which a helper was descheduled, the maximum of all
    Job* following;
    // sums of chunks that wait for their turn
    pthread_mutex_t merging;
    pthread_cond_t returned;
    double** waiting;  // [chunk % slots]
    double** idle;     // stack
    INDEX slots, idle_count, merged, bytes;
};

static const double MIN_WAKE_DELAY = 20e-6;  // time to wake a thread
static const double MAX_WAKE_DELAY = 20e-3;
static const double LONG_WAIT = 0.2;         // fraction of a job's time spent waiting at its end
static const size_t STACK = 8 << 20;         // bytes; the default of some systems is too small for kernels

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    Job* jobs;
    INDEX started, sleeping;
    double wake_delay;  // seconds
} pool;
static pthread_key_t memory_of_thread;  // freed when the thread ends
static __thread struct { char* memory; INDEX bytes; double waited; } own;  // waited: seconds, for arrays of sums

// Also in a forked child: it has one thread, whatever the others were doing.
static void reset_pool() {
    pthread_mutex_init(&pool.lock, 0);
    pthread_cond_init(&pool.work, 0);
    pthread_cond_init(&pool.done, 0);
    pool.jobs = 0, pool.started = pool.sleeping = 0, pool.wake_delay = MIN_WAKE_DELAY;
}

__attribute__((constructor)) static void create_pool() {
    reset_pool();
    pthread_key_create(&memory_of_thread, free);
    pthread_atfork(0, 0, reset_pool);
}

static void* scratch_of_thread(INDEX bytes) {
    if (own.bytes < bytes) {
        free(own.memory);
        own.bytes = 0;
        if (posix_memalign((void**)&own.memory, 64, (size_t)(bytes + 4095) / 4096 * 4096)) own.memory = 0;
        else own.bytes = bytes;
        pthread_setspecific(memory_of_thread, own.memory);
    }
    return own.memory;
}

static double seconds(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now() { return seconds(CLOCK_MONOTONIC); }

// Seconds in which this thread neither ran nor waited for arrays; only differences are meaningful.
static double time_lost() { return now() - seconds(CLOCK_THREAD_CPUTIME_ID) - own.waited; }

static const Launch* launch_of(const Job* job, INDEX chunk, const Launch* from) {
    const Launch* last = job->launches + job->count - 1;
    while (from < last && from[1].first <= chunk) ++from;
    return from;
}

static INDEX begin_of(const Launch* launch, INDEX chunk) { return (chunk - launch->first) * launch->grain; }

static INDEX end_of(const Launch* launch, INDEX chunk) {
    const INDEX end = begin_of(launch, chunk) + launch->grain;
    return end < launch->items ? end : launch->items;
}

// An array for the sums of a chunk, taken before the chunk: the first unmerged chunk always has one, so that waiting
// here always ends.
static double* take_sums(Job* job) {
    pthread_mutex_lock(&job->merging);
    while (!job->idle_count && !__atomic_load_n(&job->failed, __ATOMIC_RELAXED)) {
        const double began = now();
        pthread_cond_wait(&job->returned, &job->merging);
        own.waited += now() - began;
    }
    double* sums = job->idle_count ? job->idle[--job->idle_count] : 0;
    if (sums == (double*)1) {  // not allocated yet
        if (posix_memalign((void**)&sums, 64, (size_t)job->bytes)) {
            job->idle[job->idle_count++] = (double*)1;
            __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
            pthread_cond_broadcast(&job->returned);
            sums = 0;
        }
    }
    pthread_mutex_unlock(&job->merging);
    return sums;
}

static void give_back(Job* job, double* sums) {
    pthread_mutex_lock(&job->merging);
    job->idle[job->idle_count++] = sums;
    pthread_cond_signal(&job->returned);
    pthread_mutex_unlock(&job->merging);
}

typedef double Eight __attribute__((vector_size(64), aligned(8)));

static void add(double* to, const double* from, INDEX count) {
    INDEX i = 0;
    for (; i + 8 <= count; i += 8) *(Eight*)(to + i) += *(const Eight*)(from + i);
    for (; i < count; ++i) to[i] += from[i];
}

static void merge_one(const Launch* launch, INDEX chunk, const double* sums) {
    const INDEX begin = begin_of(launch, chunk), end = end_of(launch, chunk);
    if (launch->merge) return launch->merge(launch->target, begin, end, 0, (void*)sums);
    add((double*)launch->target, sums, launch->sums);
}

// Leaves the sums of a chunk and merges those whose turn it is; one thread merges at a time.
static void leave_sums(Job* job, INDEX chunk, double* sums) {
    pthread_mutex_lock(&job->merging);
    job->waiting[chunk % job->slots] = sums;
    const Launch* launch = job->launches;
    while (job->merged >= 0) {
        const INDEX turn = job->merged;
        double* ready = turn < job->chunks ? job->waiting[turn % job->slots] : 0;
        if (!ready) break;
        job->waiting[turn % job->slots] = 0;
        job->merged = -1;  // other threads only leave their sums
        pthread_mutex_unlock(&job->merging);
        launch = launch_of(job, turn, launch);
        if (launch->sums) merge_one(launch, turn, ready);
        pthread_mutex_lock(&job->merging);
        job->idle[job->idle_count++] = ready;
        job->merged = turn + 1;
        pthread_cond_signal(&job->returned);
    }
    pthread_mutex_unlock(&job->merging);
}

static void fail(Job* job) {
    __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
    if (job->slots) {
        pthread_mutex_lock(&job->merging);
        pthread_cond_broadcast(&job->returned);
        pthread_mutex_unlock(&job->merging);
    }
}

static void post(Job* job);

// Works on chunks of a job until none is left or until `deadline` (0: none); a caller posts the job when it is `late`.
static void work_on(Job* job, double deadline, double late) {
    const Launch* launch = job->launches;
    while (!__atomic_load_n(&job->failed, __ATOMIC_RELAXED)) {
        double* sums = 0;
        if (job->slots && __atomic_load_n(&job->next, __ATOMIC_RELAXED) < job->chunks && !(sums = take_sums(job))) return;
        const INDEX chunk = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED);
        if (chunk >= job->chunks) {
            if (sums) give_back(job, sums);
            return;
        }
        launch = launch_of(job, chunk, launch);
        void* scratch = launch->scratch ? scratch_of_thread(launch->scratch) : 0;
        if (launch->scratch && !scratch) {
            if (sums) give_back(job, sums);
            return fail(job);
        }
        if (sums && launch->sums && !launch->merge) memset(sums, 0, (size_t)launch->sums * sizeof(double));
        for (INDEX i = 0; i < launch->count; ++i) {
            const Variant* variant = launch->variants[i];
            variant->entry(variant->arguments, begin_of(launch, chunk), end_of(launch, chunk), scratch, sums);
        }
        if (sums) leave_sums(job, chunk, sums);
        __atomic_fetch_add(&job->completed, 1, __ATOMIC_RELEASE);
        if (!deadline) continue;
        const double time = now();
        if (late && time > late && !job->posted) post(job);
        if (time > deadline) return;
    }
}

static Job* open_job() {
    for (Job* job = pool.jobs; job; job = job->following)
        if (__atomic_load_n(&job->next, __ATOMIC_RELAXED) < job->chunks && job->helpers + 1 < job->threads &&
            !__atomic_load_n(&job->failed, __ATOMIC_RELAXED))
            return job;
    return 0;
}

static void* worker(void*) {
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        Job* job = open_job();
        if (!job) {
            ++pool.sleeping;
            pthread_cond_wait(&pool.work, &pool.lock);
            --pool.sleeping;
            continue;
        }
        ++job->helpers;
        pthread_mutex_unlock(&pool.lock);
        const double before = time_lost();
        work_on(job, 0, 0);
        const double lost = time_lost() - before;
        pthread_mutex_lock(&pool.lock);
        if (lost > job->lost) job->lost = lost;
        if (--job->helpers == 0) pthread_cond_broadcast(&pool.done);
    }
    return 0;
}

// Signals other than those of a fault are for the threads of the interpreter.
static void start_workers(INDEX wanted) {
    if (pool.started >= wanted) return;
    sigset_t blocked, before;
    sigfillset(&blocked);
    const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    for (int fault : faults) sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&detached, STACK);
    for (; pool.started < wanted; ++pool.started) {
        pthread_t thread;
        if (pthread_create(&thread, &detached, worker, 0)) break;  // as many as the system allows
    }
    pthread_attr_destroy(&detached);
    pthread_sigmask(SIG_SETMASK, &before, 0);
}

static void post(Job* job) {
    const INDEX left = job->chunks - __atomic_load_n(&job->next, __ATOMIC_RELAXED);
    const INDEX wanted = job->threads - 1 < left ? job->threads - 1 : left;
    if (wanted < 1) return;
    pthread_mutex_lock(&pool.lock);
    start_workers(wanted);
    job->following = pool.jobs, pool.jobs = job, job->posted = 1;
    if (wanted >= pool.sleeping) pthread_cond_broadcast(&pool.work);
    else for (INDEX i = 0; i < wanted; ++i) pthread_cond_signal(&pool.work);
    pthread_mutex_unlock(&pool.lock);
}

static void remove_job(Job* job) {
    Job** place = &pool.jobs;
    while (*place && *place != job) place = &(*place)->following;
    if (*place) *place = job->following;
    job->posted = 0;
}

// Waits for helpers, at most until the deadline (0: without limit).
static int helpers_gone(Job* job, double deadline) {
    while (job->helpers) {
        if (!deadline) {
            pthread_cond_wait(&pool.done, &pool.lock);
            continue;
        }
        const double left = deadline - now();
        if (left <= 0) return 0;
        timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        const double end = (double)until.tv_nsec * 1e-9 + left;
        until.tv_sec += (time_t)end, until.tv_nsec = (long)((end - (double)(time_t)end) * 1e9);
        pthread_cond_timedwait(&pool.done, &pool.lock, &until);
    }
    return 1;
}

extern "C" Job* pool_job(const Launch* launches, INDEX count, INDEX threads) {
    Job* job = (Job*)calloc(1, sizeof(Job) + (size_t)count * sizeof(Launch));
    if (!job) return 0;
    job->launches = (Launch*)(job + 1), job->count = count, job->threads = threads;
    memcpy(job->launches, launches, (size_t)count * sizeof(Launch));
    INDEX numbers = 0;
    for (INDEX i = 0; i < count; ++i) {
        Launch& launch = job->launches[i];
        launch.first = job->chunks;
        job->chunks += (launch.items + launch.grain - 1) / launch.grain;
        numbers = launch.sums > numbers ? launch.sums : numbers;
    }
    if (numbers && job->chunks) {
        const INDEX most = 2 * threads + 2;
        job->slots = most < job->chunks ? most : job->chunks;
        job->bytes = numbers * (INDEX)sizeof(double);
        job->waiting = (double**)calloc(2 * (size_t)job->slots, sizeof(double*));
        if (!job->waiting) return free(job), (Job*)0;
        job->idle = job->waiting + job->slots;
        while (job->idle_count < job->slots) job->idle[job->idle_count++] = (double*)1;
        pthread_mutex_init(&job->merging, 0);
        pthread_cond_init(&job->returned, 0);
    }
    return job;
}

// A caller that waited long for descheduled workers wakes them later next time. Waiting for the last of a few large
// chunks does not count.
static void adapt_wake_delay(const Job* job, double began, double waiting) {
    const double time = now(), waited = time - waiting, before = pool.wake_delay;
    const bool kept = waited > LONG_WAIT * (time - began) && job->lost > 0.5 * waited;
    double wake_delay = kept ? 2 * before + waited : 0.9 * before;
    wake_delay = wake_delay < MIN_WAKE_DELAY ? MIN_WAKE_DELAY : wake_delay > MAX_WAKE_DELAY ? MAX_WAKE_DELAY : wake_delay;
    __atomic_store(&pool.wake_delay, &wake_delay, __ATOMIC_RELAXED);
}

// Works for at most `slice` seconds; 1: done, 0: call again, -1: out of memory.
extern "C" int pool_run(Job* job, double slice) {
    const double began = now();
    const bool alone = job->threads < 2 || job->chunks < 2;
    double wake_delay;
    __atomic_load(&pool.wake_delay, &wake_delay, __ATOMIC_RELAXED);
    work_on(job, began + slice, alone ? 0 : began + wake_delay);
    if (job->posted) {
        const int failed = __atomic_load_n(&job->failed, __ATOMIC_RELAXED);
        if (!failed && __atomic_load_n(&job->next, __ATOMIC_RELAXED) < job->chunks) return 0;
        const double waiting = now();
        pthread_mutex_lock(&pool.lock);
        const int gone = helpers_gone(job, began + slice);
        if (gone) remove_job(job), adapt_wake_delay(job, began, waiting);
        pthread_mutex_unlock(&pool.lock);
        if (!gone) return 0;
    }
    if (job->failed) return -1;
    return job->completed == job->chunks;
}

// Fraction of chunks that are done.
extern "C" double pool_progress(const Job* job) {
    return (double)__atomic_load_n(&job->completed, __ATOMIC_RELAXED) / (double)job->chunks;
}

// Hands out no more chunks and waits for running ones; also called after a finished job.
extern "C" void pool_end(Job* job) {
    if (job->posted) {
        fail(job);
        pthread_mutex_lock(&pool.lock);
        helpers_gone(job, 0);
        remove_job(job);
        pthread_mutex_unlock(&pool.lock);
    }
    for (INDEX i = 0; i < job->slots; ++i)
        if (job->waiting[i]) free(job->waiting[i]);
    for (INDEX i = 0; i < job->idle_count; ++i)
        if (job->idle[i] != (double*)1) free(job->idle[i]);
    if (job->slots) {
        pthread_mutex_destroy(&job->merging);
        pthread_cond_destroy(&job->returned);
    }
    free(job->waiting);
    free(job);
}
