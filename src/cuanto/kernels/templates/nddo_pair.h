// One pair of atoms (on a CPU: as many as a vector has lanes), z from A to B.
struct Pair {
    VEC a[FIELDS], b[FIELDS], pair[PAIR_FIELDS], ux, uy, uz, R;
};

FN void load_pair(const Pairs& at, INDEX atoms, const double* R, const double* record, const double* pair, int elements, Pair* x) {
    const double* A = R + (at.molecule * atoms + at.a) * 3;
    const double* of_a = record + at.a * FIELDS;
    UNROLL_REGISTERS for (int field = 0; field < FIELDS; ++field) x->a[field] = vset(of_a[field]);
    FOR_LANES(LANES) {
        const double* B = R + (at.molecule * atoms + at.b[lane]) * 3;
        LANE(x->ux) = B[0] - A[0];
        LANE(x->uy) = B[1] - A[1];
        LANE(x->uz) = B[2] - A[2];
        const double* of_b = record + at.b[lane] * FIELDS;
        UNROLL_REGISTERS for (int field = 0; field < FIELDS; ++field) LANE(x->b[field]) = of_b[field];
        const double* of_both = pair + (INDEX(of_a[ELEMENT]) * elements + INDEX(of_b[ELEMENT])) * PAIR_FIELDS;
        UNROLL_REGISTERS for (int field = 0; field < PAIR_FIELDS; ++field) LANE(x->pair[field]) = of_both[field];
    }
    x->R = vsqrt(x->ux * x->ux + x->uy * x->uy + x->uz * x->uz);
    const VEC step = vrcp(x->R);
    x->ux = x->ux * step;
    x->uy = x->uy * step;
    x->uz = x->uz * step;
}
