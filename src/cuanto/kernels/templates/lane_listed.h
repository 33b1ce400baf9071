// Straight-line kernels on the CPU: a list of (bra, first of LANES kets), results one item after the other.

struct LaneKeep {
    VEC* out;
    FN_MEMBER void operator()(int, int bra, int ket, VEC value) const { out[bra * KET_FUNCTIONS + ket] = value; }
};

extern "C" void ENTRY(PARAMETERS) {
    const Sides& x = *(const Sides*)sides;
    VEC* acc = lane_memory(x.columns * WIDTH);
    VEC* target = (VEC*)out;
    for (INDEX item = 0; item < count; ++item) {
        const INDEX b = list[2 * item], ket = list[2 * item + 1];
        lane_sums(x, b, ket, acc);
        const REAL* distance = x.ket_shell + ket / BLOCK * SHELL_FIELDS * BLOCK + ket % BLOCK;
        for (INDEX q = 0; q < x.columns; ++q, target += BRA_FUNCTIONS * KET_FUNCTIONS)
            contracted(x.bra_shell + b * SHELL_FIELDS, distance, acc + q * WIDTH, LaneKeep{target});
    }
}
