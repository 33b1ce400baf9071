// Jobs of all kinds from several threads at once, for a compiler that looks for data races (-fsanitize=thread) or for
// leaks (-fsanitize=address): items counted, sums in both ways, scratch memory, jobs that are ended early,
// memory that is not to be had. Ends with status 0 where every result is right.
#include <sched.h>
#include <stdio.h>

#include "pool.h"

static const INDEX ITEMS = 1000, NUMBERS = 16;
static const INDEX TOO_MUCH = 1LL << 46;  // bytes

struct Arguments {
    INDEX* count;  // [item]
    double* target;
    pthread_t caller;
};

static INDEX helped;  // chunks that were done by workers

static void count_items(const void* packed, INDEX begin, INDEX end, void* scratch, void* sums) {
    const Arguments* given = (const Arguments*)packed;
    if (!pthread_equal(given->caller, pthread_self())) __atomic_fetch_add(&helped, 1, __ATOMIC_RELAXED);
    for (INDEX i = begin; i < end; ++i) {
        for (int k = 0; scratch && k < 20; ++k) memset(scratch, (int)i + k, 512);
        given->count[i] += 1;
        for (INDEX n = 0; sums && n < NUMBERS; ++n) ((double*)sums)[n] += (double)(i * n);
        if (i % 64 == 0) sched_yield();
    }
}

static void clear_and_count(const void* packed, INDEX begin, INDEX end, void* scratch, void* sums) {
    memset(sums, 0, NUMBERS * sizeof(double));
    count_items(packed, begin, end, scratch, sums);
}

static void merge_sums(const void* packed, INDEX, INDEX, void*, void* sums) {
    for (INDEX n = 0; n < NUMBERS; ++n) ((const Arguments*)packed)->target[n] += ((double*)sums)[n];
}

static int failures;
static void expect(bool right, const char* what) {
    if (right) return;
    fprintf(stderr, "wrong: %s\n", what);
    __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
}

enum Way { PLAIN, SUMS, MERGED, STOPPED, NO_SCRATCH, NO_SUMS, WAYS };

static void run_job(Way way, INDEX threads, INDEX grain) {
    static __thread INDEX count[2][ITEMS];
    double target[2][NUMBERS] = {};
    memset(count, 0, sizeof(count));
    Launch launches[2] = {};
    Arguments arguments[2] = {};
    Variant variants[2];
    const Variant* first[2];
    const bool adds = way == SUMS || way == MERGED || way == NO_SUMS;
    for (int k = 0; k < 2; ++k) {
        arguments[k] = {count[k], target[k], pthread_self()};
        variants[k] = {way == MERGED ? clear_and_count : count_items, &arguments[k]};
        first[k] = &variants[k];
        Launch& launch = launches[k];
        launch.variants = &first[k], launch.count = 1, launch.items = ITEMS - k, launch.grain = grain;
        launch.scratch = way == NO_SCRATCH ? TOO_MUCH : 512 * (k + 1);
        launch.sums = !adds ? 0 : way == NO_SUMS ? TOO_MUCH / 8 : NUMBERS;
        launch.target = way == MERGED ? (void*)&arguments[k] : (void*)target[k];
        launch.merge = way == MERGED ? merge_sums : 0;
    }
    Job* job = pool_job(launches, 2, threads);
    int status, rounds = 0;
    while ((status = pool_run(job, 1e-4)) == 0) {
        const double done = pool_progress(job);
        expect(done >= 0 && done <= 1, "progress");
        if (way == STOPPED && rounds == 1) break;
        ++rounds;
    }
    pool_end(job);
    if (way == STOPPED) return;
    if (way == NO_SCRATCH || way == NO_SUMS) return expect(status == -1, "memory that is not to be had");
    expect(status == 1, "status");
    for (int k = 0; k < 2; ++k) {
        const INDEX items = ITEMS - k;
        for (INDEX i = 0; i < items; ++i)
            expect(count[k][i] == 1, "an item is done once");
        for (INDEX n = 0; adds && n < NUMBERS; ++n)
            expect(target[k][n] == (double)(n * (items * (items - 1) / 2)), "sums");
    }
}

static void* caller(void* given) {
    const INDEX seed = *(const INDEX*)given;
    for (INDEX k = 0; k < 140; ++k) run_job((Way)((seed + k) % WAYS), 1 + (seed + k) % 5, 1 + (seed * k) % 23);
    return 0;
}

int main() {
    pthread_t threads[3];
    INDEX seeds[3];
    // Threads end, and others begin; more rounds on a busy machine, where the pool leaves most items to the callers.
    for (INDEX round = 0; round < 2 || (helped <= 1000 && round < 40); ++round) {
        for (int i = 0; i < 3; ++i) seeds[i] = 3 * round + i, pthread_create(&threads[i], 0, caller, &seeds[i]);
        for (int i = 0; i < 3; ++i) pthread_join(threads[i], 0);
    }
    expect(helped > 1000, "workers help");
    return failures != 0;
}
