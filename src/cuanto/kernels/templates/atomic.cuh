// A thread per integral, in whole (not triangular) matrices over the pairs of all symmetries; a block of threads treats
// THREADS columns of a row. K: (order of p and q, pair) in both directions.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    INDEX low = 0, high = count - 1;  // the last task that begins at this block or before
    while (low < high) {
        const INDEX middle = (low + high + 1) / 2;
        if (tasks[middle * TASK_FIELDS + TASK_FIRST_ITEM] <= blockIdx.x) low = middle;
        else high = middle - 1;
    }
    const INDEX* task = tasks + low * TASK_FIELDS;
    const INDEX blocks = (task[TASK_COLUMNS] + THREADS - 1) / THREADS, block = blockIdx.x - task[TASK_FIRST_ITEM];
    const INDEX column = (block % blocks) * THREADS + threadIdx.x;
    if (column >= task[TASK_COLUMNS]) return;
    const INDEX y = task[TASK_ROW_PLACE] + block / blocks, x = task[TASK_COLUMN_PLACE] + column;
    VEC mine[FIELDS];
    const double* record = column_record + (x / GROUP) * (FIELDS * GROUP) + x % GROUP;
    UNROLL for (int field = 0; field < FIELDS; ++field) mine[field] = record[field * GROUP];
    Values found;
    integrals_of(row_record + y * FIELDS, mine, 1.0, shape + task[TASK_SHAPE], table + task[TASK_TABLE], &found);
    LL[y * total + x] = found.LL;
#if RELATIVISTIC
    SS[y * total + x] = found.SS;
    LS[y * total + x] = found.LS;
    SL[y * total + x] = found.SL;
    UNROLL for (int i = 0; i < 4; ++i) K[(i / 2 * total + y) * (2 * total) + i % 2 * total + x] = found.K[i];
#endif
}
