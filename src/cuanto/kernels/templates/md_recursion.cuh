// Tuples (t, u, v) of Hermite Gaussians, packed, 8 bits each, in order of their degree, and the recursion R_tuv^n.

FN int tuples_below(int degree) { return degree * (degree + 1) * (degree + 2) / 6; }
FN int tuples_of(int degree) { return (degree + 1) * (degree + 2) / 2; }

struct Tuple { int t, u, v; };
FN Tuple unpacked(int packed) { return {packed & 255, packed >> 8 & 255, packed >> 16}; }
FN int place(int t, int u, int v) { return tuples_below(t + u + v) + (u + v) * (u + v + 1) / 2 + v; }

// P - Q and R_000^n = prefactor (-2 rho)^n F_n of `count` ket primitives with one bra primitive, a thread each.
FN void make_bases(int order, const REAL* bra, const REAL* ket, int ket_fields, int count, const REAL* boys_table,
                   REAL* bases) {
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
        const REAL* record = ket + (INDEX)i * ket_fields * BLOCK;
        REAL* base = bases + i * (order + 4);
        REAL R2 = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const REAL low = bra[11 + axis] - (ket_fields > 11 ? record[(11 + axis) * BLOCK] : REAL(0));
            base[axis] = (bra[1 + axis] - record[(1 + axis) * BLOCK]) + low;
            R2 = vfma(base[axis], base[axis], R2);
        }
        const REAL r = vrcp(vfma(bra[0], record[0], REAL(1))), rho = bra[0] * r;
        REAL* F = base + 3;
        boys_any(order, rho * R2, boys_table, F);
        REAL factor = vsqrt(r) * record[4 * BLOCK];
        for (int n = 0; n <= order; ++n, factor *= -2 * rho) F[n] *= factor;
    }
}

// R_tuv^n of degree k >= 1, the tuple with number j of that degree, from n + 1 of the two lower degrees (`once`,
// `twice`).
FN REAL next_R(int k, int n, int j, const REAL* base, const int* tuples, const REAL* once, const REAL* twice) {
    const Tuple a = unpacked(tuples[tuples_below(k) + j]);
    const int m = a.u + a.v;
    // Lower the smallest nonzero power; u + v and v give the position of a tuple in its batch.
    const int t = a.t ? a.t : 99, u = a.u ? a.u : 99, v = a.v ? a.v : 99;
    const int axis = v <= u && v <= t ? 2 : u <= t ? 1 : 0;
    const int power = (axis == 0 ? t : axis == 1 ? u : v) - 1;
    const int dm = axis > 0, dv = axis == 2;
    const int j1 = (m - dm) * (m - dm + 1) / 2 + a.v - dv;
    REAL value = base[axis] * once[(n + 1) * tuples_of(k - 1) + j1];
    if (power) {
        const int j2 = (m - 2 * dm) * (m - 2 * dm + 1) / 2 + a.v - 2 * dv;
        value = vfma(REAL(power), twice[(n + 1) * tuples_of(k - 2) + j2], value);
    }
    return value;
}
