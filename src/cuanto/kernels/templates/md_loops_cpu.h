// The primitive stage of (ab|cd) by McMurchie and Davidson as plain loops over any momenta, for classes whose index tables
// would be huge. Results are in the order of recurrences/mcmurchie_davidson.py.

struct Momenta { int a, b, c, d; };

static int hermites(int order) { return (order + 1) * (order + 2) * (order + 3) / 6; }
static int monomials(int l) { return (l + 1) * (l + 2) / 2; }
// Places of (t, u, v) among all tuples by degree, and of x^i y^j z^k among the monomials of its degree.
static int monomial(int t, int u, int v) { return (u + v) * (u + v + 1) / 2 + v; }
static int hermite(int t, int u, int v) { return hermites(t + u + v - 1) + monomial(t, u, v); }

// Monomials of a pair from potentials in its Hermite Gaussians, one axis after the other: out[(a, b) * stride].
template <class T> static void from_hermites(int la, int lb, const T* E, const VEC* potential, VEC* out, INDEX stride) {
    const int n = la + lb + 1, size = (la + 1) * (lb + 1) * n;
    const T *Ex = E, *Ey = E + size, *Ez = E + 2 * size;
    VEC along_z[33 * 17];
    for (int az = 0; az <= la; ++az)
        for (int bz = 0; bz <= lb; ++bz) {
            const int left = la + lb - az - bz;
            const T* ez = Ez + (az * (lb + 1) + bz) * n;
            for (int t = 0; t <= left; ++t)
                for (int u = 0; t + u <= left; ++u) {
                    VEC sum = vset(0);
                    for (int v = 0; v <= az + bz; ++v) sum += ez[v] * potential[hermite(t, u, v)];
                    along_z[t * (left + 1) - t * (t - 1) / 2 + u] = sum;
                }
            for (int ay = 0; ay <= la - az; ++ay)
                for (int by = 0; by <= lb - bz; ++by) {
                    const int ax = la - az - ay, bx = lb - bz - by;
                    const T *ey = Ey + (ay * (lb + 1) + by) * n, *ex = Ex + (ax * (lb + 1) + bx) * n;
                    VEC result = vset(0);
                    for (int t = 0; t <= ax + bx; ++t) {
                        VEC sum = vset(0);
                        for (int u = 0; u <= ay + by; ++u) sum += ey[u] * along_z[t * (left + 1) - t * (t - 1) / 2 + u];
                        result += ex[t] * sum;
                    }
                    out[((INDEX)monomial(ax, ay, az) * monomials(lb) + monomial(bx, by, bz)) * stride] = result;
                }
        }
}

// R_tuv of all degrees to L, by descending order n in two buffers; the result is in the first one returned.
static VEC* hermite_integrals(int L, const VEC* X, const VEC* base, VEC* now, VEC* next) {
    now[0] = base[L];
    for (int n = L - 1; n >= 0; --n) {
        next[0] = base[n];
        for (int degree = 1; degree <= L - n; ++degree)
            for (int t = degree; t >= 0; --t)
                for (int u = degree - t; u >= 0; --u) {
                    const int v = degree - t - u;
                    VEC value;
                    if (t > 0) {
                        value = X[0] * now[hermite(t - 1, u, v)];
                        if (t > 1) value += REAL(t - 1) * now[hermite(t - 2, u, v)];
                    } else if (u > 0) {
                        value = X[1] * now[hermite(t, u - 1, v)];
                        if (u > 1) value += REAL(u - 1) * now[hermite(t, u - 2, v)];
                    } else {
                        value = X[2] * now[hermite(t, u, v - 1)];
                        if (v > 1) value += REAL(v - 1) * now[hermite(t, u, v - 2)];
                    }
                    next[hermite(t, u, v)] = value;
                }
        VEC* other = now;
        now = next;
        next = other;
    }
    return now;
}

// Numbers of storage for one vector of kets.
static INDEX loop_storage(const Momenta& m) {
    const int bra = m.a + m.b, ket = m.c + m.d, pairs = monomials(m.c) * monomials(m.d);
    return 2 * hermites(bra + ket) + (INDEX)hermites(bra) * pairs + hermites(ket) + hermites(bra) +
           3 * (m.c + 1) * (m.d + 1) * (ket + 1) + 64;
}

// One primitive quartet for a vector of kets, fields of the ket `step` vectors apart; out[(a, b) * pairs + (c, d)].
static void md_primitive(const Momenta& m, const REAL* bra, const VEC* ket, int step, const REAL* boys_table, VEC* v, VEC* out) {
    const int L_bra = m.a + m.b, L_ket = m.c + m.d, L = L_bra + L_ket;
    const int pairs = monomials(m.c) * monomials(m.d), n_bra = hermites(L_bra), n_ket = hermites(L_ket);
    VEC X[3], F[BOYS_MAX_ORDER + 1];
    VEC R2 = vset(0);
    for (int i = 0; i < 3; ++i) {
        X[i] = (bra[1 + i] - ket[(1 + i) * step]) + (bra[11 + i] - ket[(11 + i) * step]);
        R2 += X[i] * X[i];
    }
    const VEC root = vrsqrt(vset(1) + bra[0] * ket[0]), rho = bra[0] * root * root;
    boys_any(L, rho * R2, boys_table, F);
    VEC factor = root * ket[4 * step];
    for (int n = 0; n <= L; ++n) F[n] *= factor, factor *= REAL(-2) * rho;
    VEC* work = v + 2 * hermites(L);
    const VEC* R = hermite_integrals(L, X, F, v, v + hermites(L));
    VEC *halfway = work, *potential = halfway + (INDEX)n_bra * pairs, *column = potential + n_ket, *E_ket = column + n_bra;
    const int size_ket = (m.c + 1) * (m.d + 1) * (L_ket + 1), size_bra = (m.a + 1) * (m.b + 1) * (L_bra + 1);
    const VEC h_ket = REAL(0.5) * ket[0];
    REAL E_bra[3 * 9 * 9 * 17];
    for (int i = 0; i < 3; ++i) {
        expansion<VEC>(m.c, m.d, ket[(5 + i) * step], ket[(8 + i) * step], h_ket, E_ket + i * size_ket);
        expansion<REAL>(m.a, m.b, bra[4 + i], bra[7 + i], bra[10], E_bra + i * size_bra);
    }
    for (int t = 0; t <= L_bra; ++t)
        for (int u = 0; t + u <= L_bra; ++u)
            for (int w = 0; t + u + w <= L_bra; ++w) {
                for (int x = 0; x <= L_ket; ++x)
                    for (int y = 0; x + y <= L_ket; ++y)
                        for (int z = 0; x + y + z <= L_ket; ++z) {
                            const VEC value = R[hermite(t + x, u + y, w + z)];
                            potential[hermite(x, y, z)] = (x + y + z) % 2 ? -value : value;
                        }
                from_hermites<VEC>(m.c, m.d, E_ket, potential, halfway + (INDEX)hermite(t, u, w) * pairs, 1);
            }
    for (int k = 0; k < pairs; ++k) {
        for (int s = 0; s < n_bra; ++s) column[s] = halfway[(INDEX)s * pairs + k];
        from_hermites<REAL>(m.a, m.b, E_bra, column, out + k, pairs);
    }
}
