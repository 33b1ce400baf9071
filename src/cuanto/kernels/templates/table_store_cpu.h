// Any class of integrals from index tables: all bras of a range with all kets, into one matrix.

template <int NV> struct Store {
    const INDEX* rows;
    const int* cols;  // of this pass
    INDEX kets;
    REAL* out;  // of this pass
    INDEX row_stride;
    int count;
    void operator()(const int* pc, const VEC* value) const {
        REAL* target = out + rows[pc[3]] * row_stride;
        const int* col = cols + pc[4] * kets;
        for (int i = 0; i < NV; ++i)
            for (int lane = 0; lane < LANES && i * LANES + lane < count; ++lane)
                target[col[i * LANES + lane]] = value[i][lane];
    }
};

template <int NV> static void table_batch(PARAMETERS) {
    const Sides sides = SIDES;
    const Tables tables = TABLES;
    TableWork<NV> work(sides, tables);
    const Program& last = work.sweeps[1];
    const INDEX step = NV * LANES;
    for (INDEX b = begin; b < end; ++b) {
        for (INDEX ket = 0; ket < kets; ket += step) {
            const int count = (int)(kets - ket < step ? kets - ket : step);
            work.sums(b, ket);
            for (int q = 0; q < columns; ++q)
                work.finish(b, ket, q, [&](INDEX pass) {
                    return Store<NV>{rows + (b * columns + q) * bra_functions, cols + pass * last.ket_step() * kets + ket,
                                     kets, out + pass * last.component_step() * component_stride, row_stride, count};
                });
        }
    }
}

KERNEL(1) ENTRY(PARAMETERS) {
    if (vectors == 1) table_batch<1>(ARGUMENTS);
    else table_batch<4>(ARGUMENTS);
}
