// Straight-line kernels on the CPU: one ket per SIMD lane. Included behind the generated functions
// primitive() and contracted(), which know WIDTH, BRA_FIELDS and BRA_FUNCTIONS.

struct LaneStore {
    const INDEX* rows;
    const int* cols;
    REAL* out;
    INDEX row_stride, component_stride;
    int count;
    FN_MEMBER void operator()(int component, int bra, int ket, VEC value) const {
        const INDEX row = rows[bra];
        if (row < 0) return;
        REAL* target = out + component * component_stride + row * row_stride + ket;
        if (count >= LANES) {
            for (int lane = 0; lane < LANES; ++lane) target[cols[lane]] = value[lane];
        } else {
            for (int lane = 0; lane < count; ++lane) target[cols[lane]] = value[lane];
        }
    }
};

static void contract(VEC* acc, const VEC* value, const REAL* coefficient, int columns, bool first) {
    for (int q = 0; q < columns; ++q) {
        const REAL c = coefficient[q];
        VEC* target = acc + q * WIDTH;
        if (first) for (int j = 0; j < WIDTH; ++j) target[j] = c * value[j];
        else for (int j = 0; j < WIDTH; ++j) target[j] = vfma(c, value[j], target[j]);
    }
}

extern "C" void ENTRY(PARAMETERS) {
    VEC* acc = lane_memory((INDEX)columns * WIDTH);
    VEC value[WIDTH];
    for (INDEX b = bra_begin; b < bra_end; ++b) {
        const REAL* shell = shell_record + b * SHELL_FIELDS;
        for (INDEX first = 0; first < kets; first += LANES) {
            bool start = true;
            for (INDEX k = bra_first[b]; k < bra_first[b + 1]; ++k) {
                const REAL* bra = bra_record + k * BRA_FIELDS;
                for (INDEX c = 0; c < ket_primitives; ++c) {
                    primitive(bra, ket_record + c * KET_FIELDS * ket_stride + first, ket_stride, boys_table, value);
                    contract(acc, value, bra_coefficient + k * columns, columns, start);
                    start = false;
                }
            }
            const int count = (int)(kets - first);
            for (int q = 0; q < columns; ++q) {
                const INDEX* target = rows + (b * columns + q) * BRA_FUNCTIONS;
                contracted(shell, acc + q * WIDTH, LaneStore{target, cols + first, out, row_stride, component_stride, count});
            }
        }
    }
}
