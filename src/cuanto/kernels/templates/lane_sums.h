// Straight-line kernels on the CPU: one ket per SIMD lane. Included behind the generated functions
// primitive() and contracted(), which know WIDTH, BRA_FIELDS, KET_FIELDS and BRA_FUNCTIONS.

static void contract(VEC* acc, const VEC* value, const REAL* coefficient, int columns, bool first) {
    for (int q = 0; q < columns; ++q) {
        const REAL c = coefficient[q];
        VEC* target = acc + q * WIDTH;
        if (first) for (int j = 0; j < WIDTH; ++j) target[j] = c * value[j];
        else for (int j = 0; j < WIDTH; ++j) target[j] = vfma(c, value[j], target[j]);
    }
}

// All columns of bra b with the kets that begin at `first` (in lanes), summed over primitives.
static void lane_sums(const Sides& x, INDEX b, INDEX first, VEC* acc) {
    const INDEX block = first / BLOCK, lane = first % BLOCK;
    VEC value[WIDTH];
    bool start = true;
    for (INDEX k = x.bra_first[b]; k < x.bra_first[b + 1]; ++k) {
        const REAL* bra = x.bra_record + k * BRA_FIELDS;
        for (INDEX c = x.ket_first[block]; c < x.ket_first[block + 1]; ++c) {
            const REAL* ket = x.ket_record + c * KET_FIELDS * BLOCK + lane;
#if SCREENED
            if (!start && !vany(bra[SIZE] * vload(ket + SIZE * BLOCK) >= REAL(x.cutoff))) break;
#endif
            primitive(bra, ket, x.boys_table, value);
            contract(acc, value, x.bra_coefficient + k * x.columns, x.columns, start);
            start = false;
        }
    }
}
