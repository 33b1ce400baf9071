// All bras of a range with all kets, integrals to out[component][row][column].
#if LANES > 1
#define FOR_QUARTETS(b, ket)                \
    for (INDEX b = begin; b < end; ++b)     \
        for (INDEX ket = 0; ket < kets; ket += LANES)
#else  // the threads of a warp share their bra
#define FOR_QUARTETS(b, ket)                                                                       \
    const INDEX item = (INDEX)blockIdx.x * blockDim.x + threadIdx.x, padded = (kets + BLOCK - 1) / BLOCK * BLOCK; \
    const INDEX b = begin + item / padded, ket = item % padded;                                    \
    if (b < end && ket < kets)
#endif

struct Store {
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
            FOR_LANES(LANES) target[col[lane]] = LANE(value);
        } else {
            FOR_LANES(count) target[col[lane]] = LANE(value);
        }
    }
};

KERNEL(THREADS) ENTRY(PARAMETERS) {
    const Sides sides = SIDES;
    FOR_QUARTETS(b, ket) {
        quartet(sides, b, ket, [&](INDEX q) {
            return Store{rows + (b * columns + q) * BRA_FUNCTIONS, cols + ket, kets, out, row_stride, component_stride,
                         (int)(kets - ket)};
        });
    }
}
