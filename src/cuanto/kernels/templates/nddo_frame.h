// The local frame of a pair, z from A to B, and the rotation of products of orbitals (packed as in kernels/nddo.py).
struct Frame {
    VEC Q[3][3];  // local axes in rows
    VEC D[5][5];
};

FN void make_frame(VEC ux, VEC uy, VEC uz, Frame* f) {
    // x = helper x u with the axis that is most nearly perpendicular to u.
    const VEC ax = magnitude(ux), ay = magnitude(uy), az = magnitude(uz), one = vset(1), zero = vset(0);
    const MASK first = ax <= smaller(ay, az);
    const MASK second = ay <= az;
    const VEC hx = vselect(first, one, zero), hy = vselect(first, zero, vselect(second, one, zero));
    const VEC hz = one - hx - hy;
    const VEC px = hy * uz - hz * uy, py = hz * ux - hx * uz, pz = hx * uy - hy * ux;
    const VEC scale = vrcp(vsqrt(px * px + py * py + pz * pz));
    const VEC x[3] = {px * scale, py * scale, pz * scale}, z[3] = {ux, uy, uz};
    UNROLL for (int i = 0; i < 3; ++i) {
        f->Q[0][i] = x[i];
        f->Q[2][i] = z[i];
    }
    f->Q[1][0] = uy * x[2] - uz * x[1];
    f->Q[1][1] = uz * x[0] - ux * x[2];
    f->Q[1][2] = ux * x[1] - uy * x[0];
#if LARGEST > 4
    const REAL root = REAL(0.8660254037844386), third = REAL(0.5773502691896258);
    UNROLL for (int a = 0; a < 5; ++a) {  // x2-y2, xz, z2, yz, xy as symmetric matrices in the molecular axes
        VEC M[3][3];
        UNROLL for (int i = 0; i < 3; ++i) UNROLL for (int j = 0; j < 3; ++j) {
            const VEC xi = f->Q[0][i], xj = f->Q[0][j], yi = f->Q[1][i], yj = f->Q[1][j], zi = f->Q[2][i], zj = f->Q[2][j];
            M[i][j] = a == 0   ? root * (xi * xj - yi * yj)
                      : a == 1 ? root * (xi * zj + zi * xj)
                      : a == 2 ? zi * zj - REAL(0.5) * (xi * xj + yi * yj)
                      : a == 3 ? root * (yi * zj + zi * yj)
                               : root * (xi * yj + yi * xj);
        }
        f->D[a][0] = third * (M[0][0] - M[1][1]);
        f->D[a][1] = REAL(2) * third * M[0][2];
        f->D[a][2] = M[2][2];
        f->D[a][3] = REAL(2) * third * M[1][2];
        f->D[a][4] = REAL(2) * third * M[0][1];
    }
#endif
}

// One shell of orbitals: to the molecular frame, or with INWARD to the local one.
template <bool INWARD> FN VEC axis(const Frame& f, int local, int other) { return INWARD ? f.Q[other][local] : f.Q[local][other]; }
template <bool INWARD> FN VEC axis_d(const Frame& f, int local, int other) { return INWARD ? f.D[other][local] : f.D[local][other]; }

template <bool INWARD, class P> FN void rotate_p(const Frame& f, P x, INDEX step) {
    const VEC v[3] = {x[0], x[step], x[2 * step]};
    UNROLL for (int m = 0; m < 3; ++m)
        x[m * step] = axis<INWARD>(f, 0, m) * v[0] + axis<INWARD>(f, 1, m) * v[1] + axis<INWARD>(f, 2, m) * v[2];
}

template <bool INWARD, class P> FN void rotate_d(const Frame& f, P x, INDEX step) {
#if LARGEST > 4
    const VEC v[5] = {x[0], x[step], x[2 * step], x[3 * step], x[4 * step]};
    UNROLL for (int m = 0; m < 5; ++m) {
        VEC sum = axis_d<INWARD>(f, 0, m) * v[0];
        UNROLL for (int i = 1; i < 5; ++i) sum = sum + axis_d<INWARD>(f, i, m) * v[i];
        x[m * step] = sum;
    }
#endif
}

// Symmetric matrices of one shell, upper triangles.
template <bool INWARD, class P> FN void rotate_pp(const Frame& f, P x, INDEX step) {
    VEC M[3][3];
    int at = 0;
    UNROLL for (int i = 0; i < 3; ++i) UNROLL for (int j = i; j < 3; ++j) M[i][j] = M[j][i] = x[(at++) * step];
    UNROLL for (int i = 0; i < 3; ++i) rotate_p<INWARD>(f, &M[i][0], 1);
    UNROLL for (int j = 0; j < 3; ++j) rotate_p<INWARD>(f, &M[0][j], 3);
    at = 0;
    UNROLL for (int i = 0; i < 3; ++i) UNROLL for (int j = i; j < 3; ++j) x[(at++) * step] = M[i][j];
}

template <bool INWARD, class P> FN void rotate_dd(const Frame& f, P x, INDEX step) {
#if LARGEST > 4
    VEC M[5][5];
    int at = 0;
    UNROLL for (int i = 0; i < 5; ++i) UNROLL for (int j = i; j < 5; ++j) M[i][j] = M[j][i] = x[(at++) * step];
    NO_UNROLL for (int i = 0; i < 5; ++i) rotate_d<INWARD>(f, &M[i][0], 1);
    NO_UNROLL for (int j = 0; j < 5; ++j) rotate_d<INWARD>(f, &M[0][j], 5);
    at = 0;
    UNROLL for (int i = 0; i < 5; ++i) UNROLL for (int j = i; j < 5; ++j) x[(at++) * step] = M[i][j];
#endif
}

// All products of orbitals of an atom.
template <int ORBITALS, bool INWARD, class P> FN void rotate_products(const Frame& f, P x, INDEX step) {
    if (ORBITALS == 1) return;
    rotate_p<INWARD>(f, x + step, step);
    rotate_pp<INWARD>(f, x + 4 * step, step);
    if (ORBITALS == 4) return;
    rotate_d<INWARD>(f, x + 10 * step, step);
    NO_UNROLL for (int p = 0; p < 3; ++p) rotate_d<INWARD>(f, x + (15 + 5 * p) * step, step);
    NO_UNROLL for (int d = 0; d < 5; ++d) rotate_p<INWARD>(f, x + (15 + d) * step, 5 * step);
    rotate_dd<INWARD>(f, x + 30 * step, step);
}

template <int ORBITALS, bool INWARD, class P> FN void rotate_orbitals(const Frame& f, P x, INDEX step) {
    if (ORBITALS == 1) return;
    rotate_p<INWARD>(f, x + step, step);
    if (ORBITALS == 9) rotate_d<INWARD>(f, x + 4 * step, step);
}
