// Straight-line kernels on the CPU: one ket per SIMD lane. Included behind the generated functions
// primitive() and contracted(), which know WIDTH, BRA_FIELDS, KET_FIELDS and BRA_FUNCTIONS.

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
        const REAL* shell = bra_shell + b * SHELL_FIELDS;
        for (INDEX first = 0; first < kets; first += LANES) {
            const INDEX block = first / BLOCK, lane = first % BLOCK;
            bool start = true;
            for (INDEX k = bra_first[b]; k < bra_first[b + 1]; ++k) {
                const REAL* bra = bra_record + k * BRA_FIELDS;
                for (INDEX c = ket_first[block]; c < ket_first[block + 1]; ++c) {
                    primitive(bra, ket_record + c * KET_FIELDS * BLOCK + lane, boys_table, value);
                    contract(acc, value, bra_coefficient + k * columns, columns, start);
                    start = false;
                }
            }
            const int count = (int)(kets - first);
            for (int q = 0; q < columns; ++q) {
                const INDEX* target = rows + (b * columns + q) * BRA_FUNCTIONS;
                contracted(shell, ket_shell + block * SHELL_FIELDS * BLOCK + lane, acc + q * WIDTH,
                           LaneStore{target, cols + first, kets, out, row_stride, component_stride, count});
            }
        }
    }
}
