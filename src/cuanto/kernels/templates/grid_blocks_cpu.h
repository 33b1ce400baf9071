// Blocks of neighbouring groups of points: an item is a block, whose points are divided into tasks of one group each. A
// group's part of a matrix is read from (or added to) that of its block, in which its functions are numbered (`ao`, runs);
// a `local` part of a block is a small matrix of its own that stays in the cache.
struct Task {
    INDEX begin, end;  // points
    const int *list_shell, *list_row;
    int list_count;
    const int* ao;
    int functions;
    const int *run_row, *run_ao;  // functions are consecutive in a run: from row run_row[k] to run_row[k + 1], first run_ao[k]
    int runs;
    const int* tile_depth;
    REAL* kept;
};

#define TASK_OF(t)                                                                                        \
    Task {                                                                                                \
        task_point[t], task_point[t + 1], list_shell + list_first[task_group[t]],                         \
            list_row + list_first[task_group[t]],                                                         \
            (int)(list_first[task_group[t] + 1] - list_first[task_group[t]]), ao + ao_first[task_group[t]], \
            (int)(ao_first[task_group[t] + 1] - ao_first[task_group[t]]), run_row + run_first[task_group[t]], \
            run_ao + run_first[task_group[t]],                                                            \
            (int)(run_first[task_group[t] + 1] - run_first[task_group[t]]) - 1,                           \
            tile_depth + depth_first[task_group[t]], keeping ? kept + task_kept[t] : 0                    \
    }

// All functions of a block, in runs as those of a group.
struct Part {
    const int *run_row, *run_ao;
    int runs;
    INDEX functions;
};

#define PART_OF(b)                                                                                 \
    Part {                                                                                         \
        part_row + part_first[b], part_ao + part_first[b], (int)(part_first[b + 1] - part_first[b]) - 1, \
            part_row[part_first[b + 1] - 1]                                                        \
    }

// Symmetric matrices [spin][functions][functions], or orbitals [spin][functions][width].
struct Given {
    const REAL* values;
    INDEX functions;
};

// The part of symmetric matrices [spin][nbf][nbf], or with `width` > 0 of orbitals [spin][nbf][width].
FN Given take_part(const Part& part, INDEX spins, INDEX nbf, INDEX width, const REAL* large, REAL* local) {
    const INDEX n = part.functions;
    for (INDEX s = 0; s < spins; ++s)
        for (int k = 0; k < part.runs; ++k)
            for (INDEX p = part.run_row[k]; p < part.run_row[k + 1]; ++p) {
                const INDEX a = part.run_ao[k] + p - part.run_row[k];
                if (width) {
                    for (INDEX i = 0; i < width; ++i) local[(s * n + p) * width + i] = large[(s * nbf + a) * width + i];
                    continue;
                }
                REAL *here = local + (s * n + p) * n, *below = local + s * n * n + p;
                for (int m = 0; m <= k; ++m) {
                    const REAL* there = large + (s * nbf + a) * nbf + part.run_ao[m] - part.run_row[m];
                    for (INDEX q = part.run_row[m]; q < part.run_row[m + 1]; ++q) {
                        here[q] = there[q];
                        if (m < k) below[q * n] = there[q];
                    }
                }
            }
    return {local, n};
}

typedef double Four __attribute__((vector_size(32), aligned(8)));

// Add the sums of a block to the large matrices. Blocks of two different runs are added left of the diagonal only, both of
// them, because the transpose is added later.
FN void add_part(const Part& part, INDEX spins, INDEX nbf, const double* local, double* large) {
    const INDEX n = part.functions;
    for (INDEX s = 0; s < spins; ++s)
        for (int k = 0; k < part.runs; ++k)
            for (INDEX p = part.run_row[k]; p < part.run_row[k + 1]; ++p) {
                const INDEX a = part.run_ao[k] + p - part.run_row[k];
                const double *here = local + (s * n + p) * n, *below = local + s * n * n + p;
                for (int m = 0; m <= k; ++m) {
                    double* there = large + (s * nbf + a) * nbf + part.run_ao[m] - part.run_row[m];
                    INDEX q = part.run_row[m];
                    if (m == k)
                        for (; q + 4 <= part.run_row[m + 1]; q += 4) *(Four*)(there + q) += *(const Four*)(here + q);
                    for (; q < part.run_row[m + 1]; ++q) there[q] += m < k ? here[q] + below[q * n] : here[q];
                }
            }
}
