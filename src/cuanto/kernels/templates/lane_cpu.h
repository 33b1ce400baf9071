// Straight-line kernels on the CPU: all bras of a range with all kets, into one large result.

struct LaneStore {
    const INDEX* rows;
    const int* cols;
    INDEX kets;
    REAL* out;
    INDEX row_stride, component_stride;
    int count;
    FN_MEMBER void operator()(int component, int bra, int ket, VEC value) const {
        REAL* target = out + component * component_stride + rows[bra] * row_stride;
        const int* col = cols + ket * kets;
        if (count >= LANES) {
            for (int lane = 0; lane < LANES; ++lane) target[col[lane]] = value[lane];
        } else {
            for (int lane = 0; lane < count; ++lane) target[col[lane]] = value[lane];
        }
    }
};

extern "C" void ENTRY(PARAMETERS) {
    const Sides sides{bra_first, bra_record, bra_coefficient, columns, bra_shell, ket_first, ket_record, ket_shell, boys_table, CUTOFF};
    VEC* acc = lane_memory((INDEX)columns * WIDTH);
    for (INDEX b = begin; b < end; ++b) {
        for (INDEX ket = 0; ket < kets; ket += LANES) {
            lane_sums(sides, b, ket, acc);
            const REAL* distance = ket_shell + ket / BLOCK * SHELL_FIELDS * BLOCK + ket % BLOCK;
            for (int q = 0; q < columns; ++q)
                contracted(bra_shell + b * SHELL_FIELDS, distance, acc + q * WIDTH,
                           LaneStore{rows + (b * columns + q) * BRA_FUNCTIONS, cols + ket, kets, out, row_stride,
                                     component_stride, (int)(kets - ket)});
        }
    }
}
