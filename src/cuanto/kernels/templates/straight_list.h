// The quartets of a list (bra, first of LANES kets): integrals [item][column][bra function][ket function][lane] on a CPU,
// [column][bra function][ket function][item] on a GPU, where a ket of -1 fills up the list.
#if LANES > 1
#define FOR_LIST(item) for (INDEX item = 0; item < count; ++item)
#define ITEM_STEP (x.columns * BRA_FUNCTIONS * KET_FUNCTIONS * LANES)
#define FUNCTION_STEP LANES
#else
#define FOR_LIST(item)                                                                                      \
    const INDEX items = *count, threads = (INDEX)gridDim.x * blockDim.x;                                    \
    for (INDEX item = (INDEX)blockIdx.x * blockDim.x + threadIdx.x; item < items; item += threads) \
        if (list[2 * item + 1] >= 0)
#define ITEM_STEP 1
#define FUNCTION_STEP stride
#endif

struct Keep {
    REAL* out;  // of this item and column
    INDEX step;
    FN_MEMBER void operator()(int, int bra, int ket, VEC value) const { vstore(out + (bra * KET_FUNCTIONS + ket) * step, value); }
};

KERNEL(THREADS) ENTRY(PARAMETERS) {
    const Sides x = SIDES;
    FOR_LIST(item) {
        quartet(x, list[2 * item], list[2 * item + 1], [&](INDEX q) {
            return Keep{out + item * ITEM_STEP + q * BRA_FUNCTIONS * KET_FUNCTIONS * FUNCTION_STEP, FUNCTION_STEP};
        });
    }
}
