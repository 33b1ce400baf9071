// Rows of a class: X[row][group][plane][lane], GROUP columns in a group. In a class of a symmetry with itself a row ends
// with the group of the diagonal; the diagonal element is halved and those beyond it are zero, so that the matrix plus its
// transpose is the full matrix.
KERNEL(THREADS) ENTRY(PARAMETERS) {
    REAL lane_number[LANES];
    for (int i = 0; i < LANES; ++i) lane_number[i] = i;
    const VEC lanes = vload(lane_number);
    for (INDEX item = begin; item < end; ++item) {
        const INDEX* task = tasks + item * TASK_FIELDS;
        const bool triangle = task[TASK_I] == task[TASK_J];
        const INDEX groups = task[TASK_COLUMNS] / GROUP;
        for (INDEX row = task[TASK_BEGIN]; row < task[TASK_END]; ++row) {
            const REAL* mine = row_record + (task[TASK_ROW_PLACE] + row) * FIELDS;
            const INDEX used = triangle ? row / GROUP + 1 : groups;
            for (INDEX group = 0; group < used; ++group) {
                REAL* place = X + task[TASK_MATRIX] + (row * groups + group) * (PLANES * GROUP);
                const REAL* record = column_record + (task[TASK_COLUMN_PLACE] + group * GROUP) * FIELDS;
                for (int lane = 0; lane < GROUP; lane += LANES) {
                    VEC column[FIELDS], weight = vset(1);
                    for (int field = 0; field < FIELDS; ++field) column[field] = vload(record + field * GROUP + lane);
                    if (triangle && group + 1 == used) {
                        const VEC ahead = vset(REAL(row - group * GROUP - lane)) - lanes;  // distance from the diagonal
                        weight = vselect(ahead > REAL(0.5), vset(1), vselect(ahead > REAL(-0.5), vset(REAL(0.5)), vset(0)));
                    }
                    Values x;
                    integrals_of(mine, column, weight, shape + task[TASK_SHAPE], table + task[TASK_TABLE], &x);
                    vstore(place + lane, x.LL);
#if RELATIVISTIC
                    vstore(place + GROUP + lane, x.SS);
                    vstore(place + 2 * GROUP + lane, x.LS);
                    vstore(place + 3 * GROUP + lane, x.SL);
                    UNROLL for (int i = 0; i < 4; ++i) vstore(place + (4 + i) * GROUP + lane, x.K[i]);
#endif
                }
            }
        }
    }
}
